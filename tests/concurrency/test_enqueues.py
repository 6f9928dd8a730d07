"""Enqueues beside other enqueues, passes, ``create_queue`` and ``drop_queue``."""

from __future__ import annotations

import random
from collections import Counter
from functools import partial

import psycopg
import pytest
from psycopg import sql
from support.queues import add, combine_all, enqueue, make_queue, one, rows, values
from support.sessions import in_background, waits, workers

from pgcombine.worker.drain import drain

SESSIONS = 8


def test_an_enqueue_waits_for_nobody(conn: psycopg.Connection, dsn: str) -> None:
    """An enqueue waits neither for an open enqueue of the same key nor for an open pass over its bucket."""
    make_queue(conn, buckets=1)
    add(conn, {"a": 1})
    combine_all(conn)
    add(conn, {"a": 1})
    with psycopg.connect(dsn) as one_session, psycopg.connect(dsn) as worker, psycopg.connect(dsn) as other:
        add(one_session, {"a": 10})
        worker.execute("select pgcombine.combine('wc', 0)")
        other.execute("set lock_timeout = '1ms'")
        add(other, {"a": 100})
        enqueue(other, {"word": "a", "n": 1000})
        other.commit()
        one_session.commit()
        worker.commit()
    assert values(conn) == {"a": 2}
    combine_all(conn)
    assert values(conn) == {"a": 1112}


@pytest.mark.parametrize("how", ["insert", "function"])
def test_random_enqueues_of_eight_sessions_are_counted_exactly(conn: psycopg.Connection, dsn: str, how: str) -> None:
    make_queue(conn, buckets=4)
    expected: Counter[str] = Counter()

    def session(number: int) -> Counter[str]:
        dice = random.Random(number)
        done: Counter[str] = Counter()
        with psycopg.connect(dsn) as mine:
            for _ in range(12):
                keys = [(f"w{dice.randrange(40)}", dice.choice((-1, 1, 2))) for _ in range(30)]
                for word, n in keys:
                    if how == "insert":
                        add(mine, {word: n})
                    else:
                        enqueue(mine, {"word": word, "n": n})
                if dice.random() < 0.2:
                    mine.rollback()
                else:
                    mine.commit()
                    for word, n in keys:
                        done[word] += n
        return done

    sessions = [partial(session, number) for number in range(SESSIONS)]
    with workers(dsn, "wc", count=2), in_background(*sessions) as futures:
        pass
    for future in futures:
        for word, n in future.result().items():
            expected[word] += n
    drain(dsn, "wc", timeout=60)
    assert values(conn) == {word: n for word, n in expected.items() if n}


def test_a_rolled_back_enqueue_leaves_nothing(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn)
    with psycopg.connect(dsn) as mine:
        add(mine, {"a": 1})
        enqueue(mine, {"word": "b", "n": 1})
        assert one(mine, "select pgcombine.backlog('wc')") == 2
        mine.rollback()
    assert rows(conn, "wc_pending") == []
    assert combine_all(conn) == []
    with psycopg.connect(dsn) as mine:
        add(mine, {"a": 1})
        with mine.transaction(force_rollback=True):  # a savepoint
            add(mine, {"b": 1})
        mine.commit()
    combine_all(conn)
    assert values(conn) == {"a": 1}


def test_an_open_enqueue_is_not_combined_before_it_commits(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=1)
    with psycopg.connect(dsn) as mine:
        add(mine, {"a": 1})
        add(conn, {"a": 10})
        combine_all(conn)
        assert values(conn) == {"a": 10}
        mine.commit()
    combine_all(conn)
    assert values(conn) == {"a": 11}


def test_second_concurrent_creator_is_refused(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second:
        make_queue(first)

        def again() -> None:
            with pytest.raises(psycopg.Error, match='queue "wc" exists') as refused:
                make_queue(second)
            assert refused.value.sqlstate == "PC002"

        with in_background(again):
            waits(conn, second.info.backend_pid)
            first.commit()
    add(conn, {"a": 1})
    combine_all(conn)
    assert values(conn) == {"a": 1}


def test_second_creator_succeeds_if_the_first_rolls_back(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second:
        make_queue(first, buckets=7)
        with in_background(lambda: make_queue(second, buckets=2)):
            waits(conn, second.info.backend_pid)
            first.rollback()
        second.commit()
    assert [row[:2] for row in rows(conn, "bucket")] == [("wc", 0), ("wc", 1)]


def test_drop_waits_for_an_open_enqueue_and_is_refused(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn)
    with psycopg.connect(dsn) as mine, psycopg.connect(dsn, autocommit=True) as dropper:
        add(mine, {"a": 1})

        def drop() -> None:
            with pytest.raises(psycopg.Error, match="1 pending updates"):
                dropper.execute(sql.SQL("select pgcombine.drop_queue('wc')"))

        with in_background(drop):
            waits(conn, dropper.info.backend_pid)
            mine.commit()
    combine_all(conn)
    assert values(conn) == {"a": 1}
