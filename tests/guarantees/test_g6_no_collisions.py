"""G6: enqueuers take no lock that another enqueuer or a worker waits for; they never deadlock.

Every session here gives up a wait at once. Broken on purpose: a gate that is waited for, counters
that are updated in place.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable

import psycopg
import pytest
from support.mutants import mutate_functions
from support.queues import add, combine_all, enqueue, make_queue, one, values
from support.sessions import in_background, workers
from support.wait import eventually

from pgcombine.queue.combine_queue import CombineQueue


def impatient(dsn: str) -> psycopg.Connection:
    return psycopg.connect(dsn, options="-c lock_timeout=500ms")


def nobody_waits(conn: psycopg.Connection, dsn: str) -> None:
    """Open transactions that enqueued the same keys in opposite orders, passes before, between and after."""
    conn.execute("set lock_timeout = '500ms'")
    with impatient(dsn) as one_writer, impatient(dsn) as other_writer, impatient(dsn) as worker:
        try:
            for level in (psycopg.IsolationLevel.READ_COMMITTED, psycopg.IsolationLevel.REPEATABLE_READ):
                for session in (one_writer, other_writer, worker):
                    session.isolation_level = level
                add(conn, {"a": 1, "b": 1})
                worker.execute("select pgcombine.combine('wc', b) from generate_series(0, 1) b")
                add(one_writer, {"a": 1})
                add(other_writer, {"b": 1})
                add(one_writer, {"b": 1})
                enqueue(other_writer, [{"word": "a", "n": 1}])
                CombineQueue("wc").enqueue(one_writer, [("a", 1), ("b", 1)])
                worker.commit()
                worker.execute("select pgcombine.combine('wc', b) from generate_series(0, 1) b")
                add(other_writer, {"a": 1, "b": 1})
                other_writer.commit()
                worker.commit()
                add(one_writer, {"a": 1, "b": 1})
                one_writer.commit()
        except psycopg.OperationalError as error:  # a lock timeout or a deadlock
            raise AssertionError(f"waits: {error}") from error
    combine_all(conn)
    assert values(conn) == {"a": 12, "b": 12}


def test_nobody_waits(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=2)
    nobody_waits(conn, dsn)


def test_nobody_waits_for_a_sleeping_worker(conn: psycopg.Connection, dsn: str) -> None:
    """The commits that notify follow one another; that is short, and whoever sleeps is woken by the first."""
    make_queue(conn, buckets=2)
    with psycopg.connect(dsn, autocommit=True) as sleeper:
        assert one(sleeper, "select pgcombine_internal.take_idle_lock('pgcombine.wc_updates'::regclass)") == "taken"
        nobody_waits(conn, dsn)


def counters_in_place(conn: psycopg.Connection) -> None:
    """What is done without a queue."""
    conn.execute("create table public.total (word text primary key, n bigint)")
    conn.execute(
        """
        create function public.count_up() returns trigger language plpgsql as $$
        begin
            insert into public.total as total values (new.word, new.n)
            on conflict (word) do update set n = total.n + excluded.n;
            return new;
        end $$
        """
    )
    conn.execute(
        "create trigger count before insert on pgcombine.wc_updates for each row execute function public.count_up()"
    )


def a_lock_of_the_bucket(conn: psycopg.Connection) -> None:
    """Writers that wait for the pass in progress."""
    conn.execute(
        """
        create function public.claim() returns trigger language plpgsql as $$
        begin
            perform from pgcombine.bucket where queue = 'wc' for share;
            return null;
        end $$
        """
    )
    conn.execute(
        "create trigger claim after insert on pgcombine.wc_updates for each statement execute function public.claim()"
    )


@pytest.mark.parametrize("mutant", [counters_in_place, a_lock_of_the_bucket])
def test_collisions_are_noticed(
    conn: psycopg.Connection, dsn: str, mutant: Callable[[psycopg.Connection], None]
) -> None:
    make_queue(conn, buckets=2)
    mutant(conn)
    with pytest.raises(AssertionError, match="waits"):
        nobody_waits(conn, dsn)


def test_a_gate_that_is_waited_for_is_noticed(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=2)
    mutate_functions(
        conn,
        "pg_try_advisory_xact_lock_shared(hashtext('pgcombine.idle'), tg_relid::integer)",
        "pg_advisory_xact_lock_shared(hashtext('pgcombine.idle'), tg_relid::integer) is null",
    )
    with psycopg.connect(dsn, autocommit=True) as sleeper:
        assert one(sleeper, "select pgcombine_internal.take_idle_lock('pgcombine.wc_updates'::regclass)") == "taken"
        with pytest.raises(AssertionError, match="waits"):
            nobody_waits(conn, dsn)


def test_locks_of_an_enqueuer(conn: psycopg.Connection, dsn: str) -> None:
    """None of a row, of a page or of a transaction that isn't its own; on tables none that a pass conflicts with."""
    make_queue(conn, buckets=2)
    with impatient(dsn) as writer:
        add(writer, {"a": 1, "b": 1})
        enqueue(writer, [{"word": "c", "n": 1}])
        found = conn.execute(
            "select locktype, mode, relation::regclass::text from pg_locks where pid = %s", (writer.info.backend_pid,)
        ).fetchall()
    assert found
    assert {kind for kind, _, _ in found} <= {"relation", "virtualxid", "transactionid", "advisory"}
    modes = {mode for kind, mode, _ in found if kind == "relation"}
    assert modes <= {"AccessShareLock", "RowExclusiveLock"}
    assert {mode for kind, mode, _ in found if kind == "advisory"} <= {"ShareLock"}
    assert not [table for _, _, table in found if table and "_values" in table]


def test_observers_come_and_go_beside_open_writers(conn: psycopg.Connection, dsn: str) -> None:
    """Who waited for a table's lock here would hold up all enqueues that come after it."""
    make_queue(conn, buckets=2)
    conn.execute("set lock_timeout = '500ms'")
    with impatient(dsn) as writer:
        add(writer, {"a": 1})
        conn.execute("select pgcombine.add_observer('wc', 'nothing', 'select 1 from changes')")
        add(writer, {"a": 1})
        conn.execute("select pgcombine.drop_observer('wc', 'nothing')")
    with impatient(dsn) as owner:
        owner.execute("select pgcombine.add_observer('wc', 'nothing', 'select 1 from changes')")
        add(conn, {"a": 1})
        assert combine_all(conn) == [], "passes wait for the owner's commit, enqueues don't"
    combine_all(conn)
    assert values(conn) == {"a": 3}


def test_random_key_order_never_deadlocks(conn: psycopg.Connection, dsn: str) -> None:
    """Eight writers with keys in random order, in transactions of several statements, beside two workers."""
    make_queue(conn, buckets=4)
    words = [f"w{i}" for i in range(20)]
    start = threading.Barrier(8)

    def write(seed: int) -> None:
        chance = random.Random(seed)
        with impatient(dsn) as writer:
            start.wait(timeout=30)
            for _ in range(25):
                for _ in range(3):
                    add(writer, [(word, 1) for word in chance.sample(words, 10)])
                writer.commit()

    with workers(dsn, "wc", count=2, poll=0.05):
        with in_background(*(lambda seed=seed: write(seed) for seed in range(8))):
            pass
        eventually(lambda: one(conn, "select pgcombine.backlog('wc')") == 0, what="drained")
    assert sum(values(conn).values()) == 8 * 25 * 30
    conn.execute("select pg_stat_clear_snapshot()")
    assert one(conn, "select deadlocks from pg_stat_database where datname = current_database()") == 0
