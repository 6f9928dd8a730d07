"""A budget is right in a database that is restored from a dump, and goes with the schema or with its queue."""

from __future__ import annotations

import psycopg
import pytest
from migration.test_dump import restored
from psycopg import sql
from support import run_cli
from support.budgets import call, has, make_budget, problems
from support.queues import one
from support.roles import Login, Roles
from support.servers import Server, embedded_only
from support.states import raises_state

from pgcombine import schema


@embedded_only
def test_restored_dump_keeps_a_budget_right(conn: psycopg.Connection, dsn: str, server: Server) -> None:
    with Roles(conn, dsn) as roles:
        login: Login = roles.login
        role = login().info.user
        conn.execute("select pgcombine.create_budget('seats', array['show int'], 'numeric(9,1)')")
        conn.execute("select pgcombine.grant_right('enqueue', %s, 'seats')", (role,))
        call(conn, "add", 7, 100)
        call(conn, "hold", 7, 3, "a", "10 min")
        with restored(dsn, server) as copy, psycopg.connect(copy, autocommit=True) as restored_conn:
            with raises_state("PC012"):
                call(restored_conn, "take", 7, 1)
            schema.upgrade(copy)
            restored_conn.execute(sql.SQL("set role {}").format(sql.Identifier(role)))
            assert call(restored_conn, "take", 7, 90)
            assert call(restored_conn, "settle", "a", 2)
            restored_conn.execute("reset role")
            call(restored_conn, "add", 7, 5)
            assert has(restored_conn) == {7: (13, 0)}
            assert problems(restored_conn) == []
            restored_conn.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(role)))


@pytest.mark.parametrize("way", ["schema", "drop_queue", "portions"])
def test_budget_goes_with_what_it_belongs_to(conn: psycopg.Connection, dsn: str, way: str) -> None:
    make_budget(conn)
    call(conn, "add", 7, 100)
    if way == "schema":
        schema.remove(dsn, force=True)
        schema.upgrade(dsn)
    elif way == "portions":
        done = run_cli("queue", "drop", "seats", "--yes", "--force", "--dsn", dsn)
        assert done.returncode == 0, done.stderr
    else:
        conn.execute("select pgcombine.drop_queue('seats', force => true)")
    assert one(conn, "select count(*) from pg_class where relname like 'seats%'") == 0
    assert one(conn, "select count(*) from pg_proc where proname like 'seats%'") == 0
    make_budget(conn)
    call(conn, "add", 7, 1)
    assert call(conn, "take", 7, 1)
