"""pgcombine.drop_queue removes the objects of a queue, and refuses to drop pending updates without force."""

from __future__ import annotations

import psycopg
import pytest
from support.queues import add, combine_all, make_queue, one, rows, values
from support.sessions import in_background, waits
from support.states import raises_state

from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.queue.dropping import drop
from pgcombine.worker.passes import open_connection

WC = CombineQueue("wc")


def test_drop_leaves_nothing(tx: psycopg.Connection) -> None:
    relations = """
        select (select count(*) from pg_class where relnamespace = 'pgcombine'::regnamespace)
             + (select count(*) from pg_proc where pronamespace::regnamespace::text ~ '^pgcombine')
    """
    before = one(tx, relations)
    make_queue(tx, "kept")
    kept = one(tx, relations)
    make_queue(tx)
    add(tx, {"a": 1})
    combine_all(tx)
    tx.execute("select pgcombine.drop_queue('wc')")
    assert one(tx, relations) == kept > before
    assert [row[:2] for row in rows(tx, "bucket")] == [("kept", b) for b in range(4)]
    assert one(tx, "select count(*) from pgcombine.queue_column where queue = 'wc'") == 0
    make_queue(tx)
    assert values(tx) == {}


@pytest.mark.wc
def test_drop_is_refused_while_updates_are_pending(conn: psycopg.Connection) -> None:
    add(conn, {"a": 1, "b": 1})
    with raises_state("PC005"), conn.transaction():
        conn.execute("select pgcombine.drop_queue('wc')")
    combine_all(conn)
    assert values(conn) == {"a": 1, "b": 1}


@pytest.mark.wc
def test_force_drops_pending_updates(conn: psycopg.Connection) -> None:
    add(conn, {"a": 1})
    conn.execute("select pgcombine.drop_queue('wc', force => true)")
    assert rows(conn, "queue") == []


@pytest.mark.wc
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
def test_drop_needs_a_current_snapshot(conn: psycopg.Connection, dsn: str, level: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute(f"begin isolation level {level}")
        assert one(other, "select pgcombine.backlog('wc')") == 0
        add(conn, {"a": 1})
        with raises_state("PC003"):
            other.execute("select pgcombine.drop_queue('wc')")
        other.execute("rollback")
        combine_all(conn)
        assert values(conn) == {"a": 1}
        other.execute(f"begin isolation level {level}")
        other.execute("select pgcombine.drop_queue('wc', force => true)")
        other.execute("commit")
    assert rows(conn, "queue") == []


@pytest.mark.wc
def test_drop_sees_updates_that_commit_while_it_waits(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as writer, psycopg.connect(dsn, autocommit=True) as dropper:
        add(writer, {"a": 1})

        def drop() -> None:
            with raises_state("PC005"):
                dropper.execute("select pgcombine.drop_queue('wc')")

        with in_background(drop):
            waits(conn, dropper.info.backend_pid)
            writer.commit()
    combine_all(conn)
    assert values(conn) == {"a": 1}


@pytest.mark.wc
@pytest.mark.parametrize("portions", [True, False])
def test_a_reader_and_a_drop_do_not_deadlock(conn: psycopg.Connection, dsn: str, *, portions: bool) -> None:
    with psycopg.connect(dsn) as reader, open_connection(dsn) as dropper:
        reader.execute("select * from pgcombine.wc_values")
        with in_background(lambda: drop(dropper, "wc") if portions else WC.drop(dropper)):
            waits(conn, dropper.info.backend_pid)
            assert rows(reader, "wc_pending") == []
            assert rows(reader, "wc_current") == []
            reader.commit()
    assert rows(conn, "queue") == []


def test_unknown_queue_is_refused(tx: psycopg.Connection) -> None:
    with raises_state("PC001"):
        tx.execute("select pgcombine.drop_queue('wc')")


@pytest.mark.wc
def test_drop_keeps_views_of_users(conn: psycopg.Connection) -> None:
    conn.execute("create view report as select * from pgcombine.wc_values")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist), conn.transaction():
        conn.execute("select pgcombine.drop_queue('wc')")
    add(conn, {"a": 1})
    combine_all(conn)
    assert conn.execute("select * from report").fetchall() == [("a", 1)]
