"""Workers vacuum what their passes leave, where it is of use."""

from __future__ import annotations

import threading

import psycopg
from support.queues import make_queue, one
from support.wait import eventually

from pgcombine.database import connect
from pgcombine.tidying import Tidy
from pgcombine.worker import Worker

SOME = "insert into pgcombine.wc_updates select 'w' || i % 9, 1 from generate_series(1, 60000) i"
SIZE = "select pg_relation_size('pgcombine.wc_updates_b0000')"
BLOATED = "select count(*) from pgcombine.bloated('wc', %s::interval)"


def bloat(conn: psycopg.Connection) -> None:
    conn.execute(SOME)
    conn.execute("select pgcombine.combine('wc', 0)")
    conn.execute("select pg_stat_force_next_flush()")
    eventually(lambda: one(conn, "select pg_stat_get_dead_tuples('pgcombine.wc_updates_b0000'::regclass) > 50000"))


def test_room_is_used_again(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=1)
    bloat(conn)
    assert one(conn, BLOATED, "10 s") == 1
    with connect(dsn) as connection:
        Tidy(("wc",), every=0).look(connection)
    assert one(conn, BLOATED, "10 s") == 0
    size = one(conn, SIZE)
    conn.execute(SOME)
    assert one(conn, SIZE) == size


def test_a_worker_does_it(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=1)
    conn.execute("alter table pgcombine.wc_updates_b0000 set (autovacuum_enabled = off)")
    conn.execute(SOME)
    stop = threading.Event()
    worker = threading.Thread(target=Worker(dsn, ["wc"]).run, args=(stop,))
    worker.start()
    try:
        eventually(lambda: one(conn, "select pg_stat_get_last_vacuum_time('pgcombine.wc_updates_b0000'::regclass)"))
    finally:
        stop.set()
        worker.join()


def test_not_in_vain(conn: psycopg.Connection, dsn: str) -> None:
    """While an old snapshot is held nothing can be vacuumed away."""
    make_queue(conn, buckets=1)
    with psycopg.connect(dsn) as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select from pgcombine.queue")
        bloat(conn)
        assert one(conn, BLOATED, "0 s") == 0
    assert one(conn, BLOATED, "0 s") == 1


def test_not_by_who_may_not(conn: psycopg.Connection) -> None:
    make_queue(conn, buckets=1)
    bloat(conn)
    conn.execute("create role nobody_here")
    try:
        conn.execute("grant usage on schema pgcombine to nobody_here; grant select on pgcombine.queue to nobody_here")
        conn.execute("set role nobody_here")
        assert one(conn, BLOATED, "10 s") == 0
    finally:
        conn.execute("reset role")
        conn.execute("drop owned by nobody_here; drop role nobody_here")
