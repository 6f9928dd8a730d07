"""Concurrent passes: locks of buckets, conflicts under repeatable read, and what readers see."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
import pytest
from support.queues import add, combine_all, current, make_queue, one, rows, values, word_in, write_values
from support.sessions import in_background, waits, workers
from support.wait import eventually

from pgcombine.worker.passes import open_connection, run_pass


@contextmanager
def snapshot(dsn: str) -> Iterator[psycopg.Connection]:
    """A connection in a repeatable read transaction that has taken its snapshot."""
    with psycopg.connect(dsn) as conn:
        conn.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        conn.execute("select count(*) from pgcombine.queue")
        yield conn
        conn.rollback()


def by_a_pass(conn: psycopg.Connection) -> None:
    conn.execute("select pgcombine.combine('wc', 0)")


@pytest.mark.wc(buckets=1)
@pytest.mark.parametrize(
    ("old", "pending", "rival", "left"),
    [
        ({}, {"a": 1}, by_a_pass, {"a": 1}),
        ({"a": 1}, {"a": 1}, by_a_pass, {"a": 2}),
        ({"a": 1}, {"a": -1}, by_a_pass, {}),
        ({}, {"a": 1}, "insert into pgcombine.wc_values values ('a', 10)", {"a": 11}),
        ({"a": 1}, {"a": 1}, "update pgcombine.wc_values set n = 10", {"a": 11}),
        ({"a": 1}, {"a": 1}, "delete from pgcombine.wc_values", {"a": 1}),
        ({"a": 1}, {"a": -1}, "delete from pgcombine.wc_values", {"a": -1}),
        ({"a": 1}, {"a": -1}, "update pgcombine.wc_values set n = 5", {"a": 4}),
    ],
    ids=[
        "pass inserts",
        "pass updates",
        "pass deletes",
        "value inserted",
        "value updated",
        "value deleted",
        "value deleted, delete",
        "value updated, delete",
    ],
)
def test_snapshot_older_than_a_rivals_commit_fails_to_serialize(
    conn: psycopg.Connection,
    dsn: str,
    old: dict[str, int],
    pending: dict[str, int],
    rival: str | Callable[[psycopg.Connection], None],
    left: dict[str, int],
) -> None:
    """A pass whose snapshot is older than a rival's commit fails, though the bucket is free. The next pass succeeds."""
    add(conn, old)
    combine_all(conn)
    add(conn, pending)
    with snapshot(dsn) as late:
        if callable(rival):
            rival(conn)
        else:
            write_values(conn, rival)
        with pytest.raises(psycopg.errors.SerializationFailure):
            late.execute("select pgcombine.combine('wc', 0)")
    with open_connection(dsn) as worker:
        run_pass(worker, "wc", 0)
    assert values(conn) == left
    assert rows(conn, "wc_pending") == []


@pytest.mark.wc(buckets=1)
def test_value_that_a_unique_index_of_the_user_refuses_stays_pending(conn: psycopg.Connection) -> None:
    conn.execute("create unique index on pgcombine.wc_values_b0000 (n)")
    add(conn, {"a": 1, "b": 1})
    with pytest.raises(psycopg.errors.UniqueViolation):
        conn.execute("select pgcombine.combine('wc')")
    assert current(conn) == {"a": 1, "b": 1}
    conn.execute("drop index pgcombine.wc_values_b0000_n_idx")
    combine_all(conn)
    assert values(conn) == {"a": 1, "b": 1}


@pytest.mark.wc(buckets=1)
def test_pass_under_read_committed_sees_earlier_commits(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as psql:
        psql.execute("select 1")
        add(conn, {"a": 1})
        by_a_pass(conn)
        add(conn, {"a": 1})
        psql.execute("select pgcombine.combine('wc', 0)")
        psql.commit()
    assert values(conn) == {"a": 2}


@pytest.mark.wc(buckets=2)
def test_a_reader_of_current_sees_each_update_once(conn: psycopg.Connection, dsn: str) -> None:
    """The total of wc_current is right for new snapshots and for an old one."""
    total = "select coalesce(sum(n), 0)::int from pgcombine.wc_current"
    seen = 0
    with workers(dsn, "wc", count=2), psycopg.connect(dsn) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        for i in range(1, 80):
            add(conn, [(f"w{j}", 1) for j in range(i % 5 + 1)])
            seen += i % 5 + 1
            assert one(conn, total) == seen
            if i % 10 == 0:
                reader.rollback()
                assert one(reader, total) == seen
                frozen = seen
            if i > 10:
                assert one(reader, total) == frozen
        eventually(lambda: rows(conn, "wc_pending") == [], what="no update is pending")
    assert sum(values(conn).values()) == seen == one(conn, total)


@pytest.mark.wc(buckets=1)
def test_current_is_exact_while_a_pass_is_open(conn: psycopg.Connection, dsn: str) -> None:
    add(conn, {"a": 2, "b": 1})
    combine_all(conn)
    add(conn, {"a": 1, "b": -1})
    with psycopg.connect(dsn) as other:
        by_a_pass(other)
        assert current(conn) == {"a": 3}
        assert values(conn) == {"a": 2, "b": 1}
        other.commit()
    assert current(conn) == values(conn) == {"a": 3}


@pytest.mark.wc(buckets=2)
def test_drop_waits_for_passes_without_a_deadlock(conn: psycopg.Connection, dsn: str) -> None:
    word = word_in(conn, 1)
    add(conn, {word: 1})
    with psycopg.connect(dsn) as worker, psycopg.connect(dsn) as dropper:
        # lock the bucket's row, which is the first step of a pass
        worker.execute("select from pgcombine.bucket where queue = 'wc' and bucket = 1 for update")
        with in_background(lambda: dropper.execute("select pgcombine.drop_queue('wc', force => true)")):
            waits(conn, dropper.info.backend_pid)
            worker.execute("select pgcombine.combine('wc', 1)")
            worker.commit()
        dropper.commit()
    assert rows(conn, "queue") == []


@pytest.mark.wc
def test_a_worker_outlives_a_queue_that_is_dropped(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, "kept")
    with workers(dsn, poll=0.1) as worker:
        for i in range(5):
            add(conn, {f"w{j}": 1 for j in range(50)})
            conn.execute("select pgcombine.drop_queue('wc', force => true)")
            make_queue(conn)
            add(conn, {"a": 1}, "kept")
            eventually(lambda i=i: values(conn, "kept") == {"a": i + 1}, what="the other queue goes on")
    assert worker.totals.updates >= 5


@pytest.mark.wc(buckets=2)
@pytest.mark.parametrize("isolation", ["read committed", "read uncommitted"])
def test_pass_that_waits_fails_if_the_condition_changes(conn: psycopg.Connection, dsn: str, isolation: str) -> None:
    """A waiting pass would see updates from after the change, but apply the former condition. So the pass must fail."""
    word = word_in(conn, 1)
    add(conn, {word: 1})
    with psycopg.connect(dsn) as rival, psycopg.connect(dsn, autocommit=True) as passing:

        def combine() -> None:
            passing.execute(f"set default_transaction_isolation = '{isolation}'")
            with pytest.raises(psycopg.errors.SerializationFailure):
                passing.execute("select pgcombine.combine('wc', 1)")

        rival.execute("lock table pgcombine.wc_values_b0001 in access exclusive mode")
        with in_background(combine):
            waits(conn, passing.info.backend_pid)
            conn.execute("select pgcombine.set_expiry('wc', 'n >= 10')")
            add(conn, {word: 10})
            rival.commit()
    combine_all(conn)
    assert values(conn) == {}
