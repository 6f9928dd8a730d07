"""A removal of the schema removes a rollup. In a database that is restored from a dump, a rollup equals its query."""

from __future__ import annotations

import psycopg
import pytest
from migration.test_dump import restored
from support.queues import add, make_queue
from support.rollups import Rollup
from support.servers import Server, embedded_only
from support.states import raises_state

from pgcombine import schema

VALUE = ("count(*) as rows", "sum(n) as total", "max(n) as top", "count(distinct n) as numbers")


def test_removal_of_the_schema_removes_a_rollup(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create table public.src (k text, n int)")
        Rollup.make(conn, VALUE)
        schema.remove(dsn, force=True)
        conn.execute("insert into public.src values ('a', 1)")
        assert conn.execute("select tgname from pg_trigger where tgrelid = 'public.src'::regclass").fetchall() == []
        assert conn.execute("select evtname from pg_event_trigger where evtname ~ '^pgcombine'").fetchall() == []
        schema.upgrade(dsn)
        rollup = Rollup.make(conn, VALUE)
        rollup.call(conn, "backfill")
        assert rollup.differing(conn) == []


def test_owner_of_the_table_does_not_stop_an_upgrade(dsn: str) -> None:
    """A dropped table takes the rollup's view and its functions along."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create table public.src (k text, n int)")
        Rollup.make(conn, VALUE)
        conn.execute("drop table public.src cascade")
        schema.upgrade(dsn)


def test_objects_that_use_a_changed_function_do_not_stop_an_upgrade(dsn: str) -> None:
    """The function's view has other columns. The privileges of the function stay."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        make_queue(conn)
        conn.execute("create view public.mine as select * from pgcombine.wc_get('a')")
        conn.execute("revoke all on function pgcombine.wc_get from public")
        conn.execute("grant execute on function pgcombine.wc_get to pg_monitor")
        conn.execute("alter view pgcombine.wc_current rename column n to older")
        warnings: list[str] = []
        schema.upgrade(dsn, warn=warnings.append)
        assert any("routine wc_get of an older version, since view public.mine" in text for text in warnings), warnings
        add(conn, {"a": 1})
        assert conn.execute("select * from pgcombine.wc_get('a')").fetchall() == [("a", 1)]
        allowed = "select has_function_privilege(%s, 'pgcombine.wc_get(text)', 'execute')"
        assert [conn.execute(allowed, (role,)).fetchone() for role in ("pg_monitor", "public")] == [(True,), (False,)]


@embedded_only
@pytest.mark.parametrize("partitioned", [False, True])
def test_restored_dump_keeps_a_rollup_right(dsn: str, server: Server, *, partitioned: bool) -> None:
    """A dump leaves out dropped columns, so the columns after them get other numbers."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(
            "create table public.src (gone int, k text, other int, n int)"
            + (" partition by list (k); create table public.src_a partition of public.src default" * partitioned)
        )
        conn.execute("alter table public.src drop column gone")
        conn.execute("insert into public.src values ('a', 7, 1), ('b', 7, 2)")
        rollup = Rollup.make(conn, VALUE, slice_by="n")
        conn.execute("alter table public.src rename n to number")
        schema.upgrade(dsn)
        rollup.query = rollup.query.replace("(n)", "(number)").replace("distinct n", "distinct number")
        rollup.call(conn, "backfill")
        conn.execute("insert into public.src values ('a', 7, 3)")
        rollup.call(conn, "drain")
        conn.execute("insert into public.src values ('b', 7, 2), ('c', 7, 5); delete from public.src where number = 3")
    with restored(dsn, server) as copy:
        schema.check(copy)
        with psycopg.connect(copy, autocommit=True) as conn:
            assert rollup.differing(conn) == []
            with raises_state("PC012"):
                conn.execute("insert into public.src values ('a', 7, 1)")
            conn.execute("select pgcombine.post_restore()")
            assert rollup.verify(conn) == []
            schema.upgrade(copy)
            conn.execute("insert into public.src values ('a', 7, 9), ('d', 7, 1); delete from public.src where k = 'b'")
            assert rollup.differing(conn) == []
            rollup.call(conn, "drain")
            conn.execute("truncate public.src; insert into public.src values ('e', 7, 1)")
            assert rollup.differing(conn) == []
            rollup.call(conn, "drain")
            assert (rollup.verify(conn), rollup.differing(conn)) == ([], [])


@embedded_only
def test_restored_dump_keeps_what_a_rollup_has_kept(dsn: str, server: Server) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("create table public.src (gone int, k text, n int); alter table public.src drop column gone")
        rollup = Rollup.make(conn, VALUE, keep="n < 3 and now() is not null")
        rollup.call(conn, "backfill")
        conn.execute("insert into public.src values ('a', 1), ('b', 7); delete from public.src where k = 'a'")
    with restored(dsn, server) as copy, psycopg.connect(copy, autocommit=True) as conn:
        conn.execute("select pgcombine.post_restore()")
        conn.execute("insert into public.src values ('a', 2), ('a', 5); delete from public.src")
        rollup.call(conn, "drain")
        assert conn.execute("select k, rows, total from pgcombine.r").fetchall() == [("a", 2, 3)]
        assert rollup.verify(conn) == []
