"""G7: the changes of a key reach observers in the order in which the passes commit.

An observer sends a notification of each change. PostgreSQL delivers notifications in the order of commits, so a
listener sees this order. In a mutant, which the tests must detect, passes don't lock the bucket.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from support.audit import Change, audit, audited, check, follow
from support.mutants import without_claim
from support.queues import add, combine, combine_all, make_queue, one
from support.sessions import in_background, workers
from support.wait import eventually

NOTIFY = "select pg_notify('heard', json_build_array(word, old_n, new_n)::text) from changes"


@contextmanager
def listener(dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn, autocommit=True) as heard:
        heard.execute("listen heard")
        yield heard


def all_heard(heard: psycopg.Connection) -> list[Change]:
    """Return the changes that the session has been notified of. A notification ``end``, sent here, marks their end."""
    heard.execute("notify heard, 'end'")
    changes = []
    for notification in heard.notifies(timeout=30):
        if notification.payload == "end":
            return changes
        changes.append(Change(*json.loads(notification.payload)))
    raise AssertionError("the notification 'end' hasn't come within 30 seconds")


@pytest.mark.parametrize("pass_limit", [10_000, 5])
def test_changes_arrive_in_the_order_of_commits(conn: psycopg.Connection, dsn: str, pass_limit: int) -> None:
    make_queue(conn, buckets=2, pass_limit=pass_limit)
    audit(conn)
    conn.execute("select pgcombine.add_observer('wc', 'notify', %s)", (NOTIFY,))
    expected: Counter[str] = Counter()

    def cron() -> None:
        with psycopg.connect(dsn, autocommit=True) as psql:
            for _ in range(50):
                psql.execute("select pgcombine.combine('wc')")

    with listener(dsn) as heard:
        with workers(dsn, "wc", count=3, poll=0.05), in_background(cron, cron):
            for i in range(200):
                updates = {f"w{i % 3}": i % 7 - 3, f"v{i % 5}": 1}
                add(conn, updates)
                expected.update(updates)
        combine_all(conn)
        changes = all_heard(heard)
    check(conn, expected)
    assert follow(changes) == follow(audited(conn))
    by_key = {word: [change for change in changes if change.word == word] for word in expected}
    assert by_key == {word: [change for change in audited(conn) if change.word == word] for word in expected}


def start_a_second_pass(conn: psycopg.Connection, dsn: str) -> None:
    """A second pass begins before the first one commits. The order of the changes must be right."""
    with listener(dsn) as heard, psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second:
        combine(conn, {"a": 1})
        add(conn, {"a": 1})
        first.execute("select pgcombine.combine('wc', 0)")
        add(conn, {"a": 1})
        with in_background(lambda: second.execute("select pgcombine.combine('wc', 0)")) as (done,):
            eventually(
                lambda: (
                    done.done() or one(conn, "select cardinality(pg_blocking_pids(%s)) > 0", second.info.backend_pid)
                ),
                what="the second pass ends or waits",
            )
            first.commit()
        combine_all(conn)
        changes = all_heard(heard)
    assert follow(changes) == {"a": 3}
    check(conn, {"a": 3})


@pytest.mark.wc(buckets=1)
def test_no_pass_overtakes_another(conn: psycopg.Connection, dsn: str) -> None:
    audit(conn)
    conn.execute("select pgcombine.add_observer('wc', 'notify', %s)", (NOTIFY,))
    start_a_second_pass(conn, dsn)


@pytest.mark.wc(buckets=1)
def test_mutant_that_overtakes_is_detected(conn: psycopg.Connection, dsn: str) -> None:
    audit(conn)
    conn.execute("select pgcombine.add_observer('wc', 'notify', %s)", (NOTIFY,))
    without_claim(conn)
    with pytest.raises(AssertionError):
        start_a_second_pass(conn, dsn)


def test_second_queue_gets_changes_in_order(conn: psycopg.Connection, dsn: str) -> None:
    """An observer enqueues changes to a second queue. The second queue's changes are in order, too."""
    make_queue(conn, buckets=3, pass_limit=7)
    make_queue(conn, "next", buckets=2, pass_limit=7)
    audit(conn)
    audit(conn, "next")
    conn.execute(
        "select pgcombine.add_observer('wc', 'tree', "
        "'insert into pgcombine.next_updates (word, n) "
        "select word, coalesce(new_n, 0) - coalesce(old_n, 0) from changes')"
    )
    expected: Counter[str] = Counter()
    with workers(dsn, count=3, poll=0.05):
        for i in range(120):
            updates = {f"w{i % 4}": i % 5 - 2}
            add(conn, updates)
            expected.update(updates)
        eventually(
            lambda: one(conn, "select pgcombine.backlog('wc') + pgcombine.backlog('next')") == 0,
            what="no update is pending",
        )
    combine_all(conn)
    combine_all(conn, "next")
    check(conn, expected)
    check(conn, expected, "next")
