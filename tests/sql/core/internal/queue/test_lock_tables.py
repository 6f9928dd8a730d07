"""``lock_tables``: rebucket and drop_queue lock a queue's tables without a deadlock with transactions that use them."""

from __future__ import annotations

import itertools

import psycopg
import pytest
from psycopg import errors
from support.queues import combine_all, make_queue, one, values
from support.sessions import in_background, waits
from support.states import raises_state

USES = {
    "enqueue": "insert into pgcombine.wc_updates (word, n) values ('a', 1)",
    "values": "select count(*) from pgcombine.wc_values",
    "current": "select count(*) from pgcombine.wc_current",
    "pending": "select count(*) from pgcombine.wc_pending",
    "partition": "select count(*) from pgcombine.wc_values_b0000",
}
ORDERS = list(itertools.permutations(USES, 2))
FAST = [("enqueue", "current"), ("values", "enqueue")]
REBUCKET = "select pgcombine.rebucket('wc', 3)"
DROP = "select pgcombine.drop_queue('wc', force => true)"
TAKERS = {"rebucket": REBUCKET, "drop": DROP}


def meet(conn: psycopg.Connection, dsn: str, taker: str, first: str, second: str, time_limit: str = "300ms") -> None:
    """Run the statement ``taker`` beside a transaction that uses a table or view and then another one.

    ``time_limit`` is the taker's deadlock_timeout. The transaction's own is 1 s, so that the taker's attempt nearly
    always ends before it, even if the taker's process has to wait for a processor.
    """
    make_queue(conn, buckets=2)
    with (
        psycopg.connect(dsn, options="-c deadlock_timeout=1s") as user,
        psycopg.connect(dsn, options=f"-c deadlock_timeout={time_limit}") as taking,
    ):
        user.execute(USES[first].encode())
        with in_background(lambda: taking.execute(taker.encode())):
            try:
                for _ in range(6):
                    waits(conn, taking.info.backend_pid)
                    with user.transaction(force_rollback=True):
                        user.execute(USES[second].encode())
            finally:
                user.commit()
        taking.commit()


@pytest.mark.parametrize(
    ("taker", "first", "second"),
    [
        *(pytest.param(taker, *order, id="-".join((name, *order))) for order in FAST for name, taker in TAKERS.items()),
        *(pytest.param(REBUCKET, *order, marks=pytest.mark.slow) for order in ORDERS if order not in FAST),
    ],
)
def test_no_deadlock_occurs(conn: psycopg.Connection, dsn: str, taker: str, first: str, second: str) -> None:
    meet(conn, dsn, taker, first, second)
    if taker is REBUCKET:
        combine_all(conn)
        assert sum(values(conn).values()) == (first == "enqueue")
        assert conn.execute("select * from pgcombine.verify('wc')").fetchall() == []
    assert one(conn, "select count(*) from pgcombine.bucket") == (3 if taker is REBUCKET else 0)


def test_long_attempt_causes_a_deadlock(conn: psycopg.Connection, dsn: str) -> None:
    with pytest.raises(errors.DeadlockDetected):
        meet(conn, dsn, REBUCKET, "enqueue", "current", time_limit="1h")


@pytest.mark.wc(buckets=2)
@pytest.mark.parametrize("blocked", ["share", "no key update"])
def test_locked_row_of_the_queue_ends_the_attempt(conn: psycopg.Connection, dsn: str, blocked: str) -> None:
    """The session that has locked the queue's row may use the tables next."""
    with psycopg.connect(dsn) as user, psycopg.connect(dsn, autocommit=True) as taking:
        user.execute(f"select from pgcombine.queue for {blocked}".encode())
        assert not one(taking, "select pgcombine_internal.lock_tables('wc', 0)")
        user.execute(USES["enqueue"].encode())
        user.commit()
        assert one(taking, "select pgcombine_internal.lock_tables('wc', 0)")


@pytest.mark.wc
def test_the_timeout_of_the_caller_is_kept(conn: psycopg.Connection) -> None:
    conn.execute("set lock_timeout = '1234ms'")
    with conn.transaction():
        assert one(conn, "select pgcombine_internal.lock_tables('wc', 0)")
        assert one(conn, "show lock_timeout") == "1234ms"


@pytest.mark.wc
def test_a_drop_ends_at_lock_timeout(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as user:
        user.execute(USES["enqueue"].encode())
        conn.execute("set lock_timeout = '50ms'")
        with raises_state("PC006"):
            conn.execute(DROP.encode())
        user.commit()
    conn.execute(DROP.encode())


@pytest.mark.wc
@pytest.mark.parametrize("wholly", [True, False])
@pytest.mark.parametrize("attempt", range(4))
def test_attempt_that_succeeds_holds_all_locks(conn: psycopg.Connection, attempt: int, wholly: bool) -> None:
    with conn.transaction():
        conn.execute("set local deadlock_timeout = '1ms'")
        if not one(conn, "select pgcombine_internal.lock_tables('wc', %s, %s)", attempt, wholly):
            return  # an attempt with so short a timeout may fail
        held = conn.execute(
            "select relation::regclass::text from pg_locks where mode = 'AccessExclusiveLock'"
        ).fetchall()
        assert {(f"pgcombine.wc_{name}",) for name in ("current", "pending", "values", "updates")} <= set(held)
