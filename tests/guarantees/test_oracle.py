"""A queue compared with a dictionary: after random actions of several sessions, the values are the committed totals.

A state machine of hypothesis runs the actions. Writers have open transactions, savepoints and rollbacks. Passes run in
concurrent transactions, some with old snapshots. Limits change, queues pause, backends are killed, observers raise.
After each action ``wc_current`` has the committed totals, and each change's old value is the previous new value.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.errors import Flaky
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from psycopg import errors
from support.audit import Change, audit, audited, check, follow
from support.mutants import (
    one_mark_for_all_slices,
    open_forgotten,
    torn_keys,
    without_claim,
    without_mark,
)
from support.queues import Row, add, current, enqueue, enqueue_arrays, got, make_queue, one
from support.servers import embedded_only
from support.wait import eventually

WORDS = st.sampled_from(["a", "b", "c", "d", "e"])
UPDATES = st.lists(st.tuples(WORDS, st.integers(-3, 3)), min_size=1, max_size=12)
WRITERS = st.integers(0, 2)
PASSERS = st.integers(0, 2)
BUCKETS = st.integers(0, 1)
LEVELS = (
    psycopg.IsolationLevel.READ_COMMITTED,
    psycopg.IsolationLevel.REPEATABLE_READ,
    psycopg.IsolationLevel.REPEATABLE_READ,
)


@dataclass
class Writer:
    """A session that enqueues.

    ``pending`` has the sums of its open transaction's updates by word. ``saved`` has a copy of ``pending`` for each
    savepoint.
    """

    session: psycopg.Connection
    pending: Counter[str] = field(default_factory=Counter)
    saved: list[Counter[str]] = field(default_factory=list)


class Machine(RuleBasedStateMachine):
    dsn = ""
    timeout = 30.0  # seconds within which all updates must be combined at the end
    buckets = 2

    def __init__(self) -> None:
        super().__init__()
        # lock_timeout ends an action's wait for a transaction that an earlier action has left open
        self.conn = psycopg.connect(self.dsn, autocommit=True, options="-c lock_timeout=10s")
        self.writers = [Writer(self.connect()) for _ in range(3)]
        self.passers = [self.connect(level) for level in LEVELS]
        self.committed: Counter[str] = Counter()
        self.wrong = False

    def connect(self, level: psycopg.IsolationLevel | None = None) -> psycopg.Connection:
        session = psycopg.connect(self.dsn, options="-c lock_timeout=3s")
        session.isolation_level = level
        return session

    @initialize(pass_limit=st.sampled_from([1, 2, 5, 1000]), buckets=st.integers(1, 2))
    def create(self, pass_limit: int, buckets: int) -> None:
        self.buckets = buckets
        self.conn.execute("drop table if exists public.wc_audit, public.switch")
        self.conn.execute("select pgcombine.drop_queue(queue, force => true) from pgcombine.queue")
        # each segment of the log takes the updates of sixteen transaction ids at a time
        self.conn.execute("alter table pgcombine.queue alter segment_bits set default 4")
        make_queue(self.conn, buckets=buckets, pass_limit=pass_limit)
        audit(self.conn)
        self.conn.execute("create table public.switch (works int)")
        self.conn.execute("insert into public.switch values (1)")
        self.conn.execute(
            "select pgcombine.add_observer('wc', 'fragile', 'select 1 / works from changes, public.switch')"
        )

    # rules for writers

    @rule(writer=WRITERS, updates=UPDATES, how=st.sampled_from(["insert", "function", "arrays"]))
    def put(self, writer: int, updates: list[tuple[str, int]], how: str) -> None:
        it = self.writers[writer]
        if how == "arrays":
            enqueue_arrays(it.session, updates)
        elif how == "function":
            enqueue(it.session, [{"word": word, "n": n} for word, n in updates])
        else:
            add(it.session, updates)
        for word, n in updates:
            it.pending[word] += n

    @rule(updates=UPDATES)
    def put_and_commit(self, updates: list[tuple[str, int]]) -> None:
        add(self.conn, updates)
        for word, n in updates:
            self.committed[word] += n

    @rule(writer=WRITERS)
    def take_away(self, writer: int) -> None:
        """Enqueue updates that make the totals of up to two keys 0, as this writer sees them."""
        it = self.writers[writer]
        for word, n in list(current(it.session).items())[:2]:
            add(it.session, {word: -n})
            it.pending[word] -= n

    @rule(writer=WRITERS)
    def commit(self, writer: int) -> None:
        it = self.writers[writer]
        it.session.commit()
        self.committed.update(it.pending)
        it.pending, it.saved = Counter(), []

    @rule(writer=WRITERS)
    def roll_back(self, writer: int) -> None:
        it = self.writers[writer]
        it.session.rollback()
        it.pending, it.saved = Counter(), []

    @rule(writer=WRITERS)
    def savepoint(self, writer: int) -> None:
        it = self.writers[writer]
        it.session.execute(f"savepoint s{len(it.saved)}")
        it.saved.append(Counter(it.pending))

    @precondition(lambda self: any(it.saved for it in self.writers))
    @rule(data=st.data())
    def roll_back_to(self, data: st.DataObject) -> None:
        it = data.draw(st.sampled_from([it for it in self.writers if it.saved]))
        it.pending = it.saved.pop()
        it.session.execute(f"rollback to savepoint s{len(it.saved)}")

    @rule(writer=WRITERS)
    def kill_a_writer(self, writer: int) -> None:
        self.kill(self.writers[writer].session)
        self.writers[writer] = Writer(self.connect())

    # rules for passes

    @rule(passer=PASSERS)
    def take_snapshot(self, passer: int) -> None:
        """Run a query. Under repeatable read, later passes of the transaction use the snapshot of its first query."""
        self.passers[passer].execute("select count(*) from pgcombine.wc_updates")

    @rule(passer=PASSERS, bucket=BUCKETS, times=st.integers(1, 3))
    def combine(self, passer: int, bucket: int, times: int) -> None:
        session = self.passers[passer]
        try:
            for _ in range(times):
                session.execute("select pgcombine.combine('wc', %s)", (bucket % self.buckets,))
        except (errors.SerializationFailure, errors.DivisionByZero):
            session.rollback()

    @rule(passer=PASSERS)
    def commit_passes(self, passer: int) -> None:
        self.passers[passer].commit()

    @rule(passer=PASSERS)
    def roll_back_passes(self, passer: int) -> None:
        self.passers[passer].rollback()

    @rule(passer=PASSERS)
    def kill_a_passer(self, passer: int) -> None:
        self.kill(self.passers[passer])
        self.passers[passer] = self.connect(LEVELS[passer])

    @rule(bucket=BUCKETS)
    def complete_pass(self, bucket: int, mask: int | None = None, range_number: int | None = None) -> None:
        """Run a pass with a new snapshot. The values that it reports must be the committed totals of their keys."""
        before = self.audited()
        done = self.attempt(
            lambda: self.conn.execute(
                "select * from pgcombine_internal.run_pass('wc', %s, range_mask => %s, hash_range => %s)",
                (bucket % self.buckets, mask, range_number),
            ).fetchall()
        )
        changes = self.audited()[len(before) :]
        for change in changes:
            assert (change.new or 0) == self.committed[change.word], f"{change} lacks committed updates"
        assert len(changes) == sum(row[3] for row in done)

    @rule(bucket=BUCKETS, bits=st.integers(1, 2), range_number=st.integers(0, 3))
    def complete_hash_range(self, bucket: int, bits: int, range_number: int) -> None:
        """Run complete_pass over a hash range."""
        self.complete_pass(bucket, 2**bits - 1, range_number & (2**bits - 1))

    @rule(writer=WRITERS, updates=UPDATES)
    def commit_across_passes(self, writer: int, updates: list[tuple[str, int]]) -> None:
        """Run passes between a writer's updates and their commit."""
        self.put(writer, updates, "insert")
        self.put_and_commit(updates)
        for bucket in range(self.buckets):
            self.complete_pass(bucket)
        self.commit(writer)

    # other rules

    @rule()
    def reclaim(self) -> None:
        self.conn.execute("call pgcombine.reclaim('wc')")

    @rule(buckets=st.integers(1, 2))
    def rebucket(self, buckets: int) -> None:
        try:
            with self.conn.transaction():
                self.conn.execute("set local lock_timeout = '50ms'")
                self.conn.execute("select pgcombine.rebucket('wc', %s, timeout => '0')", (buckets,))
            self.buckets = buckets
        except psycopg.Error as error:
            if error.sqlstate not in ("PC006", "55P03"):  # another session has locked the tables or a bucket
                raise

    @rule(limit=st.sampled_from([1, 2, 5, 1000]))
    def change_limit(self, limit: int) -> None:
        self.conn.execute("update pgcombine.queue set pass_limit = %s", (limit,))

    @rule()
    def pause(self) -> None:
        self.conn.execute("select pgcombine.pause('wc')")
        assert self.conn.execute("select * from pgcombine.combine('wc')").fetchall() == []

    @rule()
    def resume(self) -> None:
        self.conn.execute("select pgcombine.resume('wc')")

    @rule(works=st.booleans())
    def flip_the_observer(self, works: bool) -> None:
        self.conn.execute("update public.switch set works = %s", (int(works),))

    @rule()
    def restart_an_observer(self) -> None:
        """Drop the observer and add it again, unless a pass in an open transaction keeps a bucket locked."""
        try:
            self.conn.execute("select pgcombine.drop_observer('wc', 'fragile')")
        except errors.LockNotAvailable:
            return
        self.conn.execute(
            "select pgcombine.add_observer('wc', 'fragile', 'select 1 / works from changes, public.switch')"
        )

    @invariant()
    def current_is_what_is_committed(self) -> None:
        if one(self.conn, "select count(*) from pgcombine.queue"):
            self.wrong = True  # false again if the assertions below succeed
            assert current(self.conn) == {word: n for word, n in self.committed.items() if n}
            assert current(self.conn) == got(self.conn, self.committed)
            changes = self.audited()
            assert follow(changes) == dict(self.conn.execute("select word, n from pgcombine.wc_values").fetchall())
            self.wrong = False

    def teardown(self) -> None:
        try:
            for it in self.writers:
                it.session.close()
            for session in self.passers:
                session.close()
            if not self.wrong and one(self.conn, "select count(*) from pgcombine.queue"):
                self.conn.execute("update public.switch set works = 1")
                self.conn.execute("select pgcombine.resume('wc')")
                eventually(self.drained, timeout=self.timeout, what="no update is pending")
                check(self.conn, self.committed)
        finally:
            self.conn.close()

    def drained(self) -> bool:
        self.conn.execute("select pgcombine.combine('wc', b) from generate_series(0, %s - 1) b", (self.buckets,))
        return not one(self.conn, "select pgcombine.backlog('wc')")

    def audited(self) -> list[Change]:
        return audited(self.conn)

    def attempt(self, call: Callable[[], list[Row]]) -> list[Row]:
        with suppress(errors.DivisionByZero):
            return call()
        return []

    def kill(self, session: psycopg.Connection) -> None:
        pid = session.info.backend_pid
        self.conn.execute("select pg_terminate_backend(%s)", (pid,))
        gone = "select not exists (select from pg_stat_activity where pid = %s)"
        eventually(lambda: one(self.conn, gone, pid), what="the backend is gone")
        session.close()


def run(dsn: str, *, timeout: float = 30.0, **options: Any) -> None:
    machine = type("Here", (Machine,), {"dsn": dsn, "timeout": timeout})
    suppressed = list(HealthCheck)
    chosen = settings(stateful_step_count=40, deadline=None, database=None, suppress_health_check=suppressed, **options)
    run_state_machine_as_test(machine, settings=chosen)  # type: ignore[no-untyped-call]


@pytest.mark.timeout(600)
def test_queue_equals_a_dictionary(dsn: str) -> None:
    run(dsn, max_examples=6)


@pytest.mark.slow
@embedded_only
@pytest.mark.timeout(600)
def test_queue_equals_a_dictionary_in_a_longer_run(dsn: str) -> None:
    run(dsn, max_examples=40)


MUTANTS = [without_claim, without_mark, open_forgotten, one_mark_for_all_slices, torn_keys]


@pytest.mark.slow
@embedded_only
@pytest.mark.timeout(600)
@pytest.mark.parametrize("mutant", MUTANTS)
def test_machine_detects_mutants(
    conn: psycopg.Connection, dsn: str, mutant: Callable[[psycopg.Connection], None]
) -> None:
    mutant(conn)
    with pytest.raises(DETECTED):
        run(dsn, **UNTIL_DETECTED)


# Sessions don't meet at the same moments in each run, so an error may not occur again when hypothesis repeats the run.
DETECTED = (AssertionError, psycopg.Error, Flaky)
UNTIL_DETECTED: dict[str, Any] = {"timeout": 1.0, "max_examples": 200, "derandomize": True, "phases": [Phase.generate]}
