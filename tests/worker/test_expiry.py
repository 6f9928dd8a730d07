"""Workers and ``pgcombine.expire`` remove expired keys."""

from __future__ import annotations

import random
import threading
import time
from collections import Counter
from collections.abc import Iterable
from typing import Any

import psycopg
import pytest
from psycopg import errors
from support import eventually, start_cli
from support.exports import make_export
from support.queues import add, combine_all, make_queue, one, rows, values, write_values
from support.servers import embedded_only
from support.sessions import in_background, workers
from support.states import raises_state

from pgcombine import CombineQueue, Worker, drain
from pgcombine.worker.passes import open_connection, run_pass


def filled(conn: psycopg.Connection, keys: int = 100, **options: object) -> None:
    """Create a queue with values. Half of them have n = 0, and so meet the condition that ``expire`` sets."""
    make_queue(conn, delete_when=None, **options)
    write_values(conn, "insert into pgcombine.wc_values select g::text, g %% 2 from generate_series(1, %s) g", (keys,))


def observed(conn: psycopg.Connection) -> None:
    """Add an observer that keeps the words of all changes in the table ``history``."""
    conn.execute("create table history (word text)")
    conn.execute("select pgcombine.add_observer('wc', 'history', 'insert into history select word from changes')")


def expire(conn: psycopg.Connection) -> None:
    conn.execute("select pgcombine.set_expiry('wc', 'n <= 0')")


def expiry_pass(connection: psycopg.Connection) -> tuple[int, bool] | None:
    """Run a pass over bucket 0. Return its ``expired`` and ``unfinished``, or None if it gets no lock in time."""
    done = run_pass(connection, "wc", 0)
    return done and (done.expired, done.unfinished)


def left(conn: psycopg.Connection) -> int:
    return int(one(conn, "select count(*) from pgcombine.wc_values"))


def test_a_worker_removes_expired_keys(dsn: str, conn: psycopg.Connection) -> None:
    filled(conn)
    expire(conn)
    with workers(dsn, poll=0.1):
        eventually(lambda: left(conn) == 50)
        later = "select count(*) = 4 from pgcombine.expiry where due > now() + interval '5 min'"
        eventually(lambda: one(conn, later))
        # a key that meets the condition later is removed when the next scan is due
        write_values(conn, "update pgcombine.wc_values set n = 0 where word = '1'")
        conn.execute("select pgcombine.set_expiry('wc', 'n <= 0', every => '1 ms')")
        eventually(lambda: left(conn) == 49)
        write_values(conn, "update pgcombine.wc_values set n = 0 where word = '3'")
        eventually(lambda: left(conn) == 48)


def test_pass_removes_at_most_10000_keys(dsn: str, conn: psycopg.Connection) -> None:
    filled(conn, 25_000, buckets=1)
    expire(conn)
    with open_connection(dsn) as connection:
        assert expiry_pass(connection) == (10_000, True)
        assert expiry_pass(connection) == (2_500, False)
        assert expiry_pass(connection) == (0, False), "a scan began before it was due"
    assert left(conn) == 12_500


def test_worker_combines_a_backlog_before_it_removes_keys(dsn: str, conn: psycopg.Connection) -> None:
    filled(conn, buckets=1, pass_limit=10)
    expire(conn)
    add(conn, {f"new {n}": 1 for n in range(50)})
    with open_connection(dsn) as connection:
        assert expiry_pass(connection) == (0, False)
    assert one(conn, "select count(*) from pgcombine.wc_values where n = 0") == 50
    assert one(conn, "call pgcombine.expire('wc')") == 50
    assert sum(values(conn).values()) == 100


def test_failing_observer_delays_only_expiry(dsn: str, conn: psycopg.Connection) -> None:
    filled(conn, buckets=1)
    conn.execute("create table broken ()")
    conn.execute(
        "create function strict(is_now bigint) returns bigint language plpgsql as $$ begin "
        "if is_now is null and exists (select from pg_class where relname = 'broken') then raise 'it broke'; end if; "
        "return is_now; end $$"
    )
    conn.execute("select pgcombine.add_observer('wc', 'strict', 'select strict(new_n) from changes')")
    expire(conn)
    with workers(dsn, poll=0.1):
        eventually(lambda: one(conn, "select max(error) from pgcombine.expiry") == "it broke")
        assert left(conn) == 100
        assert one(conn, "select count(*) from pgcombine.failure") == 0
        add(conn, {"1": 1})
        eventually(lambda: values(conn)["1"] == 2)
        assert one(conn, "select count(*) from pgcombine.quarantined_key") == 0
        conn.execute("drop table broken")
        conn.execute("update pgcombine.expiry set due = '-infinity'")
        eventually(lambda: left(conn) == 50)
        eventually(lambda: one(conn, "select count(error) from pgcombine.expiry") == 0)


def test_lock_timeout_records_no_failure(dsn: str, conn: psycopg.Connection) -> None:
    filled(conn, buckets=1)
    observed(conn)
    expire(conn)
    with open_connection(dsn, lock_timeout=0.05) as connection, conn.transaction():
        conn.execute("lock table history in exclusive mode")
        assert expiry_pass(connection) is None
    assert one(conn, "select count(*) from pgcombine.failure") == 0
    with open_connection(dsn) as connection:
        assert expiry_pass(connection) == (50, False)


def test_python_observers_see_expired_keys(dsn: str, conn: psycopg.Connection) -> None:
    wc = CombineQueue("wc", key=["word text"], value=["n bigint sum", "last bigint max"], buckets=1)
    seen: list[tuple[object, object, object]] = []

    @wc.on_change
    def watch(tx: psycopg.Connection, changes: Iterable[Any]) -> None:
        seen.extend((change.key, change.old, change.new) for change in changes)

    wc.create(conn)
    wc.enqueue(conn, [{"word": "a", "n": 1, "last": 7}, {"word": "b", "n": 0, "last": 8}])
    drain(dsn, wc)
    seen.clear()
    expire(conn)
    with raises_state("PC008"):
        conn.execute("call pgcombine.expire('wc')")
    stop = threading.Event()
    with in_background(lambda: Worker(dsn, wc, poll=0.1).run(stop)):
        try:
            eventually(lambda: left(conn) == 1)
            wc.enqueue(conn, [{"word": "c", "n": 0, "last": 9}, {"word": "a", "n": 1, "last": 6}])
            eventually(lambda: [row[1] for row in rows(conn, "wc_values")] == [2])
        finally:
            stop.set()
    assert seen == [("b", (0, 8), None), ("a", (1, 7), (2, 7))]


def test_killed_worker_removes_nothing(dsn: str, conn: psycopg.Connection) -> None:
    filled(conn, buckets=1)
    observed(conn)
    with psycopg.connect(dsn, autocommit=True) as other, other.transaction():
        other.execute("lock table history in exclusive mode")
        expire(conn)
        with start_cli("worker", "wc", "--dsn", dsn) as process:
            blocked = "select pid from pg_stat_activity where cardinality(pg_blocking_pids(pid)) > 0"
            pid = eventually(lambda: conn.execute(blocked).fetchone())[0]
            process.kill()
            assert process.wait(timeout=30) == -9
    eventually(lambda: conn.execute("select from pg_stat_activity where pid = %s", (pid,)).fetchone() is None)
    assert (left(conn), one(conn, "select count(*) from history")) == (100, 0)
    with workers(dsn, poll=0.1):
        eventually(lambda: left(conn) == 50)
    assert one(conn, "select count(*) from history") == 50


def test_expiry_with_a_snapshot_before_a_pass_fails_to_serialize(dsn: str, conn: psycopg.Connection) -> None:
    filled(conn, buckets=1)
    expire(conn)
    with open_connection(dsn) as late:
        late.execute("begin isolation level repeatable read")
        late.execute("select from pgcombine.wc_values")  # the transaction's snapshot is taken here
        add(conn, {"2": 5})
        combine_all(conn)
        with pytest.raises(errors.SerializationFailure):
            late.execute("select pgcombine_internal.run_pass('wc', 0, from_page => 0)")
        late.execute("rollback")
        assert expiry_pass(late) == (49, False)
    assert values(conn)["2"] == 5


def test_pass_with_a_snapshot_before_expiry_fails_to_serialize(dsn: str, conn: psycopg.Connection) -> None:
    filled(conn, buckets=1)
    expire(conn)
    add(conn, {"new": 1})
    with open_connection(dsn) as late, psycopg.connect(dsn, autocommit=True) as other:
        other.execute("begin isolation level repeatable read")
        add(other, {"2": 5})  # the update commits after the snapshot of ``late``
        late.execute("begin isolation level repeatable read")
        late.execute("select from pgcombine.wc_values")
        assert one(conn, "call pgcombine.expire('wc')") == 50
        other.execute("commit")
        with pytest.raises(errors.SerializationFailure):
            late.execute("select * from pgcombine.combine('wc', 0)")
        late.execute("rollback")
    combine_all(conn)
    assert (values(conn)["2"], values(conn)["new"]) == (5, 1)
    assert conn.execute("select * from pgcombine.verify('wc')").fetchall() == []


def test_export_has_an_entry_for_an_expired_key(dsn: str, conn: psycopg.Connection) -> None:
    make_queue(conn, delete_when=None)
    make_export(conn)
    add(conn, {"a": 1, "b": 2, "c": 3})
    combine_all(conn)
    conn.execute("select pgcombine.set_expiry('wc', 'n <= 1')")
    assert one(conn, "call pgcombine.expire('wc')") == 1
    conn.execute("select pgcombine.set_expiry('wc', 'n <= 2', true)")
    assert one(conn, "call pgcombine.expire('wc')") == 1
    found = conn.execute("select word, old_n, new_n from pgcombine.search_exports order by seq").fetchall()
    assert sorted(found[:3]) == [("a", None, 1), ("b", None, 2), ("c", None, 3)]
    assert found[3:] == [("a", 1, None)]


def test_rebucket_restarts_the_search_for_expired_keys(conn: psycopg.Connection) -> None:
    filled(conn, 1000)
    conn.execute("select pgcombine.set_expiry('wc', 'n < 0')")
    assert one(conn, "call pgcombine.expire('wc')") == 0
    conn.execute("select pgcombine.rebucket('wc', 6, buckets_per_partition => 2)")
    assert one(conn, "select count(*) from pgcombine.expiry") == 0
    expire(conn)
    assert one(conn, "call pgcombine.expire('wc')") == 500
    assert conn.execute("select * from pgcombine.verify('wc')").fetchall() == []
    conn.execute("select pgcombine.drop_queue('wc')")
    assert one(conn, "select count(*) from pgcombine.expiry") == 0


@embedded_only
@pytest.mark.parametrize("seconds", [4, pytest.param(12, marks=pytest.mark.slow)])
def test_changes_are_continuous_while_keys_expire(dsn: str, conn: psycopg.Connection, seconds: float) -> None:
    """Each change's old value is the new value of the key's previous change, also if the key expired in between.

    The values of the keys that don't expire are the sums of their updates.
    """
    make_queue(
        conn,
        key=["bucket timestamptz"],
        value=["n bigint sum"],
        delete_when=None,
        buckets=2,
        expire_when="bucket <= now() - interval '0.5 s'",
        expire_every="1 ms",
    )
    conn.execute("create table history (id bigserial, bucket timestamptz, was bigint, is_now bigint)")
    conn.execute(
        "select pgcombine.add_observer('wc', 'history', "
        "'insert into history (bucket, was, is_now) select bucket, old_n, new_n from changes')"
    )
    until = time.monotonic() + seconds
    kept = [f"9999-01-{day:02}" for day in range(1, 10)]

    def produce() -> Counter[str]:
        dice, sent = random.Random(), Counter[str]()
        with psycopg.connect(dsn, autocommit=True) as mine, mine.cursor() as cursor:
            while time.monotonic() < until:
                chosen = dice.choice(kept)
                cursor.execute(
                    "insert into pgcombine.wc_updates (bucket, n) "
                    "select date_bin('100 ms', now(), '2000-01-01') - make_interval(secs => g / 10.0), 1 "
                    "from generate_series(-3, 8) g union all select %s, 1",
                    (chosen,),
                )
                sent[chosen] += 1
        return sent

    def expire_often() -> None:
        with psycopg.connect(dsn, autocommit=True) as mine:
            while time.monotonic() < until:
                mine.execute("call pgcombine.expire('wc')")

    with (
        workers(dsn, poll=0.05, count=2),
        workers(dsn, poll=0.05),
        in_background(produce, produce, expire_often) as sent,
    ):
        total = sent[0].result() + sent[1].result()
    drain(dsn, "wc", timeout=60)
    eventually(lambda: one(conn, "call pgcombine.expire('wc')") is not None and left(conn) == len(kept))
    found = conn.execute("select bucket::date::text, n from pgcombine.wc_values").fetchall()
    assert dict(found) == total
    gaps = (
        "select count(*) from (select was, lag(is_now) over (partition by bucket order by id) as before from history) "
        "as h where was is distinct from before"
    )
    assert one(conn, gaps) == 0
    assert one(conn, "select count(*) from history where is_now is null") > 0
    assert one(conn, "select count(*) from pgcombine.failure") == 0
    assert one(conn, "select count(error) from pgcombine.expiry") == 0
    assert conn.execute("select * from pgcombine.verify('wc')").fetchall() == []
