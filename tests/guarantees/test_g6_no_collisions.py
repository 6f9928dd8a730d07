"""G6: an enqueue without a token takes no lock for which another enqueue or a worker waits.

So enqueues don't deadlock. Sessions that must not wait have a short lock timeout. Mutants, which the tests must detect:
enqueues that wait for the idle lock or for a bucket, and enqueues that update counters in place.
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


def with_lock_timeout(dsn: str) -> psycopg.Connection:
    return psycopg.connect(dsn, options="-c lock_timeout=500ms")


def check_that_nobody_waits(conn: psycopg.Connection, dsn: str) -> None:
    """Open transactions enqueue the same keys in opposite orders. Passes run before, between and after the enqueues."""
    conn.execute("set lock_timeout = '500ms'")
    with with_lock_timeout(dsn) as one_writer, with_lock_timeout(dsn) as other_writer, with_lock_timeout(dsn) as worker:
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
            raise AssertionError(f"a session waits: {error}") from error
    combine_all(conn)
    assert values(conn) == {"a": 12, "b": 12}


@pytest.mark.wc(buckets=2)
def test_enqueues_and_passes_do_not_wait(conn: psycopg.Connection, dsn: str) -> None:
    check_that_nobody_waits(conn, dsn)


@pytest.mark.wc(buckets=2)
def test_enqueues_do_not_wait_for_a_listening_worker(conn: psycopg.Connection, dsn: str) -> None:
    """Enqueues don't wait for the idle lock, which a session holds, as a listening worker does."""
    with psycopg.connect(dsn, autocommit=True) as listening_worker:
        assert (
            one(listening_worker, "select pgcombine_internal.take_idle_lock('pgcombine.wc_updates'::regclass)")
            == "taken"
        )
        check_that_nobody_waits(conn, dsn)


def counters_in_place(conn: psycopg.Connection) -> None:
    """Mutant: each enqueue updates a row with the total of the key, as programs do without a queue."""
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


def lock_the_bucket(conn: psycopg.Connection) -> None:
    """Mutant: enqueues wait for a pass in progress."""
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


@pytest.mark.wc(buckets=2)
@pytest.mark.parametrize("mutant", [counters_in_place, lock_the_bucket])
def test_mutants_that_wait_are_detected(
    conn: psycopg.Connection, dsn: str, mutant: Callable[[psycopg.Connection], None]
) -> None:
    mutant(conn)
    with pytest.raises(AssertionError, match="waits"):
        check_that_nobody_waits(conn, dsn)


@pytest.mark.wc(buckets=2)
def test_mutant_that_waits_for_the_idle_lock_is_detected(conn: psycopg.Connection, dsn: str) -> None:
    mutate_functions(
        conn,
        "pg_try_advisory_xact_lock_shared(hashtext('pgcombine.idle'), tg_relid::integer)",
        "pg_advisory_xact_lock_shared(hashtext('pgcombine.idle'), tg_relid::integer) is null",
    )
    with psycopg.connect(dsn, autocommit=True) as listening_worker:
        assert (
            one(listening_worker, "select pgcombine_internal.take_idle_lock('pgcombine.wc_updates'::regclass)")
            == "taken"
        )
        with pytest.raises(AssertionError, match="waits"):
            check_that_nobody_waits(conn, dsn)


@pytest.mark.wc(buckets=2)
def test_enqueue_takes_only_compatible_locks(conn: psycopg.Connection, dsn: str) -> None:
    """An enqueue takes weak locks on tables, none on tables of values, and shared advisory locks."""
    with with_lock_timeout(dsn) as writer:
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


@pytest.mark.wc(buckets=2)
def test_observers_are_added_and_dropped_beside_open_writers(conn: psycopg.Connection, dsn: str) -> None:
    """If add_observer waited for a lock that conflicts with enqueues, later enqueues would wait, too."""
    conn.execute("set lock_timeout = '500ms'")
    with with_lock_timeout(dsn) as writer:
        add(writer, {"a": 1})
        conn.execute("select pgcombine.add_observer('wc', 'nothing', 'select 1 from changes')")
        add(writer, {"a": 1})
        conn.execute("select pgcombine.drop_observer('wc', 'nothing')")
    with with_lock_timeout(dsn) as owner:
        owner.execute("select pgcombine.add_observer('wc', 'nothing', 'select 1 from changes')")
        add(conn, {"a": 1})
        assert combine_all(conn) == [], "a pass must not run before the owner's commit"
    combine_all(conn)
    assert values(conn) == {"a": 3}


def test_random_key_order_never_deadlocks(conn: psycopg.Connection, dsn: str) -> None:
    """Eight writers enqueue keys in random order, in transactions of several statements, beside a worker."""
    make_queue(conn, buckets=4)
    words = [f"w{i}" for i in range(20)]
    start = threading.Barrier(8)

    def write(seed: int) -> None:
        chance = random.Random(seed)
        with with_lock_timeout(dsn) as writer:
            start.wait(timeout=30)
            for _ in range(25):
                for _ in range(3):
                    add(writer, [(word, 1) for word in chance.sample(words, 10)])
                writer.commit()

    with workers(dsn, "wc", count=2, poll=0.05):
        with in_background(*(lambda seed=seed: write(seed) for seed in range(8))):
            pass
        eventually(lambda: one(conn, "select pgcombine.backlog('wc')") == 0, what="no update is pending")
    assert sum(values(conn).values()) == 8 * 25 * 30
    conn.execute("select pg_stat_clear_snapshot()")
    assert one(conn, "select deadlocks from pg_stat_database where datname = current_database()") == 0
