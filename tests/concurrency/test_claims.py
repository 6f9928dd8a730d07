"""Sessions that claim all buckets of a queue at once: rebucket, and whoever must have no pass beside it.

Broken on purpose: the claim in one statement, which misses the buckets that were added while it waited.
"""

from __future__ import annotations

import random
from collections import Counter
from threading import Event

import psycopg
import pytest
from psycopg import errors
from support.exports import make_export
from support.mutants import claim_in_one_statement
from support.queues import add, combine_all, hold, make_queue, one, rows, values
from support.sessions import in_background, waits, workers
from support.wait import eventually

REBUCKETS = 4  # of each session
WORDS = [f"w{i}" for i in range(500)]
UNCLAIMED = "select count(*) from (select from pgcombine.bucket for update skip locked) unclaimed"

# What claims all buckets of the queue wc, which has an export and a quarantined key.
CLAIM = [
    "select pgcombine_internal.begin_initialize('wc', true)",
    "select pgcombine_internal.export_resync('search')",
    "select pgcombine.retry_quarantined('wc')",
    "select pgcombine.drop_quarantined('wc')",
    "select pgcombine_internal.handoff_rebuild_queue('wc', '', pgcombine_internal.handoff_shape('wc'))",
]
# These also write new versions of the buckets' rows later, by which they lock those that a wrong claim has missed.
CLAIM_AND_WRITE = [
    "select pgcombine.rebucket('wc', 4)",
    "select pgcombine.create_export('other', 'wc', existing => true)",
    "select pgcombine.drop_export('search')",
    "select pgcombine_internal.own_export('search', 'here')",
    "select pgcombine_internal.disown_export('search', 'there', 7)",
    "select pgcombine.drop_queue('wc', force => true)",  # by the drop of its export
]


def all_claimed(conn: psycopg.Connection, dsn: str, call: str) -> None:
    """``call`` waits for a rebucket from one bucket to eight; when that commits, it claims them all.

    The looks at the quarantine hold up calls that go on to write there.
    """
    make_queue(conn, buckets=1)
    make_export(conn)
    add(conn, {"held": 1})
    hold(conn, word="held")
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second, psycopg.connect(dsn) as holder:
        holder.execute("select from pgcombine.quarantined_key for update")
        holder.execute("select from pgcombine.wc_quarantine")
        first.execute("select pgcombine.rebucket('wc', 8)")
        with in_background(lambda: second.execute(call)) as (called,):
            try:
                waits(conn, second.info.backend_pid)
                first.commit()
                blocked = f"select {holder.info.backend_pid} = any (pg_blocking_pids({second.info.backend_pid}))"
                eventually(lambda: called.done() or one(conn, blocked), what="the claim is made")
                assert one(conn, UNCLAIMED) == 0, "buckets without a claim"
            finally:
                first.rollback()
                holder.rollback()
        second.rollback()


@pytest.mark.parametrize("call", CLAIM + CLAIM_AND_WRITE)
def test_the_buckets_that_were_added_meanwhile_are_claimed(conn: psycopg.Connection, dsn: str, call: str) -> None:
    all_claimed(conn, dsn, call)


@pytest.mark.parametrize("call", CLAIM)
def test_a_claim_that_misses_buckets_is_noticed(conn: psycopg.Connection, dsn: str, call: str) -> None:
    claim_in_one_statement(conn)
    with pytest.raises(AssertionError, match="buckets without a claim"):
        all_claimed(conn, dsn, call)


def passes_beside_the_second_rebucket(conn: psycopg.Connection, dsn: str) -> None:
    """Passes that would write values which the second rebucket has copied already."""
    make_queue(conn, buckets=1)
    add(conn, [(word, 1) for word in WORDS])
    combine_all(conn)
    with (
        psycopg.connect(dsn) as first,
        psycopg.connect(dsn, autocommit=True) as second,
        psycopg.connect(dsn) as reader,
    ):
        first.execute("select pgcombine.rebucket('wc', 8)")
        with in_background(lambda: second.execute("select pgcombine.rebucket('wc', 4)")):
            try:
                waits(conn, second.info.backend_pid)
                reader.execute("set transaction isolation level repeatable read")
                first.commit()
                # The second one can't have its last lock, or waits for its claims.
                one(reader, "select count(*) from pgcombine.wc_values")
                waits(conn, second.info.backend_pid)
                add(conn, [(word, 1) for word in WORDS])
                conn.execute("select pgcombine.combine('wc', b) from generate_series(1, 7) b")
            finally:
                reader.commit()
    combine_all(conn)
    assert sum(values(conn).values()) == 2 * len(WORDS), "updates are lost"


def test_no_pass_writes_beside_the_second_rebucket(conn: psycopg.Connection, dsn: str) -> None:
    passes_beside_the_second_rebucket(conn, dsn)
    assert rows(conn, "bucket") == [("wc", bucket) for bucket in range(4)]


def test_lost_updates_are_noticed(conn: psycopg.Connection, dsn: str) -> None:
    claim_in_one_statement(conn)
    with pytest.raises(AssertionError, match="updates are lost"):
        passes_beside_the_second_rebucket(conn, dsn)


def outcome(conn: psycopg.Connection, first: psycopg.Connection, second: psycopg.Connection, call: str) -> object:
    """What ``call`` returns or raises in ``second``, which waits until ``first`` commits."""

    def result() -> object:
        try:
            return one(second, call)
        except psycopg.Error as error:
            return str(error)

    with in_background(result) as (called,):
        try:
            waits(conn, second.info.backend_pid)
        finally:
            first.commit()
    return called.result()


def test_two_owners_at_once_have_two_epochs(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn)
    make_export(conn)
    with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second:
        epoch = one(first, "select pgcombine_internal.own_export('search', 'first')")
        later = outcome(conn, first, second, "select pgcombine_internal.own_export('search', 'second')")
    assert later == epoch + 1


def test_an_export_that_was_dropped_meanwhile(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn)
    make_export(conn)
    with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second:
        first.execute("select pgcombine.drop_export('search')")
        later = outcome(conn, first, second, "select pgcombine.drop_export('search')")
    assert 'no export "search"' in str(later)


def test_an_export_of_a_queue_that_was_dropped_meanwhile(conn: psycopg.Connection, dsn: str) -> None:
    """The drop, which waits for a pass before, waits for no lock of the other one."""
    make_queue(conn)
    with (
        psycopg.connect(dsn) as passing,
        psycopg.connect(dsn, autocommit=True) as first,
        psycopg.connect(dsn, autocommit=True) as second,
    ):
        add(conn, {"a": 1})
        passing.execute("select pgcombine.combine('wc')")
        with in_background(lambda: first.execute("select pgcombine.drop_queue('wc', force => true)")):
            try:
                waits(conn, first.info.backend_pid)
                later = outcome(conn, passing, second, "select pgcombine.create_export('search', 'wc')")
            finally:
                passing.rollback()
    assert 'no queue "wc"' in str(later)


# At other isolation levels


@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
@pytest.mark.parametrize(
    "call",
    [
        "select pgcombine.rebucket('wc', 2)",
        "select pgcombine_internal.begin_initialize('wc', true)",
        "select pgcombine.create_export('other', 'wc', existing => true)",
        "select pgcombine.drop_export('search')",
        "select pgcombine_internal.own_export('search', 'here')",
        "select pgcombine_internal.disown_export('search', 'there', 7)",
        "select pgcombine_internal.handoff_rebuild_queue('wc', '', pgcombine_internal.handoff_shape('wc'))",
        "select pgcombine.drop_queue('wc')",
    ],
)
def test_an_older_snapshot_is_refused(conn: psycopg.Connection, call: str, level: str) -> None:
    """It would miss what passes have committed before the claim."""
    make_queue(conn)
    make_export(conn)
    conn.execute(f"set default_transaction_isolation = '{level}'")
    with pytest.raises(psycopg.Error, match="needs isolation level read committed") as refused:
        conn.execute(call.encode())
    assert refused.value.sqlstate == "PC003"


@pytest.mark.parametrize(
    "call",
    [
        "select pgcombine.retry_quarantined('wc')",
        "select pgcombine.drop_quarantined('wc')",
        "select pgcombine.create_export('other', 'wc')",
        "select pgcombine.drop_export('search', force => true)",
        "select pgcombine.drop_queue('wc', force => true)",
    ],
)
def test_buckets_that_were_changed_since_the_snapshot(conn: psycopg.Connection, dsn: str, call: str) -> None:
    make_queue(conn, buckets=1)
    make_export(conn)
    with psycopg.connect(dsn) as old:
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.execute("select")
        conn.execute("select pgcombine.rebucket('wc', 8)")
        with pytest.raises(errors.SerializationFailure):
            old.execute(call.encode())


# All at once


class Claims:
    """Sessions that rebucket; others that write, poison a key and end its quarantine until those are done."""

    def __init__(self, dsn: str, seed: int) -> None:
        self.dsn = dsn
        self.seed = seed
        self.written: Counter[str] = Counter()
        self.poisoned = 0
        self.over = Event()

    def rebucket(self, number: int) -> None:
        chance = random.Random(f"{self.seed} {number}")
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            for _ in range(REBUCKETS):
                conn.execute("select pgcombine.rebucket('wc', %s)", (chance.choice([1, 2, 3, 5, 8]),))

    def write(self) -> None:
        chance = random.Random(self.seed)
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            while not self.over.is_set():
                batch = Counter(chance.choices(WORDS, k=chance.choice([1, 10])))
                add(conn, batch)
                self.written += batch

    def quarantine(self) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            while not self.over.is_set():
                add(conn, [("bad", 2**62)] * 2)  # more than a bigint: passes fail until the key is quarantined
                self.poisoned += 2
                conn.execute("select pgcombine.retry_quarantined('wc')")


@pytest.mark.parametrize("seed", [1, pytest.param(2, marks=pytest.mark.slow), pytest.param(3, marks=pytest.mark.slow)])
def test_rebuckets_beside_writers_workers_and_a_quarantine(conn: psycopg.Connection, dsn: str, seed: int) -> None:
    make_queue(conn, buckets=1, quarantine_after=1)
    claims = Claims(dsn, seed)
    with workers(dsn, "wc", count=2, poll=0.05):
        with in_background(claims.write, claims.quarantine):
            try:
                with in_background(*(lambda number=number: claims.rebucket(number) for number in range(3))):
                    pass
            finally:
                claims.over.set()
        eventually(lambda: one(conn, "select pgcombine.backlog('wc')") == 0, what="all is combined or held")
    assert values(conn) == claims.written
    assert one(conn, "select pgcombine.drop_quarantined('wc')") == claims.poisoned
    assert one(conn, "select count(*) from pgcombine.wc_quarantine") == 0
    assert conn.execute("select * from pgcombine.verify('wc')").fetchall() == []
