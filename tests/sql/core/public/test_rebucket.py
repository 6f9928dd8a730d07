"""``rebucket`` changes the number of buckets beside writers, readers and workers, and loses or repeats no update."""

from __future__ import annotations

import random
import threading

import psycopg
import pytest
from support import eventually, run_cli
from support.queues import called
from support.servers import embedded_only
from support.sessions import in_background, waits

from pgcombine.errors import InvalidDefinitionError, QueueNotFoundError, WaitTimeoutError
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.worker.drain import drain
from pgcombine.worker.worker import Worker

WC = CombineQueue("wc", key=["word text"], value=["n bigint sum"], delete_when="n = 0", buckets=4)
KEYS = 500


@pytest.fixture
def wc(conn: psycopg.Connection) -> psycopg.Connection:
    WC.create(conn)
    return conn


def totals(conn: psycopg.Connection, relation: str = "wc_current") -> tuple[int, int]:
    keys, total = conn.execute(f"select count(*), coalesce(sum(n), 0) from pgcombine.{relation}").fetchone()  # noqa: S608
    return keys, int(total)


def partitions(conn: psycopg.Connection) -> dict[str, int]:
    return dict(
        conn.execute(
            "select substring(relname from '^wc_[a-z]+'), count(*) from pg_class"
            " where relname ~ '^wc_(updates_b[0-9]+_s0|values_b[0-9]+)$' group by 1"
        ).fetchall()
    )


def passes(conn: psycopg.Connection) -> list[tuple[object, ...]]:
    """Run a pass over each bucket that isn't locked."""
    return conn.execute("select c.* from pgcombine.bucket b, pgcombine.combine('wc', b.bucket) c").fetchall()


def test_rebucket_keeps_all_updates_and_values(wc: psycopg.Connection) -> None:
    for step, (buckets, per_partition) in enumerate(
        [(7, 1), (1, 1), (16, 1), (16, 4), (12, 4), (12, 12), (3, 1), (3, 1)], 1
    ):
        WC.enqueue(wc, [(f"w{i}", 1) for i in range(KEYS)])
        WC.rebucket(wc, buckets, buckets_per_partition=per_partition)
        assert wc.execute("select bucket from pgcombine.bucket order by 1").fetchall() == [(b,) for b in range(buckets)]
        assert set(partitions(wc).values()) == {buckets // per_partition}
        assert totals(wc) == (KEYS, step * KEYS)
        assert WC.verify(wc) == []
        taken = wc.execute(
            "select sum(updates) from generate_series(0, %s) b, pgcombine.combine('wc', b)", (buckets - 1,)
        )
        assert taken.fetchone() == (KEYS,)
        assert totals(wc, "wc_values") == (KEYS, step * KEYS)
    left = wc.execute("select relname from pg_class where relname like 'wc%new%'").fetchall()
    assert left == []


def test_rebucket_keeps_tables_indexes_and_privileges(wc: psycopg.Connection) -> None:
    wc.execute("drop role if exists pgcombine_test_reader")
    wc.execute("create role pgcombine_test_reader")
    try:
        wc.execute("grant select on pgcombine.wc_values, pgcombine.wc_values_b0000 to pgcombine_test_reader")
        wc.execute("create view mine as select * from pgcombine.wc_values")
        wc.execute("create index on pgcombine.wc_values (n)")
        wc.execute("alter table pgcombine.wc_updates_b0000_s0 replica identity full")
        identity = "select 'pgcombine.wc_updates'::regclass::oid, 'pgcombine.wc_values'::regclass::oid"
        before = wc.execute(identity).fetchone()
        WC.enqueue(wc, [("fluo", 1)])
        WC.rebucket(wc, 5)
        assert wc.execute(identity).fetchone() == before
        wc.execute("select pgcombine.combine('wc')")
        assert wc.execute("select * from mine").fetchall() == [("fluo", 1)]
        for table in ("wc_values", "wc_values_b0004"):
            granted = wc.execute(
                "select has_table_privilege('pgcombine_test_reader', %s, 'select')", (f"pgcombine.{table}",)
            )
            assert granted.fetchone() == (True,), table
        indexes = wc.execute("select count(*) from pg_index where indrelid = 'pgcombine.wc_values_b0004'::regclass")
        assert indexes.fetchone() == (2,)
        identities = wc.execute(
            "select count(*) from pg_class where relreplident = 'f' and relname like 'wc_updates_b%'"
        )
        assert identities.fetchone() == (5,)
        triggers = "select count(*) from pg_trigger where tgrelid = 'pgcombine.wc_updates'::regclass"
        assert wc.execute(triggers).fetchone() == (2,)
    finally:
        wc.execute("drop owned by pgcombine_test_reader")
        wc.execute("drop role pgcombine_test_reader")


@pytest.mark.slow
@embedded_only
def test_rebucket_loses_nothing_beside_writers_readers_and_workers(wc: psycopg.Connection, dsn: str) -> None:
    stop, reader_stop = threading.Event(), threading.Event()
    written: list[int] = []
    wrong: list[object] = []

    def write(seed: int) -> None:
        chance = random.Random(seed)
        count = 0
        with psycopg.connect(dsn, autocommit=True) as conn:
            while not stop.is_set():
                rows = [(f"w{chance.randrange(KEYS)}", 1) for _ in range(chance.choice((1, 10, 100)))]
                with conn.transaction():
                    WC.enqueue(conn, rows)
                    conn.execute("select pgcombine.enqueue('wc', '[{\"word\": \"both\"}]')")
                count += len(rows)
        written.append(count)

    def read() -> None:
        last = 0
        with psycopg.connect(dsn, autocommit=True) as conn:
            while not reader_stop.is_set():
                now = totals(conn)[1]
                if now < last:
                    wrong.append((last, now))
                last = now

    workers = [Worker(dsn, poll=0.1) for _ in range(2)]
    ends = threading.Event()
    threads = [threading.Thread(target=write, args=(seed,)) for seed in range(4)]
    others = [threading.Thread(target=worker.run, args=(ends,)) for worker in workers]
    others.append(threading.Thread(target=read))
    for thread in threads + others:
        thread.start()
    try:
        for buckets, per_partition in ((16, 1), (12, 3), (5, 1)):
            before = workers[0].totals.passes + workers[1].totals.passes
            WC.rebucket(wc, buckets, buckets_per_partition=per_partition, timeout=300)
            eventually(lambda before=before: workers[0].totals.passes + workers[1].totals.passes > before + 5)
        stop.set()
        for thread in threads:
            thread.join()
        WC.wait(wc, timeout=60)
    finally:
        stop.set()
        reader_stop.set()
        ends.set()
        for thread in threads + others:
            thread.join()
    assert len(written) == 4
    assert not wrong
    assert totals(wc, "wc_values")[1] == sum(written)
    assert WC.backlog(wc) == 0
    assert WC.verify(wc) == []


@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_enqueue_that_waits_uses_the_new_buckets(wc: psycopg.Connection, dsn: str, isolation: str) -> None:
    words = [(f"w{i}", 1) for i in range(KEYS)]
    arrays = ([word for word, _ in words], [n for _, n in words])
    with psycopg.connect(dsn) as changing, psycopg.connect(dsn, autocommit=True) as writer:
        changing.execute("select pgcombine.rebucket('wc', 16)")

        def write() -> None:
            with writer.transaction():
                writer.execute(f"set transaction isolation level {isolation}")
                writer.execute("select pgcombine.wc_enqueue(%s, %s::bigint[])", arrays)

        thread = threading.Thread(target=write)
        thread.start()
        asks = "select from pg_stat_activity where pid = %s and wait_event = 'relation'"
        eventually(lambda: wc.execute(asks, (writer.info.backend_pid,)).fetchall())
        changing.commit()
        thread.join()
    assert totals(wc) == (KEYS, KEYS)
    WC.enqueue(wc, [(word, -n) for word, n in words])
    for bucket in range(16):
        done = wc.execute("select changes from pgcombine.combine('wc', %s)", (bucket,)).fetchone()
        assert done == (0,), f"bucket {bucket} has keys that are half-combined"


@pytest.mark.parametrize("before", [1, 4])
@pytest.mark.parametrize("isolation", ["read committed", "repeatable read"])
def test_waiting_enqueue_survives_a_change_from_or_to_one_bucket(
    wc: psycopg.Connection, dsn: str, before: int, isolation: str
) -> None:
    queue = CombineQueue("q", key=["word text"], value=["n bigint sum"], buckets=before)
    queue.create(wc)
    words = [f"w{i}" for i in range(KEYS)]
    with psycopg.connect(dsn) as changing, psycopg.connect(dsn, autocommit=True) as writer:
        changing.execute("select pgcombine.rebucket('q', %s)", (5 - before,))

        def write() -> None:
            with writer.transaction():
                writer.execute(f"set transaction isolation level {isolation}")
                writer.execute("select pgcombine.q_enqueue(%s)", (words,))
                writer.execute("select pgcombine.q_enqueue(%s)", (words,))

        thread = threading.Thread(target=write)
        thread.start()
        asks = "select from pg_stat_activity where pid = %s and wait_event = 'relation'"
        eventually(lambda: wc.execute(asks, (writer.info.backend_pid,)).fetchall())
        changing.commit()
        thread.join()
    assert queue.backlog(wc) == 2 * KEYS
    assert queue.verify(wc) == []


def test_pass_with_an_older_snapshot_fails_to_serialize(wc: psycopg.Connection, dsn: str) -> None:
    WC.enqueue(wc, [(f"w{i}", 1) for i in range(KEYS)])
    with psycopg.connect(dsn) as older:
        older.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        for bucket, buckets in ((0, 2), (0, 7), (6, 3), (1, 3)):
            older.execute("select")
            WC.rebucket(wc, buckets, buckets_per_partition=1)
            if (bucket, buckets) == (1, 3):  # rebucket has nothing to change
                older.execute("select pgcombine.combine('wc', %s)", (bucket,))
            else:
                with pytest.raises(psycopg.errors.SerializationFailure):
                    older.execute("select pgcombine.combine('wc', %s)", (bucket,))
            older.rollback()
    assert totals(wc) == (KEYS, KEYS)
    assert WC.verify(wc) == []


def test_updates_keep_the_id_of_their_transaction(wc: psycopg.Connection, dsn: str) -> None:
    """Marks tell by this id which updates are combined."""
    ids = "select word, pgcombine_tx from pgcombine.wc_updates order by word"
    with psycopg.connect(dsn) as slow, psycopg.connect(dsn) as slower:
        slower.execute("select txid_current()")
        WC.enqueue(slow, [("slow", 1)])
        WC.enqueue(wc, [(f"w{i}", 1) for i in range(KEYS)])
        for bucket in range(4):
            wc.execute("select pgcombine.combine('wc', %s)", (bucket,))
        slow.commit()
        with wc.transaction():
            WC.enqueue(wc, [("own", 1)])
            written = [row for row in wc.execute(ids).fetchall() if not row[0].startswith("w")]
            WC.rebucket(wc, 3)
        assert wc.execute(ids).fetchall() == written
        assert wc.execute("select * from pgcombine.restoring").fetchall() == []
        WC.enqueue(slower, [("slower", 1)])
        slower.commit()
    assert WC.verify(wc) == []
    taken = wc.execute("select sum(updates) from generate_series(0, 2) b, pgcombine.combine('wc', b)").fetchone()
    assert taken == (3,)
    assert totals(wc, "wc_values") == (KEYS + 3, KEYS + 3)


def test_killed_rebucket_changes_nothing(wc: psycopg.Connection, dsn: str) -> None:
    WC.enqueue(wc, [(f"w{i}", 1) for i in range(KEYS)])
    with psycopg.connect(dsn) as writer, psycopg.connect(dsn, autocommit=True) as other:
        WC.enqueue(writer, [("open", 1)])
        pid = other.info.backend_pid
        killed = threading.Event()

        def change() -> None:
            with pytest.raises(psycopg.OperationalError):
                WC.rebucket(other, 9)
            killed.set()

        thread = threading.Thread(target=change)
        thread.start()
        asks = "select from pg_stat_activity where pid = %s and wait_event in ('relation', 'PgSleep')"
        eventually(lambda: wc.execute(asks, (pid,)).fetchall())
        WC.enqueue(wc, [("while", 1)])
        wc.execute("select pg_terminate_backend(%s)", (pid,))
        thread.join()
        assert killed.is_set()
        writer.commit()
    assert set(partitions(wc).values()) == {4}
    assert WC.verify(wc) == []
    drain(dsn, "wc", timeout=30)
    assert totals(wc, "wc_values") == (KEYS + 2, KEYS + 2)
    WC.rebucket(wc, 9)
    assert totals(wc, "wc_values") == (KEYS + 2, KEYS + 2)


def test_rebucket_gives_up_if_the_tables_stay_locked(wc: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as writer:
        WC.enqueue(writer, [("open", 1)])
        with pytest.raises(WaitTimeoutError):
            WC.rebucket(wc, 2, timeout=0.1)
        writer.commit()
    assert set(partitions(wc).values()) == {4}
    assert totals(wc) == (1, 1)


def test_concurrent_rebuckets_run_one_after_the_other(wc: psycopg.Connection, dsn: str) -> None:
    WC.enqueue(wc, [(f"w{i}", 1) for i in range(KEYS)])

    def change(buckets: int) -> None:
        with psycopg.connect(dsn, autocommit=True) as other:
            WC.rebucket(other, buckets)

    threads = [threading.Thread(target=change, args=(buckets,)) for buckets in (2, 11, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert totals(wc) == (KEYS, KEYS)
    assert WC.verify(wc) == []


@pytest.mark.parametrize("claim", ["begin_initialize('wc', true)", "claim_buckets('wc')"])
def test_no_pass_runs_beside_a_lock_that_waited(wc: psycopg.Connection, dsn: str, claim: str) -> None:
    """A function that locks all buckets, and has to wait for a rebucket, must also lock the new buckets."""
    WC.enqueue(wc, [(f"w{i}", 1) for i in range(KEYS)])
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second:
        first.execute("select pgcombine.rebucket('wc', 16)")
        with in_background(lambda: second.execute(called(claim))):
            waits(wc, second.info.backend_pid)
            first.commit()
        assert passes(wc) == []
    assert passes(wc) != []
    assert totals(wc) == totals(wc, "wc_values") == (KEYS, KEYS)


def test_no_pass_runs_beside_a_second_rebucket(wc: psycopg.Connection, dsn: str) -> None:
    """A rebucket that waited for another one must lock the new buckets, or a pass could report a change twice."""
    wc.execute("create table seen (word text, was bigint, is_now bigint)")
    wc.execute("select pgcombine.add_observer('wc', 'seen', 'insert into seen select word, old_n, new_n from changes')")
    WC.enqueue(wc, [(f"w{i}", 1) for i in range(KEYS)])
    with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second, psycopg.connect(dsn) as writer:
        first.execute("select pgcombine.rebucket('wc', 16)")
        with in_background(lambda: WC.rebucket(second, 8)):
            waits(wc, second.info.backend_pid)
            first.commit()
            WC.enqueue(writer, [("open", 1)])
            waits(wc, second.info.backend_pid)  # the second rebucket waits for the writer
            assert passes(wc) == []
            writer.commit()
    passes(wc)
    assert wc.execute("select count(*), count(distinct word) from seen").fetchone() == (KEYS + 1, KEYS + 1)
    assert totals(wc) == totals(wc, "wc_values") == (KEYS + 1, KEYS + 1)


def test_invalid_numbers_are_refused(wc: psycopg.Connection, dsn: str) -> None:
    for buckets in (0, 1025, None):
        with pytest.raises(InvalidDefinitionError):
            WC.rebucket(wc, buckets)  # type: ignore[arg-type]
    with pytest.raises(InvalidDefinitionError):
        WC.rebucket(wc, 6, buckets_per_partition=4)
    with pytest.raises(QueueNotFoundError):
        CombineQueue("nope").rebucket(wc, 6)
    with psycopg.connect(dsn) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        with pytest.raises(InvalidDefinitionError):
            WC.rebucket(other, 6)


def test_command_rebuckets(wc: psycopg.Connection, dsn: str) -> None:
    done = run_cli("queue", "rebucket", "wc", 6, "--buckets-per-partition", 2, "--json", "--dsn", dsn)
    assert (done.returncode, done.stdout) == (0, '{"queue": "wc", "state": "rebucketed"}\n'), done.stderr
    assert set(partitions(wc).values()) == {3}
    refused = run_cli("queue", "rebucket", "wc", 0, "--dsn", dsn)
    assert refused.returncode == 1
    assert len(refused.stderr.splitlines()) == 1
