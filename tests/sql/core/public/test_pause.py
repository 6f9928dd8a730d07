"""pgcombine.pause stops passes over a queue, but not enqueues. pgcombine.resume allows passes again."""

from __future__ import annotations

import psycopg
import pytest
from support.queues import add, combine_all, current, make_queue, one, values
from support.states import raises_state


def test_paused_queue_is_combined_after_resume(tx: psycopg.Connection) -> None:
    make_queue(tx, buckets=1)
    make_queue(tx, "other", buckets=1)
    tx.execute("select pgcombine.pause('wc')")
    add(tx, {"a": 1})
    add(tx, {"a": 1}, "other")
    assert tx.execute("select * from pgcombine.combine('wc', 0)").fetchall() == []
    assert combine_all(tx) == []
    assert tx.execute("select queue, bucket from pgcombine_internal.busy()").fetchall() == [("other", 0)]
    assert len(combine_all(tx, "other")) == 1
    assert (current(tx), values(tx)) == ({"a": 1}, {})
    tx.execute("select pgcombine.pause('wc')")
    tx.execute("select pgcombine.resume('wc')")
    combine_all(tx)
    assert values(tx) == {"a": 1}


@pytest.mark.parametrize("function", ["pause", "resume"])
def test_unknown_queue_is_refused(tx: psycopg.Connection, function: str) -> None:
    with raises_state("PC001"):
        one(tx, f"select pgcombine.{function}('wc')")


def test_resume_notifies_listening_workers(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn)
    with psycopg.connect(dsn, autocommit=True) as listener:
        listener.execute('listen "pgcombine.wc"')
        conn.execute("select pgcombine.resume('wc')")
        assert [note.channel for note in listener.notifies(timeout=20, stop_after=1)] == ["pgcombine.wc"]
