"""Workers: run passes until told to stop, or until a queue is drained.

A pass is one transaction under repeatable read; 40001 and deadlocks are normal flow and are run again. A pass
that fails otherwise (a combiner raises) is logged, loses nothing, and its bucket is left alone for a growing
while; the other buckets go on. A lost connection is opened again with back-off, for ever; a schema of another
version ends the worker with :class:`SchemaError`.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing

import psycopg
from psycopg import errors as pg
from tenacity import Retrying, retry_if_exception_type, wait_exponential, wait_random
from tenacity.nap import sleep_using_event
from tenacity.stop import stop_when_event_set

from pgcombine import queue as queues
from pgcombine import schema
from pgcombine.database import Connection, connect
from pgcombine.errors import ConfigError, PassError, QueueNotFound, WaitTimeout, translate
from pgcombine.model import Pass, Totals
from pgcombine.wakeup import Wakeup

log = logging.getLogger("pgcombine.worker")

POLL_SECONDS = 1.0
# A pass costs about a millisecond before it does anything: after a sweep of passes that took few updates each, a
# loop rests three times as long as the sweep took, so that the next takes more, and other work gets the processor.
_FEW_UPDATES = 1000
_LONGEST_REST = 0.1  # seconds
_LONGEST_PAUSE = 60.0  # seconds that a failing bucket is left alone
_CONFLICTS = (pg.SerializationFailure, pg.DeadlockDetected)


def run_pass(connection: Connection, queue: str, bucket: int) -> Pass | None:
    """One pass over a bucket in a transaction of its own; None if another worker has the bucket.

    The connection must be idle in autocommit with isolation level repeatable read. Conflicts are run again.
    Raises QueueNotFound; PassError when a combiner or an observer raises, or the server cancels the pass (nothing
    is lost); psycopg.OperationalError when the connection is lost.
    """
    while True:
        try:
            with connection.transaction():
                row = connection.execute(
                    "select bucket, updates, keys, changes, more from pgcombine.combine(%s, %s)",
                    (queue, bucket),
                ).fetchone()
            return Pass(queue, *row) if row else None
        except _CONFLICTS as error:
            log.debug("pass.conflict queue=%s bucket=%d sqlstate=%s", queue, bucket, error.sqlstate)
        except psycopg.Error as error:
            if connection.closed:
                raise
            own = translate(error, queue=queue, bucket=bucket) or PassError(
                f'pass over bucket {bucket} of queue "{queue}" failed: {str(error).strip()} '
                "(its updates stay pending; the pass is tried again)",
                queue=queue,
                bucket=bucket,
                sqlstate=error.sqlstate,
            )
            raise own from error


def open_connection(dsn: str) -> Connection:
    """A connection as :func:`run_pass` wants it. Raises SchemaError if the schema isn't this program's."""
    connection = connect(dsn, name="pgcombine worker")
    try:
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        schema.check_connection(connection)
    except BaseException:
        connection.close()
        raise
    return connection


class Worker:
    """Combines the pending updates of ``queues`` (all when none is named) in ``concurrency`` loops.

    Each loop is a thread with one connection, which it sleeps on as well. Loops take buckets in random order,
    one pass each in turn, so that a hot bucket doesn't keep the others waiting.
    """

    def __init__(
        self,
        dsn: str,
        queues: Sequence[str] = (),
        *,
        concurrency: int = 1,
        poll: float = POLL_SECONDS,
        on_pass: Callable[[Pass], None] | None = None,
    ) -> None:
        if concurrency < 1:
            raise ConfigError(f"concurrency must be at least 1, not {concurrency}")
        if poll <= 0:
            raise ConfigError(f"the poll interval must be positive, not {poll}")
        self.dsn = dsn
        self.queues = tuple(queues)
        self.concurrency = concurrency
        self.poll = poll
        self.totals = Totals()
        self._on_pass = on_pass
        self._lock = threading.Lock()
        self._failure: BaseException | None = None

    def run(self, stop: threading.Event) -> Totals:
        """Work until ``stop`` is set; the pass under way is finished. Returns what was done.

        Raises QueueNotFound for a queue that isn't there at the start, SchemaError, ConfigError when the
        server doesn't answer at the start.
        """
        with closing(open_connection(self.dsn)) as connection:
            queues.require(connection, self.queues)
        log.info("worker.start queues=%s concurrency=%d", ",".join(self.queues) or "*", self.concurrency)
        loops = [
            threading.Thread(target=self._guard, args=(stop,), name=f"pgcombine-{i}") for i in range(self.concurrency)
        ]
        for loop in loops:
            loop.start()
        for loop in loops:
            loop.join()
        log.info("worker.stop passes=%d updates=%d", self.totals.passes, self.totals.updates)
        if self._failure is not None:
            raise self._failure
        return self.totals

    def _guard(self, stop: threading.Event) -> None:
        """A loop's thread: an error that can't be waited out stops all loops and is raised by run."""
        try:
            while not stop.is_set():
                with closing(self._reconnect(stop)) as connection:
                    self._loop(connection, stop)
        except BaseException as error:
            if not stop.is_set():
                self._failure = error
            stop.set()

    def _reconnect(self, stop: threading.Event) -> Connection:
        for attempt in Retrying(
            retry=retry_if_exception_type((ConfigError, psycopg.OperationalError)),  # none yet, or lost at once
            wait=wait_exponential(multiplier=0.1, max=5) + wait_random(0, 0.5),
            stop=stop_when_event_set(stop),
            sleep=sleep_using_event(stop),
            reraise=True,
        ):
            with attempt:
                return open_connection(self.dsn)
        raise AssertionError("unreachable")

    def _loop(self, connection: Connection, stop: threading.Event) -> None:
        try:
            wakeup = Wakeup(connection, self.queues, poll=self.poll)
            sweeper = _Sweeper(connection, self.queues, self._count)
            while not stop.is_set():
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
        log.debug("pass queue=%s bucket=%d updates=%d keys=%d", done.queue, done.bucket, done.updates, done.keys)
        if self._on_pass:
            self._on_pass(done)


class _Sweeper:
    """Passes of one loop over all buckets with pending updates.

    Leaves alone, for a while, buckets whose pass failed; and, until the next sweep, those that another worker
    has claimed: it looks again itself when its pass is done.
    """

    def __init__(self, connection: Connection, only: Sequence[str], count: Callable[[Pass], None]) -> None:
        self._connection = connection
        self._only = only
        self._count = count
        self._claimed: set[tuple[str, int]] = set()
        self._failed: dict[tuple[str, int], tuple[int, float]] = {}  # attempts, not before
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
        found = self._connection.execute("select queue, bucket from pgcombine.busy()").fetchall()
        return [
            (queue, bucket)
            for queue, bucket in found
            if (not self._only or queue in self._only)
            and (queue, bucket) not in self._claimed
            and self._failed.get((queue, bucket), (0, 0.0))[1] <= now
        ]

    def _pass(self, queue: str, bucket: int) -> bool:
        try:
            done = run_pass(self._connection, queue, bucket)
        except QueueNotFound:
            return False  # dropped meanwhile
        except PassError as error:
            attempts = self._failed.get((queue, bucket), (0, 0.0))[0] + 1
            pause = min(0.5 * 2**attempts, _LONGEST_PAUSE) * random.uniform(0.75, 1.25)
            self._failed[queue, bucket] = (attempts, time.monotonic() + pause)
            log.error("pass.failed queue=%s bucket=%d attempts=%d error=%s", queue, bucket, attempts, error)
            return False
        self._failed.pop((queue, bucket), None)
        if done is None:
            self._claimed.add((queue, bucket))
            return False
        if not done.updates:
            return False
        self._passes += 1
        self._updates += done.updates
        self._count(done)
        return True


def drain(
    dsn: str, queue: str, *, timeout: float | None = None, on_pass: Callable[[Pass], None] | None = None
) -> Totals:
    """Combine until the queue has no pending updates; returns what was done here (other workers may help).

    ``timeout`` in seconds (None: no limit), then WaitTimeout is raised. A pass that fails raises PassError.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    totals = Totals()
    with closing(open_connection(dsn)) as connection:
        queues.require(connection, [queue])
        pause = 0.001
        while buckets := connection.execute("select bucket from pgcombine.busy(%s)", (queue,)).fetchall():
            taken = 0
            for (bucket,) in buckets:
                if deadline is not None and time.monotonic() > deadline:
                    raise WaitTimeout(f'queue "{queue}" still has pending updates after {timeout:g} s', queue=queue)
                done = run_pass(connection, queue, int(bucket))
                if done is not None and done.updates:
                    taken += done.updates
                    totals.add(done)
                    if on_pass:
                        on_pass(done)
            if taken == 0:  # other workers have the buckets
                time.sleep(pause)
                pause = min(2 * pause, 0.1)
            else:
                pause = 0.001
        if queues.CombineQueue(queue).backlog(connection):
            raise WaitTimeout(f'queue "{queue}" is paused and has pending updates: resume it first', queue=queue)
    return totals
