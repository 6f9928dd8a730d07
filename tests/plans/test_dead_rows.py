"""A pass over few updates among many dead ones walks over these once, and takes what it takes otherwise."""

from __future__ import annotations

import psycopg
import pytest
from support.queues import add, current, enqueue_arrays, make_queue, one, rows, values
from support.wait import eventually

from pgcombine.functions import ChangeStream
from pgcombine.queue import CombineQueue
from pgcombine.worker import open_connection, run_pass

DEAD = 60_000
COUNTED = "select pg_stat_get_dead_tuples('pgcombine.wc_updates_b0000'::regclass) >= %s"


@pytest.fixture
def bloated(conn: psycopg.Connection) -> psycopg.Connection:
    """A connection to a database with the queue wc: one bucket, many dead rows, nothing pending."""
    make_queue(conn, buckets=1)
    conn.execute("alter table pgcombine.wc_updates_b0000 set (autovacuum_enabled = off)")
    conn.execute("insert into pgcombine.wc_updates select 'old', 1 from generate_series(1, %s)", (DEAD,))
    conn.execute("select pgcombine.combine('wc', 0)")
    conn.execute("select pg_stat_force_next_flush()")
    eventually(lambda: one(conn, COUNTED, DEAD), what="the dead rows are counted")
    return conn


def enqueue_some(conn: psycopg.Connection, how: str) -> dict[str, int]:
    """Few updates; what the values are to be."""
    if how != "packed":
        add(conn, {"old": 1, "a": 2})
    if how != "plain":
        enqueue_arrays(conn, [("old", 1), ("b", 3)] * 20)
    assert one(conn, "select count(pgcombine_packed) > 0 from pgcombine.wc_updates") == (how != "plain")
    return current(conn)


def scans(conn: psycopg.Connection, statement: str) -> set[str]:
    """How the statement reads the updates."""
    lines = [line for (line,) in conn.execute(f"explain {statement}")]
    return {line.split("->")[-1].split(" on ")[0].strip() for line in lines if "Scan on wc_updates" in line}


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
@pytest.mark.parametrize("how", ["plain", "packed", "both"])
def test_rows_are_named(bloated: psycopg.Connection, how: str, isolation: str) -> None:
    expected = enqueue_some(bloated, how)
    backlog = one(bloated, "select pgcombine.backlog('wc')")
    with bloated.transaction():
        bloated.execute(f"set transaction isolation level {isolation}")
        statement, pending = bloated.execute("select statement, pending from pgcombine.begin_pass('wc', 0)").fetchall()[
            0
        ]
        assert pending == backlog
        assert scans(bloated, statement) == {"Tid Scan"}
        assert bloated.execute(statement).fetchall()[0][0] == backlog
    assert values(bloated) == expected
    assert rows(bloated, "wc_updates") == []


@pytest.mark.parametrize("how", ["plain", "packed", "both"])
def test_observers_in_python(bloated: psycopg.Connection, dsn: str, how: str) -> None:
    queue = CombineQueue("wc")
    seen = {}

    @queue.on_change
    def note(_tx: psycopg.Connection, changes: ChangeStream) -> None:
        seen.update((key, new) for key, _, new in changes)

    bloated.execute("select pgcombine.add_observer('wc', 'note', language => 'python')")
    expected = enqueue_some(bloated, how)
    with open_connection(dsn) as worker:
        run_pass(worker, "wc", 0, queue.functions)
    assert seen == expected == values(bloated)


def test_what_is_packed_after_unpacking_is_left(bloated: psycopg.Connection) -> None:
    """In a layout in which nothing is packed: by who began before rebucket ended."""
    bloated.execute("select pgcombine.rebucket('wc', 2, 2)")
    enqueued = enqueue_some(bloated, "plain")
    bloated.execute(
        "insert into pgcombine.wc_updates (word, n, pgcombine_packed, pgcombine_0, pgcombine_1) "
        "values ('late', 1, 1, array['late', 'later'], array[1, 1])"
    )
    for bucket in range(2):
        bloated.execute(one(bloated, "select statement from pgcombine.next_pass('wc', %s, true)", bucket))
    assert values(bloated) == enqueued
    assert one(bloated, "select pgcombine.backlog('wc')") == 3


def test_many_are_read_as_ever(bloated: psycopg.Connection) -> None:
    bloated.execute("insert into pgcombine.wc_updates select 'new', 1 from generate_series(1, 6000)")
    statement = one(bloated, "select statement from pgcombine.begin_pass('wc', 0)")
    assert scans(bloated, statement) == {"Seq Scan"}
    bloated.execute("select pgcombine.combine('wc', 0)")
    assert values(bloated) == {"old": DEAD, "new": 6000}
