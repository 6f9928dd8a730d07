"""G2: the old value in a change of a key is the new value in the previous change of that key.

The tests cover keys that are deleted and return, concurrent sessions under read committed and repeatable read, old
snapshots, bounded passes, and passes that roll back. Mutants, which the tests must detect: passes that don't read,
update or delete values.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress

import psycopg
import pytest
from psycopg import errors
from support.audit import audit, audited, check, follow
from support.mutants import mutate_functions
from support.queues import add, combine_all, make_queue, write_values
from support.sessions import in_background, waits, workers
from support.wait import eventually


def chains(conn: psycopg.Connection, dsn: str, seed: int) -> None:
    """Run passes in three sessions with overlapping transactions, between enqueues. Then check the changes."""
    chance = random.Random(seed)
    expected: Counter[str] = Counter()
    with psycopg.connect(dsn) as psql, psycopg.connect(dsn) as early, psycopg.connect(dsn) as third:
        early.isolation_level = third.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        for session in (psql, early, third):
            session.execute("set lock_timeout = '2s'")
            session.commit()
        for _ in range(150):
            action = chance.choice(["add", "add", "cancel", "look", "pass", "pass", "commit", "roll back"])
            session = chance.choice([psql, early, third])
            if action == "add":
                word, n = f"w{chance.randrange(4)}", chance.choice([1, 1, 2, -1])
                add(conn, {word: n})
                expected[word] += n
            elif action == "cancel":
                word = f"w{chance.randrange(4)}"
                add(conn, {word: -expected[word]})
                expected[word] = 0
            elif action == "look":
                # take a snapshot, which may be old at the session's next pass
                session.execute("select count(*) from pgcombine.queue")
            elif action == "pass":
                try:
                    session.execute("select pgcombine.combine('wc', 0)")
                except (errors.SerializationFailure, errors.LockNotAvailable):
                    session.rollback()
            elif action == "commit":
                session.commit()
            else:
                session.rollback()
    follow(audited(conn))
    combine_all(conn)
    check(conn, expected)


@pytest.mark.parametrize("pass_limit", [1000, 3])
def test_chains_are_unbroken(conn: psycopg.Connection, dsn: str, pass_limit: int) -> None:
    make_queue(conn, buckets=1, pass_limit=pass_limit)
    audit(conn)
    chains(conn, dsn, seed=pass_limit)


def without_old_values(conn: psycopg.Connection) -> None:
    mutate_functions(conn, "from {values} v where {same_key}", "from {values} v where false and {same_key}")


def without_update(conn: psycopg.Connection) -> None:
    mutate_functions(conn, "where not c.pgcombine_gone and", "where false and")


def without_removal(conn: psycopg.Connection) -> None:
    mutate_functions(conn, "where v.ctid = c.pgcombine_row and c.pgcombine_gone", "where false")


@pytest.mark.wc(buckets=1)
@pytest.mark.parametrize("mutant", [without_old_values, without_update, without_removal])
def test_mutants_that_break_chains_are_detected(
    conn: psycopg.Connection, dsn: str, mutant: Callable[[psycopg.Connection], None]
) -> None:
    audit(conn)
    mutant(conn)
    with pytest.raises((AssertionError, errors.SerializationFailure)):
        chains(conn, dsn, seed=1000)


@pytest.mark.wc(buckets=1)
def test_rolled_back_pass_reports_nothing(conn: psycopg.Connection, dsn: str) -> None:
    audit(conn)
    add(conn, {"a": 1})
    with psycopg.connect(dsn) as psql:
        psql.execute("select pgcombine.combine('wc', 0)")
        psql.rollback()
        add(conn, {"a": 1})
        psql.execute("select pgcombine.combine('wc', 0)")
        psql.execute("savepoint before")
        add(conn, {"a": 1})
        psql.execute("select pgcombine.combine('wc', 0)")  # the transaction's first pass has already locked the bucket
        psql.execute("rollback to savepoint before")
    assert audited(conn) == [("a", None, 2)]
    combine_all(conn)
    assert audited(conn) == [("a", None, 2), ("a", 2, 3)]


@pytest.mark.wc(buckets=1)
def test_passes_in_one_transaction_keep_the_chain(conn: psycopg.Connection, dsn: str) -> None:
    audit(conn)
    with psycopg.connect(dsn) as psql:
        for _ in range(3):
            add(conn, {"a": 1})
            psql.execute("select pgcombine.combine('wc', 0)")
            add(psql, {"a": 10})  # this update isn't committed, so the transaction's own passes don't take it
            psql.execute("select pgcombine.combine('wc', 0)")
    assert audited(conn) == [("a", None, 1), ("a", 1, 2), ("a", 2, 3)]
    combine_all(conn)
    check(conn, {"a": 33})


def test_workers_beside_cron_jobs_and_rollbacks_keep_the_chains(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=3, pass_limit=5)
    audit(conn)
    expected: Counter[str] = Counter()

    def cron() -> None:
        with psycopg.connect(dsn) as psql:
            for i in range(60):
                with suppress(errors.SerializationFailure):
                    psql.isolation_level = psycopg.IsolationLevel(2 + i % 2)
                    psql.execute("select pgcombine.combine('wc')")
                    if i % 3 == 0:
                        psql.rollback()
                    psql.commit()
                psql.rollback()

    with workers(dsn, "wc", count=3, poll=0.05), in_background(cron, cron):
        for i in range(150):
            n = i % 11 - 4
            add(conn, {f"w{i % 7}": n, f"w{i % 3}x": 1})
            expected.update({f"w{i % 7}": n, f"w{i % 3}x": 1})
    with workers(dsn, "wc"):
        eventually(
            lambda: conn.execute("select pgcombine.backlog('wc')").fetchone() == (0,), what="no update is pending"
        )
    check(conn, expected)


@pytest.mark.wc(buckets=1)
def test_pass_that_waits_for_a_rivals_commit_fails_to_serialize(conn: psycopg.Connection, dsn: str) -> None:
    """A pass under repeatable read waits for a value that a rival has written. At the rival's commit it fails."""
    audit(conn)
    add(conn, {"a": 1})
    combine_all(conn)
    add(conn, {"a": 1})
    with psycopg.connect(dsn) as rival, psycopg.connect(dsn) as late:
        late.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        write_values(rival, "update pgcombine.wc_values set n = 1")

        def pass_late() -> None:
            with pytest.raises(errors.SerializationFailure):
                late.execute("select pgcombine.combine('wc', 0)")
            late.rollback()

        with in_background(pass_late):
            waits(conn, late.info.backend_pid)
            rival.commit()
    combine_all(conn)
    check(conn, {"a": 2})
