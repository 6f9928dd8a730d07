"""``due`` returns a failed bucket from its ``retry_at`` on, even without pending updates, if the queue isn't paused."""

from __future__ import annotations

import psycopg
from support.queues import make_queue, one
from support.sessions import workers
from support.wait import eventually

FAIL = "select pgcombine_internal.fail_pass('wc', 0, '57014', 'took too long')"
FAILING = "select failing_buckets from pgcombine.status"


def due(conn: psycopg.Connection) -> list[tuple[str, int]]:
    return conn.execute("select queue, bucket from pgcombine_internal.due()").fetchall()


def test_a_failing_bucket_without_updates_is_due(tx: psycopg.Connection) -> None:
    make_queue(tx)
    tx.execute(FAIL)
    assert due(tx) == [], "the bucket isn't due before retry_at"
    tx.execute("update pgcombine.failure set retry_at = clock_timestamp()")
    assert due(tx) == [("wc", 0)]
    tx.execute("select pgcombine.pause('wc')")
    assert due(tx) == []
    tx.execute("select pgcombine.resume('wc')")
    assert tx.execute("select updates from pgcombine.combine('wc', 0)").fetchall() == [(0,)]
    assert due(tx) == []
    assert one(tx, FAILING) == 0


def test_worker_clears_a_failure_without_pending_updates(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn)
    conn.execute(FAIL)
    with workers(dsn, "wc", poll=0.05):
        eventually(lambda: one(conn, FAILING) == 0, what="the worker clears the failure")
