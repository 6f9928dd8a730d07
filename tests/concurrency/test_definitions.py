"""Sessions that change what a queue's passes do: the condition of keys that expire, and observers."""

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
    """Commit ``first`` while ``second`` waits for it in ``call``."""
    with in_background(call):
        waits(conn, second.info.backend_pid)
        first.commit()


@pytest.mark.parametrize("retain", [None, "n >= 0"])
def test_the_pass_has_the_condition_that_was_set_beside_an_observer(
    dsn: str, conn: psycopg.Connection, retain: str | None
) -> None:
    queue_with_history(conn, retain="n > 0")
    with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second:
        first.execute("select pgcombine.set_retain('wc', %s)", (retain,))
        commit_while_waiting(conn, first, second, lambda: second.execute(ADD, ("history",)))
    add(conn, {"a": 0})
    combine_all(conn)
    assert values(conn) == {"a": 0}
    assert conn.execute("select word from history").fetchall() == [("a",)]


def test_observers_that_are_added_at_once_are_all_in_the_pass(dsn: str, conn: psycopg.Connection) -> None:
    queue_with_history(conn)
    with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second:
        first.execute(ADD, ("first",))
        commit_while_waiting(conn, first, second, lambda: second.execute(ADD, ("second",)))
    add(conn, {"a": 1})
    combine_all(conn)
    assert conn.execute("select word from history").fetchall() == [("a",), ("a",)]


def test_an_older_snapshot_makes_no_pass(dsn: str, conn: psycopg.Connection) -> None:
    queue_with_history(conn)
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second:
        second.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        first.execute(ADD, ("first",))

        def late() -> None:
            with pytest.raises(errors.SerializationFailure):
                second.execute(ADD, ("second",))

        commit_while_waiting(conn, first, second, late)
