"""The guarantees of budgets, each with a mutant that its test detects.

1. Never over. 2. No false refusal. 3. No wait while there is enough. 4. Atomic. 5. Holds end once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, suppress
from functools import partial
from itertools import product

import psycopg
import pytest
from psycopg import errors
from support.budgets import call, has, make_budget, problems
from support.mutants import mutate_functions
from support.queues import one
from support.sessions import in_background, waits
from support.states import raises_state
from support.wait import eventually

Test = Callable[[psycopg.Connection, str], None]


def parallel(dsn: str, count: int, work: Callable[[psycopg.Connection, int], None]) -> None:
    """Run ``work`` in sessions that begin at the same time."""
    start = threading.Barrier(count)

    def session(number: int) -> None:
        with psycopg.connect(dsn) as conn:
            start.wait()
            work(conn, number)

    with in_background(*[lambda number=number: session(number) for number in range(count)]):
        pass


def waits_or_ends(conn: psycopg.Connection, session: psycopg.Connection, call: Future[object]) -> None:
    """Wait until a session waits for another's lock. A mutant's call ends instead."""
    blocked = "select cardinality(pg_blocking_pids(%s)) > 0"
    eventually(lambda: call.done() or one(conn, blocked, session.info.backend_pid), what="the session waits")


def refill(conn: psycopg.Connection, amount: int, chips: int) -> None:
    """Let show 7 have an amount in so many chips, whatever it had."""
    conn.execute("delete from pgcombine.seats_chips")
    conn.execute("delete from pgcombine.seats_holds")
    conn.execute(
        "insert into pgcombine.seats_chips (show, amount) select 7, pgcombine_internal.split_amount(%s, %s)",
        (amount, chips),
    )


def never_over(conn: psycopg.Connection, dsn: str) -> None:
    """Sessions take until there is nothing left. Some takes roll back, and some amounts need several chips."""
    call(conn, "add", 7, 400)
    taken: list[int] = []

    def work(session: psycopg.Connection, number: int) -> None:
        for turn in range(200):
            amount = 1 + (number + turn) % 40
            got = call(session, "take", 7, amount)
            if got and turn % 5 == 0:
                session.rollback()
                continue
            session.commit()
            if got:
                taken.append(amount)
            elif amount == 1:
                return

    parallel(dsn, 6, work)
    assert sum(taken) == 400
    assert has(conn) == {}
    assert problems(conn) == []


def no_false_refusal(conn: psycopg.Connection, dsn: str) -> None:
    """Takes wait for transactions that decide, and then do what these leave."""
    for function, ends_with_rollback, chips in product(("take", "hold"), (True, False), (1, 16)):
        refill(conn, 30, chips)
        with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second:
            call(first, "take", 7, 25)
            more = ["h", "1 min"] if function == "hold" else []
            with in_background(partial(call, second, function, 7, 6, *more)) as (taken,):
                waits_or_ends(conn, second, taken)
                (first.rollback if ends_with_rollback else first.commit)()
                assert taken.result(30) is ends_with_rollback


def no_wait(conn: psycopg.Connection, dsn: str) -> None:
    """While a transaction uses chips, others take from each free one, and from all free ones together."""
    for amount in (1, 31, 62, 400):
        refill(conn, 500, 16)
        with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second:
            second.execute("set lock_timeout = '1 s'")
            call(first, "take", 7, 31)
            call(first, "take", 7, 1)
            call(first, "add", 7, 100)
            left = 500 - 32
            while left - amount >= 32:  # what is left of the two chips in use
                assert call(second, "take", 7, amount)
                left -= amount
            assert not call(second, "take", 7, 501)
            call(second, "add", 7, 1)


def atomic(conn: psycopg.Connection, dsn: str, caller: psycopg.Connection | None = None) -> None:
    """Takes, holds and settles end as their transactions and savepoints do."""
    call(conn, "add", 7, 10)
    call(conn, "hold", 7, 1, "kept", "10 min")
    name = conn.info.dbname
    with psycopg.connect(dsn, autocommit=True) as own:
        user = caller or own

        def change() -> None:
            call(user, "take", 7, 2)
            call(user, "hold", 7, 3, "h", "10 min")
            call(user, "settle", "kept", 1)
            call(user, "add", 7, 1)

        own.execute("begin")
        change()
        own.execute("rollback")
        assert has(conn) == {7: (9, 1)}
        own.execute("begin; savepoint s")
        change()
        own.execute("rollback to s; commit")
        assert has(conn) == {7: (9, 1)}
        with suppress(errors.RaiseException):
            own.execute(
                "do $$ begin perform pgcombine.seats_take(7, 9); raise 'undone'; exception when raise_exception then "
                "perform pgcombine.seats_take(7, 1); raise; end $$"
            )
        assert has(conn) == {7: (9, 1)}
        own.execute("begin")
        change()
        own.execute(f"prepare transaction '{name}'")
        assert has(conn) == {7: (9, 1)}
        with raises_state("PC060", "seats"):
            call(conn, "take", 7, 9, wait=False)
        own.execute(f"rollback prepared '{name}'")
        own.execute("begin")
        change()
        own.execute(f"prepare transaction '{name}'")
        own.execute(f"commit prepared '{name}'")
        assert has(conn) == {7: (5, 3)}
    assert problems(conn) == []


def holds_end_once(conn: psycopg.Connection, dsn: str) -> None:
    """Two sessions end a hold: the second one waits for the first, and ends it only after a rollback."""
    call(conn, "add", 7, 100)
    expire = "select pgcombine_internal.tend_budget(b) from pgcombine.budget b"
    for number, commits in enumerate((True, False)):
        hold = f"h{number}"
        call(conn, "hold", 7, 10, hold, "1 ms")
        with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second:
            assert call(first, "settle", hold, 4)
            conn.execute(expire)
            with in_background(lambda hold=hold: call(second, "release", hold)) as (released,):
                waits_or_ends(conn, second, released)
                (first.commit if commits else first.rollback)()
                assert released.result(30) is not commits
            second.commit()
        conn.execute(expire)
        assert has(conn) == {7: (96, 0)}
        assert not call(conn, "release", hold)
    assert problems(conn) == []


TESTS: list[Test] = [never_over, no_false_refusal, no_wait, atomic, holds_end_once]


@pytest.mark.parametrize("test", TESTS)
def test_guarantee(seats: psycopg.Connection, dsn: str, test: Test) -> None:
    test(seats, dsn)


@pytest.fixture
def other(dsn: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn, autocommit=True) as conn:
        yield conn


def test_mutant_that_takes_too_little_is_detected(seats: psycopg.Connection, dsn: str) -> None:
    mutate_functions(seats, "set amount = c.amount - $2", "set amount = c.amount - $2 / 2")
    with pytest.raises(AssertionError):
        never_over(seats, dsn)


def test_mutant_whose_gatherers_do_not_lock_is_detected(seats: psycopg.Connection, dsn: str) -> None:
    mutate_functions(
        seats, "order by c.amount desc, c.chip for no key update skip locked", "order by c.amount desc, c.chip"
    )
    mutate_functions(seats, "values ($1, 0, 0) on conflict do nothing", "select $1, 0, 0 where false")
    with pytest.raises((AssertionError, errors.CheckViolation)):
        never_over(seats, dsn)


def test_mutant_that_refuses_instead_of_waiting_is_detected(seats: psycopg.Connection, dsn: str) -> None:
    mutate_functions(seats, "if _chips is null then\n            if", "if _chips is null then return false; if")
    with pytest.raises(AssertionError):
        no_false_refusal(seats, dsn)


def test_mutant_that_refuses_by_an_old_snapshot_is_detected(seats: psycopg.Connection, dsn: str) -> None:
    """It refuses after it has waited, without a look at what the ended transaction has left."""
    mutate_functions(
        seats,
        "exception when no_data_found or sqlstate 'PC098' then\n                continue;",
        "exception when no_data_found or sqlstate 'PC098' then\n                return false;",
    )
    with pytest.raises(AssertionError):
        left_by_a_gatherer(seats, dsn)


@pytest.mark.parametrize(
    "place", ["c.chip >= _from\n        order by c.chip limit 1", "order by c.amount desc, c.chip"]
)
def test_mutant_that_waits_is_detected(seats: psycopg.Connection, dsn: str, place: str) -> None:
    mutate_functions(seats, f"{place} for no key update skip locked", f"{place} for update")
    with pytest.raises(errors.LockNotAvailable):
        no_wait(seats, dsn)


def test_mutant_that_takes_elsewhere_is_detected(
    seats: psycopg.Connection, dsn: str, other: psycopg.Connection
) -> None:
    with pytest.raises(AssertionError):
        atomic(seats, dsn, other)


def test_mutant_that_keeps_ended_holds_is_detected(seats: psycopg.Connection, dsn: str) -> None:
    mutate_functions(
        seats,
        "delete from pgcombine.seats_holds h where h.hold = $1 returning h.* into _hold;",
        "select h.* into _hold from pgcombine.seats_holds h where h.hold = $1;",
    )
    with pytest.raises(AssertionError):
        holds_end_once(seats, dsn)


def left_by_a_gatherer(conn: psycopg.Connection, dsn: str) -> None:
    """A take waits for a chip. The transaction that used it leaves a new chip with the rest, which suffices."""
    refill(conn, 5, 1)
    call(conn, "add", 8, 1)
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second:
        first.execute("delete from pgcombine.seats_chips where show = 7")
        first.execute("insert into pgcombine.seats_chips (show, amount) values (7, 3)")
        with in_background(lambda: call(second, "take", 7, 2)) as (taken,):
            waits(conn, second.info.backend_pid)
            first.commit()
            assert taken.result(30) is True


def test_take_sees_what_a_gatherer_leaves(seats: psycopg.Connection, dsn: str) -> None:
    left_by_a_gatherer(seats, dsn)


@pytest.mark.parametrize("amounts", [(260, 230), (260, 250)])
def test_two_sessions_that_gather_do_not_split_the_free_chips(
    seats: psycopg.Connection, dsn: str, amounts: tuple[int, int]
) -> None:
    """Both takes need many chips. Together there is enough for both, or for one, which is true after a wait."""
    call(seats, "add", 7, 500)
    with ExitStack() as stack:
        first, second = (stack.enter_context(psycopg.connect(dsn)) for _ in range(2))
        assert call(first, "take", 7, amounts[0])
        with in_background(lambda: call(second, "take", 7, amounts[1])) as (taken,):
            waits(seats, second.info.backend_pid)
            first.commit()
            assert taken.result(30) is (sum(amounts) <= 500)


def test_wait_ends_as_soon_as_another_chip_is_free(conn: psycopg.Connection, dsn: str) -> None:
    """Takes wait for one of two chips. A transaction that stays open holds one of these."""
    make_budget(conn, notify=False, chips=2)
    call(conn, "add", 7, 200)

    def take() -> None:
        with psycopg.connect(dsn, autocommit=True) as session:
            session.execute("set statement_timeout = '20 s'; set application_name = 'takes'")
            assert call(session, "take", 7, 1)

    with psycopg.connect(dsn) as idle, psycopg.connect(dsn) as first:
        call(idle, "take", 7, 1)
        call(first, "take", 7, 1)
        with in_background(*[take] * 5):
            pids = "select pid from pg_stat_activity where application_name = 'takes'"
            eventually(lambda: len(conn.execute(pids).fetchall()) == 5, what="all takes have begun")
            for (pid,) in conn.execute(pids).fetchall():
                waits(conn, pid)
            first.commit()


def test_take_that_lacks_a_chip_in_use_lets_others_take(seats: psycopg.Connection, dsn: str) -> None:
    call(seats, "add", 7, 160)
    with psycopg.connect(dsn) as idle, psycopg.connect(dsn) as large:
        call(idle, "take", 7, 1)
        with in_background(lambda: call(large, "take", 7, 155)) as (taken,):
            waits(seats, large.info.backend_pid)
            seats.execute("set statement_timeout = '20 s'")
            for _ in range(3):
                assert call(seats, "take", 7, 1)
            assert call(idle, "take", 7, 11)  # several chips
            idle.commit()
            assert taken.result(30) is False


@pytest.mark.parametrize("function", ["take", "hold"])
def test_lock_timeout_limits_the_whole_wait(seats: psycopg.Connection, dsn: str, function: str) -> None:
    call(seats, "add", 7, 16)
    more = ["h", "1 min"] if function == "hold" else []
    with psycopg.connect(dsn) as first:
        for amount in (12, 16):
            call(first, "take", 7, amount)
            seats.execute("set lock_timeout = '300 ms'")
            with pytest.raises(errors.LockNotAvailable):
                call(seats, function, 7, 5, *more)
            assert one(seats, "show lock_timeout") == "300ms"
            first.rollback()
    assert call(seats, function, 7, 5, *more)


def test_without_wait_an_undecided_take_fails(seats: psycopg.Connection, dsn: str) -> None:
    call(seats, "add", 7, 10)
    with psycopg.connect(dsn) as first:
        call(first, "take", 7, 8)
        with raises_state("PC060", "seats", "7"):
            call(seats, "take", 7, 5, wait=False)
        with raises_state("PC060", "seats"):
            call(seats, "take_all", [7], [5], wait=False)
        with raises_state("PC060", "seats"):
            call(seats, "take", 7, 5, wait=None)
        with raises_state("PC060", "seats"):
            call(seats, "hold", 7, 5, "h", "1 min", wait=False)
        assert not call(seats, "take", 7, 11, wait=False)
        assert call(seats, "take", 7, 2, wait=False)


def test_without_wait_a_name_that_another_session_gives_fails(seats: psycopg.Connection, dsn: str) -> None:
    call(seats, "add", 7, 10)
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second:
        call(first, "hold", 7, 1, "h", "1 min")
        second.execute("set local statement_timeout = '20 s'; set local lock_timeout = '15 s'")
        for wait in (False, None):
            with raises_state("PC060", "seats", "'h'"), second.transaction():
                call(second, "hold", 7, 2, "h", "1 min", wait=wait)
        first.rollback()
        assert call(second, "hold", 7, 2, "h", "1 min", wait=False)
        assert one(second, "show lock_timeout") == "15s"
    with raises_state("PC002", "'h'"):
        call(seats, "hold", 7, 1, "h", "1 min", wait=False)
    assert has(seats) == {7: (8, 2)}
    assert problems(seats) == []


def test_deadlock_of_takes_loses_nothing(seats: psycopg.Connection, dsn: str) -> None:
    """Two transactions take almost all of two keys, in opposite orders. PostgreSQL ends one, and the other commits."""
    for show in (1, 2):
        call(seats, "add", show, 16)
    ended: list[str | None] = []
    both = threading.Barrier(2)

    def take(order: list[int]) -> None:
        with psycopg.connect(dsn) as session:
            session.execute("set deadlock_timeout = '20 ms'; set statement_timeout = '30 s'")
            assert call(session, "take", order[0], 15)
            both.wait(30)
            try:
                assert call(session, "take", order[1], 15)
                session.commit()
            except errors.DeadlockDetected as error:
                session.rollback()
                ended.append(error.sqlstate)

    with in_background(partial(take, [1, 2]), partial(take, [2, 1])):
        pass
    assert ended == ["40P01"]
    assert has(seats) == {1: (1, 0), 2: (1, 0)}
    assert problems(seats) == []
    assert not call(seats, "take_all", [2, 1], [1, 2])
    assert call(seats, "take_all", [2, 1], [1, 1])


def test_refused_take_leaves_nothing_locked(seats: psycopg.Connection, dsn: str) -> None:
    """A take gives back what it has gathered, although its transaction stays open."""
    call(seats, "add", 7, 32)
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second:
        call(first, "take", 7, 2)
        with raises_state("PC060"), second.transaction():
            call(second, "take", 7, 32, wait=False)
        with in_background(lambda: call(second, "take", 7, 31)) as (taken,):
            waits(seats, second.info.backend_pid)
            first.commit()
            assert taken.result(30) is False
        seats.execute("set lock_timeout = '1 s'")
        assert call(seats, "take", 7, 30)


def test_take_all_does_not_deadlock(seats: psycopg.Connection, dsn: str) -> None:
    shows = [1, 2, 3]
    for show in shows:
        call(seats, "add", show, 60)
    taken: list[bool] = []

    def work(conn: psycopg.Connection, number: int) -> None:
        for turn in range(40):
            order = shows[(number + turn) % 3 :] + shows[: (number + turn) % 3]
            taken.append(call(conn, "take_all", order, [1 + number % 3] * 3))
            conn.commit()

    parallel(dsn, 4, work)
    assert one(seats, "select count(distinct available) from pgcombine.seats") <= 1
    assert problems(seats) == []
    assert False in taken
