"""Run at once what uses the log, so that many kinds of transactions overlap; then count the updates.

``python -m tests.chaos.log --seconds 3600`` starts its own embedded server (or uses the database of ``--dsn``, which
must have the schema) and runs at once, each in its own sessions,

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
that leads to its value, and ``verify`` must report no problem. The program prints one JSON line. Its status is 1 if one
of these checks or a thread of the program fails.
"""

from __future__ import annotations

import argparse
import json
import random
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg
from psycopg import errors

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import eventually, start_cli
from support.audit import audit, audited, follow
from support.queues import add, combine_all, current, enqueue_arrays, make_queue, one, rows, values
from support.servers import embedded, with_database

WRITERS, PASSERS, READERS = 6, 3, 2
WORDS = [f"w{i}" for i in range(40)]
# After its planned end a run goes on until each event in ``happen`` has been counted, but for at most this many
# seconds.
MORE_SECONDS = 300.0
HAPPEN = ["committed", "rolled back", "prepared", "passes", "conflicts", "reads", "truncated", "workers killed"]
LEVELS = [psycopg.IsolationLevel.READ_COMMITTED, psycopg.IsolationLevel.REPEATABLE_READ]
# Callers retry after these errors, which come from conflicts and from tables that rebucket has replaced.
AGAIN = (errors.SerializationFailure, errors.DeadlockDetected)


@dataclass
class Outcome:
    seed: int
    seconds: float
    figures: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)


class Chaos:
    def __init__(self, dsn: str, seed: int, seconds: float, happen: Sequence[str] = ()) -> None:
        self.dsn = dsn
        self.happen = happen
        self.outcome = Outcome(seed, seconds)
        self.committed: Counter[str] = Counter()
        self._end = time.monotonic() + seconds
        self._lock = threading.Lock()
        self._lull = threading.Event()  # while set, writers and readers rest, so that segments can be reclaimed

    @property
    def over(self) -> bool:
        """Whether the run is to end: ``outcome.wrong`` isn't empty, or the planned end has passed.

        While an event in ``happen`` hasn't been counted, the run goes on for up to MORE_SECONDS after its planned end.
        """
        more = 0 if all(map(self.outcome.figures.get, self.happen)) else MORE_SECONDS
        return bool(self.outcome.wrong) or time.monotonic() > self._end + more

    def count(self, figure: str, number: int = 1) -> None:
        with self._lock:
            self.outcome.figures[figure] += number

    def wait(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while not self.over and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.2))

    def session(self, *, autocommit: bool = False) -> psycopg.Connection:
        return psycopg.connect(self.dsn, autocommit=autocommit)

    def run(self) -> Outcome:
        with self.session(autocommit=True) as conn:
            # A segment covers 16, 64 or 256 transaction ids at a time, so that the log reuses segments often. With 16
            # ids, it depends on chance whether a segment can be reclaimed.
            bits = random.Random(self.outcome.seed).choice([4, 6, 8])
            conn.execute(f"alter table pgcombine.queue alter column segment_bits set default {bits}")
            make_queue(conn, buckets=2, pass_limit=60, notify=False)
            audit(conn)
            tasks: list[Callable[[random.Random], None]] = [
                *[self.write] * WRITERS,
                *[self.combine] * PASSERS,
                *[self.read] * READERS,
                self.reclaim,
                self.rebucket,
                self.work,
            ]
            threads = [threading.Thread(target=self.guarded, args=(task, n)) for n, task in enumerate(tasks)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.check(conn)
        return self.outcome

    def guarded(self, task: Callable[[random.Random], None], number: int) -> None:
        try:
            task(random.Random(self.outcome.seed * 100 + number))
        except BaseException as error:
            self.outcome.wrong.append(f"{task.__name__}: {error!r}")

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
                        gid = f"{name}-{self.outcome.figures['prepared']}"
                        conn.execute(f"prepare transaction '{gid}'")
                        conn.rollback()  # without effect: `prepare transaction` has ended the transaction
                        prepared.append((gid, updates))
                        self.count("prepared")
                    else:
                        conn.commit()
                        self.count("committed")
                        self.commit(updates)
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
            self.commit(updates)

    def commit(self, updates: Counter[str]) -> None:
        with self._lock:
            for word, n in updates.items():
                self.committed[word] += n

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
                        self.outcome.wrong.append(f"a reader saw {first}, then {second}")
                    together = Counter(first[2])
                    for word, n in first[1]:
                        together[word] += n
                    if {word: n for word, n in together.items() if n} != first[0]:
                        self.outcome.wrong.append(f"wc_current isn't wc_values with wc_pending: {first}")
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
        if self.outcome.wrong:
            return
        expected = {word: n for word, n in self.committed.items() if n}
        if current(conn) != expected:
            self.outcome.wrong.append(f"wc_current is {current(conn)}, not {expected}")
        try:
            combine_all(conn)
        except AssertionError as error:
            self.outcome.wrong.append(str(error))
        found = values(conn)
        differ = {word: (expected.get(word), found.get(word)) for word in expected | found}
        differ = {word: pair for word, pair in differ.items() if pair[0] != pair[1]}
        if differ:
            self.outcome.wrong.append(f"values differ (committed, found): {differ}")
        try:
            if follow(audited(conn)) != found:
                self.outcome.wrong.append("the chains of changes don't lead to the values")
        except AssertionError as error:
            self.outcome.wrong.append(f"a chain breaks: {error}")
        problems = [problem for (problem,) in conn.execute("select problem from pgcombine.verify('wc')")]
        self.outcome.wrong += problems


class RollBack(Exception):
    """Raised to roll a savepoint back."""


@contextmanager
def at_top() -> Iterator[None]:
    """A block without a savepoint."""
    yield


def run(dsn: str, seconds: float, seed: int, happen: Sequence[str] = ()) -> Outcome:
    return Chaos(dsn, seed, seconds, happen).run()


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--dsn")
    arguments = parser.parse_args()
    if arguments.dsn:
        outcome = run(arguments.dsn, arguments.seconds, arguments.seed)
    else:
        from pgcombine import schema

        with (
            tempfile.TemporaryDirectory(prefix="chaos-") as home,
            embedded(Path(home), {"fsync": "off", "max_prepared_transactions": "20"}) as server,
        ):
            with psycopg.connect(server, autocommit=True) as conn:
                conn.execute("create database chaos")
            schema.upgrade(with_database(server, "chaos"))
            outcome = run(with_database(server, "chaos"), arguments.seconds, arguments.seed)
    print(json.dumps(vars(outcome)))
    return 1 if outcome.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
