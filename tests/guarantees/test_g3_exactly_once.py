"""G3: each committed update is combined exactly once, even if a session is killed at any moment.

Values, changes and the bucket's mark commit together. ``tests/chaos`` kills sessions at random moments; these tests
choose the moments. The tests must also detect mutants: passes that are changed so that updates get lost or count twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg
import pytest
from psycopg import errors
from support import queues
from support.audit import audit, audited, check
from support.mutants import (
    beyond_the_mark,
    late_mark,
    mutate_functions,
    one_mark_for_all_slices,
    open_forgotten,
    open_of_one_mark,
    own_is_seen,
    rivals_in_the_journal,
    without_claim,
    without_mark,
)
from support.queues import add, combine_all, make_queue, one, rows, values
from support.sessions import in_background, waits, workers
from support.wait import eventually

from pgcombine.worker.passes import open_connection, run_pass


@contextmanager
def session(dsn: str, level: int = 2) -> Iterator[psycopg.Connection]:
    """Yields a session with a lock timeout; ``level`` is psycopg's number of an isolation level."""
    with psycopg.connect(dsn, options="-c lock_timeout=5s") as conn:
        conn.isolation_level = psycopg.IsolationLevel(level)
        yield conn


def commits_in_between(conn: psycopg.Connection, dsn: str) -> None:
    """A rival's pass commits after a transaction's first snapshot, and before the transaction's own pass.

    The rival's pass inserts, changes or deletes the key. The transaction is under read committed or repeatable read.
    """
    for level in (2, 3):
        for word in (f"new {level}", "there", "going"):
            add(conn, {"there": 1, "going": 1})
            combine_all(conn)
            before = values(conn)
            n = -before["going"] if word == "going" else 1
            add(conn, {word: n})
            with session(dsn, level) as late, session(dsn) as rival:
                late.execute("select count(*) from pgcombine.wc_updates")
                rival.execute("select pgcombine.combine('wc', 0)")
                rival.commit()
                with suppress(errors.SerializationFailure):
                    late.execute("select pgcombine.combine('wc', 0)")
            combine_all(conn)
            assert values(conn).get(word, 0) == before.get(word, 0) + n, f"level {level}, {word}"


def rivals_meet(conn: psycopg.Connection, dsn: str) -> None:
    """A second pass begins while the first one is open. The keys are new, then they exist."""
    for level in (2, 3, 2):
        before = values(conn)
        add(conn, {"a": 1, "b": 2})
        with session(dsn, level) as first, session(dsn, level) as second:
            first.execute("select pgcombine.combine('wc', 0)")

            def rival(second: psycopg.Connection = second) -> None:
                with suppress(errors.SerializationFailure):
                    second.execute("select pgcombine.combine('wc', 0)")
                    second.commit()

            with in_background(rival) as (done,):
                eventually(
                    lambda done=done, second=second: done.done() or blocked(conn, second),
                    what="the rival ends or waits",
                )
                first.commit()
        combine_all(conn)
        assert values(conn) == {"a": before.get("a", 0) + 1, "b": before.get("b", 0) + 2}


def blocked(conn: psycopg.Connection, session: psycopg.Connection) -> bool:
    return bool(one(conn, "select cardinality(pg_blocking_pids(%s)) > 0", session.info.backend_pid))


def comes_during_a_pass(conn: psycopg.Connection, dsn: str) -> None:
    """Updates commit before and after a call of ``combine``, while the caller's transaction is open."""
    before = values(conn)
    add(conn, {"a": 1})
    for level in (2, 3):
        with session(dsn, level) as worker:
            worker.execute("select count(*) from pgcombine.wc_values")
            add(conn, {"a": 10, "c": 1})
            worker.execute("select pgcombine.combine('wc', 0)")
            add(conn, {"a": 100})
    combine_all(conn)
    assert values(conn) == before | {"a": before.get("a", 0) + 221, "c": before.get("c", 0) + 2}


def comes_before_the_lock(conn: psycopg.Connection, dsn: str) -> None:
    """Updates commit after a transaction's first statement, and before its pass locks the bucket."""
    before = values(conn).get("a", 0)
    for level in (2, 3):
        add(conn, {"a": 1})
        with session(dsn, level) as worker:
            worker.execute("select 1 from pgcombine.queue")
            add(conn, {"a": 10})
            worker.execute("select pgcombine.combine('wc', 0)")
    combine_all(conn)
    assert values(conn).get("a", 0) == before + 22


def comes_before_the_statement(conn: psycopg.Connection, dsn: str) -> None:
    """Updates commit while a pass waits for a lock of a table of values."""
    waiting_pass(conn, dsn, "lock table pgcombine.wc_values_b0000 in access exclusive mode")


def comes_during_the_statement(conn: psycopg.Connection, dsn: str) -> None:
    """Updates commit while the statement of a pass waits for a row of a value."""
    waiting_pass(conn, dsn, "select from pgcombine.wc_values where word = 'a' for update")


def waiting_pass(conn: psycopg.Connection, dsn: str, lock: str) -> None:
    add(conn, {"a": 1})
    combine_all(conn)
    for level in (2, 3):
        before = values(conn)["a"]
        add(conn, {"a": 1})
        with session(dsn, level) as worker, session(dsn) as holder:
            holder.execute(lock)

            def passes(worker: psycopg.Connection = worker) -> None:
                worker.execute("select pgcombine.combine('wc', 0)")
                worker.commit()

            with in_background(passes):
                waits(conn, worker.info.backend_pid)
                add(conn, {"a": 10, "b": 1})
                holder.rollback()
        combine_all(conn)
        assert values(conn)["a"] == before + 11, f"level {level}"


def open_for_long(conn: psycopg.Connection, dsn: str) -> None:
    """Transactions with low ids commit after passes over later transactions."""
    before = values(conn).get("a", 0)
    for level in (2, 3):
        with session(dsn) as first, session(dsn) as second, session(dsn, level) as worker:
            add(first, {"a": 1})
            add(second, {"a": 10})
            for writer in (first, second):
                add(conn, {"a": 100})
                worker.execute("select pgcombine.combine('wc', 0)")
                worker.commit()
                writer.commit()
    combine_all(conn)
    assert values(conn)["a"] == before + 2 * 211


def own(conn: psycopg.Connection, dsn: str) -> None:
    """The transaction of the passes also enqueues, before and after a pass."""
    before = values(conn).get("a", 0)
    with session(dsn) as worker:
        add(worker, {"a": 1})
        add(conn, {"a": 10})
        for _ in range(2):
            worker.execute("select pgcombine.combine('wc', 0)")
            add(worker, {"a": 100})
    combine_all(conn)
    assert values(conn)["a"] == before + 211


def a_rival_takes_more(conn: psycopg.Connection, dsn: str) -> None:
    """A pass whose updates cancel out has an older snapshot than a rival's pass, which has combined more updates."""
    before = values(conn).get("a", 0)
    add(conn, [("a", 1), ("a", -1)])
    with session(dsn, 3) as late:
        late.execute("select count(*) from pgcombine.queue")
        add(conn, {"a": 5})
        conn.execute("select pgcombine.combine('wc', 0)")
        with suppress(errors.SerializationFailure):
            late.execute("select pgcombine.combine('wc', 0)")
    combine_all(conn)
    assert values(conn)["a"] == before + 5


def ranges_with_other_marks(conn: psycopg.Connection, dsn: str) -> None:
    """One open transaction commits between passes over two hash ranges, another one after both passes."""
    word_of = (
        "select 'w' || i from generate_series(1, 99) i where hash_record_extended(row('w' || i), 0) & 1 = %s limit 1"
    )
    words = [one(conn, word_of, number) for number in (0, 1)]
    combine_range = "select pgcombine_internal.run_pass('wc', 0, range_mask => 1, hash_range => %s)"
    for hash_ranges in ((0, 1), (1, 0)):
        before = values(conn)
        with session(dsn) as first, session(dsn) as second:
            add(first, dict.fromkeys(words, 1))
            add(second, dict.fromkeys(words, 10))
            add(conn, dict.fromkeys(words, 100))
            conn.execute(combine_range, (hash_ranges[0],))
            second.commit()  # the mark of the next pass no longer lists this transaction as open
            conn.execute(combine_range, (hash_ranges[1],))
            first.commit()
        combine_all(conn)
        assert values(conn) == {word: before.get(word, 0) + 111 for word in words}


def again(conn: psycopg.Connection, dsn: str) -> None:
    """Several passes run after one update."""
    before = values(conn).get("a", 0)
    add(conn, {"a": 1})
    for _ in range(3):
        conn.execute("select pgcombine.combine('wc', 0)")
    assert values(conn) == {"a": before + 1}


def bounded(conn: psycopg.Connection, dsn: str) -> None:
    """Bounded passes take hash ranges, and some of them roll back."""
    conn.execute("update pgcombine.queue set pass_limit = 4")
    before = values(conn)
    add(conn, [("x", 1)] * 30 + [(f"y{i}", 1) for i in range(30)])
    with session(dsn) as worker:
        for i in range(500):
            if not rows(conn, "wc_pending"):
                break
            worker.execute("select pgcombine.combine('wc', 0)")
            (worker.rollback if i % 3 == 0 else worker.commit)()
    after = values(conn)
    assert {word: after.get(word, 0) - before.get(word, 0) for word in after | before} == (
        dict.fromkeys(before, 0) | {"x": 30} | {f"y{i}": 1 for i in range(30)}
    )


def holds(conn: psycopg.Connection, dsn: str, scenario: Callable[[psycopg.Connection, str], None]) -> None:
    scenario(conn, dsn)
    check(conn, values(conn))


SCENARIOS = [
    again,
    commits_in_between,
    rivals_meet,
    comes_before_the_lock,
    comes_before_the_statement,
    comes_during_the_statement,
    comes_during_a_pass,
    open_for_long,
    own,
    a_rival_takes_more,
    ranges_with_other_marks,
    bounded,
]


@pytest.mark.wc(buckets=1)
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_update_counts_once(
    conn: psycopg.Connection, dsn: str, scenario: Callable[[psycopg.Connection, str], None]
) -> None:
    audit(conn)
    holds(conn, dsn, scenario)


def upserts_nothing(conn: psycopg.Connection) -> None:
    """Mutant: a pass doesn't insert new keys."""
    mutate_functions(conn, "where c.pgcombine_row is null and not c.pgcombine_gone", "where false")


@pytest.mark.parametrize(
    ("mutant", "scenario"),
    [
        (without_mark, again),
        (without_claim, rivals_meet),
        (late_mark, comes_during_the_statement),
        (beyond_the_mark, comes_before_the_statement),
        (open_forgotten, open_for_long),
        (open_of_one_mark, ranges_with_other_marks),
        (own_is_seen, own),
        (rivals_in_the_journal, a_rival_takes_more),
        (one_mark_for_all_slices, bounded),
        (upserts_nothing, commits_in_between),
    ],
)
def test_mutants_that_lose_or_repeat_updates_are_detected(
    conn: psycopg.Connection,
    dsn: str,
    mutant: Callable[[psycopg.Connection], None],
    scenario: Callable[[psycopg.Connection, str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(queues, "MOST_PASSES", 300)  # some mutants combine the same updates again and again
    make_queue(conn, buckets=1)
    audit(conn)
    conn.execute("set statement_timeout = '20s'")
    mutant(conn)
    with pytest.raises(AssertionError):
        holds(conn, dsn, scenario)


MOMENTS = ["claimed", "combined", "waiting for a value's row", "in an observer"]


@pytest.mark.wc(buckets=1)
@pytest.mark.parametrize("moment", MOMENTS)
def test_backend_killed_in_a_pass_loses_nothing(conn: psycopg.Connection, dsn: str, moment: str) -> None:
    audit(conn)
    add(conn, {"a": 1, "b": 1})
    combine_all(conn)
    add(conn, {"a": 1, "b": -1, "c": 1})
    with session(dsn) as worker, session(dsn) as holder:
        if moment == "claimed":
            worker.execute("select from pgcombine.bucket where bucket = 0 for update")
        elif moment == "combined":
            worker.execute("select pgcombine.combine('wc', 0)")
        else:
            if moment == "in an observer":
                conn.execute(
                    "create function public.hang() returns bigint language sql volatile as "
                    "'select count(*) from (select pg_advisory_xact_lock(42)) as waited'"
                )
                conn.execute("select pgcombine.add_observer('wc', 'hang', 'select public.hang() from changes')")
                holder.execute("select pg_advisory_xact_lock(42)")
            else:
                holder.execute("select from pgcombine.wc_values where word = 'a' for update")
            pid = worker.info.backend_pid

            def dies(worker: psycopg.Connection = worker) -> None:
                with pytest.raises(psycopg.OperationalError):
                    worker.execute(ONE_PASS)

            with in_background(dies):
                waits(conn, pid)
                conn.execute("select pg_terminate_backend(%s)", (pid,))
        conn.execute("select pg_terminate_backend(%s)", (worker.info.backend_pid,))
        eventually(
            lambda pid=worker.info.backend_pid: (
                not one(conn, "select count(*) from pg_stat_activity where pid = %s", pid)
            ),
            what="the backend is gone",
        )
        worker.close()
        holder.rollback()
    assert values(conn) == {"a": 1, "b": 1}
    assert len(audited(conn)) == 2
    with open_connection(dsn) as worker:
        done = run_pass(worker, "wc", 0)
    assert done is not None
    assert (done.updates, done.changes) == (3, 3)
    check(conn, {"a": 2, "c": 1})


ONE_PASS = "select pgcombine.combine('wc', 0)"


@pytest.mark.wc(buckets=1)
def test_an_observer_that_raises_loses_nothing(conn: psycopg.Connection, dsn: str) -> None:
    audit(conn)
    conn.execute("create table public.switch (works boolean)")
    conn.execute("insert into public.switch values (false)")
    conn.execute("select pgcombine.add_observer('wc', 'fragile', 'select 1 / works::int from changes, public.switch')")
    add(conn, {"a": 1, "b": 2})
    for _ in range(3):
        with pytest.raises(errors.DivisionByZero):
            conn.execute(ONE_PASS)
        add(conn, {"a": 1})
        assert audited(conn) == []
        assert values(conn) == {}
    conn.execute("update public.switch set works = true")
    combine_all(conn)
    assert sorted(audited(conn)) == [("a", None, 4), ("b", None, 2)]
    check(conn, {"a": 4, "b": 2})


@pytest.mark.wc(buckets=1)
def test_prepared_updates_and_passes_count_once(conn: psycopg.Connection, dsn: str) -> None:
    """A prepared pass keeps its bucket locked. Updates of a prepared transaction are pending after COMMIT PREPARED."""
    audit(conn)
    database = conn.info.dbname
    with psycopg.connect(dsn, autocommit=True) as other:
        for step, (updates, done) in enumerate([("commit", "commit"), ("commit", "rollback"), ("rollback", "commit")]):
            other.execute("begin")
            add(other, {"a": 1})
            other.execute(f"prepare transaction '{database}-updates{step}'")
            combine_all(conn)
            other.execute(f"{updates} prepared '{database}-updates{step}'")
            other.execute("begin")
            other.execute(ONE_PASS)
            other.execute(f"prepare transaction '{database}-pass{step}'")
            assert conn.execute("select * from pgcombine.combine('wc', 0)").fetchall() == []
            other.execute(f"{done} prepared '{database}-pass{step}'")
    combine_all(conn)
    check(conn, {"a": 2})


def test_workers_with_killed_backends_lose_nothing(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=4, pass_limit=20)
    audit(conn)
    expected: dict[str, int] = {}
    with workers(dsn, "wc", count=3, poll=0.05):
        add(conn, {"first": 0})
        eventually(lambda: one(conn, "select pgcombine.backlog('wc')") == 0, what="the worker has started")
        for i in range(120):
            updates = {f"w{(i + j) % 17}": j - 3 for j in range(9)}
            add(conn, updates)
            for word, n in updates.items():
                expected[word] = expected.get(word, 0) + n
            if i % 10 == 9:
                conn.execute(
                    "select pg_terminate_backend(pid) from pg_stat_activity "
                    "where datname = current_database() and application_name like 'pgcombine worker%'"
                )
        eventually(lambda: one(conn, "select pgcombine.backlog('wc')") == 0, what="no update is pending")
    check(conn, expected)
