"""Random sessions on a budget, with a ledger beside it.

Each transaction writes what it does into the table ``ledger``, so that the ledger is right whichever transactions
commit. In each snapshot the amounts of the budget, the current values of its queue and the ledger must agree, and none
may be negative. Each refusal must have been true at some time of its call: what was surely added before the call, minus
all that may have been taken by its end, doesn't suffice.
"""

from __future__ import annotations

import os
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

import psycopg
import pytest
from psycopg import errors
from support.budgets import call, has, problems
from support.mutants import mutate_functions
from support.queues import rows
from support.sessions import in_background, workers
from support.wait import eventually

SHOWS = [1, 2, 3]
SNAPSHOT = """
    select k.show, coalesce(b.available, 0), coalesce(b.held, 0), coalesce(c.available, 0), coalesce(c.held, 0),
           (select coalesce(sum(l.amount), 0) from ledger l where l.show = k.show)
    from unnest(%s::int[]) k (show) left join pgcombine.seats b using (show) left join pgcombine.seats_current c
    using (show)
"""


@dataclass
class Refusal:
    show: int
    amount: int
    began: float
    ended: float
    tx: int
    own: int  # what the transaction itself had taken of the key


@dataclass
class Run:
    """What the sessions did. A transaction's number is in the ledger if it committed."""

    dsn: str
    until: float
    began: dict[int, float] = field(default_factory=dict)  # by transaction: when it could commit at the earliest
    ended: dict[int, float] = field(default_factory=dict)  # by transaction: when it had surely committed
    refusals: list[Refusal] = field(default_factory=list)
    holds: list[str] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    calls: int = 0
    numbers: Iterator[int] = field(default_factory=lambda: iter(range(10**9)))
    lock: threading.Lock = field(default_factory=threading.Lock)


def change(run: Run, conn: psycopg.Connection, rng: random.Random, number: int, own: Counter[int]) -> None:
    """Do something random to the budget, and write it into the ledger."""
    show, amount = rng.choice(SHOWS), rng.choice([1, 1, 1, 2, 5, 20, 60])
    ledger = "insert into ledger (tx, show, amount, ended) values (%s, %s, %s, %s)"
    began = time.monotonic()
    run.calls += 1
    match rng.choice(["take"] * 6 + ["all", "hold", "hold", "end", "end", "add"]):
        case "add":
            call(conn, "add", show, amount)
            conn.execute(ledger, (number, show, amount, None))
        case "take":
            if call(conn, "take", show, amount, wait=rng.random() < 0.8):
                conn.execute(ledger, (number, show, -amount, None))
                own[show] += amount
            else:
                run.refusals.append(Refusal(show, amount, began, time.monotonic(), number, own[show]))
        case "all":
            shows = rng.sample(SHOWS, 2)
            if call(conn, "take_all", shows, [amount, amount]):
                for one in shows:
                    conn.execute(ledger, (number, one, -amount, None))
                    own[one] += amount
        case "hold":
            hold = f"h{number}.{run.calls}"
            if call(conn, "hold", show, amount, hold, rng.choice(["20 ms", "10 min"])):
                conn.execute(
                    "insert into ledger (tx, show, amount, held) values (%s, %s, 0, %s)", (number, show, amount)
                )
                run.holds.append(hold)
                own[show] += amount
            else:
                run.refusals.append(Refusal(show, amount, began, time.monotonic(), number, own[show]))
        case "end":
            if not run.holds:
                return
            hold = rng.choice(run.holds[-40:])
            found = conn.execute("select show from pgcombine.seats_holds where hold = %s", (hold,)).fetchone()
            if found is None:  # it could be committed between this and the call, which the ledger would miss
                return
            if rng.random() < 0.5 and call(conn, "settle", hold, 1):
                conn.execute(ledger, (number, found[0], -1, hold))
            elif call(conn, "release", hold):
                conn.execute(ledger, (number, found[0], 0, hold))


def transaction(run: Run, conn: psycopg.Connection, killer: psycopg.Connection, rng: random.Random) -> None:
    with run.lock:
        number = next(run.numbers)
    run.began[number] = time.monotonic()
    own: Counter[int] = Counter()
    conn.execute("begin")
    for _ in range(rng.choice([1, 1, 2, 3])):
        conn.execute("savepoint s")
        try:
            change(run, conn, rng, number, own)
        except (errors.DatabaseError, psycopg.Error) as error:
            if error.sqlstate not in {"PC060", "40P01", "PC002"}:
                raise
            conn.execute("rollback to s")
            if error.sqlstate == "40P01":
                break
        else:
            conn.execute("release s" if rng.random() < 0.8 else "rollback to s")
    if rng.random() < 0.3:
        time.sleep(rng.random() * 0.02)
    match rng.choice(["commit"] * 6 + ["rollback", "prepare", "kill"]):
        case "kill":
            killer.execute("select pg_terminate_backend(%s)", (conn.info.backend_pid,))
            with suppress(psycopg.Error):
                conn.execute("commit")
            conn.close()
        case "prepare":
            name = f"{conn.info.dbname} {number}"
            conn.execute(f"prepare transaction '{name}'")
            time.sleep(rng.random() * 0.02)
            conn.execute(f"{rng.choice(['commit', 'rollback'])} prepared '{name}'")
        case end:
            conn.execute(end)
    run.ended[number] = time.monotonic()


def session(run: Run, seed: int) -> None:
    rng = random.Random(seed)
    with psycopg.connect(run.dsn, autocommit=True) as killer:
        while time.monotonic() < run.until:
            with psycopg.connect(run.dsn, autocommit=True) as conn:
                while not conn.closed and time.monotonic() < run.until:
                    transaction(run, conn, killer, rng)


def watch(run: Run) -> None:
    with psycopg.connect(run.dsn, autocommit=True) as conn:
        while time.monotonic() < run.until and not run.problems:
            for show, available, held, current, current_held, total in conn.execute(SNAPSHOT, (SHOWS,)):
                if min(available, held) < 0 or (available, held) != (current, current_held):
                    run.problems.append(f"{show}: {available} and {held}, but the queue has {current}, {current_held}")
                if available + held != total:
                    run.problems.append(f"{show}: {available} and {held} aren't {total}, as in the ledger")


def false_refusals(run: Run, conn: psycopg.Connection) -> list[Refusal]:
    """The refusals for which there was surely enough during the whole call.

    Amounts that are held for some time count as taken; only what holds give back isn't counted.
    """
    ledger = conn.execute("select tx, show, amount from ledger").fetchall()
    held = conn.execute("select show, held from ledger where held > 0").fetchall()
    never = float("inf")

    def surely(refusal: Refusal) -> int:
        total = sum(
            amount
            for tx, show, amount in ledger
            if show == refusal.show
            and (
                run.ended.get(tx, never) < refusal.began
                if amount > 0
                else run.began.get(tx, 0) < refusal.ended and tx != refusal.tx
            )
        )
        return total - refusal.own - sum(amount for show, amount in held if show == refusal.show)

    return [refusal for refusal in run.refusals if surely(refusal) >= refusal.amount]


def random_sessions(conn: psycopg.Connection, dsn: str, seconds: float, sessions: int, seed: int) -> Run:
    conn.execute("create table ledger (tx int, show int, amount int, held int, ended text unique)")
    for show in SHOWS:
        call(conn, "add", show, 300)
        conn.execute("insert into ledger (tx, show, amount) values (-1, %s, 300)", (show,))
    run = Run(dsn, time.monotonic() + seconds)
    run.ended[-1] = run.began[-1] = 0.0
    tasks = [lambda number=number: session(run, seed * 100 + number) for number in range(sessions)]
    with workers(dsn), in_background(*tasks, lambda: watch(run)):
        pass
    conn.execute("update pgcombine.seats_holds set expires = now()")
    conn.execute("call pgcombine.drain('seats')")
    return run


def check(run: Run, conn: psycopg.Connection) -> None:
    assert run.problems == []
    assert problems(conn) == []
    totals = dict(conn.execute("select show, sum(amount) from ledger group by show having sum(amount) > 0").fetchall())
    assert {show: available for show, (available, _) in has(conn).items()} == totals
    assert all(held == 0 for _, held in has(conn).values())
    assert {show: available for show, available, _ in rows(conn, "seats_values") if available} == totals
    assert false_refusals(run, conn) == []
    assert run.calls > 50
    assert run.refusals != []


SEED = int(os.environ.get("PGCOMBINE_TEST_SEED", "1"))


def test_random_sessions(seats: psycopg.Connection, dsn: str) -> None:
    check(random_sessions(seats, dsn, 3, 4, SEED), seats)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(SEED, SEED + 3))
def test_many_random_sessions(seats: psycopg.Connection, dsn: str, seed: int) -> None:
    run = random_sessions(seats, dsn, 40, 16, seed)
    print(f"{run.calls} calls, {len(run.refusals)} refusals")
    check(run, seats)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("_hold.amount - $2 where", "_hold.amount where"),
        ("pgcombine_internal.split_amount(_sum - $2,", "pgcombine_internal.split_amount(_sum,"),
    ],
)
def test_mutants_are_detected(seats: psycopg.Connection, dsn: str, old: str, new: str) -> None:
    mutate_functions(seats, old, new)
    with pytest.raises(AssertionError):
        check(random_sessions(seats, dsn, 10, 6, SEED), seats)


def test_false_refusal_is_detected(seats: psycopg.Connection, dsn: str) -> None:
    run = random_sessions(seats, dsn, 0.5, 2, SEED)
    now = time.monotonic()
    call(seats, "add", 1, 10**6)
    seats.execute("insert into ledger (tx, show, amount) values (-2, 1, 1000000)")
    run.began[-2] = run.ended[-2] = now
    run.refusals.append(Refusal(1, 1, now + 1, now + 2, -3, 0))
    assert run.refusals[-1] in false_refusals(run, seats)
    eventually(lambda: problems(seats) == [])
