"""Keys that expire while workers run: a worker removes them, whatever fails, meets or dies in between."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import errors as pg
from support.queues import add, combine_all, make_queue, one, values
from support.wait import eventually

import pgcombine
from pgcombine.worker import retention
from pgcombine.worker.passes import open_connection


@contextmanager
def working(dsn: str, *queues: pgcombine.CombineQueue) -> Iterator[None]:
    """A worker that runs meanwhile."""
    stop = threading.Event()
    worker = pgcombine.Worker(dsn, queues, poll=0.1)
    thread = threading.Thread(target=worker.run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def filled(conn: psycopg.Connection, keys: int = 100, **options: object) -> None:
    """Half of the keys, those with n = 0, expire as soon as the condition is set."""
    make_queue(conn, delete_when=None, **options)
    conn.execute("insert into pgcombine.wc_values select g::text, g %% 2 from generate_series(1, %s) g", (keys,))


def expire(conn: psycopg.Connection) -> None:
    conn.execute("select pgcombine.set_retain('wc', 'n > 0')")


def left(conn: psycopg.Connection) -> int:
    return int(one(conn, "select count(*) from pgcombine.wc_values"))


def test_a_worker_removes_expired_keys(dsn: str, conn: psycopg.Connection) -> None:
    filled(conn)
    expire(conn)
    with working(dsn):
        eventually(lambda: left(conn) == 50)
        eventually(
            lambda: one(conn, "select count(*) from pgcombine.retention where due > now() + interval '5 min'") == 4
        )


def test_a_failing_observer_is_a_failure_of_the_bucket_and_passes_go_on(dsn: str, conn: psycopg.Connection) -> None:
    filled(conn, buckets=1)
    conn.execute("create table broken ()")
    conn.execute(
        "create function strict(is_now bigint) returns bigint language plpgsql as $$ begin "
        "if is_now is null and exists (select from pg_class where relname = 'broken') then raise 'it broke'; end if; "
        "return is_now; end $$"
    )
    conn.execute("select pgcombine.add_observer('wc', 'strict', 'select strict(new_n) from changes')")
    expire(conn)
    with working(dsn):
        eventually(lambda: one(conn, "select count(*) from pgcombine.failure where error ~ 'it broke'") == 1)
        assert left(conn) == 100
        add(conn, {"1": 1})
        eventually(lambda: values(conn)["1"] == 2)
        assert one(conn, "select count(*) from pgcombine.quarantined_key") == 0
        conn.execute("drop table broken")
        conn.execute("update pgcombine.retention set due = '-infinity'")
        eventually(lambda: left(conn) == 50)
        eventually(lambda: one(conn, "select count(*) from pgcombine.failure") == 0)


def test_python_observers_see_deletions(dsn: str, conn: psycopg.Connection) -> None:
    wc = pgcombine.CombineQueue("wc", key=["word text"], value=["n bigint sum", "last bigint python"], buckets=1)
    seen: list[tuple[object, object, object]] = []

    @wc.on_change
    def watch(tx: object, changes: object) -> None:
        seen.extend((c.key, c.old, c.new) for c in changes)

    @wc.combiner("last")
    def greatest(key: object, them: Iterator[int]) -> int:
        return max(them)

    wc.create(conn)
    wc.enqueue(conn, [{"word": "a", "n": 1, "last": 7}, {"word": "b", "n": 0, "last": 8}])
    pgcombine.drain(dsn, wc)
    seen.clear()
    expire(conn)
    with pytest.raises(psycopg.Error, match="Python") as caught:
        conn.execute("call pgcombine.retain('wc')")
    assert caught.value.sqlstate == "PC008"
    with working(dsn, wc):
        eventually(lambda: left(conn) == 1)
    assert seen == [("b", (0, 8), None)]


def test_a_worker_that_dies_in_a_step_leaves_all_or_nothing(dsn: str, conn: psycopg.Connection) -> None:
    filled(conn, buckets=1)
    conn.execute("create table history (word text)")
    conn.execute("select pgcombine.add_observer('wc', 'history', 'insert into history select word from changes')")
    expire(conn)
    with open_connection(dsn) as dying, conn.transaction():
        conn.execute("lock table history in exclusive mode")
        failed: list[psycopg.Error] = []

        def run() -> None:
            try:
                retention.step(dying, "wc", 0)
            except psycopg.Error as error:
                failed.append(error)

        thread = threading.Thread(target=run)
        thread.start()
        waits = "select count(*) from pg_stat_activity where pid = %s and wait_event_type = 'Lock'"
        eventually(lambda: one(conn, waits, dying.info.backend_pid) == 1)
        conn.execute("select pg_terminate_backend(%s)", (dying.info.backend_pid,))
        thread.join()
    assert failed
    assert dying.closed
    assert left(conn) == 100
    assert one(conn, "select count(*) from history") == 0
    assert one(conn, "call pgcombine.retain('wc')") == 50
    assert one(conn, "select count(*) from history") == 50


def test_a_pass_between_snapshot_and_step_is_noticed(dsn: str, conn: psycopg.Connection) -> None:
    filled(conn, buckets=1)
    expire(conn)
    with open_connection(dsn) as late:
        late.execute("begin isolation level repeatable read")
        late.execute("select 1 from pgcombine.wc_values")  # takes the snapshot
        add(conn, {"2": 5})
        combine_all(conn)
        with pytest.raises(pg.SerializationFailure):
            late.execute(
                "select pgcombine_internal.run_retain(p) from pgcombine_internal.claim_bucket('wc', 0) b, "
                "lateral pgcombine_internal.plan_retain('wc', b) p"
            )
        late.rollback()
        assert retention.step(late, "wc", 0) == (49, False)
    assert values(conn)["2"] == 5


def test_a_step_meets_a_pass_that_retains_the_key(dsn: str, conn: psycopg.Connection) -> None:
    """The update is committed before the step begins, so the pass that takes it decides."""
    filled(conn, buckets=1)
    expire(conn)
    add(conn, {"2": 5})
    with open_connection(dsn) as connection:
        assert retention.step(connection, "wc", 0) == (49, False)
    combine_all(conn)
    assert values(conn)["2"] == 5
