"""A key that fails again and again is quarantined, and passes combine the other keys of its bucket."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest
from psycopg import errors as pg
from support import eventually, run_cli
from support.audit import audit, audited, follow
from support.queues import add, combine_all, current, hold, lose, make_queue, one, values, word_in
from support.servers import embedded_only
from support.sessions import workers

from pgcombine.errors import InvalidUpdateError, NotQuarantinedError, PassError, QueueNotEmptyError
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.worker import quarantine
from pgcombine.worker.drain import drain

HUGE = 2**63 - 1


def quarantined_updates(conn: psycopg.Connection) -> dict[str, int]:
    """Return the number of quarantined updates of each word, and assert that the view and the table agree on it."""
    found = conn.execute(
        """
        select coalesce(q.key ->> 'word', h.word), q.updates, coalesce(h.updates, 0)
        from (select * from pgcombine.quarantine where queue = 'wc') q
        full join (select word, count(*) as updates from pgcombine.wc_quarantine group by word) h
            on h.word = q.key ->> 'word'
        """
    ).fetchall()
    assert [row for row in found if row[1] != row[2]] == []
    return {word: updates for word, updates, _ in found}


def fail_on(conn: psycopg.Connection, pattern: str) -> None:
    """Add an observer that raises for words that match ``pattern``, until ``forgive`` is called."""
    conn.execute(
        """
        create table forbidden (pattern text);
        create function check_word(word text) returns void language plpgsql as $$
        begin
            if exists (select from forbidden where word like pattern) then
                raise exception 'the word % is forbidden', word;
            end if;
        end $$
        """
    )
    conn.execute("insert into forbidden values (%s)", (pattern,))
    conn.execute("select pgcombine.add_observer('wc', 'check', 'select check_word(word) from changes')")


def forgive(conn: psycopg.Connection) -> None:
    conn.execute("truncate forbidden")


def fail(dsn: str, times: int) -> None:
    for _ in range(times):
        with pytest.raises(PassError):
            drain(dsn, "wc")


def test_failing_key_among_a_thousand_is_quarantined(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=1, delete_when=None, quarantine_after=3)
    audit(conn)
    words = {f"w{i}": 1 for i in range(1000)}
    add(conn, words)
    add(conn, [("bad", HUGE), ("bad", 1)])
    fail(dsn, 2)
    assert (values(conn), quarantined_updates(conn)) == ({}, {})
    assert one(conn, "select attempts from pgcombine.failure") == 2

    drain(dsn, "wc")  # the third failure starts the search for the failing key
    assert values(conn) == words
    assert quarantined_updates(conn) == {"bad": 2}
    assert one(conn, "select pgcombine.backlog('wc')") == 0
    assert one(conn, "select count(*) from pgcombine.failure") == 0
    (entry,) = quarantine.ls(conn)
    assert entry | {"since": None} == {
        "queue": "wc",
        "key": {"word": "bad"},
        "updates": 2,
        "attempts": 3,
        "sqlstate": "22003",
        "error": "bigint out of range",
        "since": None,
    }

    add(conn, {"bad": -10, "w1": 1})  # a new update of a quarantined key is quarantined, too
    assert "bad" not in current(conn)
    drain(dsn, "wc")
    assert quarantined_updates(conn) == {"bad": 3}
    assert values(conn) == words | {"w1": 2}

    assert quarantine.retry(conn, "wc", {"word": "bad"}) == 3
    assert quarantined_updates(conn) == {}
    assert current(conn)["bad"] == HUGE - 9
    drain(dsn, "wc")
    assert values(conn) == words | {"w1": 2, "bad": HUGE - 9}
    assert follow(audited(conn)) == values(conn)


def test_workers_quarantine_a_key_during_enqueues(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=2, quarantine_after=2)
    fail_on(conn, "bad")
    add(conn, {"bad": 7})
    with workers(dsn, count=2, poll=0.05):
        for i in range(100):
            add(conn, {f"w{i % 20}": 1, "bad": 1})
        eventually(lambda: quarantined_updates(conn).get("bad") == 101, what="all updates of the key are quarantined")
        eventually(lambda: sum(values(conn).values()) == 100, what="the others are combined")
        forgive(conn)
        assert quarantine.retry(conn, "wc") == 101
        eventually(lambda: values(conn).get("bad") == 107)


def test_failures_are_shared_and_retried_after_growing_waits(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=1, quarantine_after=10)
    add(conn, [("bad", HUGE), ("bad", 1)])
    fail(dsn, 3)
    failure = "select attempts, sqlstate, retry_at > last from pgcombine.failure where queue = 'wc' and bucket = 0"
    assert conn.execute(failure).fetchall() == [(3, "22003", True)]
    waits = [one(conn, "select extract(epoch from retry_at - last)::float from pgcombine.failure")]
    for _ in range(4):
        conn.execute("select pgcombine_internal.fail_pass('wc', 0, '22003', 'again')")
        waits.append(one(conn, "select extract(epoch from retry_at - last)::float from pgcombine.failure"))
    assert waits == sorted(waits)
    assert waits[-1] > 4 * waits[0]
    assert conn.execute("select * from pgcombine_internal.due()").fetchall() == []
    assert conn.execute("select * from pgcombine_internal.busy()").fetchall() == [("wc", 0)]
    lose(conn, "n = 1")
    drain(dsn, "wc")
    assert conn.execute(failure).fetchall() == []


@pytest.mark.wc
def test_success_writes_nothing_about_failures(conn: psycopg.Connection, dsn: str) -> None:
    add(conn, {f"w{i}": 1 for i in range(50)})
    drain(dsn, "wc")
    conn.execute("select pg_stat_force_next_flush()")
    written = conn.execute(
        "select n_tup_ins + n_tup_upd + n_tup_del from pg_stat_user_tables "
        "where schemaname = 'pgcombine' and relname in ('failure', 'quarantined_key', 'wc_quarantine')"
    ).fetchall()
    assert written == [(0,)] * 3


def test_at_most_one_key_that_fails_alone_is_quarantined(conn: psycopg.Connection, dsn: str) -> None:
    """If no other key succeeds, something other than the key may cause the error, so no second key is quarantined."""
    make_queue(conn, buckets=2, quarantine_after=1)
    fail_on(conn, "%")
    first, second = word_in(conn, 0), word_in(conn, 1)
    add(conn, {first: 1})
    drain(dsn, "wc")
    assert quarantined_updates(conn) == {first: 1}
    add(conn, {second: 1})
    fail(dsn, 2)
    assert quarantined_updates(conn) == {first: 1}
    assert one(conn, "select pgcombine.backlog('wc')") == 1


def test_cancelled_statement_quarantines_no_key(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=1, quarantine_after=1)
    conn.execute(
        "create function cancelled(word text) returns void language plpgsql as $$ begin "
        "if word = 'bad' then raise exception 'too slow' using errcode = '57014'; end if; end $$"
    )
    conn.execute("select pgcombine.add_observer('wc', 'slow', 'select cancelled(word) from changes')")
    add(conn, {"bad": 1, "good": 1})
    fail(dsn, 3)
    assert quarantined_updates(conn) == {}
    assert current(conn) == {"bad": 1, "good": 1}


@pytest.mark.wc(buckets=1)
def test_pass_over_a_hash_range_may_succeed(conn: psycopg.Connection) -> None:
    fail_on(conn, "bad")
    words = {f"w{i}": 1 for i in range(20)}
    add(conn, words | {"bad": 1})
    failed = 0
    for part in range(2):
        try:
            conn.execute(
                "select * from pgcombine_internal.run_pass('wc', 0, range_mask => 1, hash_range => %s)", (part,)
            )
        except pg.RaiseException:
            failed += 1
    assert failed == 1
    assert 0 < len(values(conn)) < 20
    hold(conn, word="bad")
    assert quarantined_updates(conn) == {"bad": 1}
    assert values(conn) == words


@pytest.mark.wc(buckets=1)
@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_old_snapshot_combines_no_quarantined_key(conn: psycopg.Connection, dsn: str, isolation: str) -> None:
    """A transaction that began before the quarantine must not combine later updates of the key."""
    add(conn, {"bad": 1})
    with psycopg.connect(dsn, autocommit=True) as old:
        old.execute(f"begin isolation level {isolation}")
        old.execute("select count(*) from pgcombine.wc_updates")
        hold(conn, word="bad")
        add(conn, {"bad": 5, "good": 1})
        if isolation == "repeatable read":
            with pytest.raises(pg.SerializationFailure):
                old.execute("select * from pgcombine.combine('wc', 0)")
            old.execute("rollback")
        else:
            old.execute("select * from pgcombine.combine('wc', 0)")
            old.execute("commit")
    combine_all(conn)
    assert values(conn) == {"good": 1}
    assert quarantined_updates(conn) == {"bad": 2}


@pytest.mark.wc(buckets=1)
def test_a_retry_with_an_old_snapshot_leaves_nothing_behind(conn: psycopg.Connection, dsn: str) -> None:
    add(conn, {"bad": 1})
    hold(conn, word="bad")
    with psycopg.connect(dsn, autocommit=True) as old:
        old.execute("begin isolation level repeatable read")
        old.execute("select count(*) from pgcombine.wc_quarantine")
        add(conn, {"bad": 5})
        combine_all(conn)
        with pytest.raises(pg.SerializationFailure):
            old.execute("select pgcombine.retry_quarantined('wc')")
        old.execute("rollback")
    assert quarantined_updates(conn) == {"bad": 2}


def test_key_of_several_columns_is_quarantined(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, key=["x int", "d date"], buckets=1, delete_when=None, quarantine_after=1)
    conn.execute("insert into pgcombine.wc_updates select i, '2026-01-01', 1 from generate_series(1, 9) i")
    conn.execute("insert into pgcombine.wc_updates values (5, '2026-01-01', %s)", (HUGE,))
    drain(dsn, "wc")
    (entry,) = quarantine.ls(conn)
    assert entry["key"] == {"x": 5, "d": "2026-01-01"}
    with pytest.raises(NotQuarantinedError):
        quarantine.retry(conn, "wc", {"x": 6, "d": "2026-01-01"})
    for wrong in ({"x": 5}, {"x": 5, "d": "2026-01-01", "n": 1}, {"x": 5, "d": "soon"}):
        with pytest.raises(InvalidUpdateError):
            quarantine.retry(conn, "wc", wrong)
    assert quarantine.drop(conn, "wc", {"x": "5", "d": "2026-01-01"}) == 2
    assert quarantine.ls(conn) == []
    conn.execute("insert into pgcombine.wc_updates values (5, '2026-01-01', 3)")
    drain(dsn, "wc")
    assert one(conn, "select n from pgcombine.wc_values where x = 5") == 3


@pytest.mark.wc(buckets=1)
def test_queue_with_quarantined_updates_is_not_dropped(conn: psycopg.Connection) -> None:
    add(conn, {"bad": 1})
    hold(conn, word="bad")
    with pytest.raises(QueueNotEmptyError):
        CombineQueue("wc").drop(conn)
    CombineQueue("wc").drop(conn, force=True)
    assert quarantine.ls(conn) == []


@embedded_only
def test_commands_show_and_release_quarantined_keys(conn: psycopg.Connection, dsn: str, tmp_path: Path) -> None:
    make_queue(conn, buckets=1, delete_when=None, quarantine_after=1)
    add(conn, [("bad", HUGE), ("bad", 1), ("worse", HUGE), ("worse", 2), ("good", 1)])
    assert run_cli("worker", "--drain", "--dsn", dsn).returncode == 0

    listed = json.loads(run_cli("quarantine", "ls", "--json", "--dsn", dsn).stdout)
    assert {entry["key"]["word"]: entry["updates"] for entry in listed} == {"bad": 2, "worse": 2}
    shown = json.loads(run_cli("quarantine", "show", "wc", "bad", "--json", "--dsn", dsn).stdout)
    assert sorted(update["n"] for update in shown["quarantined"]) == [1, HUGE]
    assert "bigint out of range" in run_cli("quarantine", "ls", "--dsn", dsn).stdout
    assert "bigint out of range" in run_cli("quarantine", "show", "wc", "bad", "--dsn", dsn).stdout

    dropped = run_cli("quarantine", "drop", "wc", "bad", "--yes", "--json", "--dsn", dsn)
    assert json.loads(dropped.stdout) == {"queue": "wc", "state": "dropped", "updates": 2}
    assert run_cli("quarantine", "retry", "wc", "--dsn", dsn).returncode == 2  # neither a key nor --all is given
    unknown = run_cli("quarantine", "retry", "wc", "bad", "--dsn", dsn)
    assert (unknown.returncode, unknown.stdout) == (1, "")
    assert "isn't quarantined" in unknown.stderr
    again = run_cli("quarantine", "retry", "wc", "--all", "--json", "--dsn", dsn)
    assert json.loads(again.stdout) == {"queue": "wc", "state": "pending", "updates": 2}
    assert one(conn, "select pgcombine.backlog('wc')") == 2
