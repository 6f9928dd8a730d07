"""``truncate_queue`` leaves a queue as it was when it was made. The log refuses any other removal of updates."""

from __future__ import annotations

import threading

import psycopg
import pytest
from support.queues import add, combine, combine_all, current, hold, make_queue, one, values
from support.servers import embedded_only
from support.sessions import in_background, waits, workers
from support.states import raises_state
from support.wait import eventually

LEFT = """
select (select count(*) from pgcombine.wc_updates), (select count(*) from pgcombine.wc_values),
       (select count(*) from pgcombine.wc_quarantine), (select count(*) from pgcombine.wc_quarantine_keys),
       (select count(*) from pgcombine.quarantined_key), (select count(*) from pgcombine.token)
"""


@pytest.mark.wc
def test_queue_is_empty_and_goes_on(conn: psycopg.Connection) -> None:
    add(conn, {"old": 1, "bad": 1})
    hold(conn, word="bad")
    combine_all(conn)
    add(conn, {"old": 2})
    conn.execute("""select pgcombine.enqueue_once('wc', 'token', '[{"word": "old", "n": 1}]')""")
    conn.execute("select pgcombine.truncate_queue('wc')")
    assert conn.execute(LEFT).fetchone() == (0, 0, 0, 0, 0, 0)
    assert one(conn, "select backlog from pgcombine.status") == 0
    add(conn, {"old": 5, "bad": 1})
    combine_all(conn)
    assert values(conn) == {"old": 5, "bad": 1}
    assert conn.execute("select * from pgcombine.verify('wc')").fetchall() == []


@pytest.mark.wc
def test_repeatable_read_is_refused(conn: psycopg.Connection) -> None:
    """An older snapshot would keep the token of an update that truncate removes."""
    with raises_state("PC003"):
        conn.execute("begin isolation level repeatable read; select pgcombine.truncate_queue('wc')")
    conn.execute("rollback")


@pytest.mark.parametrize("shared", [1, 2], ids=["own partitions", "shared partitions"])
def test_feed_and_export_get_a_deletion_of_each_key(conn: psycopg.Connection, shared: int) -> None:
    """Keys without a value, which no change has told of, aren't deleted. Later changes follow the deletions."""
    make_queue(conn, buckets_per_partition=shared, delete_when=None)
    conn.execute("select pgcombine.create_feed('f', 'wc'); select pgcombine.create_export('out', 'wc', 'python')")
    conn.execute("create table seen (word text)")
    conn.execute("select pgcombine.add_observer('wc', 'seen', 'insert into public.seen select word from changes')")
    words = {f"w{n}": n for n in range(1, 9)}
    add(conn, words)
    combine_all(conn)
    hold(conn, word="w1")
    conn.execute("insert into pgcombine.wc_updates (word, n) values ('w1', 1), ('none', null)")
    combine_all(conn)
    add(conn, {"pending": 1})
    conn.execute("select pgcombine.truncate_queue('wc')")
    add(conn, {"w2": 5})
    combine_all(conn)
    read = "select _change_type, word, old_n, new_n from pgcombine.f_read('{}') where _after is null order by _sequence"
    changes = conn.execute(read.encode()).fetchall()
    assert sorted(changes) == sorted(
        [("insert", word, None, n) for word, n in words.items()]
        + [("delete", word, n, None) for word, n in words.items()]
        + [("insert", "w2", None, 5)]
    )
    of_one = [change[:1] + change[2:] for change in changes if change[1] == "w2"]
    assert of_one == [("insert", None, 2), ("delete", 2, None), ("insert", None, 5)]
    entries = conn.execute("select word, old_n, new_n from pgcombine.out_exports order by seq").fetchall()
    assert sorted(map(str, entries)) == sorted(str(change[1:]) for change in changes)
    assert one(conn, "select count(*) from seen") == len(words) + 1, "observers get nothing"
    assert conn.execute("select * from pgcombine.verify('wc')").fetchall() == []


@pytest.mark.wc
def test_tier_keeps_what_it_has(conn: psycopg.Connection) -> None:
    conn.execute("select pgcombine.create_tier('letters', source => 'wc', key => array['left(word, 1) as letter'])")
    add(conn, {"a": 1})
    combine_all(conn)
    add(conn, {"a": 2})
    conn.execute("select pgcombine.truncate_queue('wc')")
    combine_all(conn)
    combine_all(conn, "letters")
    assert values(conn, "letters") == {"a": 1}
    conn.execute("select pgcombine.truncate_queue('letters')")
    add(conn, {"a": 5})
    combine_all(conn)
    assert current(conn, "letters") == {"a": 5}


@pytest.mark.wc
@pytest.mark.parametrize("first", ["writer", "truncate"])
def test_an_update_at_the_same_time_is_wholly_discarded_or_counts(
    conn: psycopg.Connection, dsn: str, first: str
) -> None:
    """A writer that has appended an update is waited for. Another one waits, and its update and token stay."""
    conn.execute("select pgcombine.create_feed('f', 'wc')")
    combine(conn, {"a": 1})
    once = """select pgcombine.enqueue_once('wc', 'token', '[{"word": "a", "n": 2}, {"word": "b", "n": 2}]')"""
    truncate = "select pgcombine.truncate_queue('wc')"
    statements = [once, truncate] if first == "writer" else [truncate, once]
    with psycopg.connect(dsn) as one_session, psycopg.connect(dsn) as other:
        one_session.execute(statements[0].encode())

        def run() -> None:
            other.execute(statements[1].encode())
            other.commit()

        with in_background(run):
            waits(conn, other.info.backend_pid)
            one_session.commit()
    combine_all(conn)
    counted = {} if first == "writer" else {"a": 2, "b": 2}
    assert values(conn) == counted
    assert one(conn, "select count(*) from pgcombine.token") == len(counted) / 2
    read = "select old_n, new_n from pgcombine.f_read('{}') where word = 'a' order by _sequence"
    told = conn.execute(read.encode()).fetchall()
    assert told == [(None, 1), (1, None), *([(None, 2)] if counted else [])]
    assert conn.execute("select * from pgcombine.verify('wc')").fetchall() == []


@pytest.mark.wc
@pytest.mark.parametrize("first", ["table pgcombine.wc_values", "table pgcombine.wc_pending"])
def test_transaction_that_uses_the_queue_twice_is_waited_for(conn: psycopg.Connection, dsn: str, first: str) -> None:
    """In any order: a wait for one table while another one is locked would be a deadlock."""
    combine(conn, {"a": 1})
    with psycopg.connect(dsn) as reader, psycopg.connect(dsn, autocommit=True) as other:
        reader.execute(first.encode())
        with in_background(lambda: other.execute("select pgcombine.truncate_queue('wc')")):
            waits(conn, other.info.backend_pid)
            assert current(reader) == {"a": 1}
            add(reader, {"a": 1})
            reader.commit()
    assert conn.execute(LEFT).fetchone() == (0, 0, 0, 0, 0, 0)


@pytest.mark.wc
def test_wait_for_a_reader_ends_at_lock_timeout(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as reader:
        current(reader)
        conn.execute("set lock_timeout = '100ms'")
        with raises_state("PC006"):
            conn.execute("select pgcombine.truncate_queue('wc')")


@embedded_only
def test_writers_and_workers_at_the_same_time(conn: psycopg.Connection, dsn: str) -> None:
    """Each transaction adds 1 to two keys, so both have the same value whenever the queue is truncated."""
    make_queue(conn, buckets=2)
    conn.execute("select pgcombine.create_feed('f', 'wc')")
    stop = threading.Event()

    def write() -> None:
        with psycopg.connect(dsn, autocommit=True) as writer:
            while not stop.is_set():
                add(writer, {"a": 1, "b": 1})

    with workers(dsn, "wc"), in_background(write, write):
        try:
            for _ in range(8):
                eventually(lambda: values(conn))
                conn.execute("select pgcombine.truncate_queue('wc')")
        finally:
            stop.set()
    combine_all(conn)
    found = values(conn)
    assert found.get("a") == found.get("b")
    read = "select word, old_n, new_n from pgcombine.f_read('{}') where _after is null order by _bucket, _sequence"
    value: dict[str, int | None] = {}
    deletions = 0
    for word, old, new in conn.execute(read.encode()):
        assert value.get(word) == old, "the changes of a key are continuous"
        value[word] = new
        deletions += new is None
    assert {word: n for word, n in value.items() if n is not None} == found
    assert deletions >= 8
    assert conn.execute("select * from pgcombine.verify('wc')").fetchall() == []


@pytest.mark.wc
@pytest.mark.parametrize("statement", ["delete from {}", "update {} set n = 2", "truncate {}", "truncate only {}"])
def test_updates_are_not_changed(conn: psycopg.Connection, statement: str) -> None:
    """TRUNCATE ONLY of a partitioned table fails by itself."""
    add(conn, {"a": 1})
    with raises_state("42809" if "only" in statement else "PC014"):
        conn.execute(statement.format("pgcombine.wc_updates").encode())
    combine_all(conn)
    assert values(conn) == {"a": 1}
