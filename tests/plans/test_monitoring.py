"""The monitoring views read few rows of the log by sequential scans, even with a large backlog. Two count once."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql
from support.queues import make_queue, one

READ = """
    select coalesce(sum(seq_tup_read), 0) from pg_stat_xact_user_tables
    where schemaname = 'pgcombine' and relname ~ '_updates_b'
"""
STATS = [
    *("minute_stat", "pass_recent", "export_stat", "hint_stat", "load_stat"),
    *("oldest_snapshot", "segment_stat", "table_size", "worker", "destination"),
]


def read_view(conn: psycopg.Connection, view: str) -> None:
    conn.execute(sql.SQL("select * from {}").format(sql.Identifier("pgcombine", view))).fetchall()


@pytest.fixture
def backlog(conn: psycopg.Connection) -> int:
    make_queue(conn, buckets=4)
    conn.execute("insert into pgcombine.wc_updates select 'w' || i, 1 from generate_series(1, 400000) i")
    conn.execute("select pg_stat_force_next_flush()")  # so that the counters leave out earlier reads
    return 400_000


@pytest.mark.parametrize("view", STATS)
def test_view_reads_few_updates(conn: psycopg.Connection, backlog: int, view: str) -> None:
    with conn.transaction():
        read_view(conn, view)
        assert one(conn, READ) < backlog / 40


def test_views_that_count_keep_their_counts(conn: psycopg.Connection, backlog: int) -> None:
    with conn.transaction():
        for view in ("queue_stat", "bucket_stat", "queue_stat"):
            read_view(conn, view)
        assert backlog <= one(conn, READ) < 1.5 * backlog
