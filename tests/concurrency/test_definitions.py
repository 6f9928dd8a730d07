"""Concurrent changes of what defines a queue: its creation, observers, and the condition by which its keys expire."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from psycopg import errors
from support.queues import add, combine_all, make_queue, one, rows, values, write_values
from support.sessions import in_background, waits
from support.wait import eventually

from pgcombine.worker.passes import open_connection, run_pass

ADD = "select pgcombine.add_observer('wc', %s, 'insert into history select word from changes')"


def queue_with_history(conn: psycopg.Connection, **options: object) -> None:
    make_queue(conn, delete_when=None, buckets=1, **options)
    conn.execute("create table history (word text)")


def commit_while_waiting(
    conn: psycopg.Connection, first: psycopg.Connection, second: psycopg.Connection, call: Callable[[], object]
) -> None:
    """Run ``call``, which waits in the session ``second`` for ``first``, and commit ``first``."""
    with in_background(call):
        waits(conn, second.info.backend_pid)
        first.commit()


@pytest.mark.parametrize("expire_when", [None, "n < 0"])
def test_pass_has_an_observer_and_a_condition_set_concurrently(
    dsn: str, conn: psycopg.Connection, expire_when: str | None
) -> None:
    queue_with_history(conn, expire_when="n <= 0")
    with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second:
        first.execute("select pgcombine.set_expiry('wc', %s)", (expire_when,))
        commit_while_waiting(conn, first, second, lambda: second.execute(ADD, ("history",)))
    add(conn, {"a": 0})
    combine_all(conn)
    assert values(conn) == {"a": 0}
    assert conn.execute("select word from history").fetchall() == [("a",)]


def test_pass_runs_observers_added_concurrently(dsn: str, conn: psycopg.Connection) -> None:
    queue_with_history(conn)
    with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second:
        first.execute(ADD, ("first",))
        commit_while_waiting(conn, first, second, lambda: second.execute(ADD, ("second",)))
    add(conn, {"a": 1})
    combine_all(conn)
    assert conn.execute("select word from history").fetchall() == [("a",), ("a",)]


def test_add_observer_with_an_older_snapshot_fails_to_serialize(dsn: str, conn: psycopg.Connection) -> None:
    queue_with_history(conn)
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second:
        second.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        first.execute(ADD, ("first",))

        def late() -> None:
            with pytest.raises(errors.SerializationFailure):
                second.execute(ADD, ("second",))

        commit_while_waiting(conn, first, second, late)


@pytest.mark.parametrize("change", [ADD, "select pgcombine.drop_observer('wc', %s)"], ids=["add", "drop"])
def test_no_pass_commits_with_former_observers(dsn: str, conn: psycopg.Connection, change: str) -> None:
    """A change of observers waits for a pass in progress. A pass with an older snapshot fails. A new pass succeeds."""
    queue_with_history(conn)
    added = change == ADD
    if not added:
        conn.execute(ADD, ("it",))
    with psycopg.connect(dsn) as passing, psycopg.connect(dsn) as late, psycopg.connect(dsn, autocommit=True) as owner:
        for session in (passing, late):
            session.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        add(conn, {"a": 1})
        passing.execute("select pgcombine.combine('wc', 0)")
        late.execute("select 1")
        commit_while_waiting(conn, passing, owner, lambda: owner.execute(change, ("it",)))
        add(conn, {"b": 1})
        with pytest.raises(errors.SerializationFailure):
            late.execute("select pgcombine.combine('wc', 0)")
    combine_all(conn)
    assert conn.execute("select word from history").fetchall() == [("b" if added else "a",)]
    assert values(conn) == {"a": 1, "b": 1}


def test_new_condition_applies_at_once_after_a_concurrent_pass(dsn: str, conn: psycopg.Connection) -> None:
    queue_with_history(conn, expire_when="n <= 0", expire_every="1 h")
    write_values(conn, "insert into pgcombine.wc_values values ('a', 0), ('b', 1)")
    with open_connection(dsn) as late:
        late.execute("begin isolation level repeatable read")
        late.execute("select from pgcombine.wc_values")  # the transaction's snapshot is taken here
        conn.execute("select pgcombine.set_expiry('wc', 'n <= 1')")
        with pytest.raises(errors.SerializationFailure):
            late.execute("select pgcombine_internal.run_pass('wc', 0, from_page => 0)")
        late.execute("rollback")
        done = run_pass(late, "wc", 0)
        assert done
        assert (done.expired, done.unfinished) == (2, False)
    assert values(conn) == {}


@pytest.mark.parametrize("expire_when", ["n <= 1", None])
def test_expire_fails_if_the_condition_changes_meanwhile(
    dsn: str, conn: psycopg.Connection, expire_when: str | None
) -> None:
    queue_with_history(conn, expire_when="n <= 0", expire_every="1 h")
    conn.execute(ADD, ("history",))
    write_values(conn, "insert into pgcombine.wc_values values ('a', 0), ('b', 1)")

    def call() -> None:
        with pytest.raises(errors.SerializationFailure, match="changed during the pass"):
            second.execute("call pgcombine.expire('wc')")

    with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second:
        first.execute("lock table history in exclusive mode")
        with in_background(call):
            waits(conn, second.info.backend_pid)
            conn.execute("select pgcombine.set_expiry('wc', %s)", (expire_when,))
            first.commit()
    assert values(conn) == {"a": 0, "b": 1}
    assert one(conn, "call pgcombine.expire('wc')") == (2 if expire_when else 0)


def test_expire_finds_keys_in_buckets_added_meanwhile(dsn: str, conn: psycopg.Connection) -> None:
    make_queue(conn, delete_when=None, buckets=2)
    write_values(conn, "insert into pgcombine.wc_values select g::text, 0 from generate_series(1, 1000) g")
    conn.execute("select pgcombine.set_expiry('wc', 'n <= 0')")
    with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second:
        first.execute("select pgcombine_internal.claim_bucket('wc', 1)")
        with in_background(lambda: one(second, "call pgcombine.expire('wc')")) as called:
            eventually(lambda: one(conn, "select count(*) from pgcombine.wc_values_b0000") == 0)
            first.execute("select pgcombine.rebucket('wc', 8)")
            first.commit()
        assert called[0].result() == 1000
    assert rows(conn, "wc_values") == []


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
