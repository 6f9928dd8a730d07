"""G3: every committed update is combined exactly once, whatever is killed, whenever.

Values, changes and the removal of updates commit together. ``tests/chaos`` kills at random; here every moment is
chosen. Broken on purpose: passes that leave their updates, that take more than they combined, that lose conflicts,
folds that don't put back.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import psycopg
import pytest
from psycopg import errors
from support.audit import audit, audited, check
from support.mutants import mutate_functions, mutate_pass, without_claim, without_delete
from support.queues import add, combine_all, make_queue, one, rows, values
from support.sessions import in_background, waits, workers
from support.wait import eventually

from pgcombine.worker import open_connection, run_pass


@contextmanager
def session(dsn: str, level: int = 2) -> Iterator[psycopg.Connection]:
    """A session that gives up waiting; ``level`` is psycopg's isolation level."""
    with psycopg.connect(dsn, options="-c lock_timeout=5s") as conn:
        conn.isolation_level = psycopg.IsolationLevel(level)
        yield conn


def commits_in_between(conn: psycopg.Connection, dsn: str) -> None:
    """A pass whose snapshot precedes a rival's commit, at each isolation level and for each kind of write."""
    for level in (2, 3):
        for word in ("new", "there", "going"):
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
    """A second pass comes while the first one is open."""
    for level in (2, 3):
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
    """Updates that commit while a pass runs are left for the next one."""
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


def comes_before_the_claim(conn: psycopg.Connection, dsn: str) -> None:
    """Updates that commit between the snapshot and the claim."""
    before = values(conn).get("a", 0)
    for level in (2, 3):
        add(conn, {"a": 1})
        with session(dsn, level) as worker:
            worker.execute("select 1 from pgcombine.queue")
            add(conn, {"a": 10})
            worker.execute("select pgcombine.combine('wc', 0)")
    combine_all(conn)
    assert values(conn).get("a", 0) == before + 22


def again(conn: psycopg.Connection, dsn: str) -> None:
    """What a pass took is gone."""
    before = values(conn).get("a", 0)
    add(conn, {"a": 1})
    for _ in range(3):
        conn.execute("select pgcombine.combine('wc', 0)")
    assert values(conn) == {"a": before + 1}


def bounded(conn: psycopg.Connection, dsn: str) -> None:
    """Folds and slices, some of them rolled back."""
    conn.execute("update pgcombine.queue set pass_limit = 4")
    before = values(conn)
    add(conn, [("x", 1)] * 30 + [(f"y{i}", 1) for i in range(30)])
    with session(dsn) as worker:
        for i in range(500):
            if not rows(conn, "wc_updates"):
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


SCENARIOS = [again, commits_in_between, rivals_meet, comes_before_the_claim, comes_during_a_pass, bounded]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_each_update_once(
    conn: psycopg.Connection, dsn: str, scenario: Callable[[psycopg.Connection, str], None]
) -> None:
    make_queue(conn, buckets=1)
    audit(conn)
    holds(conn, dsn, scenario)


def takes_all(conn: psycopg.Connection) -> None:
    """Deletes also what another slice would take."""
    mutate_pass(conn, r"delete from %1\$s %3\$s", "delete from %1$s")


def truncates(conn: psycopg.Connection) -> None:
    """Empties the bucket after the pass, whatever came since its snapshot."""
    without_delete(conn)
    into = "into updates, keys, changes;"
    mutate_functions(conn, into, f"{into} truncate pgcombine.wc_updates_b0000;")


def upserts_nothing(conn: psycopg.Connection) -> None:
    """New keys aren't written."""
    mutate_pass(conn, r"where c\.pgcombine_row is null and not c\.pgcombine_gone", "where false")


def folds_away(conn: psycopg.Connection) -> None:
    mutate_pass(conn, r"from folded\n\)", "from folded limit 0\n)", part="fold")


def folds_twice(conn: psycopg.Connection) -> None:
    mutate_pass(conn, r"from folded\n\)", "from folded, generate_series(1, 2)\n)", part="fold")


@pytest.mark.parametrize(
    ("mutant", "scenario"),
    [
        (without_delete, again),
        (truncates, comes_before_the_claim),
        (without_claim, rivals_meet),
        (takes_all, bounded),
        (upserts_nothing, commits_in_between),
        (folds_away, bounded),
        (folds_twice, bounded),
    ],
)
def test_lost_and_doubled_updates_are_noticed(
    conn: psycopg.Connection,
    dsn: str,
    mutant: Callable[[psycopg.Connection], None],
    scenario: Callable[[psycopg.Connection, str], None],
) -> None:
    make_queue(conn, buckets=1)
    audit(conn)
    conn.execute("set statement_timeout = '20s'")
    mutant(conn)
    with pytest.raises(AssertionError):
        holds(conn, dsn, scenario)


MOMENTS = ["claimed", "combined", "waiting for a value's row", "in an observer"]


@pytest.mark.parametrize("moment", MOMENTS)
def test_a_backend_killed_inside_a_pass(conn: psycopg.Connection, dsn: str, moment: str) -> None:
    make_queue(conn, buckets=1)
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


def test_an_observer_that_raises_loses_nothing(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=1)
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


def test_two_phase_commit_of_updates_and_passes(conn: psycopg.Connection, dsn: str) -> None:
    """A prepared pass holds its bucket; prepared updates are pending only once they are committed."""
    make_queue(conn, buckets=1)
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


def test_workers_whose_backends_are_killed(conn: psycopg.Connection, dsn: str) -> None:
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
        eventually(lambda: one(conn, "select pgcombine.backlog('wc')") == 0, what="drained")
    check(conn, expected)
