"""Hinted handoff under random faults and lost servers: no write counts twice, and acknowledged writes are kept.

``PGCOMBINE_TEST_CHAOS_SECONDS`` sets the length of the run, and ``PGCOMBINE_TEST_CHAOS_SERVERS=5,3`` the numbers of
servers and of those that hold a key (3 and 3 by default). At once there run

- writers, each of which tries the coordinators in its own random order. If all servers hold all keys, some writers name
  only some of the servers, and go on naming removed ones. A write has a random consistency level. Most failed writes
  are retried, with the same token. Some tokens come from clocks that are hours wrong;
- readers at random consistency levels;
- a replayer and a combining session at each server;
- faults: a server is killed and started again, hangs for seconds, refuses connections, is cut off in one direction or
  both, or its answers are lost;
- now and then, the loss of a server with its data. The other servers remove the lost server and are repaired; an empty
  server takes its place and is rebuilt. The next loss comes when all servers are equal again.

These statements must be true:

- an acknowledged write is there, unless each server that acknowledged it was lost before all servers were equal;
- a reading that is ``complete`` has all writes that were acknowledged before it began, except such lost ones;
- no reading has more than was written;
- a write of which every attempt raised UnavailableError is on no server;
- at the end each write that is on a server is on all servers that hold its keys, and counts once on each of them; no
  hints and no retained payloads are left.

``pgcombine/docs/several-servers.md`` explains hinted handoff.
"""

from __future__ import annotations

import logging
import os
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TypeVar
from uuid import UUID

import psycopg
import pytest
from support.audit import Run, differences, seconds
from support.clusters import Cluster, dsns, empty, hints, started, token_of, tokens
from support.homes import Filled
from support.queues import combine_all, one, values
from support.wait import eventually

from pgcombine import Replayer, ReplicatedQueue
from pgcombine.errors import ConnectError, IndeterminateError, PgCombineError, QueueNotFoundError, UnavailableError
from pgcombine.handoff import operations, rebuilding, repairing
from pgcombine.handoff.connections import address

WRITERS, READERS = 3, 2
WORDS = [f"w{i}" for i in range(40)]
LEVELS = ["ONE", "QUORUM", "ALL"]
TRIES = 12
TIMEOUT = 1.5  # the timeout of a call, in seconds
CREATED = 0.5  # the probability that an empty server gets the queue before its rebuild
HAPPEN = [
    *("acknowledged at ONE", "acknowledged at QUORUM", "acknowledged at ALL", "retries", "indeterminate"),
    *("gets complete", "gets incomplete", "losses", "recoveries"),
]
RECOVERY_SECONDS = 240.0  # a recovery from a loss fails after this many seconds, and so does the final repair
DISTURBED_SECONDS = 45.0  # after this many seconds of a recovery, no new fault begins until the recovery ends
SESSIONS = """
    select pid, state, concat_ws(':', wait_event_type, wait_event), pg_blocking_pids(pid)::text,
           round(extract(epoch from clock_timestamp() - xact_start)),
           round(extract(epoch from clock_timestamp() - query_start)),
           left(query, 120)
    from pg_stat_activity
    where datname = current_database() and xact_start is not null and pid <> pg_backend_pid()
    order by xact_start
"""
MARKS = """
    select name, needs_repair, by_tokens from pgcombine.handoff_replica where needs_repair is not null
    union all
    select name, needs_repair, null from pgcombine.handoff_server where needs_repair is not null
"""
KEPT = "select count(*) from pgcombine.handoff_retained"
STATES = [  # queries whose rows help to tell why a retained write isn't removed
    "select (select id from pgcombine.handoff_server), queue, servers, placed, replicas from pgcombine.handoff_queue",
    "select name, r.id, d.state, d.reason, needs_repair, (select count(*) from pgcombine.handoff_hint where "
    "destination = name) from pgcombine.handoff_replica r join pgcombine.destination d using (name) order by 1",
    "select token, coordinator, servers, now() - since, pgcombine_internal.handoff_time(token) - since, "
    "count(*) over () from pgcombine.handoff_retained order by since limit 3",
]

T = TypeVar("T")


@dataclass(eq=False)
class Write:
    """One write.

    ``acked`` has the servers that acknowledged the write or are known to have it, each with the number of times that
    the server had been lost by then.
    """

    token: UUID
    rows: list[tuple[str, int]]
    level: str
    acked: set[tuple[str, int]] = field(default_factory=set)
    taken: bool = False  # whether a server may have taken the write


class Ledger:
    """The writes so far, and for each word the least and the most that a complete reading may count."""

    def __init__(self, names: Iterable[str]) -> None:
        self.lost = dict.fromkeys(names, 0)  # how often each server was lost
        self.writes: dict[UUID, Write] = {}
        self._least: Counter[str] = Counter()
        self._most: Counter[str] = Counter()
        self._demoted: Counter[str] = Counter()
        self._lock = threading.Lock()

    def begin(self, write: Write) -> None:
        with self._lock:
            self.writes[write.token] = write
            for word, n in write.rows:
                self._most[word] += n

    def losses(self) -> dict[str, int]:
        with self._lock:
            return dict(self.lost)

    def certain(self, write: Write) -> bool:
        return any(self.lost[name] == losses for name, losses in write.acked)

    def acknowledge(self, write: Write, acked: Iterable[str], losses: Mapping[str, int]) -> None:
        """Record the servers that acknowledged the write.

        ``losses`` has the number of losses of each server before the attempt.
        """
        with self._lock:
            before = self.certain(write)
            write.acked |= {(name, losses[name]) for name in acked}
            if not before and self.certain(write):
                for word, n in write.rows:
                    self._least[word] += n

    def lose(self, name: str) -> None:
        """Record a loss of the server. Its earlier acknowledgements no longer count.

        Call this when no write reaches the server any more, before its data is removed.
        """
        with self._lock:
            before = [write for write in self.writes.values() if self.certain(write)]
            self.lost[name] += 1
            for write in before:
                if not self.certain(write):
                    for word, n in write.rows:
                        self._least[word] -= n
                        self._demoted[word] += n

    def acknowledged(self) -> list[Write]:
        with self._lock:
            return [write for write in self.writes.values() if self.certain(write)]

    def equal(self, writes: Iterable[Write]) -> None:
        """Record that all servers have these writes now."""
        with self._lock:
            for write in writes:
                write.acked |= set(self.lost.items())

    def bounds(self) -> tuple[Counter[str], Counter[str], Counter[str]]:
        with self._lock:
            return self._least.copy(), self._most.copy(), self._demoted.copy()


class Chaos(Run):
    def __init__(self, clusters: Mapping[str, Cluster], replicas: int, seconds: float) -> None:
        super().__init__(seconds, HAPPEN, more=600.0)
        self.clusters = dict(clusters)
        self.replicas = replicas
        self.ledger = Ledger(clusters)
        # a server's lock is held while the server is disturbed, or is emptied and the other servers are repaired
        self._busy = {name: threading.Lock() for name in clusters}
        self._calm = threading.Event()  # set while no fault may begin
        self._stop = threading.Event()  # ends the replayers and the combining sessions

    def fail(self, what: str) -> None:
        super().fail(what)
        self.tell(f"WRONG {what}")

    def tell(self, what: str) -> None:
        logging.getLogger("chaos").info("%7.2f %s", time.monotonic() - self.began, what)

    def chaos(self) -> Chaos:
        with ReplicatedQueue(dsns(self.clusters), "wc", replicas=self.replicas, timeout=30.0) as queue:
            first = random.Random(self.seed)  # this write tells each server which others there are
            self._write(queue, Write(token_of(timedelta()), [(WORDS[0], 1)], "ALL"), first)
        each = [task for name in self.clusters for task in (partial(self.replay, name), partial(self.combine, name))]
        with self.beside(*each):
            try:
                self.run(*[self.write] * WRITERS, *[self.read] * READERS, self.disturb, self.lose)
                if not self.wrong:
                    self.guarded(self.check, 0)
            finally:
                self._stop.set()
        return self

    # threads that run until the end

    def replay(self, name: str, _: random.Random) -> None:
        while not self._stop.is_set():
            with suppress(psycopg.Error, ConnectError):
                Replayer(self.clusters[name].direct, poll=0.3, min_age=1, timeout=3).run(self._stop)
            self._stop.wait(0.3)

    def combine(self, name: str, _: random.Random) -> None:
        while not self._stop.is_set():
            with suppress(psycopg.Error), self.clusters[name].connect() as conn:
                while not self._stop.wait(0.5):
                    if one(conn, "select exists (select from pgcombine.queue)"):
                        combine_all(conn)
            self._stop.wait(0.5)

    # writers and readers

    def write(self, chance: random.Random) -> None:
        servers = dsns(self.clusters)
        while not self.over:
            every = self.replicas < len(servers) or chance.random() < 0.5
            # at least two: of a write that names one server alone, nothing is kept for others
            order = chance.sample(sorted(servers), len(servers) if every else chance.randrange(2, len(servers)))
            self.count("lists of all servers" if every else "lists of some servers")
            replicas = self.replicas if self.replicas < len(servers) else None
            named = {name: servers[name] for name in order}
            with ReplicatedQueue(named, "wc", replicas=replicas, timeout=TIMEOUT) as queue:
                self._writes(queue, chance)

    def _writes(self, queue: ReplicatedQueue, chance: random.Random) -> None:
        for _ in range(chance.randrange(1, 40)):
            if not self.over:
                words = chance.sample(WORDS, chance.randrange(1, 4))
                hours = chance.choice([-100, -5, 5, 23]) if chance.random() < 0.05 else 0
                rows = [(word, chance.randrange(1, 4)) for word in words]
                self._write(queue, Write(token_of(timedelta(hours=hours)), rows, chance.choice(LEVELS)), chance)
                time.sleep(chance.random() * 0.1)

    def _write(self, queue: ReplicatedQueue, write: Write, chance: random.Random) -> None:
        self.ledger.begin(write)
        self.count("writes")
        for number in range(1 if chance.random() < 0.1 else TRIES):
            if number:
                if self.over:
                    break
                self.count("retries")
                time.sleep(chance.random() * 0.3)
            losses = self.ledger.losses()
            try:
                receipt = queue.enqueue(write.rows, write.token, level=write.level)
            except UnavailableError:
                self.count("unavailable")
            except QueueNotFoundError:
                self.count("servers named have lost the queue")
            except IndeterminateError as error:
                write.taken = True
                self.ledger.acknowledge(write, error.acked, losses)
                self.count("indeterminate")
            else:
                write.taken = True
                self.ledger.acknowledge(write, receipt.acked, losses)
                self.count(f"acknowledged at {write.level}")
                return
        self.count("writes given up")

    def read(self, chance: random.Random) -> None:
        with ReplicatedQueue(dsns(self.clusters), "wc", replicas=self.replicas, timeout=TIMEOUT) as queue:
            while not self.over:
                level = chance.choice(LEVELS)
                least, _, demoted = self.ledger.bounds()
                began = time.monotonic() - self.began
                try:
                    reading = queue.get(WORDS, level=level)
                except UnavailableError:
                    self.count("gets unavailable")
                    time.sleep(chance.random() * 0.3)
                    continue
                _, most, demoted_since = self.ledger.bounds()
                self.count(f"gets {'complete' if reading.complete else 'incomplete'}")
                found = {word: reading.values.get(word, 0) for word in WORDS}
                more = {word: (n, most[word]) for word, n in found.items() if n > most[word]}
                less = {
                    word: (n, expected)
                    for word, n in found.items()
                    if n < (expected := least[word] - demoted_since[word] + demoted[word])
                }
                if more:
                    self.fail(f"a get at {level} has more than was written (found, written): {more}; {reading}")
                if less and reading.complete:
                    facts = f"(found, acknowledged): {less}; {reading}"
                    self.fail(f"a complete get at {level}, begun at {began:.2f} s, lacks {facts}")
                time.sleep(chance.random() * 0.2)

    # faults

    def disturb(self, chance: random.Random) -> None:
        faults = [self._kill, self._pause, self._one_way, self._black_hole, self._refuse, self._lose_replies]
        while not self.over:
            self.wait(chance.random() * 3)
            name = chance.choice(sorted(self.clusters))
            if self._calm.is_set() or not self._busy[name].acquire(blocking=False):
                continue
            try:
                fault = chance.choice(faults)
                self.tell(f"{fault.__name__} {name}")
                fault(self.clusters[name], chance)
                self.tell(f"{name} is well")
            finally:
                self._busy[name].release()

    def _kill(self, cluster: Cluster, chance: random.Random) -> None:
        cluster.kill()
        self.count("kills")
        self.wait(chance.random() * 3)
        cluster.start()

    def _pause(self, cluster: Cluster, chance: random.Random) -> None:
        cluster.freeze()
        self.count("pauses")
        self.wait(chance.random() * 4)
        cluster.thaw()

    def _one_way(self, cluster: Cluster, chance: random.Random) -> None:
        setattr(cluster.proxy, chance.choice(["to_server", "to_client"]), False)
        self._hang(cluster, chance, "one-way hangs")

    def _black_hole(self, cluster: Cluster, chance: random.Random) -> None:
        cluster.proxy.black_hole()
        self._hang(cluster, chance, "black holes")

    def _refuse(self, cluster: Cluster, chance: random.Random) -> None:
        cluster.cut_off()
        self._hang(cluster, chance, "refusals")

    def _lose_replies(self, cluster: Cluster, chance: random.Random) -> None:
        cluster.proxy.lose_reply_to = chance.choice([b"handoff_accept", b"handoff_apply"])
        self._hang(cluster, chance, "lost replies")

    def _hang(self, cluster: Cluster, chance: random.Random, figure: str) -> None:
        self.count(figure)
        self.wait(chance.random() * 4)
        cluster.proxy.heal()

    # the loss of a server

    def lose(self, chance: random.Random) -> None:
        time.sleep(min(chance.uniform(8, 14), self.seconds / 4))
        while not self.over:
            name = chance.choice(sorted(self.clusters))
            calm = chance.random() < 0.5
            self._lose(name, chance, calm=calm)
            if self.wrong:
                return
            self.wait(chance.uniform(15, 25))

    def _lose(self, name: str, chance: random.Random, *, calm: bool) -> None:
        lost, others = self.clusters[name], [one for other, one in self.clusters.items() if other != name]
        deadline = time.monotonic() + RECOVERY_SECONDS
        if calm:
            self._calm.set()
        with self._busy[name]:
            self.tell(f"{name} is lost ({'calm' if calm else 'faults go on'})")
            lost.cut_off()
            self.ledger.lose(name)  # no new write reaches the server any more
            empty(lost)
            self.count("losses")
            if chance.random() < CREATED:
                create(lost)
            time.sleep(chance.random() * 2)
            for other in others:
                self.insist(f"remove {name} at {other.name}", lambda other=other: self._remove(other, name), deadline)
            before = self.repair(chance.choice(others), deadline)
            self.tell(f"repaired without {name}: {before}")
            lost.proxy.heal()
        while True:
            self._repaired(others, chance, deadline, {name})
            done = self.insist(f"rebuild {name}", lambda: self._rebuild(chance.choice(others), name), deadline)
            self.tell(f"rebuilt: {done}")
            self.count("rebuilds")
            if not done.unreached and not done.unrepaired:
                break
        acknowledged = self.ledger.acknowledged()
        self._repaired(list(self.clusters.values()), chance, deadline, set())
        self.ledger.equal(acknowledged)
        self.tell("all are equal")
        self.count("recoveries")
        self._calm.clear()

    def _remove(self, at: Cluster, name: str) -> None:
        with at.connect() as conn:
            if one(conn, "select count(*) from pgcombine.handoff_replica where name = %s", name):
                # one transaction, so that no writer makes a hint for the server between the two calls
                with conn.transaction():
                    conn.execute("select from pgcombine.handoff_replica where name = %s for update", (name,))
                    operations.truncate(conn, name, "it is lost")
                    operations.remove(conn, name, timeout=1)

    def _rebuild(self, at: Cluster, name: str) -> rebuilding.Rebuilt:
        with at.connect() as conn:
            if not one(conn, "select count(*) from pgcombine.handoff_replica where name = %s", name):
                operations.add(conn, name, address(self.clusters[name].dsn))  # no writer has registered the server yet
            # a writer that names only this server may have come since the last repair
            repairing.repair(conn, at.direct, timeout=60)
            sources = [at.name] if self.replicas == len(self.clusters) else []
            return rebuilding.rebuild(conn, at.direct, name, sources, timeout=30)

    def repair(self, at: Cluster, deadline: float) -> repairing.Repaired:
        def repair() -> repairing.Repaired:
            with at.connect() as conn:
                return repairing.repair(conn, at.direct, timeout=60)

        done = self.insist(f"repair at {at.name}", repair, deadline)
        self.count("repairs")
        self.count("writes handed on by repair", sum(done.delivered.values()))
        return done

    def _repaired(self, servers: list[Cluster], chance: random.Random, deadline: float, anew: set[str]) -> None:
        """Repair until all servers are reached, and no server lacks a write or needs repair.

        The servers in ``anew`` may lack writes and need repair, since they are empty until a rebuild.
        """
        while True:
            done = self.repair(chance.choice(servers), deadline)
            self.tell(f"repaired: {summary(done)}")
            rest = (done.lacking.keys() - anew, done.unreached.keys(), set(done.marked) - anew)
            if not any(rest):
                return
            self._rest(deadline, f"servers are not equal: {done}")

    def insist(self, what: str, call: Callable[[], T], deadline: float) -> T:
        """Repeat the call after errors that faults may cause. Raises AssertionError at ``deadline``."""
        last = ""
        while True:
            try:
                return call()
            except (psycopg.Error, PgCombineError) as error:
                if (why := repr(error)) != last:
                    self.tell(f"{what}: {why}")
                last = why
                self.count("recovery steps tried again")
                self._rest(deadline, f"{what}: {why}")

    def _rest(self, deadline: float, why: str) -> None:
        left = deadline - time.monotonic()
        if left < 0:
            raise AssertionError(f"not recovered after {RECOVERY_SECONDS:g} s: {why}; {self._sessions()}")
        if left < RECOVERY_SECONDS - DISTURBED_SECONDS:
            self._calm.set()
        time.sleep(0.3)

    def _sessions(self) -> dict[str, object]:
        """Return for each server which servers it marks for repair, its sessions, and what these wait for."""
        return self._asked(MARKS, SESSIONS)

    def _asked(self, *statements: str) -> dict[str, object]:
        found: dict[str, object] = {}
        for name, cluster in self.clusters.items():
            try:
                with psycopg.connect(cluster.direct, connect_timeout=5, autocommit=True) as conn:
                    found[name] = [[tuple(map(str, row)) for row in conn.execute(one)] for one in statements]
            except psycopg.Error as error:
                found[name] = repr(error)
        return found

    # the final check

    def check(self, chance: random.Random) -> None:
        self.tell("the end")
        for cluster in self.clusters.values():
            cluster.start()
            cluster.proxy.heal()
        self._lose(chance.choice(sorted(self.clusters)), chance, calm=True)
        self._eventually("no hints are left", lambda: hints(self.clusters), timeout=120)
        self._repaired(list(self.clusters.values()), chance, time.monotonic() + RECOVERY_SECONDS, set())
        self._eventually("no hints are left", lambda: hints(self.clusters), timeout=60)
        self._eventually("no payloads are retained", self._kept, timeout=60)
        with self.clusters["a"].connect() as conn:
            placed = "select holders from pgcombine_internal.handoff_holders('wc', %s, %s, %s)"
            holders = {
                word: set(one(conn, placed, f'{{"{{{word}}}"}}', sorted(self.clusters), self.replicas))
                for word in WORDS
            }
        held = {name: {token for token, _ in tokens(cluster)} for name, cluster in self.clusters.items()}
        there = set().union(*held.values())
        writes = self.ledger.writes
        self._expect(there <= writes.keys(), f"tokens that nobody wrote: {there - writes.keys()}")
        sums = {name: Counter[str]() for name in self.clusters}
        for token in there & writes.keys():
            servers = set().union(*(holders[word] for word, _ in writes[token].rows))
            lacking = {name for name in servers if token not in held[name]}
            self._expect(not lacking, f"{lacking} lack a write that others have: {writes[token]}")
            for word, n in writes[token].rows:
                for name in holders[word]:
                    sums[name][word] += n
        for name, cluster in self.clusters.items():
            with cluster.connect() as conn:
                combine_all(conn)
                found = values(conn)
            self.wrong += differences(f"values on {name}, by its tokens", sums[name], found)
        for token, write in writes.items():
            if self.ledger.certain(write):
                self.count("writes that must be there")
                self._expect(token in there, f"a write is lost: {write}")
            elif not write.taken:
                self._expect(token not in there, f"a write is there, but each attempt raised UnavailableError: {write}")
            else:
                self.count(f"writes in doubt that are {'there' if token in there else 'nowhere'}")

    def _eventually(self, what: str, look: Callable[[], dict[str, int]], timeout: float) -> None:
        """Wait until ``look`` finds nothing on any server."""
        try:
            eventually(lambda: not any(look().values()), timeout=timeout, what=what)
        except AssertionError as error:
            raise AssertionError(f"{error}; {look()}; {self._asked(*STATES, MARKS, SESSIONS)}") from error

    def _expect(self, true: bool, otherwise: str) -> None:
        if not true and len(self.wrong) < 20:
            self.fail(otherwise)

    def _kept(self) -> dict[str, int]:
        found = {}
        for name, cluster in self.clusters.items():
            with cluster.connect() as conn:
                found[name] = one(conn, KEPT)
        return found


def create(cluster: Cluster) -> None:
    """Create the queue on an empty server."""
    with cluster.connect() as conn:
        conn.execute("select pgcombine.create_queue('wc', '{word text}', '{n bigint sum}', buckets => 4)")


def summary(done: repairing.Repaired) -> str:
    lacking = {name: f"{len(found)}, such as {next(iter(found.items()))}" for name, found in done.lacking.items()}
    return f"delivered {done.delivered}, lacking {lacking}, unreached {done.unreached}, marked {done.marked}"


@pytest.mark.slow
@pytest.mark.timeout(3900)
def test_acknowledged_writes_count_once_after_losses(memory: Path, filled: Filled) -> None:
    directory = memory / "chaos"
    directory.mkdir()
    number, replicas = map(int, os.environ.get("PGCOMBINE_TEST_CHAOS_SERVERS", "3,3").split(","))
    with started("abcde"[:number], filled, directory) as clusters:
        run = Chaos(clusters, replicas, seconds(30)).chaos()
    run.succeeded()
    assert run.figures["writes that must be there"]
