"""G5: an enqueue is a part of the caller's transaction and rolls back with that transaction.

A mutant, which the tests must detect, enqueues over another connection.
"""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from support.audit import audit, audited, check
from support.queues import add, combine_all, enqueue, make_queue, one, rows, values
from support.sessions import worker_listens, workers
from support.wait import eventually

from pgcombine.queue.combine_queue import CombineQueue

Enqueue = Callable[[psycopg.Connection, dict[str, int]], object]


def by_copy(conn: psycopg.Connection, updates: dict[str, int]) -> None:
    with conn.cursor().copy("copy pgcombine.wc_updates (word, n) from stdin") as copy:
        for row in updates.items():
            copy.write_row(row)


def by_function(conn: psycopg.Connection, updates: dict[str, int]) -> None:
    enqueue(conn, [{"word": word, "n": n} for word, n in updates.items()])


def by_python(conn: psycopg.Connection, updates: dict[str, int]) -> None:
    CombineQueue("wc").enqueue(conn, list(updates.items()))


WAYS: list[Enqueue] = [add, by_copy, by_function, by_python]


def with_the_caller(conn: psycopg.Connection, dsn: str, put: Enqueue) -> None:
    """Enqueue in transactions that stay open, commit, or roll back wholly or to a savepoint. Only commits count."""
    with psycopg.connect(dsn) as caller:
        put(caller, {"a": 1})
        assert combine_all(conn) == []
        assert rows(conn, "wc_current") == []
        put(caller, {"a": 10})
        caller.rollback()
        combine_all(conn)
        assert values(conn) == {}

        put(caller, {"a": 1})
        caller.execute("savepoint s")
        put(caller, {"a": 10, "b": 10})
        caller.execute("rollback to savepoint s")
        put(caller, {"c": 1})
        caller.commit()
        combine_all(conn)
        assert values(conn) == {"a": 1, "c": 1}

        put(caller, {"a": 100})
        with pytest.raises(psycopg.errors.DivisionByZero):
            caller.execute("select 1 / 0")
        caller.commit()  # after the error, COMMIT rolls back
        put(caller, {"a": 100})
        caller.close()
        eventually(
            lambda: one(conn, "select count(*) from pg_stat_activity where datname = current_database()") == 1,
            what="the caller's session has ended without a commit",
        )
    combine_all(conn)
    check(conn, {"a": 1, "c": 1})


@pytest.mark.wc(buckets=2)
@pytest.mark.parametrize("put", WAYS)
def test_updates_commit_or_roll_back_with_the_transaction(conn: psycopg.Connection, dsn: str, put: Enqueue) -> None:
    audit(conn)
    with_the_caller(conn, dsn, put)


@pytest.mark.wc(buckets=2)
def test_mutant_that_enqueues_elsewhere_is_detected(conn: psycopg.Connection, dsn: str) -> None:
    audit(conn)
    with pytest.raises(AssertionError):
        with_the_caller(conn, dsn, lambda caller, updates: add_elsewhere(dsn, updates))


def add_elsewhere(dsn: str, updates: dict[str, int]) -> None:
    with psycopg.connect(dsn) as other:
        add(other, updates)


@pytest.mark.wc(buckets=2)
@pytest.mark.parametrize("put", WAYS)
def test_waiting_worker_combines_only_the_commit(conn: psycopg.Connection, dsn: str, put: Enqueue) -> None:
    """A worker that waits for notifications combines the updates of a commit, but not those of an earlier rollback."""
    audit(conn)
    with workers(dsn, "wc", poll=60) as worker, psycopg.connect(dsn) as caller:
        eventually(lambda: worker_listens(conn), what="the worker listens")
        put(caller, {"a": 1})
        caller.rollback()
        put(caller, {"a": 2})
        caller.commit()
        eventually(lambda: values(conn) == {"a": 2}, what="the updates are combined")
    assert worker.totals.updates == 1
    assert audited(conn) == [("a", None, 2)]


@pytest.mark.wc(buckets=2)
def test_prepared_updates_count_after_their_commit(conn: psycopg.Connection, dsn: str) -> None:
    name = conn.info.dbname
    with psycopg.connect(dsn, autocommit=True) as caller:
        for end in ("rollback", "commit"):
            caller.execute("begin")
            add(caller, {"a": 1})
            caller.execute(f"prepare transaction '{name}'")
            combine_all(conn)
            assert values(conn) == {}
            caller.execute(f"{end} prepared '{name}'")
    combine_all(conn)
    assert values(conn) == {"a": 1}


@pytest.mark.wc(buckets=2)
def test_updates_within_savepoints_count_once(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as caller:
        for i in range(1, 101):
            with caller.transaction(force_rollback=i % 3 == 0), caller.transaction():
                add(caller, {"a": i})
    combine_all(conn)
    assert values(conn) == {"a": sum(i for i in range(1, 101) if i % 3)}


@pytest.mark.wc(buckets=1)
def test_an_observers_enqueue_rolls_back_with_the_pass(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, "next", buckets=1)
    conn.execute(
        "select pgcombine.add_observer('wc', 'tree', "
        "'insert into pgcombine.next_updates (word, n) "
        "select word, coalesce(new_n, 0) - coalesce(old_n, 0) from changes')"
    )
    add(conn, {"a": 3})
    with psycopg.connect(dsn) as psql:
        psql.execute("select pgcombine.combine('wc', 0)")
        psql.rollback()
        assert rows(conn, "next_updates") == []
        psql.execute("select pgcombine.combine('wc', 0)")
    assert rows(conn, "next_pending") == [("a", 3)]
