"""The lag is the age of the oldest pending update. ``tick`` records the times for it. Enqueues record none."""

from __future__ import annotations

import json
import time

import psycopg
import pytest
from psycopg.rows import dict_row
from support import eventually, run_cli
from support.queues import add, combine_all, lose, one, pass_time, word_in
from support.readme import ROOT, fences

from pgcombine.queue import status
from pgcombine.queue.combine_queue import CombineQueue

WC = CombineQueue("wc", key=["word text"], value=["n bigint sum"], buckets=2)


@pytest.fixture
def wc(conn: psycopg.Connection) -> psycopg.Connection:
    WC.create(conn)
    return conn


def lag(conn: psycopg.Connection) -> float:
    return status.status(conn, fresh=True)[0]["lag_seconds"]


def test_lag_is_zero_without_pending_updates(wc: psycopg.Connection) -> None:
    assert lag(wc) == 0


def test_lag_counts_from_the_last_recorded_time(wc: psycopg.Connection) -> None:
    lag(wc)
    began = time.monotonic() - 1.0
    WC.enqueue(wc, [("fluo", 1)])
    assert lag(wc) > 0, "the lag counts from the last recorded time"
    seen = eventually(lambda: (lag(wc) > 1.5 and lag(wc)) or None)
    assert seen <= time.monotonic() - began + 0.5
    wc.execute("insert into pgcombine.wc_updates values ('younger', 1)")
    assert lag(wc) >= seen
    wc.execute("select pgcombine.combine('wc', b) from generate_series(0, 1) b")
    assert lag(wc) == 0


def test_updates_after_a_rebucket_are_young(wc: psycopg.Connection) -> None:
    add(wc, {"old": 1})
    eventually(lambda: lag(wc) > 1.5)
    WC.rebucket(wc, 4)
    assert lag(wc) > 1.5
    combine_all(wc)
    assert lag(wc) == 0
    began = time.monotonic() - 1.0
    add(wc, {word_in(wc, bucket): 1 for bucket in range(4)})
    assert lag(wc) <= time.monotonic() - began + 0.5


def test_recorded_times_date_updates(wc: psycopg.Connection) -> None:
    wc.execute("insert into pgcombine.wc_updates values ('old', 1)")
    pass_time(wc, 3600)
    wc.execute("insert into pgcombine.wc_updates values ('new', 1)")
    assert lag(wc) == pytest.approx(3600, abs=60)
    assert one(wc, "select lag_seconds from pgcombine.status") == pytest.approx(3600, abs=60)
    lose(wc, "word = 'old'")
    assert lag(wc) < 60


def test_passes_over_hash_ranges_keep_the_lag(conn: psycopg.Connection) -> None:
    conn.execute(
        "select pgcombine.create_queue('wc', array['w text'], array['n int sum'], buckets => 1, pass_limit => 10)"
    )
    conn.execute("insert into pgcombine.wc_updates select 'w' || i, 1 from generate_series(1, 100) i")
    pass_time(conn, 3600)
    passes = 0
    while WC.backlog(conn):
        assert lag(conn) == pytest.approx(3600, abs=60)
        conn.execute("select pgcombine.combine('wc', 0)")
        passes += 1
    assert passes > 2
    conn.execute("insert into pgcombine.wc_updates values ('w1', 1)")
    assert lag(conn) < 60


def test_old_recorded_times_are_thinned_out(wc: psycopg.Connection) -> None:
    wc.execute("delete from pgcombine.tick")
    wc.execute(
        "insert into pgcombine.tick (at, next_id)"
        " select now() - interval '1 s' * i, 1 from generate_series(61, 100000) i"
    )
    wc.execute("select pgcombine_internal.tick()")
    left, gap = wc.execute(
        "select count(*), max(extract(epoch from at - before) / extract(epoch from now() - before))"
        " from (select at, lag(at) over (order by at) as before"
        "       from pgcombine.tick where at < now() - interval '1 hour') t"
    ).fetchone()
    assert left < 6000
    assert gap < 0.01


def test_lag_works_in_a_read_only_transaction(wc: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn, options="-c default_transaction_read_only=on") as reader:
        assert lag(reader) == 0


def test_command_shows_the_lag(wc: psycopg.Connection, dsn: str) -> None:
    wc.execute("insert into pgcombine.wc_updates values ('old', 1)")
    pass_time(wc, 3600)
    shown = run_cli("status", "--json", "--dsn", dsn)
    assert json.loads(shown.stdout)["queues"][0]["lag_seconds"] == pytest.approx(3600, abs=60)


def test_paused_queue_shows_its_lag(wc: psycopg.Connection, dsn: str) -> None:
    """The SQL in monitoring.md, the command, its exit status and the view pgcombine.status show it."""
    add(wc, {"a": 1, "b": 1})
    pass_time(wc, 3600)
    WC.pause(wc)
    page = ROOT / "pgcombine" / "docs" / "monitoring.md"
    (figures,) = [text for text in fences(page, "sql") if "lag_seconds" in text]
    (found,) = wc.cursor(row_factory=dict_row).execute(figures.partition(";")[0].encode()).fetchall()
    (shown,) = status.status(wc)
    assert (found["pending"], shown["backlog"]) == (2, 2)
    assert found["lag_seconds"] == pytest.approx(3600, abs=60) == shown["lag_seconds"]
    for limit in ((), ("--max-lag", 1800)):
        done = run_cli("status", *limit, "--dsn", dsn)
        assert (done.returncode, "(paused: pgcombine queue resume wc)" in done.stderr) == (1, True)
    assert run_cli("status", "--max-lag", 7200, "--dsn", dsn).returncode == 0
    (counted,) = wc.execute("select backlog, lag_seconds from pgcombine.status").fetchall()
    assert counted == (2, pytest.approx(3600, abs=60))
    assert lag(wc) == pytest.approx(3600, abs=60)
