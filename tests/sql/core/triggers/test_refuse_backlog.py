"""``max_backlog`` after a reset of the server's statistics: updates from before the reset still count."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from support.homes import Filled
from support.queues import add, combine_all, make_queue, one, rows
from support.sessions import workers
from support.states import raises_state
from support.wait import eventually

from pgcombine.embedded import EmbeddedServer

UNCOUNTED = "select count(*) from pgcombine.bucket b where pgcombine_internal.uncounted(b.queue, b.bucket)"


def words(number: int) -> list[tuple[str, int]]:
    return [(f"w{i}", 1) for i in range(number)]


def fills_up(conn: psycopg.Connection) -> int:
    """Enqueue 100 updates at a time until the queue refuses them, and return how often it accepted them."""
    for number in range(50):
        conn.execute("select pg_stat_force_next_flush()")
        try:
            add(conn, words(100))
        except psycopg.Error as error:
            if error.sqlstate == "PC010":
                return number
            raise
    raise AssertionError("the queue accepted 5,000 updates, so max_backlog had no effect")


@pytest.mark.parametrize(
    "reset",
    [
        "select pg_stat_reset()",
        "select pg_stat_reset_single_table_counters(oid) from pg_class where relname like 'wc_updates_b%'",
    ],
    ids=["of the database", "of the tables"],
)
def test_reset_of_statistics_keeps_the_limit(conn: psycopg.Connection, dsn: str, reset: str) -> None:
    make_queue(conn, max_backlog=1000)
    for _ in range(3):
        add(conn, words(900))
        conn.execute("select pg_stat_force_next_flush()")
        combine_all(conn)
    assert fills_up(conn) == 10
    combine_all(conn)
    add(conn, words(500))
    conn.execute("select pg_stat_force_next_flush()")
    conn.execute(reset.encode())
    assert fills_up(conn) == 5
    assert one(conn, UNCOUNTED) == 4
    combine_all(conn)
    assert one(conn, UNCOUNTED) == 0
    assert fills_up(conn) == 10


def test_statistics_that_begin_at_zero_keep_the_limit(conn: psycopg.Connection) -> None:
    """The statistics of a promoted standby or of a copy can count fewer rows than the last pass recorded."""
    make_queue(conn, max_backlog=1000)
    combine_all(conn)
    conn.execute("update pgcombine.pass set inserted = 1000000")
    assert fills_up(conn) == 10


def test_worker_counts_buckets_after_a_reset(conn: psycopg.Connection, dsn: str) -> None:
    """Workers then run a pass over each bucket of a queue with max_backlog, even without pending updates."""
    make_queue(conn, max_backlog=1000)
    make_queue(conn, "other")
    conn.execute("select pg_stat_reset()")
    assert one(conn, UNCOUNTED) == 4
    with workers(dsn, poll=0.02):
        eventually(lambda: one(conn, UNCOUNTED) == 0, what="all buckets are counted")
        add(conn, {"a": 1}, "other")
        eventually(lambda: rows(conn, "other_values") == [("a", 1)], what="the worker combines the other queue")
    passes = "select count(*) from pgcombine.pass where queue = %s and pass > 0"
    assert [one(conn, passes, queue) for queue in ("wc", "other")] == [4, 1]


def test_pass_over_a_hash_range_leaves_the_bucket_uncounted(conn: psycopg.Connection) -> None:
    make_queue(conn, buckets=1, max_backlog=1000)
    add(conn, words(900))
    conn.execute("select pg_stat_reset()")
    conn.execute("select pgcombine_internal.run_pass('wc', 0, range_mask => 3, hash_range => 0)")
    assert one(conn, UNCOUNTED) == 1
    pending = one(conn, "select pgcombine.backlog('wc')")
    assert 500 < pending < 800
    add(conn, [("more", 1)] * (1000 - pending))
    with raises_state("PC010"):
        add(conn, {"more": 1})
    combine_all(conn)
    assert one(conn, UNCOUNTED) == 0


@pytest.mark.parametrize("end", ["immediate", pytest.param("fast", marks=pytest.mark.slow)])
def test_restarted_server_keeps_the_limit(filled: Filled, tmp_path: Path, end: str) -> None:
    server = EmbeddedServer(filled(tmp_path / "home"))
    try:
        with psycopg.connect(server.start(), autocommit=True) as conn:
            make_queue(conn, max_backlog=1000)
            for _ in range(3):
                add(conn, words(900))
                conn.execute("select pg_stat_force_next_flush()")
                combine_all(conn)
            add(conn, words(500))
            conn.execute("select pg_stat_force_next_flush()")
            conn.execute("checkpoint")
        server.stop(end)
        with psycopg.connect(server.start(), autocommit=True) as conn:
            assert one(conn, UNCOUNTED) == (4 if end == "immediate" else 0)
            assert fills_up(conn) == 5
    finally:
        server.stop("immediate")
