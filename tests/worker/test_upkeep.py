"""Workers run the components' upkeep, here the backfill of rollups."""

from __future__ import annotations

import psycopg
from support.queues import one
from support.roles import Roles, as_role
from support.rollups import Rollup
from support.sessions import workers
from support.wait import eventually

from pgcombine.database.connect import connect
from pgcombine.worker.maintenance import upkeep


def make(conn: psycopg.Connection) -> Rollup:
    conn.execute("create table public.src (k text, n int); create index on public.src (k)")
    conn.execute("insert into public.src select g % 7, g from generate_series(1, 100) g")
    return Rollup.make(conn, ["count(*) as rows", "max(n) as top", "count(distinct n) as numbers"], slice_by="n")


def test_workers_backfill_a_rollup(conn: psycopg.Connection, dsn: str) -> None:
    rollup = make(conn)
    with workers(dsn, poll=0.1):
        eventually(lambda: rollup.ready(conn), what="a worker backfills the rollup")
        eventually(lambda: one(conn, "select count(*) = 7 from pgcombine.r_values"), what="it combines the rows")
    assert (rollup.verify(conn), rollup.differing(conn)) == ([], [])


def test_upkeep_leaves_a_rollup_to_the_session_that_backfills_it(conn: psycopg.Connection, dsn: str) -> None:
    rollup = make(conn)
    with psycopg.connect(dsn) as other, connect(dsn) as connection:
        other.execute("select pgcombine_internal.backfill_slice('r')")
        upkeep(connection)
        assert not rollup.ready(conn)
        other.rollback()
        upkeep(connection)
    assert rollup.ready(conn)


def test_upkeep_leaves_out_rollups_without_the_right_to_combine(conn: psycopg.Connection, dsn: str) -> None:
    rollup = make(conn)
    with Roles(conn, dsn) as roles:
        role = roles.login().info.user
        conn.execute("select pgcombine.grant_right('read', %s, 'r')", (role,))
        with connect(as_role(dsn, role)) as connection:
            upkeep(connection)
            assert not rollup.ready(conn)
            conn.execute("select pgcombine.grant_right('work', %s)", (role,))
            upkeep(connection)
    assert (rollup.ready(conn), rollup.differing(conn)) == (True, [])


def test_upkeep_of_a_rollup_that_fails_does_not_stop_others(conn: psycopg.Connection, dsn: str) -> None:
    rollup = make(conn)
    conn.execute("create table public.bad (k int)")
    conn.execute("select pgcombine.create_rollup('a', 'public.bad', array['k'], array['count(*) as n'])")
    conn.execute("drop event trigger pgcombine_follow_drop; drop view pgcombine.a_source cascade")
    with connect(dsn) as connection:
        upkeep(connection)
    assert rollup.ready(conn)
    assert one(conn, "select ready_at is null from pgcombine.rollup where queue = 'a'")
