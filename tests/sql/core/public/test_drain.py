"""pgcombine.drain: one call combines the updates of a queue and commits after each pass."""

from __future__ import annotations

import random
import threading

import psycopg
import pytest
from support.queues import add, combine_all, make_queue, one, values, word_in
from support.sessions import in_background
from support.states import raises_state


def test_drain_combines_all_buckets(conn: psycopg.Connection) -> None:
    make_queue(conn, buckets=4, pass_limit=100)
    add(conn, [(f"w{n}", 1) for n in range(1000)])
    assert one(conn, "call pgcombine.drain('wc')") == 1000
    assert sum(values(conn).values()) == 1000
    assert one(conn, "select pgcombine.backlog('wc')") == 0
    assert one(conn, "call pgcombine.drain('wc')") == 0


@pytest.mark.wc(buckets=1)
def test_drain_reclaims_the_log(conn: psycopg.Connection) -> None:
    conn.execute("insert into pgcombine.wc_updates select 'w' || i % 9, 1 from generate_series(1, 20000) i")
    conn.execute("call pgcombine.drain('wc')")
    size = "select sum(pg_relation_size(relid)) from pg_partition_tree('pgcombine.wc_updates'::regclass) where isleaf"
    conn.execute("insert into pgcombine.wc_updates values ('w', 1)")
    assert one(conn, size) < 9 * 2**20


@pytest.mark.parametrize("queue", ["nosuch", None])
def test_drain_needs_a_queue(conn: psycopg.Connection, queue: str | None) -> None:
    with raises_state("PC001"):
        conn.execute("call pgcombine.drain(%s)", (queue,))


@pytest.mark.wc
def test_drain_is_refused_in_a_transaction(conn: psycopg.Connection) -> None:
    with raises_state("PC003"), conn.transaction():
        conn.execute("call pgcombine.drain('wc')")


@pytest.mark.wc
def test_drain_is_refused_if_the_queue_is_paused(conn: psycopg.Connection) -> None:
    conn.execute("select pgcombine.pause('wc')")
    assert one(conn, "call pgcombine.drain('wc')") == 0
    add(conn, {"a": 1})
    with raises_state("PC006"):
        conn.execute("call pgcombine.drain('wc')")
    assert values(conn) == {}


@pytest.mark.wc
def test_drain_refuses_a_queue_with_python_observers(conn: psycopg.Connection) -> None:
    conn.execute("select pgcombine.add_observer('wc', 'told', language => 'python')")
    add(conn, {"a": 1})
    with raises_state("PC008"):
        conn.execute("call pgcombine.drain('wc')")


def test_drain_quarantines_failing_keys_as_a_worker_does(conn: psycopg.Connection) -> None:
    make_queue(conn, buckets=4, quarantine_after=3)
    conn.execute("alter table pgcombine.wc_values add constraint small check (n < 100)")
    poison, good = word_in(conn, 1), word_in(conn, 1, start=1000)
    add(conn, [(f"w{n}", 1) for n in range(100)])
    add(conn, {poison: 1000, good: 1})
    for attempt in (1, 2):
        with pytest.raises(psycopg.errors.CheckViolation):
            conn.execute("call pgcombine.drain('wc')")
        assert one(conn, "select attempts from pgcombine.failure") == attempt
    assert one(conn, "select count(distinct bucket) from pgcombine_internal.busy('wc')") == 1, (
        "only the failing bucket has updates"
    )
    conn.execute("call pgcombine.drain('wc')")
    assert [word for (word,) in conn.execute("select key ->> 'word' from pgcombine.quarantine")] == [poison]
    assert values(conn)[good] == 1
    assert one(conn, "select pgcombine.backlog('wc')") == 0
    assert one(conn, "select count(*) from pgcombine.failure") == 0


@pytest.mark.parametrize("sqlstate", ["42501", "PC001", "PC003", "P0004"])
def test_drain_records_an_observers_error_as_a_failure(conn: psycopg.Connection, sqlstate: str) -> None:
    """The SQLSTATE of the observer's error may be one that drain itself raises."""
    make_queue(conn, buckets=2, quarantine_after=2)
    conn.execute(
        "create function refuse(word text) returns text language plpgsql as $$"
        " begin if word = 'poison' then raise 'refused' using errcode = '" + sqlstate + "'; end if; return word; end $$"
    )
    conn.execute("select pgcombine.add_observer('wc', 'refuses', 'select public.refuse(word) from changes')")
    add(conn, [("poison", 1), *((f"w{n}", 1) for n in range(20))])
    with pytest.raises(psycopg.Error, match="refused"):
        conn.execute("call pgcombine.drain('wc')")
    assert one(conn, "select sqlstate from pgcombine.failure") == sqlstate
    conn.execute("call pgcombine.drain('wc')")
    assert [word for (word,) in conn.execute("select key ->> 'word' from pgcombine.quarantine")] == ["poison"]
    assert len(values(conn)) == 20


def test_no_bucket_is_due_after_drain(conn: psycopg.Connection) -> None:
    """A bucket without updates is due after a failure."""
    make_queue(conn)
    conn.execute("select pgcombine_internal.fail_pass('wc', 1, '22003', 'an old failure')")
    conn.execute("update pgcombine.failure set retry_at = now()")
    due = "select count(*) from pgcombine_internal.due('{wc}')"
    assert one(conn, due) == 1
    assert one(conn, "call pgcombine.drain('wc')") == 0
    assert one(conn, due) == 0


@pytest.mark.wc(buckets=2)
def test_drain_skips_a_busy_bucket(conn: psycopg.Connection, dsn: str) -> None:
    words = [word_in(conn, bucket) for bucket in range(2)]
    add(conn, dict.fromkeys(words, 1))
    with psycopg.connect(dsn) as other:
        other.execute("select pgcombine.combine('wc', 0)")
        assert one(conn, "call pgcombine.drain('wc')") == 1
        other.rollback()
    assert values(conn) == {words[1]: 1}


def test_drain_loses_nothing_beside_writers_and_passes(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=3, pass_limit=50)
    stop = threading.Event()

    def writer() -> int:
        chance, total = random.Random(), 0
        with psycopg.connect(dsn, autocommit=True) as mine:
            for _ in range(150):
                updates = [(f"w{chance.randrange(40)}", 1) for _ in range(chance.randrange(1, 20))]
                add(mine, updates)
                total += len(updates)
        return total

    def drainer() -> None:
        with psycopg.connect(dsn, autocommit=True) as mine:
            while not stop.is_set():
                mine.execute("call pgcombine.drain('wc')")

    def passes() -> None:
        with psycopg.connect(dsn, autocommit=True) as mine:
            while not stop.is_set():
                combine_all(mine)

    with in_background(writer, writer, drainer, drainer, passes) as (one_writer, other_writer, *others):
        total = one_writer.result() + other_writer.result()
        stop.set()
        for other in others:
            other.result()
    conn.execute("call pgcombine.drain('wc')")
    assert sum(values(conn).values()) == total
    assert conn.execute("select * from pgcombine.verify('wc')").fetchall() == []
