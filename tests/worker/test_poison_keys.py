"""Buckets with many failing keys: which keys workers quarantine, and which they combine."""

from __future__ import annotations

from contextlib import suppress

import psycopg
import pytest
from psycopg import sql
from support import eventually
from support.audit import audit, audited, follow
from support.queues import add, combine_all, make_queue, one, values
from support.sessions import workers

from pgcombine.errors import PassError
from pgcombine.queue.callbacks import NO_OBSERVERS, ChangeStream
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.worker import quarantine
from pgcombine.worker.drain import drain
from pgcombine.worker.passes import open_connection, run_pass

HUGE = 2**63 - 1
SIZES = [(60, 600), pytest.param(1500, 20_000, marks=pytest.mark.slow)]  # numbers of failing and good keys


def good_keys(count: int) -> dict[str, int]:
    return {f"w{i}": 1 for i in range(count)}


def overflowing(count: int) -> list[tuple[str, int]]:
    return [(f"bad{i}", n) for i in range(count) for n in (HUGE, 1)]


def quarantined_updates(conn: psycopg.Connection) -> dict[str, int]:
    """Return the number of quarantined updates of each word, and assert that ``verify`` finds no problem."""
    assert conn.execute("select problem from pgcombine.verify('wc')").fetchall() == []
    return dict(conn.execute("select key ->> 'word', updates from pgcombine.quarantine").fetchall())


def refuse(
    conn: psycopg.Connection, pattern: str, error: str = "raise exception 'the word % is forbidden', word"
) -> None:
    """Add an observer that runs the statement ``error`` for words like ``pattern``."""
    conn.execute(
        sql.SQL(
            "create function check_word(word text) returns void language plpgsql as $$ begin "
            "if word like {} then {}; end if; end $$"
        ).format(pattern, sql.SQL(error))
    )
    conn.execute("select pgcombine.add_observer('wc', 'check', 'select check_word(word) from changes')")


@pytest.mark.parametrize(("bad", "good"), SIZES)
def test_keys_whose_sums_overflow_are_quarantined(conn: psycopg.Connection, dsn: str, bad: int, good: int) -> None:
    make_queue(conn, buckets=1, delete_when=None)
    audit(conn)
    add(conn, list(good_keys(good).items()) + overflowing(bad))
    with workers(dsn, poll=0.05):
        eventually(lambda: len(values(conn)) == good, timeout=300, what="the good keys are combined")
        eventually(lambda: one(conn, "select pgcombine.backlog('wc')") == 0, timeout=300)
    assert values(conn) == good_keys(good)
    assert follow(audited(conn)) == values(conn)
    assert quarantined_updates(conn) == {f"bad{i}": 2 for i in range(bad)}
    assert one(conn, "select count(*) from pgcombine.failure") == 0
    assert {(entry["sqlstate"], entry["error"]) for entry in quarantine.ls(conn)} == {("22003", "bigint out of range")}


def test_keys_that_overflow_with_the_old_value_are_quarantined(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=1, delete_when=None, quarantine_after=1)
    old = {f"bad{i}": HUGE for i in range(40)}
    add(conn, old)
    combine_all(conn)
    add(conn, good_keys(300) | dict.fromkeys(old, 1))
    drain(dsn, "wc")
    assert values(conn) == good_keys(300) | old
    assert quarantined_updates(conn) == dict.fromkeys(old, 1)


@pytest.mark.parametrize(("bad", "good"), [(20, 300), pytest.param(300, 20_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("layout", [{"buckets": 1}, {"buckets": 4, "buckets_per_partition": 4}])
def test_keys_that_an_observer_refuses_are_quarantined(
    conn: psycopg.Connection, dsn: str, bad: int, good: int, layout: dict[str, int]
) -> None:
    make_queue(conn, quarantine_after=1, **layout)
    refuse(conn, "bad%")
    audit(conn)
    add(conn, good_keys(good) | {f"bad{i}": 1 for i in range(bad)})
    drain(dsn, "wc")
    assert values(conn) == good_keys(good)
    assert follow(audited(conn)) == values(conn)
    assert quarantined_updates(conn) == {f"bad{i}": 1 for i in range(bad)}


def test_all_keys_of_a_bucket_may_be_quarantined(conn: psycopg.Connection, dsn: str) -> None:
    """Keys whose sums overflow are quarantined even if no key of the bucket can be combined."""
    make_queue(conn, buckets=2, delete_when=None, quarantine_after=1)
    audit(conn)
    add(conn, overflowing(100))
    drain(dsn, "wc")
    assert quarantined_updates(conn) == {f"bad{i}": 2 for i in range(100)}
    assert values(conn) == {}


@pytest.mark.parametrize("error", ["undefined table", "an error like those of data"])
def test_error_for_all_keys_quarantines_only_overflowing_ones(conn: psycopg.Connection, dsn: str, error: str) -> None:
    make_queue(conn, buckets=2, delete_when=None, quarantine_after=1)
    conn.execute("create table seen (word text, n integer)")
    conn.execute("select pgcombine.add_observer('wc', 'note', 'insert into seen select word, 1 / 1 from changes')")
    if error == "undefined table":
        conn.execute("alter table seen rename to gone")
    else:
        conn.execute('alter table seen alter n type text collate "C", add constraint c check (1 / (length(n) - 1) > 0)')
    add(conn, list(good_keys(100).items()) + overflowing(10))
    with pytest.raises(PassError):
        drain(dsn, "wc")
    assert set(quarantined_updates(conn)) <= {f"bad{i}" for i in range(10)}
    assert values(conn) == {}
    if error == "undefined table":
        conn.execute("alter table gone rename to seen")
    else:
        conn.execute("alter table seen drop constraint c")
    drain(dsn, "wc")
    assert values(conn) == good_keys(100)
    assert quarantined_updates(conn) == {f"bad{i}": 2 for i in range(10)}


def test_broken_combiner_quarantines_no_key(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create function plus(a bigint, b bigint) returns bigint immutable language sql return a + b")
    make_queue(conn, buckets=2, value=["n bigint public.plus"], quarantine_after=1)
    add(conn, good_keys(100))
    body = (
        "create or replace function plus(a bigint, b bigint) returns bigint immutable language plpgsql "
        "as $$ begin {} end $$"
    )
    combine_all(conn)
    add(conn, good_keys(100))
    conn.execute(body.format("return 1 / (a - a);").encode())
    with pytest.raises(PassError):
        drain(dsn, "wc")
    assert quarantined_updates(conn) == {}
    conn.execute(body.format("return a + b;").encode())
    drain(dsn, "wc")
    assert values(conn) == dict.fromkeys(good_keys(100), 2)


@pytest.mark.parametrize("python", [False, True])
def test_keys_that_fail_at_the_commit_are_quarantined(conn: psycopg.Connection, dsn: str, python: bool) -> None:
    """The number of changes that ``drain`` returns leaves out tries that fail at the commit."""
    make_queue(conn, buckets=1, quarantine_after=1)
    conn.execute("create table word (word text primary key)")
    conn.execute("create table seen (word text references word deferrable initially deferred)")
    conn.execute("insert into word select 'w' || i from generate_series(0, 99) i")
    queue = CombineQueue("wc")

    def note(tx: psycopg.Connection, changes: ChangeStream) -> None:
        for change in changes:
            tx.execute("insert into seen values (%s)", (change.key,))

    if python:
        queue.on_change(note)
    else:
        conn.execute("select pgcombine.add_observer('wc', 'note', 'insert into seen select word from changes')")
    add(conn, good_keys(100) | {f"bad{i}": 1 for i in range(10)})
    assert drain(dsn, queue).changes == 100
    assert values(conn) == good_keys(100)
    assert quarantined_updates(conn) == {f"bad{i}": 1 for i in range(10)}


def test_each_search_quarantines_a_key_and_combines_nothing(conn: psycopg.Connection) -> None:
    """A search with the time limit 0 s ends early. Updates that are enqueued between searches count once."""
    make_queue(conn, buckets=1, delete_when=None)
    audit(conn)
    add(conn, list(good_keys(200).items()) + overflowing(10))
    rounds = 1
    while True:
        try:
            conn.execute("select * from pgcombine.combine('wc', 0)")
            break
        except psycopg.errors.NumericValueOutOfRange:
            pass
        backlog = one(conn, "select pgcombine.backlog('wc')")
        assert one(conn, "select quarantined from pgcombine_internal.bisect('wc', 0, 5, time_limit => '0 s')") > 0
        assert (values(conn), one(conn, "select pgcombine.backlog('wc')")) == ({}, backlog)
        assert set(quarantined_updates(conn).values()) == {0}
        if rounds < 6:
            rounds += 1
            add(conn, good_keys(200) | {"bad1": 1})
    combine_all(conn)
    assert rounds == 6
    assert values(conn) == dict.fromkeys(good_keys(200), rounds)
    assert quarantined_updates(conn) == {f"bad{i}": 2 + 5 * (i == 1) for i in range(10)}
    assert follow(audited(conn)) == values(conn)


@pytest.mark.parametrize(("python", "good"), [(False, 100), (False, 10), (True, 30)])
def test_keys_that_fail_only_together_are_combined_apart(
    conn: psycopg.Connection, dsn: str, python: bool, good: int
) -> None:
    make_queue(conn, buckets=1, quarantine_after=1)
    add(conn, good_keys(good) | {"one": 1, "two": 1})
    queue = CombineQueue("wc")

    def check(tx: psycopg.Connection, changes: ChangeStream) -> None:
        if {"one", "two"} <= {change.key for change in changes}:
            raise ValueError("together")

    if python:
        queue.on_change(check)
    else:
        conn.execute(
            "select pgcombine.add_observer('wc', 'check', "
            "'select 1 / (2 - count(*)) from changes where word in (''one'', ''two'')')"
        )
    drain(dsn, queue)
    assert values(conn) == good_keys(good) | {"one": 1, "two": 1}
    assert quarantined_updates(conn) == {}
    assert one(conn, "select count(*) from pgcombine.failure") == 0


def test_cancelled_tries_have_failed(conn: psycopg.Connection, dsn: str) -> None:
    """A search finds the failing key though half of the keys take too long for the statement timeout."""
    make_queue(conn, buckets=1, quarantine_after=1)
    conn.execute(
        "create function check_words(words text[]) returns void language plpgsql as $$ begin "
        "if 'bad' = any (words) then raise 'bad'; "
        "elsif cardinality(words) > 35 then perform pg_sleep(60); end if; end $$"
    )
    conn.execute("select pgcombine.add_observer('wc', 'check', 'select check_words(array_agg(word)) from changes')")
    add(conn, good_keys(100) | {"bad": 1})
    with open_connection(dsn, statement_timeout=1) as worker:
        with pytest.raises(PassError) as failed:
            run_pass(worker, "wc", 0)
        assert quarantine.recover(worker, failed.value, NO_OBSERVERS)
    assert quarantined_updates(conn) == {"bad": 0}


def test_keys_of_one_hash_are_told_apart(conn: psycopg.Connection, dsn: str) -> None:
    """A search finds the failing keys even if the type's hash function returns one hash for all keys."""
    conn.execute(
        """
        create type flat;
        create function flat_in(cstring) returns flat language internal immutable strict as 'int4in';
        create function flat_out(flat) returns cstring language internal immutable strict as 'int4out';
        create type flat (input = flat_in, output = flat_out, like = integer);
        create function flat_cmp(flat, flat) returns int language internal immutable strict as 'btint4cmp';
        create function flat_hash(flat) returns int language sql immutable strict as 'select 1';
        create function flat_hash(flat, bigint) returns bigint language sql immutable strict as 'select 1::bigint';
        """
    )
    for name, operator in {"lt": "<", "le": "<=", "eq": "=", "ge": ">=", "gt": ">"}.items():
        conn.execute(
            f"create function flat_{name}(flat, flat) returns bool language internal immutable strict as 'int4{name}';"
            f"create operator {operator} (leftarg = flat, rightarg = flat, function = flat_{name})"
        )
    conn.execute(
        """
        create operator class flat_order default for type flat using btree as
            operator 1 <, operator 2 <=, operator 3 =, operator 4 >=, operator 5 >, function 1 flat_cmp(flat, flat);
        create operator class flat_hash default for type flat using hash as
            operator 1 =, function 1 flat_hash(flat), function 2 flat_hash(flat, bigint);
        """
    )
    make_queue(conn, key=["x public.flat"], buckets=1, delete_when=None, quarantine_after=1)
    conn.execute("insert into pgcombine.wc_updates select i::text::flat, 1 from generate_series(1, 50) i")
    conn.execute("insert into pgcombine.wc_updates select i::text::flat, %s from generate_series(1, 3) i", (HUGE,))
    drain(dsn, "wc")
    assert one(conn, "select array_agg(x::text::int order by x) from pgcombine.wc_values") == list(range(4, 51))
    quarantined_updates = conn.execute("select key ->> 'x', updates from pgcombine.quarantine order by 1").fetchall()
    assert quarantined_updates == [("1", 2), ("2", 2), ("3", 2)]


def test_search_continues_after_a_kill(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=1, delete_when=None, quarantine_after=1)
    audit(conn)
    conn.execute(
        "select pgcombine.add_observer('wc', 'stop', %s)",
        ("select pg_advisory_xact_lock(4711) from changes where word = 'stop'",),
    )
    add(conn, list(good_keys(200).items()) + overflowing(20))
    while one(conn, "select count(*) from pgcombine.quarantine") < 5:
        conn.execute("select pgcombine_internal.bisect('wc', 0, 1, time_limit => '0 s')")
    before = quarantined_updates(conn)
    add(conn, {"stop": 1})
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute("select pg_advisory_lock(4711)")
        with workers(dsn, poll=0.05):
            waiting = "select pid from pg_locks where locktype = 'advisory' and not granted and objid = 4711"
            ((pid,),) = eventually(lambda: conn.execute(waiting).fetchall())
            conn.execute("select pg_terminate_backend(%s)", (pid,))
            eventually(lambda: not conn.execute("select from pg_stat_activity where pid = %s", (pid,)).fetchall())
            assert quarantined_updates(conn) == before
            assert values(conn) == {}
            assert one(conn, "select pgcombine.backlog('wc')") == 201 + 40
            other.execute("select pg_advisory_unlock(4711)")
            eventually(lambda: one(conn, "select pgcombine.backlog('wc')") == 0)
    assert values(conn) == good_keys(200) | {"stop": 1}
    assert quarantined_updates(conn) == {f"bad{i}": 2 for i in range(20)}
    assert follow(audited(conn)) == values(conn)


BEYOND = {  # SQLSTATEs that quarantine a key, and statements that raise them
    "53200": "raise out_of_memory",
    "53400": "raise configuration_limit_exceeded",
    "54000": "perform repeat('x', 1 << 30)",
    "54001": "perform check_word(word)",
    "XX000": "raise internal_error",
}


@pytest.mark.parametrize("python", [False, True])
@pytest.mark.parametrize("sqlstate", BEYOND)
def test_keys_that_exceed_a_limit_are_quarantined(
    conn: psycopg.Connection, dsn: str, sqlstate: str, python: bool
) -> None:
    make_queue(conn, buckets=1, quarantine_after=1)
    refuse(conn, "bad%", BEYOND[sqlstate])
    functions = CombineQueue("wc", key="word text", value="n bigint sum", delete_when="n = 0", buckets=1)
    if python:
        functions.on_change(lambda tx, changes: None)
    add(conn, good_keys(50) | {"bad1": 1, "bad2": 1})
    drain(dsn, functions)
    assert values(conn) == good_keys(50)
    assert quarantined_updates(conn) == {"bad1": 1, "bad2": 1}
    assert {entry["sqlstate"] for entry in quarantine.ls(conn)} == {sqlstate}


def test_lack_of_locks_quarantines_no_key(conn: psycopg.Connection, dsn: str) -> None:
    """A lack of locks has the SQLSTATE of a lack of memory, but quarantines no key."""
    make_queue(conn, buckets=1, quarantine_after=1)
    hint = "using errcode = '53200', hint = 'You might need to increase max_locks_per_transaction.'"
    refuse(conn, "%", f"raise 'out of shared memory' {hint}")
    add(conn, {"a": 1})
    with pytest.raises(PassError):
        drain(dsn, "wc")
    assert quarantined_updates(conn) == {}


@pytest.mark.parametrize("error", ["raise out_of_memory", "perform few_ok(n)", "raise internal_error"])
def test_lack_of_memory_for_a_value_quarantines_its_key(conn: psycopg.Connection, dsn: str, error: str) -> None:
    """A key whose own value raises the error is quarantined, even if no other key succeeds."""
    conn.execute(
        sql.SQL(
            "create function few_ok(n bigint) returns boolean language plpgsql as $$ begin "
            "if n > 100 then {}; end if; return true; end $$; create domain few as bigint check (few_ok(value))"
        ).format(sql.SQL(error))
    )
    make_queue(conn, value=["n few sum"], buckets=2, delete_when=None, quarantine_after=1)
    add(conn, [(f"bad{i}", 60) for i in (1, 2, 3, 1, 2, 3)])
    drain(dsn, "wc")
    assert quarantined_updates(conn) == {"bad1": 2, "bad2": 2, "bad3": 2}


def queue_that_refuses_bad_words() -> CombineQueue:
    """A queue with a Python observer that raises for words that begin with "bad"."""
    queue = CombineQueue("wc", key="word text", value="n bigint sum", buckets=1, quarantine_after=1)

    @queue.on_change
    def check(tx: psycopg.Connection, changes: ChangeStream) -> None:
        for change in changes:
            if change.key.startswith("bad"):
                raise ValueError(change.key)

    return queue


def test_searches_with_python_observers_find_a_key_each(
    conn: psycopg.Connection, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A search with the time limit 0 s ends early. The test repeats one that finds no key."""
    monkeypatch.setattr(quarantine, "_TIME_LIMIT_SECONDS", 0.0)
    queue = queue_that_refuses_bad_words()
    queue.create(conn)
    add(conn, {f"bad{i}": 1 for i in range(8)})
    with open_connection(dsn) as worker:

        def found() -> int:
            try:
                run_pass(worker, "wc", 0, queue.observers)
            except PassError as error:
                with suppress(PassError):
                    quarantine.recover(worker, error, queue.observers)
            return len(quarantined_updates(conn))

        for number in range(1, 6):
            add(conn, good_keys(100) | {"bad1": 1})
            eventually(lambda number=number: found() == number, what="a search finds a key")
    monkeypatch.undo()
    add(conn, good_keys(100))
    drain(dsn, queue)
    assert values(conn) == dict.fromkeys(good_keys(100), 6)
    assert quarantined_updates(conn) == {f"bad{i}": 1 + 5 * (i == 1) for i in range(8)}
