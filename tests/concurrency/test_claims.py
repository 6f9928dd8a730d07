"""Functions that lock the rows of all buckets of a queue, such as rebucket, so that no pass runs beside them.

Some tests replace the locking function with a wrong one, to check that the other tests detect the error. The wrong
function locks in a single statement, and so misses buckets that a rebucket adds while the statement waits.
"""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors
from support.exports import make_export
from support.mutants import claim_in_one_statement
from support.queues import add, combine_all, hold, make_queue, one, rows, values
from support.sessions import in_background, waits
from support.states import raises_state
from support.wait import eventually

WORDS = [f"w{i}" for i in range(500)]
UNLOCKED = "select count(*) from (select from pgcombine.bucket for update skip locked) unclaimed"

# Calls that lock all buckets of the queue wc, which has an export and a quarantined key.
LOCKING = [
    "select pgcombine_internal.begin_initialize('wc', true)",
    "select pgcombine_internal.export_resync('search')",
    "select pgcombine.retry_quarantined('wc')",
    "select pgcombine.drop_quarantined('wc')",
    "select pgcombine_internal.handoff_rebuild_queue('wc', '', pgcombine_internal.handoff_shape('wc'))",
]
# These calls also update the rows of all buckets, which locks the rows that the wrong function misses. So these calls
# can't show the error of the wrong function.
LOCKING_AND_WRITING = [
    "select pgcombine.rebucket('wc', 4)",
    "select pgcombine.create_export('other', 'wc', existing => true)",
    "select pgcombine.drop_export('search')",
    "select pgcombine_internal.own_export('search', 'here')",
    "select pgcombine_internal.disown_export('search', 'there', 7)",
    "select pgcombine.drop_queue('wc', force => true)",  # also drops the export
]


def check_that_all_are_locked(conn: psycopg.Connection, dsn: str, call: str) -> None:
    """``call`` waits for a rebucket from one bucket to eight. After the rebucket, ``call`` must lock all eight buckets.

    A third session locks the quarantine. A call that writes to the quarantine after it has locked the buckets waits for
    this session, so that the test can see the locks on the buckets.
    """
    make_queue(conn, buckets=1)
    make_export(conn)
    add(conn, {"held": 1})
    hold(conn, word="held")
    with psycopg.connect(dsn) as first, psycopg.connect(dsn) as second, psycopg.connect(dsn) as holder:
        holder.execute("select from pgcombine.quarantined_key for update")
        holder.execute("select from pgcombine.wc_quarantine")
        first.execute("select pgcombine.rebucket('wc', 8)")
        with in_background(lambda: second.execute(call)) as (called,):
            try:
                waits(conn, second.info.backend_pid)
                first.commit()
                blocked = f"select {holder.info.backend_pid} = any (pg_blocking_pids({second.info.backend_pid}))"
                eventually(lambda: called.done() or one(conn, blocked), what="the buckets are locked")
                assert one(conn, UNLOCKED) == 0, "some buckets aren't locked"
            finally:
                first.rollback()
                holder.rollback()
        second.rollback()


@pytest.mark.parametrize("call", LOCKING + LOCKING_AND_WRITING)
def test_buckets_that_a_rebucket_adds_are_locked(conn: psycopg.Connection, dsn: str, call: str) -> None:
    check_that_all_are_locked(conn, dsn, call)


@pytest.mark.parametrize("call", LOCKING)
def test_check_detects_buckets_that_are_not_locked(conn: psycopg.Connection, dsn: str, call: str) -> None:
    claim_in_one_statement(conn)
    with pytest.raises(AssertionError, match="some buckets aren't locked"):
        check_that_all_are_locked(conn, dsn, call)


def passes_beside_the_second_rebucket(conn: psycopg.Connection, dsn: str) -> None:
    """Run passes beside a second rebucket, and assert that no update is lost."""
    make_queue(conn, buckets=1)
    add(conn, [(word, 1) for word in WORDS])
    combine_all(conn)
    with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second, psycopg.connect(dsn) as reader:
        first.execute("select pgcombine.rebucket('wc', 8)")
        with in_background(lambda: second.execute("select pgcombine.rebucket('wc', 4)")):
            try:
                waits(conn, second.info.backend_pid)
                reader.execute("set transaction isolation level repeatable read")
                first.commit()
                # the reader's locks on the tables make the second rebucket wait until the reader's commit
                one(reader, "select count(*) from pgcombine.wc_values")
                waits(conn, second.info.backend_pid)
                add(conn, [(word, 1) for word in WORDS])
                conn.execute("select pgcombine.combine('wc', b) from generate_series(1, 7) b")
            finally:
                reader.commit()
    combine_all(conn)
    assert sum(values(conn).values()) == 2 * len(WORDS), "updates are lost"


def test_no_pass_writes_beside_the_second_rebucket(conn: psycopg.Connection, dsn: str) -> None:
    passes_beside_the_second_rebucket(conn, dsn)
    assert rows(conn, "bucket") == [("wc", bucket) for bucket in range(4)]


def test_check_detects_lost_updates(conn: psycopg.Connection, dsn: str) -> None:
    claim_in_one_statement(conn)
    with pytest.raises(AssertionError, match="updates are lost"):
        passes_beside_the_second_rebucket(conn, dsn)


def outcome(conn: psycopg.Connection, first: psycopg.Connection, second: psycopg.Connection, call: str) -> object:
    """What ``call`` returns or raises in ``second``, which waits until ``first`` commits."""

    def result() -> object:
        try:
            return one(second, call)
        except psycopg.Error as error:
            return str(error)

    with in_background(result) as (called,):
        try:
            waits(conn, second.info.backend_pid)
        finally:
            first.commit()
    return called.result()


@pytest.mark.wc
def test_concurrent_owners_of_an_export_have_two_epochs(conn: psycopg.Connection, dsn: str) -> None:
    make_export(conn)
    with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second:
        epoch = one(first, "select pgcombine_internal.own_export('search', 'first')")
        later = outcome(conn, first, second, "select pgcombine_internal.own_export('search', 'second')")
    assert later == epoch + 1


@pytest.mark.wc
def test_second_drop_of_an_export_finds_none(conn: psycopg.Connection, dsn: str) -> None:
    make_export(conn)
    with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second:
        first.execute("select pgcombine.drop_export('search')")
        later = outcome(conn, first, second, "select pgcombine.drop_export('search')")
    assert 'no export "search"' in str(later)


@pytest.mark.wc
def test_create_export_finds_no_dropped_queue(conn: psycopg.Connection, dsn: str) -> None:
    """create_export waits while drop_queue waits for a pass. After the drop, create_export finds no queue."""
    with (
        psycopg.connect(dsn) as passing,
        psycopg.connect(dsn, autocommit=True) as first,
        psycopg.connect(dsn, autocommit=True) as second,
    ):
        add(conn, {"a": 1})
        passing.execute("select pgcombine.combine('wc')")
        with in_background(lambda: first.execute("select pgcombine.drop_queue('wc', force => true)")):
            try:
                waits(conn, first.info.backend_pid)
                later = outcome(conn, passing, second, "select pgcombine.create_export('search', 'wc')")
            finally:
                passing.rollback()
    assert 'no queue "wc"' in str(later)


@pytest.mark.wc
@pytest.mark.parametrize("level", ["repeatable read", "serializable"])
@pytest.mark.parametrize(
    "call",
    [
        "select pgcombine.rebucket('wc', 2)",
        "select pgcombine_internal.begin_initialize('wc', true)",
        "select pgcombine.create_export('other', 'wc', existing => true)",
        "select pgcombine.drop_export('search')",
        "select pgcombine_internal.own_export('search', 'here')",
        "select pgcombine_internal.disown_export('search', 'there', 7)",
        "select pgcombine_internal.handoff_rebuild_queue('wc', '', pgcombine_internal.handoff_shape('wc'))",
        "select pgcombine.drop_queue('wc')",
    ],
)
def test_an_older_snapshot_is_refused(conn: psycopg.Connection, call: str, level: str) -> None:
    """With an older snapshot, the call would miss what passes commit while it waits for the buckets' locks."""
    make_export(conn)
    conn.execute(f"set default_transaction_isolation = '{level}'")
    with raises_state("PC003"):
        conn.execute(call.encode())


@pytest.mark.wc(buckets=1)
@pytest.mark.parametrize(
    "call",
    [
        "select pgcombine.retry_quarantined('wc')",
        "select pgcombine.drop_quarantined('wc')",
        "select pgcombine.create_export('other', 'wc')",
        "select pgcombine.drop_export('search', force => true)",
        "select pgcombine.drop_queue('wc', force => true)",
    ],
)
def test_snapshot_before_a_rebucket_fails_to_serialize(conn: psycopg.Connection, dsn: str, call: str) -> None:
    make_export(conn)
    with psycopg.connect(dsn) as old:
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.execute("select")
        conn.execute("select pgcombine.rebucket('wc', 8)")
        with pytest.raises(errors.SerializationFailure):
            old.execute(call.encode())


@pytest.mark.wc(buckets=1)
def test_rebucket_waits_for_a_delivery_before_it_locks_tables(conn: psycopg.Connection, dsn: str) -> None:
    """A destination may take its time, so writers and readers must go on meanwhile."""
    make_export(conn)
    add(conn, {"a": 1})
    combine_all(conn)
    with psycopg.connect(dsn) as delivering, psycopg.connect(dsn, autocommit=True) as second:
        delivering.execute("select pgcombine_internal.claim_export('search')")
        with in_background(lambda: second.execute("select pgcombine.rebucket('wc', 2)")):
            try:
                waits(conn, second.info.backend_pid)
                conn.execute("set lock_timeout = '2s'")
                add(conn, {"a": 1})
                assert values(conn) == {"a": 1}
            finally:
                delivering.rollback()
