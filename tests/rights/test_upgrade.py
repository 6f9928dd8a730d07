"""What an upgrade finds: rows from before they belonged to roles; a schema that another role has made beforehand."""

from __future__ import annotations

from collections.abc import Callable
from uuid import uuid4

import psycopg
from psycopg import sql
from support.queues import make_queue, one

from pgcombine import schema

Login = Callable[..., psycopg.Connection]


def test_loads_and_runs_from_before_they_belonged_to_roles(conn: psycopg.Connection, dsn: str, login: Login) -> None:
    """A load under way goes on as the role that may write to its stage; a run id counts for every role."""
    make_queue(conn)
    role = login("insert on pgcombine.wc_updates")
    for loader, run in ((role, "r"), (conn, "r"), (conn, "s")):
        load = uuid4()
        loader.execute("select pgcombine.begin_load(%s, 'wc', %s, 'token')", (load, run))
        loader.execute("select pgcombine.end_load(%s, 'wc', %s)", (load, run))
    theirs, mine = uuid4(), uuid4()
    table = one(role, "select pgcombine.begin_load(%s, 'wc', 't')", theirs)
    one(conn, "select pgcombine.begin_load(%s, 'wc', 'u')", mine)
    schema.downgrade(dsn, "0010", force=True)
    assert conn.execute("select run_id from pgcombine.spark_run order by 1").fetchall() == [("r",), ("s",)]
    schema.upgrade(dsn)
    roles = dict(conn.execute("select load, role from pgcombine.spark_load").fetchall())
    assert roles == {theirs: role.info.user, mine: conn.info.user}
    assert conn.execute("select distinct role from pgcombine.spark_run").fetchall() == [("",)]
    for loader in (conn, role):
        assert one(loader, "select pgcombine.begin_load(%s, 'wc', 's', 'token')", uuid4()) is None
    role.execute(
        sql.SQL("insert into {} (word, n, pgcombine_part) values ('a', 1, 0)").format(
            sql.Identifier("pgcombine", table)
        )
    )
    assert one(role, "select updates from pgcombine.end_load(%s, 'wc', 't')", theirs) == 1
