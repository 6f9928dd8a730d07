"""Concurrent changes of a queue's observers, and of the condition by which its keys expire."""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from psycopg import errors
from support.queues import add, combine_all, make_queue, values
from support.sessions import in_background, waits

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
