"""``due`` returns a failed bucket from its ``retry_at`` on, even without pending updates, if the queue isn't paused."""

from __future__ import annotations

import psycopg
import pytest
from support.queues import one
from support.sessions import workers
from support.wait import eventually

FAIL = "select pgcombine_internal.fail_pass('wc', 0, '57014', 'took too long')"
FAILING = "select failing_buckets from pgcombine.status"


def due(conn: psycopg.Connection) -> list[tuple[str, int]]:
    return conn.execute("select queue, bucket from pgcombine_internal.due()").fetchall()


@pytest.mark.wc
def test_a_failing_bucket_without_updates_is_due(conn: psycopg.Connection) -> None:
    conn.execute(FAIL)
    assert due(conn) == [], "the bucket isn't due before retry_at"
    conn.execute("update pgcombine.failure set retry_at = clock_timestamp()")
    assert due(conn) == [("wc", 0)]
    conn.execute("select pgcombine.pause('wc')")
    assert due(conn) == []
    conn.execute("select pgcombine.resume('wc')")
    assert conn.execute("select updates from pgcombine.combine('wc', 0)").fetchall() == [(0,)]
    assert due(conn) == []
    assert one(conn, FAILING) == 0


@pytest.mark.wc
def test_worker_clears_a_failure_without_pending_updates(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute(FAIL)
    with workers(dsn, "wc", poll=0.05):
        eventually(lambda: one(conn, FAILING) == 0, what="the worker clears the failure")
