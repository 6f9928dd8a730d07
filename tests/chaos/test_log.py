"""Run at once what uses the log, so that many kinds of transactions overlap; then count the updates.

Each in its own sessions, there run at once

- writers under read committed and repeatable read: with savepoints, rollbacks, ids that are drawn early, prepared
  transactions, and updates in arrays; some transactions stay open for seconds;
- sessions that run passes under read committed and repeatable read: over any bucket, a given bucket, or hash ranges of
  the keys; some roll back;
- one worker after another, each of which is killed with SIGKILL after up to three seconds;
- a session that reclaims segments and trims the journal, and one that changes the number of buckets;
- readers under repeatable read, which read the current values, the values and the pending updates twice in a snapshot.
  Both reads must be equal, and the values with the pending updates must be the current values.

Now and then all writers and readers pause, since otherwise their overlapping transactions would never let a segment be
reclaimed. Segments have few ids, so the log often reuses segments. At the end the current values must be the
sums over all committed updates, and so must the values after further passes. The changes of each key must be a chain
that leads to its value, and ``verify`` must report no problem. ``PGCOMBINE_TEST_CHAOS_SECONDS`` sets the length of the
longer run.
"""

from __future__ import annotations

import random
import subprocess
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress

import psycopg
import pytest
from psycopg import errors
from support import eventually, start_cli
from support.audit import Ledger, Run, audit, differences, problems, seconds
from support.mutants import beyond_the_mark, late_mark, open_forgotten
from support.queues import add, combine_all, current, enqueue_arrays, make_queue, one, rows, values

WRITERS, PASSERS, READERS = 6, 3, 2
WORDS = [f"w{i}" for i in range(40)]
HAPPEN = ["committed", "rolled back", "prepared", "passes", "conflicts", "reads", "truncated", "workers killed"]
LEVELS = [psycopg.IsolationLevel.READ_COMMITTED, psycopg.IsolationLevel.REPEATABLE_READ]
# Callers retry after these errors, which come from conflicts and from tables that rebucket has replaced.
AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)


class Chaos(Run):
    def __init__(self, dsn: str, seconds: float, happen: Sequence[str] = ()) -> None:
        super().__init__(seconds, happen)
        self.dsn = dsn
        self.ledger = Ledger()
        self._lull = threading.Event()  # while set, writers and readers rest, so that segments can be reclaimed

    def session(self, *, autocommit: bool = False) -> psycopg.Connection:
        return psycopg.connect(self.dsn, autocommit=autocommit)

    def chaos(self) -> Chaos:
        with self.session(autocommit=True) as conn:
            # A segment covers 16, 64 or 256 transaction ids at a time, so that the log reuses segments often. With 16
            # ids, it depends on chance whether a segment can be reclaimed.
            bits = random.Random(self.seed).choice([4, 6, 8])
            conn.execute(f"alter table pgcombine.queue alter column segment_bits set default {bits}")
            make_queue(conn, buckets=2, pass_limit=60, notify=False)
            audit(conn)
            many = [*[self.write] * WRITERS, *[self.combine] * PASSERS, *[self.read] * READERS]
            self.run(*many, self.reclaim, self.rebucket, self.work)
            if not self.wrong:
                self.check(conn)
        return self

    def write(self, chance: random.Random) -> None:
        prepared: list[tuple[str, Counter[str]]] = []
        with self.session() as conn:
            name = f"{conn.info.dbname}-{conn.info.backend_pid}"
            while not self.over or prepared:
                if self._lull.is_set() and not prepared and not self.over:
                    time.sleep(0.02)
                    continue
                if prepared and (self.over or self._lull.is_set() or chance.random() < 0.3):
                    self.end_prepared(conn, *prepared.pop(0), commit=chance.random() < 0.7)
                    continue
                conn.isolation_level = chance.choice(LEVELS)
                try:
                    updates = self.transaction(conn, chance)
                    end = chance.random()
                    if end < 0.1:
                        conn.rollback()
                        self.count("rolled back")
                    elif end < 0.13 and not prepared:
                        gid = f"{name}-{self.figures['prepared']}"
                        conn.execute(f"prepare transaction '{gid}'")
                        conn.rollback()  # without effect: `prepare transaction` has ended the transaction
                        prepared.append((gid, updates))
                        self.count("prepared")
                    else:
                        conn.commit()
                        self.count("committed")
                        self.ledger.acknowledge(updates.items())
                except AGAIN:
                    conn.rollback()
                    self.count("writers' conflicts")

    def transaction(self, conn: psycopg.Connection, chance: random.Random) -> Counter[str]:
        updates: Counter[str] = Counter()
        # Begin the transaction. Otherwise the first ``conn.transaction()`` would begin it and set no savepoint.
        conn.execute("select 1")
        # Draw the id early: when this transaction writes, other transactions may have drawn higher ids.
        if chance.random() < 0.2:
            conn.execute("select txid_current()")
            time.sleep(chance.random() * 0.2)
        for _ in range(chance.randrange(1, 5)):
            some = [(chance.choice(WORDS), chance.choice([-1, 1, 2])) for _ in range(chance.choice([1, 3, 30]))]
            kept = chance.random()
            with suppress(RollBack), conn.transaction() if kept < 0.4 else at_top():
                (enqueue_arrays if chance.random() < 0.5 else add)(conn, some)
                if kept < 0.2:
                    raise RollBack
                for word, n in some:
                    updates[word] += n
        if chance.random() < 0.004:
            time.sleep(chance.random() * 3)
            self.count("long")
        return updates

    def end_prepared(self, conn: psycopg.Connection, gid: str, updates: Counter[str], *, commit: bool) -> None:
        conn.rollback()
        conn.autocommit = True
        conn.execute(f"{'commit' if commit else 'rollback'} prepared '{gid}'")
        conn.autocommit = False
        if commit:
            self.ledger.acknowledge(updates.items())

    def combine(self, chance: random.Random) -> None:
        with self.session() as conn:
            while not self.over:
                conn.isolation_level = chance.choice(LEVELS)
                bucket = chance.choice([None, 0, 1])
                mask = chance.choice([None, None, 1, 7]) if bucket is not None else None
                part = None if mask is None else chance.randrange(mask + 1)
                if chance.random() < 0.2:
                    conn.execute("select 1 from pgcombine.queue")
                    time.sleep(chance.random() * 0.05)
                try:
                    found = conn.execute(
                        "select updates from pgcombine_internal.run_pass('wc', %s, range_mask => %s, hash_range => %s)",
                        (bucket, mask, part),
                    ).fetchall()
                    if chance.random() < 0.1:
                        conn.rollback()
                    else:
                        conn.commit()
                        self.count("passes", len(found))
                        self.count("combined", sum(n for (n,) in found))
                except AGAIN:
                    conn.rollback()
                    self.count("conflicts")
                except psycopg.Error as error:
                    conn.rollback()
                    if error.sqlstate != "PC003":  # PC003: rebucket has removed the bucket
                        raise

    def work(self, chance: random.Random) -> None:
        working = (
            "select exists (select from pg_stat_activity "
            "where datname = current_database() and application_name like 'pgcombine worker%')"
        )
        with self.session(autocommit=True) as conn:
            while not self.over:
                with start_cli("worker", "--dsn", self.dsn, stdout=subprocess.DEVNULL) as worker:
                    while not self.over and not one(conn, working):
                        time.sleep(0.05)
                    self.wait(chance.random() * 3)
                    worker.kill()
                    self.count("workers killed")
            eventually(lambda: not one(conn, working), what="the sessions of the last worker end")

    def read(self, chance: random.Random) -> None:
        with self.session() as conn:
            conn.isolation_level = LEVELS[1]
            while not self.over:
                if self._lull.is_set():
                    time.sleep(0.02)
                    continue
                try:
                    first = current(conn), rows(conn, "wc_pending"), values(conn)
                    time.sleep(chance.random() * 0.1)
                    second = current(conn), rows(conn, "wc_pending"), values(conn)
                    if first != second:
                        self.fail(f"a reader saw {first}, then {second}")
                    together = Counter(first[2])
                    for word, n in first[1]:
                        together[word] += n
                    if {word: n for word, n in together.items() if n} != first[0]:
                        self.fail(f"wc_current isn't wc_values with wc_pending: {first}")
                    self.count("reads")
                except AGAIN:
                    self.count("readers' conflicts")
                conn.rollback()

    def reclaim(self, chance: random.Random) -> None:
        tables = """
            select oid::bigint, relfilenode::bigint from pg_class
            where starts_with(relname, 'wc_updates_b') and relkind = 'r' and relfilenode <> oid
        """
        truncated: set[tuple[int, int]] = set()
        with self.session(autocommit=True) as conn:
            while not self.over:
                fresh: set[tuple[int, int]] = set()
                with suppress(*AGAIN):
                    conn.execute("call pgcombine.reclaim()")
                    conn.execute(
                        "update pgcombine.pass set ended = ended - interval '1 h' where ended < now() - interval '5 s'"
                    )
                    conn.execute("select pgcombine_internal.trim_journal()")
                    self.count("looks for what can be reclaimed")
                    fresh = set(conn.execute(tables).fetchall()) - truncated
                    self.count("truncated", len(fresh))
                    truncated |= fresh
                if self._lull.is_set() and (fresh or chance.random() < 0.01):
                    self._lull.clear()
                elif chance.random() < 0.05:
                    self._lull.set()
                time.sleep(chance.random() * 0.05)

    def rebucket(self, chance: random.Random) -> None:
        with self.session(autocommit=True) as conn:
            while not self.over:
                self.wait(chance.random() * 4)
                try:
                    conn.execute("select pgcombine.rebucket('wc', %s, timeout => '1 s')", (chance.choice([1, 2, 4]),))
                    self.count("rebucketed")
                except AGAIN:
                    self.count("rebucket's conflicts")
                except psycopg.Error as error:
                    if error.sqlstate != "PC006":  # PC006: rebucket didn't get its lock in time
                        raise
                    self.count("rebucket gave up")

    def check(self, conn: psycopg.Connection) -> None:
        self.wrong += differences("wc_current", self.ledger.sums, current(conn))
        try:
            combine_all(conn)
        except AssertionError as error:
            self.fail(str(error))
        self.wrong += problems(conn, self.ledger.sums)


class RollBack(Exception):
    """Raised to roll a savepoint back."""


@contextmanager
def at_top() -> Iterator[None]:
    """A block without a savepoint."""
    yield


@pytest.mark.timeout(300)
def test_updates_count_once_when_everything_overlaps(dsn: str) -> None:
    Chaos(dsn, 2).chaos().succeeded()


@pytest.mark.slow
@pytest.mark.timeout(3900)
def test_updates_count_once_in_a_longer_run(dsn: str) -> None:
    Chaos(dsn, seconds(30), HAPPEN).chaos().succeeded()


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", [beyond_the_mark, late_mark, open_forgotten])
def test_run_finds_a_wrong_interval(
    conn: psycopg.Connection, dsn: str, mutant: Callable[[psycopg.Connection], None]
) -> None:
    mutant(conn)
    assert Chaos(dsn, 15).chaos().wrong
