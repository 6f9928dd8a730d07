"""G1: the value that an observer sees for a key includes all updates that were committed before the pass began.

The guarantee also holds for a pass that can't take all pending updates. The tests must also detect mutants, in which a
pass may take only some of a key's updates.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable

import psycopg
import pytest
from support.audit import audit, audited, check
from support.mutants import mutate_functions, torn_keys
from support.queues import add, make_queue, one, rows

from pgcombine.worker.passes import open_connection, run_pass


def half_combined(conn: psycopg.Connection, seed: int) -> None:
    """Run bounded passes between enqueues. A reported value must be the sum of the committed updates of its key."""
    chance = random.Random(seed)
    committed: Counter[str] = Counter()
    seen = 0
    for step in range(60):
        if step < 20:  # many keys, and sometimes one with far more updates than a pass takes
            words = [f"w{chance.randrange(40)}" for _ in range(20)] + ["giant"] * chance.choice([0, 30])
            for word in words:
                # a pass that takes only one of these two updates reports a wrong total
                for n in (chance.randrange(1, 9), -chance.randrange(1, 9)):
                    add(conn, {word: n})
                    committed[word] += n
        conn.execute("select pgcombine.combine('wc', 0)")
        changes = audited(conn)
        for change in changes[seen:]:
            assert (change.new or 0) == committed[change.word], f"step {step}: {change} lacks committed updates"
        seen = len(changes)
    for _ in range(10_000):
        if not rows(conn, "wc_pending"):
            break
        conn.execute("select pgcombine.combine('wc', 0)")
    else:
        raise AssertionError("updates are still pending after 10,000 bounded passes: check what each pass takes")
    check(conn, committed)
    assert seen


def test_observer_sees_all_committed_updates_of_a_key(conn: psycopg.Connection) -> None:
    make_queue(conn, buckets=1, pass_limit=8)
    audit(conn)
    half_combined(conn, seed=1)


def any_portion(conn: psycopg.Connection, count: int = 8) -> None:
    """Mutant: a pass takes only the first updates in the log, even if these are only some of a key's updates."""
    portion = "    select * from ({log}) as log limit COUNT\n)"
    mutate_functions(conn, "    {log}\n)", portion.replace("COUNT", str(count)))


@pytest.mark.parametrize("mutant", [any_portion, torn_keys])
def test_mutants_that_half_combine_keys_are_detected(
    conn: psycopg.Connection, mutant: Callable[[psycopg.Connection], None]
) -> None:
    make_queue(conn, buckets=1, pass_limit=8)
    audit(conn)
    mutant(conn)
    with pytest.raises(AssertionError, match="lacks committed updates"):
        half_combined(conn, seed=1)


def no_lone_increment(conn: psycopg.Connection, dsn: str) -> None:
    """Two transactions add 1 and -1 to a key. A pass with a later snapshot must report no change of the key.

    A third transaction adds 5 after this snapshot. The next pass must report the change from no value to 5.
    """
    conn.execute("truncate public.wc_audit")
    add(conn, {"a": 1})
    add(conn, {"a": -1})
    with psycopg.connect(dsn) as late:
        late.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        # the transaction takes its snapshot here, before the next update
        late.execute("select 1 from pgcombine.queue")
        add(conn, {"a": 5})
        late.execute("select pgcombine.combine('wc', 0)")
    assert audited(conn) == []
    with psycopg.connect(dsn) as psql:
        psql.execute("select 1")
        psql.execute("select pgcombine.combine('wc', 0)")
    assert audited(conn) == [("a", None, 5)]


@pytest.mark.wc(buckets=1)
def test_pass_sees_all_commits_before_its_snapshot(conn: psycopg.Connection, dsn: str) -> None:
    audit(conn)
    no_lone_increment(conn, dsn)


@pytest.mark.wc(buckets=1)
def test_mutant_that_reports_one_increment_is_detected(conn: psycopg.Connection, dsn: str) -> None:
    audit(conn)
    any_portion(conn, 1)
    with pytest.raises(AssertionError):
        no_lone_increment(conn, dsn)


@pytest.mark.parametrize("limit", [1, 2, 7, 50])
def test_key_with_more_updates_than_a_pass_takes_is_reported_once(
    conn: psycopg.Connection, dsn: str, limit: int
) -> None:
    make_queue(conn, buckets=1, pass_limit=limit)
    audit(conn)
    add(conn, [("giant", 1)] * 200 + [("a", 1), ("b", 2), ("c", 3)])
    with open_connection(dsn) as worker:
        for _ in range(2000):
            if one(conn, "select pgcombine.backlog('wc')") == 0:
                break
            done = run_pass(worker, "wc", 0)
            assert done is not None
            assert done.updates > 0, "a pass took no update"
    assert sorted(audited(conn)) == [("a", None, 1), ("b", None, 2), ("c", None, 3), ("giant", None, 200)]
