"""pgcombine.pause stops passes over a queue, but not enqueues. pgcombine.resume allows passes again, at once."""

from __future__ import annotations

import psycopg
import pytest
from support.queues import add, combine_all, current, make_queue, one, values
from support.states import raises_state


@pytest.mark.wc(buckets=1)
def test_paused_queue_is_combined_after_resume(conn: psycopg.Connection) -> None:
    make_queue(conn, "other", buckets=1)
    conn.execute("select pgcombine.pause('wc')")
    add(conn, {"a": 1})
    add(conn, {"a": 1}, "other")
    assert conn.execute("select * from pgcombine.combine('wc', 0)").fetchall() == []
    assert combine_all(conn) == []
    assert conn.execute("select queue, bucket from pgcombine_internal.busy()").fetchall() == [("other", 0)]
    assert len(combine_all(conn, "other")) == 1
    assert (current(conn), values(conn)) == ({"a": 1}, {})
    conn.execute("select pgcombine.pause('wc')")
    conn.execute("select pgcombine.resume('wc')")
    combine_all(conn)
    assert values(conn) == {"a": 1}


@pytest.mark.parametrize("function", ["pause", "resume"])
def test_unknown_queue_is_refused(tx: psycopg.Connection, function: str) -> None:
    with raises_state("PC001"):
        one(tx, f"select pgcombine.{function}('wc')")


@pytest.mark.wc
def test_resume_notifies_listening_workers(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as listener:
        listener.execute('listen "pgcombine.wc"')
        conn.execute("select pgcombine.resume('wc')")
        assert [note.channel for note in listener.notifies(timeout=20, stop_after=1)] == ["pgcombine.wc"]


@pytest.mark.wc(buckets=1)
def test_resume_lets_workers_try_failing_buckets_at_once(conn: psycopg.Connection) -> None:
    make_queue(conn, "other", buckets=1)
    for queue in ("wc", "other"):
        conn.execute(
            "insert into pgcombine.failure (queue, bucket, attempts, sqlstate, error, retry_at)"
            " values (%s, 0, 9, '22012', 'zero', now() + interval '1 h')",
            (queue,),
        )
    due = "select queue, bucket from pgcombine_internal.due()"
    assert conn.execute(due).fetchall() == []
    conn.execute("select pgcombine.resume('wc')")
    assert conn.execute(due).fetchall() == [("wc", 0)]
