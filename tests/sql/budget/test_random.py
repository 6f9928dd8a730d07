"""Random sessions on a budget, with a model beside them (``crowd``)."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from support.budgets import call
from support.mutants import mutate_functions
from support.queues import one
from support.sessions import workers
from support.wait import eventually

from .crowd import NOTE, Crowd


def random_sessions(dsn: str, seconds: float) -> Crowd:
    crowd = Crowd(lambda: dsn, seconds)
    with workers(dsn):
        return crowd.crowd(6)


def test_random_sessions(seats: psycopg.Connection, dsn: str) -> None:
    random_sessions(dsn, 1).succeeded()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("_hold.amount - $2 where", "_hold.amount where"),
        ("split_amount((_sum - $2)::bigint", "split_amount(_sum::bigint"),
        ("select {keys}, amount from ended", "select {keys}, 2 * amount from ended"),
    ],
)
def test_mutants_are_detected(seats: psycopg.Connection, dsn: str, old: str, new: str) -> None:
    mutate_functions(seats, old, new)
    with pytest.raises(AssertionError):
        random_sessions(dsn, 1).succeeded()


def false_refusal(crowd: Crowd, conn: psycopg.Connection) -> None:
    """A take refuses although the transaction that has the rest rolls back, and another one truly has too little."""
    mutate_functions(conn, "if _chips is null then\n            if", "if _chips is null then return false; if")
    added = one(conn, "select max(tx::text::bigint) from ledger")
    eventually(lambda: crowd.look(conn) or crowd.seen[-1][0] > added, what="older transactions have ended")
    with crowd.connect() as other, other.transaction(force_rollback=True):
        call(other, "take", 1, 200)
        assert not crowd.attempt(conn, {1: 101}, "take", 1, 101)
        assert not crowd.attempt(conn, {2: 100, 1: 101}, "take_all", [2, 1], [100, 101])
        assert not crowd.attempt(conn, {1: 301}, "take", 1, 301)
    with conn.transaction():
        assert crowd.attempt(conn, {1: 200}, "take", 1, 200)
        conn.execute(NOTE, (1, -200, 0, None))
        assert not crowd.attempt(conn, {1: 101}, "take", 1, 101)


def too_much(crowd: Crowd, conn: psycopg.Connection) -> None:
    conn.execute("insert into pgcombine.seats_chips (show, amount) values (1, 1)")


def taken_before_it_was_added(crowd: Crowd, conn: psycopg.Connection) -> None:
    for amount in (-400, 400):
        conn.execute(NOTE, (1, amount, 0, None))


def another_hold_ended(crowd: Crowd, conn: psycopg.Connection) -> None:
    call(conn, "hold", 1, 3, "1 a", "10 min")
    conn.execute(NOTE, (1, -3, 3, "1 b"))


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (false_refusal, ["false: Refusal", "false: Refusal"]),
        (too_much, ["1 has 301 and 0", "1 has 301 and 0", "key (1)", "the budget"]),
        (taken_before_it_was_added, ["left -100 of 1"]),
        (another_hold_ended, ["hold 1 a ", "hold 1 b "]),
    ],
)
def test_model_notices(
    seats: psycopg.Connection, dsn: str, wrong: Callable[[Crowd, psycopg.Connection], None], told: list[str]
) -> None:
    crowd = Crowd(lambda: dsn, 0, [])
    wrong(crowd, seats)
    crowd.check(seats)
    found = sorted(crowd.wrong)
    assert len(found) == len(told), found
    assert [line for line, part in zip(found, told, strict=True) if part not in line] == []
