"""Workers: run passes until told to stop, or until a queue is drained.

A pass that fails (a combiner or an observer raises) is recorded for all workers and loses nothing; its bucket is left
alone for a growing while, then the keys at fault are quarantined (:mod:`pgcombine.quarantine`); the other buckets go
on. A queue with functions in Python that weren't given is left to other workers. A lost connection is opened again
with back-off, for ever, and a server that isn't ready when the worker starts is waited for; a schema of another
version ends the worker with :class:`SchemaError`.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing

import psycopg

from pgcombine import observers, quarantine
from pgcombine import queue as queues
from pgcombine.database import Connection
from pgcombine.draining import drain
from pgcombine.errors import (
    AppNeeded,
    ConfigError,
    InvalidDefinition,
    PassError,
    QueueNotFound,
)
from pgcombine.functions import Functions
from pgcombine.janitor import Janitor
from pgcombine.model import Pass, Totals
from pgcombine.passes import open_connection, run_pass
from pgcombine.queue import CombineQueue
from pgcombine.reconnect import away, retry, when_ready
from pgcombine.rights import warn_of_superuser
from pgcombine.snapshots import OLD_SECONDS, Watch
from pgcombine.tidying import Tidy
from pgcombine.wakeup import Wakeup

__all__ = ["Worker", "drain", "open_connection", "run_pass"]

log = logging.getLogger("pgcombine.worker")

POLL_SECONDS = 1.0
# A pass costs about a millisecond before it does anything: after a sweep of passes that took few updates each, a
# loop rests three times as long as the sweep took, so that the next takes more, and other work gets the processor.
_FEW_UPDATES = 50_000
_LONGEST_REST = 0.1  # seconds
_REFUSED_PAUSE = 60.0  # seconds that a queue is left alone whose functions aren't here


class Worker:
    """Combines the pending updates of ``queues`` (all when none is named) in ``concurrency`` loops.

    Each loop is a thread with one connection, which it sleeps on as well. Loops take buckets in random order,
    one pass each in turn, so that a hot bucket doesn't keep the others waiting. A queue is named, or given with its
    functions in Python, a single one also by itself; ``app`` gives the functions of further queues, which it doesn't
    restrict the worker to.
    ``poll``, the timeouts (those of ``open_connection``; ``connect_timeout`` is for how long a server is asked again
    that doesn't answer at the start) and ``old_snapshot``, the age at which a snapshot held elsewhere is reported,
    are in seconds.
    """

    def __init__(
        self,
        dsn: str,
        queues: str | CombineQueue | Sequence[str | CombineQueue] = (),
        *,
        app: Sequence[CombineQueue] = (),
        concurrency: int = 1,
        poll: float = POLL_SECONDS,
        lock_timeout: float | None = None,
        statement_timeout: float | None = None,
        connect_timeout: float = 0.0,
        old_snapshot: float = OLD_SECONDS,
        on_pass: Callable[[Pass], None] | None = None,
    ) -> None:
        queues = (queues,) if isinstance(queues, (str, CombineQueue)) else queues
        if concurrency < 1:
            raise ConfigError(f"concurrency must be at least 1, not {concurrency}")
        if poll <= 0:
            raise ConfigError(f"the poll interval must be positive, not {poll}")
        self.dsn = dsn
        self.queues = tuple(_name(queue) for queue in queues)
        self._given = [*(queue for queue in queues if isinstance(queue, CombineQueue)), *app]
        self._functions = {queue.name: queue.functions for queue in self._given}
        self.concurrency = concurrency
        self.poll = poll
        if min(lock_timeout or 0, statement_timeout or 0, connect_timeout) < 0:
            raise ConfigError(
                f"a timeout can't be negative: lock {lock_timeout}, statement {statement_timeout}, "
                f"connect {connect_timeout}"
            )
        self.lock_timeout = lock_timeout
        self.statement_timeout = statement_timeout
        self.connect_timeout = connect_timeout
        self.totals = Totals()
        self._chores = (Watch(older_than=old_snapshot), Tidy(self.queues), Janitor())
        self._on_pass = on_pass
        self._lock = threading.Lock()
        self._failure: BaseException | None = None

    def run(self, stop: threading.Event | None = None) -> Totals:
        """Work until ``stop`` is set (None: for ever); the pass under way is finished. Returns what was done.

        Declares observers of the given queues that aren't yet. Raises QueueNotFound for a queue that isn't there at
        the start, AppNeeded for a named one whose functions aren't given, SchemaError, ConnectError when the server
        doesn't answer at the start.
        """
        stop = threading.Event() if stop is None else stop
        if not when_ready(self._prepare, stop, timeout=self.connect_timeout):
            return self.totals
        log.info("worker.start queues=%s concurrency=%d", ",".join(self.queues) or "*", self.concurrency)
        loops = [
            threading.Thread(target=self._guard, args=(stop,), name=f"pgcombine-{i}") for i in range(self.concurrency)
        ]
        for loop in loops:
            loop.start()
        for loop in loops:
            loop.join()
        log.info(
            "worker.stop passes=%d updates=%d conflicts=%d",
            *(self.totals.passes, self.totals.updates, self.totals.conflicts),
        )
        if self._failure is not None:
            raise self._failure
        return self.totals

    def _open(self) -> Connection:
        timeouts = {"lock_timeout": self.lock_timeout, "statement_timeout": self.statement_timeout}
        return open_connection(self.dsn, **timeouts, patience=0)

    def _guard(self, stop: threading.Event) -> None:
        """A loop's thread: an error that can't be waited out stops all loops and is raised by run."""
        try:
            while not stop.is_set():
                with closing(retry(self._open, stop, for_ever=away)) as connection:
                    self._loop(connection, stop)
        except BaseException as error:
            if not stop.is_set():
                self._failure = error
            stop.set()

    def _prepare(self) -> None:
        with closing(self._open()) as connection:
            warn_of_superuser(connection)
            queues.require(connection, [*self.queues, *self._functions])
            for queue in self._given:
                observers.declare(connection, queue)
            for name in self.queues:
                observers.require(connection, name, self._functions.get(name))

    def _loop(self, connection: Connection, stop: threading.Event) -> None:
        try:
            wakeup = Wakeup(connection, self.queues, poll=self.poll)
            sweeper = _Sweeper(connection, self.queues, self._functions, self._count, stop)
            while not stop.is_set():
                for chore in self._chores:
                    chore.look(connection)
                started = time.monotonic()
                if sweeper.sweep(stop):
                    wakeup.found_work()
                    if sweeper.thin:
                        stop.wait(min(_LONGEST_REST, 3 * (time.monotonic() - started)))
                else:
                    wakeup.sleep(stop, sweeper.may_work)
        except psycopg.OperationalError as error:
            log.warning("worker.disconnected reason=%s", (str(error).strip().splitlines() or ["unknown"])[0])
            stop.wait(random.uniform(0.05, 0.15))  # should it be so each time

    def _count(self, done: Pass) -> None:
        with self._lock:
            self.totals.add(done)
        if self._on_pass:
            self._on_pass(done)


class _Sweeper:
    """Passes of one loop over all buckets with pending updates.

    Leaves alone, for a while, buckets whose pass failed, and queues whose functions it lacks; and, until the next
    sweep, buckets that another worker has claimed: it looks again itself when its pass is done.
    """

    def __init__(
        self,
        connection: Connection,
        only: Sequence[str],
        functions: Mapping[str, Functions],
        count: Callable[[Pass], None],
        stop: threading.Event,
    ) -> None:
        self._next_tick = 0.0
        self._connection = connection
        self._only = only
        self._functions = functions
        self._count = count
        self._stop = stop
        self._claimed: set[tuple[str, int]] = set()
        self._refused: dict[str, float] = {}  # queue: not before
        self._passes = self._updates = 0  # of the last sweep

    def sweep(self, stop: threading.Event) -> bool:
        """One pass over each bucket with pending updates, in random order; whether any updates were taken."""
        self._claimed.clear()
        self._passes = self._updates = 0
        busy = self._busy()
        random.shuffle(busy)
        worked = False
        for queue, bucket in busy:
            if stop.is_set():
                break
            worked |= self._pass(queue, bucket)
        return worked

    @property
    def thin(self) -> bool:
        """Whether the last sweep's passes took few updates each."""
        return self._updates < _FEW_UPDATES * self._passes

    def may_work(self) -> bool:
        """Whether a bucket has pending updates that the last sweep didn't see or couldn't know of."""
        return bool(self._busy())

    def _busy(self) -> list[tuple[str, int]]:
        now = time.monotonic()
        found = self._connection.execute("select queue, bucket from pgcombine.due()").fetchall()
        if found and now >= self._next_tick:
            self._connection.execute("select pgcombine.tick()")  # dates what is pending
            self._next_tick = now + 1.0
        return [
            (queue, bucket)
            for queue, bucket in found
            if (not self._only or queue in self._only)
            and (queue, bucket) not in self._claimed
            and self._refused.get(queue, 0.0) <= now
        ]

    def _pass(self, queue: str, bucket: int) -> bool:
        functions = self._functions.get(queue)
        try:
            done = run_pass(self._connection, queue, bucket, functions)
        except (InvalidDefinition, QueueNotFound):
            return False  # dropped, or has fewer buckets now
        except AppNeeded as error:
            self._refused[queue] = time.monotonic() + _REFUSED_PAUSE
            log.error("queue.refused queue=%s error=%s", queue, error)
            return False
        except PassError as error:
            return self._isolate(queue, bucket, error)
        if done is None:
            self._claimed.add((queue, bucket))
            return False
        if not done.updates:
            return False
        self._passes += 1
        self._updates += done.updates
        self._count(done)
        return True

    def _isolate(self, queue: str, bucket: int, error: PassError) -> bool:
        """Record a failed pass and, when it is time, look for the keys at fault; whether that made progress."""
        try:
            attempts, due = quarantine.failed(self._connection, error)
            return due and quarantine.isolate(
                *(self._connection, queue, bucket, attempts),
                functions=self._functions.get(queue),
                on_pass=self._count,
                stopped=self._stop.is_set,
            )
        except (AppNeeded, InvalidDefinition, QueueNotFound):
            return False


def _name(queue: str | CombineQueue) -> str:
    return queue if isinstance(queue, str) else queue.name
