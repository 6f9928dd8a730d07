"""What grant_handoff gave before it named queues is taken back by the upgrade."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql
from support.queues import make_queue, one
from support.roles import Roles

from pgcombine import schema


@pytest.mark.slow
def test_rights_of_before_are_gone(dsn: str) -> None:
    schema.downgrade(dsn, "0010")
    with psycopg.connect(dsn, autocommit=True) as conn, Roles(conn, dsn) as roles:
        role = roles.login().info.user
        app = sql.Identifier(role)
        for grant in (
            "select, insert, update on pgcombine.handoff_replica, pgcombine.destination_state",
            "select, insert on pgcombine.handoff_token",
            "select, delete on pgcombine.handoff_partial",
            "select, insert, update, delete on pgcombine.handoff_hint",
        ):
            conn.execute(sql.SQL("grant {} to {}").format(sql.SQL(grant), app))
        schema.upgrade(dsn)
        make_queue(conn)
        kept = one(
            conn,
            "select count(*) from pg_class c, aclexplode(c.relacl) a "
            "where a.grantee = %s::regrole and c.relnamespace = 'pgcombine'::regnamespace",
            role,
        )
        assert kept == 0
        conn.execute("select pgcombine.grant_handoff(%s, 'wc')", (role,))
        assert one(conn, "select pgcombine_internal.has_right('wc', 'write', %s)", role)
