"""Sessions contribute, replace and void at random, beside passes and rebuckets. The values are the sums of what each
source said last.

Mutants, which the test must detect: a call that doesn't lock its source, one that keeps keys that the source no longer
has, and one that doesn't store a key's new value.
"""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Callable

import psycopg
import pytest
from psycopg.types.json import Jsonb
from support.mutants import mutate_functions
from support.queues import combine_all, current, values
from support.sessions import in_background

from pgcombine import CombineQueue

SOURCES, WORDS = ["s1", "s2", "s3"], "abcdef"
SAID = "insert into public.said values (%s, %s) on conflict (source) do update set updates = excluded.updates"
Updates = list[tuple[str, int]]


def session(dsn: str, seed: int, transactions: int) -> int:
    """Run transactions, and return how many committed. The table ``said`` has what each source said last."""
    chance = random.Random(seed)
    committed = 0

    def said() -> Updates:
        return [(chance.choice(WORDS), chance.randint(-2, 3)) for _ in range(chance.choice([0, 1, 2, 3, 8]))]

    def contribute(conn: psycopg.Connection) -> None:
        source, updates = chance.choice(SOURCES), said()
        if chance.random() < 0.5:
            CombineQueue("wc").contribute(conn, source, updates)
        else:
            rows = Jsonb([{"word": word, "n": n} for word, n in updates])
            conn.execute("select pgcombine.contribute('wc', %s, %s)", (source, rows))
        conn.execute(SAID, (source, Jsonb(updates)))

    with psycopg.connect(dsn) as conn:
        for _ in range(transactions):
            level = chance.choice(["read committed", "read committed", "repeatable read", "serializable"])
            conn.execute(f"set transaction isolation level {level}".encode())
            if level != "read committed":
                conn.execute("select pg_sleep(0.002)")  # others commit after the snapshot
            try:
                for _ in range(chance.choice([1, 1, 2])):
                    contribute(conn)
                    if chance.random() < 0.2:
                        with conn.transaction(force_rollback=True):
                            contribute(conn)
                if chance.random() < 0.2:
                    conn.rollback()
                else:
                    conn.commit()  # which can fail too, at serializable
                    committed += 1
            except (psycopg.errors.SerializationFailure, psycopg.errors.DeadlockDetected):
                conn.rollback()
    return committed


def contribute_at_random(conn: psycopg.Connection, dsn: str, transactions: int, seed: int = 1) -> None:
    conn.execute("create table public.said (source text primary key, updates jsonb)")
    sessions = [lambda n=n: session(dsn, 100 * seed + n, transactions) for n in range(8)]
    with in_background(*sessions) as calls:
        for number in itertools.takewhile(lambda _: not all(call.done() for call in calls), itertools.count()):
            combine_all(conn)
            if number % 5 == 0:
                conn.execute("select pgcombine.rebucket('wc', %s)", (1 + number % 2,))
    assert sum(int(str(call.result())) for call in calls) > transactions
    wanted: Counter[str] = Counter()
    for (updates,) in conn.execute("select updates from public.said"):
        for word, n in updates:
            wanted[word] += n
    wanted_values = {word: n for word, n in wanted.items() if n != 0}
    assert current(conn) == wanted_values
    combine_all(conn)
    assert values(conn) == wanted_values
    assert conn.execute("select * from pgcombine.verify_contributions('wc')").fetchall() == []


@pytest.mark.wc(buckets=2)
def test_values_are_the_sums_of_what_each_source_said_last(conn: psycopg.Connection, dsn: str) -> None:
    contribute_at_random(conn, dsn, 15)


@pytest.mark.slow
@pytest.mark.wc(buckets=2)
@pytest.mark.parametrize("seed", range(2, 5))
def test_values_are_the_sums_after_many_contributions(conn: psycopg.Connection, dsn: str, seed: int) -> None:
    contribute_at_random(conn, dsn, 100, seed)


def locks_nothing(conn: psycopg.Connection) -> None:
    mutate_functions(
        conn,
        "update pgcombine.contribution c set at = now() where (c.queue, c.source) = (take_source.queue, _source)\n"
        "        returning c.id into _id;",
        "select c.id into _id from pgcombine.contribution c where (c.queue, c.source) = (take_source.queue, _source);",
    )


def keeps_keys(conn: psycopg.Connection) -> None:
    mutate_functions(conn, "where pgcombine_new is null or pgcombine_row is null or", "where pgcombine_new and")


@pytest.mark.slow
@pytest.mark.wc(buckets=2)
@pytest.mark.parametrize("mutant", [locks_nothing, keeps_keys])
def test_mutants_are_detected(conn: psycopg.Connection, dsn: str, mutant: Callable[[psycopg.Connection], None]) -> None:
    mutant(conn)
    with pytest.raises((AssertionError, psycopg.errors.UniqueViolation)):
        contribute_at_random(conn, dsn, 15)
