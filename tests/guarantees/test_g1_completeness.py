"""G1: the value that an observer sees for a key is derived from all updates committed before the pass began.

Also when a pass can't take all that is pending. Broken on purpose: passes that take any portion of the updates,
slices of something else than keys.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import psycopg
import pytest
from support.audit import audit, audited, check
from support.mutants import mutate_functions
from support.queues import add, make_queue, one, rows

from pgcombine.worker.passes import open_connection, run_pass


def half_combined(conn: psycopg.Connection, seed: int) -> None:
    """Bounded passes while updates keep coming: each reports the total that was committed when it began."""
    chance = random.Random(seed)
    committed: Counter[str] = Counter()
    seen = 0
    for step in range(60):
        if step < 20:  # now many keys, now one with far more updates than a pass takes
            words = [f"w{chance.randrange(40)}" for _ in range(20)] + ["giant"] * chance.choice([0, 30])
            for word in words:
                for n in (chance.randrange(1, 9), -chance.randrange(1, 9)):  # each word's halves are odd one out
                    add(conn, {word: n})
                    committed[word] += n
        conn.execute("select pgcombine.combine('wc', 0)")
        changes = audited(conn)
        for change in changes[seen:]:
            assert (change.new or 0) == committed[change.word], f"step {step}: {change} is half of it"
        seen = len(changes)
    for _ in range(10_000):
        if not rows(conn, "wc_pending"):
            break
        conn.execute("select pgcombine.combine('wc', 0)")
    else:
        raise AssertionError("bounded passes don't come to an end")
    check(conn, committed)
    assert seen


def test_nobody_sees_half_of_what_was_committed(conn: psycopg.Connection) -> None:
    make_queue(conn, buckets=1, pass_limit=8)
    audit(conn)
    half_combined(conn, seed=1)


def any_portion(conn: psycopg.Connection, count: int = 8) -> None:
    """A pass takes what comes first, whole keys or not."""
    portion = "    select * from ({log}) as log limit COUNT\n)"
    mutate_functions(conn, "    {log}\n)", portion.replace("COUNT", str(count)))


def slices_of_rows(conn: psycopg.Connection) -> None:
    """Slices that tear a key's updates apart."""
    mutate_functions(conn, "hash_record_extended(row(%s), 0)", "hash_record_extended(row(%s, n), 0)")
    conn.execute("select pgcombine_internal.regenerate_pass(queue) from pgcombine.queue")


@pytest.mark.parametrize("mutant", [any_portion, slices_of_rows])
def test_half_combined_keys_are_noticed(conn: psycopg.Connection, mutant: Callable[[psycopg.Connection], None]) -> None:
    make_queue(conn, buckets=1, pass_limit=8)
    audit(conn)
    mutant(conn)
    with pytest.raises(AssertionError, match="is half of it"):
        half_combined(conn, seed=1)


def no_lone_increment(conn: psycopg.Connection, dsn: str) -> None:
    """TX1 +1 and TX2 -1, then a pass in a transaction that began after both."""
    conn.execute("truncate public.wc_audit")
    add(conn, {"a": 1})
    add(conn, {"a": -1})
    with psycopg.connect(dsn) as late:
        late.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        late.execute("select 1 from pgcombine.queue")  # the snapshot; what follows isn't in it
        add(conn, {"a": 5})
        late.execute("select pgcombine.combine('wc', 0)")
    assert audited(conn) == []
    with psycopg.connect(dsn) as psql:
        psql.execute("select 1")
        psql.execute("select pgcombine.combine('wc', 0)")
    assert audited(conn) == [("a", None, 5)]


def test_what_committed_before_a_transaction_is_seen_together(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=1)
    audit(conn)
    no_lone_increment(conn, dsn)


def test_a_lone_increment_is_noticed(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=1)
    audit(conn)
    any_portion(conn, 1)
    with pytest.raises(AssertionError):
        no_lone_increment(conn, dsn)


@pytest.mark.parametrize("limit", [1, 2, 7, 50])
def test_a_key_with_more_updates_than_a_pass_takes(conn: psycopg.Connection, dsn: str, limit: int) -> None:
    make_queue(conn, buckets=1, pass_limit=limit)
    audit(conn)
    add(conn, [("giant", 1)] * 200 + [("a", 1), ("b", 2), ("c", 3)])
    with open_connection(dsn) as worker:
        for _ in range(2000):
            if one(conn, "select pgcombine.backlog('wc')") == 0:
                break
            done = run_pass(worker, "wc", 0)
            assert done is not None
            assert done.updates > 0, "a pass that gets nowhere"
    assert sorted(audited(conn)) == [("a", None, 1), ("b", None, 2), ("c", None, 3), ("giant", None, 200)]
