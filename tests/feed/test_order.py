"""A consumer that goes on from its stored offset sees each key's changes once and in order.

Two mutants of the feed lose a change in a fixed interleaving of sessions. One mutant numbers the changes of all buckets
together. The other draws a change's sequence before the bucket is claimed.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg import errors
from support.mutants import mutate_functions
from support.queues import add, combine_all, make_queue, values, word_in

from pgcombine import Feed

F = Feed("f")
BUCKETS = 16
MOST = 2**31 - 1


class Consumer:
    """Applies changes to its copy of the values. Each read begins at the stored offset."""

    def __init__(self) -> None:
        self.after: dict[str, int] = {}
        self.values: dict[str, Any] = {}

    def read(self, conn: psycopg.Connection, most: int) -> None:
        for batch in F.read(conn, after=self.after, most=most):
            for row in batch.rows:
                assert self.values.get(row["word"]) == row["old_n"], f"the chain of {row['word']} is broken at {row}"
                self.values[row["word"]] = row["new_n"]
            self.after = batch.after

    def check(self, conn: psycopg.Connection) -> None:
        self.read(conn, MOST)
        assert {word: n for word, n in self.values.items() if n is not None} == values(conn)


def consume(conn: psycopg.Connection, dsn: str, seed: int) -> None:
    chance = random.Random(seed)
    buckets = BUCKETS
    consumer = Consumer()
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second, psycopg.connect(dsn) as early:
        early.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        sessions = [first, second, early]
        for session in sessions:
            session.execute("set lock_timeout = '2s'")
            session.commit()
        for _ in range(200):
            action = chance.choice(["add", "add", "pass", "pass", "pass", "commit", "roll back", "read", "read"])
            session = chance.choice(sessions)
            if action == "add":
                add(conn, {f"w{chance.randrange(30)}": chance.choice([1, 1, 2, -1]) for _ in range(5)})
            elif action == "pass":
                with suppress(errors.SerializationFailure, errors.LockNotAvailable):
                    session.execute("select pgcombine.combine('wc', %s)", (chance.randrange(buckets),))
                if session.info.transaction_status == psycopg.pq.TransactionStatus.INERROR:
                    session.rollback()
            elif action == "commit":
                session.commit()
            elif action == "roll back":
                session.rollback()
            elif action == "read":
                consumer.read(conn, chance.choice([1, 5, 1000]))
            if chance.random() < 0.02:
                for other in sessions:
                    other.commit()
                buckets = chance.choice([8, 16, 24])
                conn.execute("select pgcombine.rebucket('wc', %s)", (buckets,))
    combine_all(conn)
    consumer.check(conn)


@pytest.fixture
def fed(conn: psycopg.Connection) -> psycopg.Connection:
    make_queue(conn, buckets=BUCKETS)
    Feed("f", queue="wc").create(conn)
    conn.execute("create sequence drawn")
    return conn


@pytest.mark.parametrize("seed", range(2))
def test_consumer_sees_each_change_once_and_in_order(fed: psycopg.Connection, dsn: str, seed: int) -> None:
    consume(fed, dsn, seed)
    assert fed.execute("select * from pgcombine.verify('wc')").fetchall() == []


def with_sequence(conn: psycopg.Connection, bucket: str, sequence: str) -> None:
    """Make a mutant of the feed, in which SQL expressions give each change its ``bucket`` and its ``sequence``.

    The last sequence of a bucket is the highest one that is visible. Reads don't notice gaps in the sequences.
    """
    conn.execute("select pgcombine.drop_observer('wc', 'changes sequence'), pgcombine.drop_observer('wc', 'changes')")
    statement = (
        "insert into pgcombine.wc_changes (_segment, _bucket, _sequence, word, old_n, new_n) "
        "select 0, BUCKET, SEQUENCE, word, old_n, new_n from changes"
    )
    statement = statement.replace("BUCKET", bucket).replace("SEQUENCE", sequence)
    conn.execute("select pgcombine.add_observer('wc', 'changes', %s)", (statement,))
    mutate_functions(
        conn,
        "select coalesce(jsonb_object_agg(b.bucket, b.last), '{}')",
        "select coalesce(jsonb_object_agg(b.bucket, (select coalesce(max(f._sequence), 0) from pgcombine.wc_changes f "
        "where f._bucket = b.bucket)), '{}')",
    )
    mutate_functions(conn, "counted <> expected", "false")


def global_sequence(conn: psycopg.Connection) -> None:
    """Make a mutant that numbers the changes of all buckets together."""
    with_sequence(conn, "0", "nextval('drawn')")


def drawn_before_the_claim(conn: psycopg.Connection) -> None:
    """Make a mutant in which a session may draw a change's sequence before its pass claims the bucket."""
    drawn = "coalesce(nullif(current_setting('feed.drawn', true), '')::bigint, nextval('drawn'))"
    with_sequence(conn, "{pgcombine_bucket}", f"{drawn} * 1000 + row_number() over ()")


def two_buckets(conn: psycopg.Connection, dsn: str) -> Consumer:
    """Of two passes over different buckets, the one that begins first commits last, after the consumer has read."""
    consumer = Consumer()
    add(conn, {word_in(conn, 0): 1, word_in(conn, 1): 1})
    with psycopg.connect(dsn) as slow:
        slow.execute("select pgcombine.combine('wc', 0)")
        conn.execute("select pgcombine.combine('wc', 1)")
        consumer.read(conn, MOST)
    assert consumer.values == {word_in(conn, 1): 1}
    return consumer


def late_claim(conn: psycopg.Connection, dsn: str) -> Consumer:
    """A session draws a sequence, but claims the bucket only after the consumer has read another pass's changes."""
    consumer = Consumer()
    with psycopg.connect(dsn) as late:
        late.execute("select set_config('feed.drawn', nextval('drawn')::text, true)")
        for session in (conn, late):
            add(conn, {word_in(conn, 0): 1})
            session.execute("select pgcombine.combine('wc', 0)")
            if session is conn:
                consumer.read(conn, MOST)
    assert consumer.values == {word_in(conn, 0): 1}
    return consumer


Interleaving = Callable[[psycopg.Connection, str], Consumer]


@pytest.mark.parametrize("interleaving", [two_buckets, late_claim])
def test_interleaving_loses_no_change(fed: psycopg.Connection, dsn: str, interleaving: Interleaving) -> None:
    interleaving(fed, dsn).check(fed)


@pytest.mark.parametrize(
    ("interleaving", "mutant", "lost"),
    [(two_buckets, global_sequence, (0, 1, None)), (late_claim, drawn_before_the_claim, (0, 2, 1))],
)
def test_mutant_loses_a_change(
    fed: psycopg.Connection,
    dsn: str,
    interleaving: Interleaving,
    mutant: Callable[[psycopg.Connection], None],
    lost: tuple[int, int, int | None],
) -> None:
    mutant(fed)
    consumer = interleaving(fed, dsn)
    consumer.read(fed, MOST)
    bucket, value, seen = lost
    word = word_in(fed, bucket)
    assert values(fed)[word] == value
    assert consumer.values.get(word) == seen


@pytest.mark.parametrize("interleaving", [two_buckets, late_claim])
def test_sequence_drawn_after_the_claim_is_accepted(
    fed: psycopg.Connection, dsn: str, interleaving: Interleaving
) -> None:
    """The mutants fail because of their sequences, not because of what else ``with_sequence`` does."""
    with_sequence(fed, "{pgcombine_bucket}", "nextval('drawn')")
    interleaving(fed, dsn).check(fed)
