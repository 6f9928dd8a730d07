"""A worker runs passes until an event stops it.

- If a pass fails, for example because a combiner or an observer raises, no update is lost. The failure is recorded for
  all workers, and the bucket is tried again at growing intervals (:mod:`pgcombine.worker.quarantine`). The other
  buckets go on.
- A pass that exceeds the statement timeout is cancelled. The next pass over the bucket normally takes fewer updates.
- A lost connection is opened again with back-off, without limit.
- The worker waits for a server that isn't ready, or that takes no writes, such as a standby.
- If the server lacks locks, memory or disk, the worker tries again with back-off, and logs the server's hint.
- A schema of another version ends the worker with :class:`SchemaError`, after the passes in progress.
"""

from __future__ import annotations

import itertools
import logging
import math
import os
import random
import socket
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from datetime import UTC, datetime
from functools import partial

import psycopg
from psycopg import errors as pg

from pgcombine import schema
from pgcombine.database import sqlfiles
from pgcombine.database.connect import Connection, Database, one
from pgcombine.errors import ConfigError, PassError, ServerNotReadyError, first_line
from pgcombine.queue import combine_queue as queues
from pgcombine.queue.callbacks import NO_OBSERVERS
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.runtime.background import Background
from pgcombine.runtime.heartbeat import STALLED_SECONDS, Heartbeat
from pgcombine.runtime.loops import run_together
from pgcombine.runtime.reconnect import not_ready, retry, unreachable, when_ready
from pgcombine.runtime.wakeup import STOP_CHECK, QueueListener, Waker, pooled
from pgcombine.worker import maintenance, python_pass
from pgcombine.worker.dispatcher import Bucket, Dispatcher
from pgcombine.worker.maintenance import OLD_SECONDS, ROUND_SECONDS, UPKEEP_EVERY_SECONDS, Maintenance, Reclaim
from pgcombine.worker.passes import NAME, STATEMENT_TIMEOUT_SECONDS, open_connection
from pgcombine.worker.rights import require_work, warn_of_superuser
from pgcombine.worker.totals import Pass, Totals

log = logging.getLogger("pgcombine.worker")

POLL_SECONDS = 1.0
MAX_DELAY_SECONDS = 0.1
# Between rounds of passes the worker rests, so that more updates gather for the next round. The less of a round's time
# was for updates, the more a longer rest saves. So the worker rests for one to three times the round's duration,
# max_delay at most. After a first round, which follows a sleep, it doesn't rest. A pass takes about as much time as if
# it had this number of updates more.
_PASS_COST = 200
_SHORTEST_PAUSE = 0.1  # about how many seconds a loop pauses after trouble; later pauses are longer
_LONGEST_PAUSE = 5.0
_CALM = 10.0  # after so many seconds without trouble, the next pause is short again

_LONGEST_NAME = 63 - len(f"{NAME} ")  # PostgreSQL cuts an application_name to 63 bytes

_serial = itertools.count(1)


class Worker(Background):
    """Combines the pending updates of ``queues`` (empty: all queues) in ``concurrency`` loops.

    ``dsn`` is a connection string, or a function that returns a new psycopg connection. :meth:`run` works in the
    calling thread. :meth:`start` and :meth:`stop`, or a ``with`` block, work in the background.

    Each loop is a thread with one connection. A further thread with a connection polls for pending updates: a session
    that holds an idle lock isn't notified of its own enqueues. One more thread with a connection runs the tasks of
    :mod:`pgcombine.worker.maintenance`, so that passes don't wait for them. The attribute ``name`` is the worker's name
    in the view ``pgcombine.worker``. ``heartbeat`` records that the loops make progress.

    An element of ``queues`` is a name, or a CombineQueue with its Python observers. A single queue needs no list.
    ``app`` has more queues with Python observers. It doesn't restrict the worker to these queues. ``on_pass`` is called
    after each pass, or search for failing keys, that took updates, and ``on_failure`` after each that failed.

    Durations are in seconds. ``poll`` is the longest sleep when there are no updates. ``max_delay`` is the longest rest
    between rounds of passes while updates keep coming: the more updates a pass combines, the less each of them costs.
    ``lock_timeout`` and ``statement_timeout`` are as for :func:`~pgcombine.worker.passes.open_connection`. If the
    server refuses the connection or doesn't answer at the start, the worker tries again for ``connect_timeout``
    seconds. The worker logs warnings of snapshots and of writing transactions that are older than ``old_snapshot``.

    Raises ConfigError if ``concurrency`` or ``poll`` isn't positive, or if a timeout or ``max_delay`` is negative.
    """

    def __init__(
        self,
        dsn: Database,
        queues: str | CombineQueue | Sequence[str | CombineQueue] = (),
        *,
        app: Sequence[CombineQueue] = (),
        concurrency: int = 1,
        poll: float = POLL_SECONDS,
        max_delay: float = MAX_DELAY_SECONDS,
        lock_timeout: float | None = None,
        statement_timeout: float | None = None,
        connect_timeout: float = 0.0,
        old_snapshot: float = OLD_SECONDS,
        on_pass: Callable[[Pass], None] | None = None,
        on_failure: Callable[[PassError], None] | None = None,
    ) -> None:
        super().__init__()
        queues = (queues,) if isinstance(queues, (str, CombineQueue)) else queues
        if concurrency < 1:
            raise ConfigError(f"concurrency must be at least 1, not {concurrency}")
        if poll <= 0:
            raise ConfigError(f"the poll interval must be positive, not {poll}")
        self.dsn = dsn
        self.queues = tuple(_name(queue) for queue in queues)
        self._given = [*(queue for queue in queues if isinstance(queue, CombineQueue)), *app]
        self._observers = {queue.name: queue.observers for queue in self._given}
        self.concurrency = concurrency
        self.poll = poll
        if min(lock_timeout or 0, statement_timeout or 0, connect_timeout, max_delay) < 0:
            raise ConfigError(
                f"a time can't be negative: lock timeout {lock_timeout}, statement timeout {statement_timeout}, "
                f"connect timeout {connect_timeout}, max delay {max_delay}"
            )
        self.max_delay = max_delay
        self.lock_timeout = lock_timeout
        self.statement_timeout = statement_timeout
        self.connect_timeout = connect_timeout
        self.totals = Totals()
        self._reclaim = Reclaim(self.queues)
        warn = partial(maintenance.warn_of_old_snapshots, older_than=old_snapshot)
        self._maintenance = (
            Maintenance("snapshots", maintenance.WATCH_EVERY_SECONDS, warn),
            Maintenance("post_restore", maintenance.POST_RESTORE_EVERY_SECONDS, maintenance.post_restore),
            Maintenance("reclaim", ROUND_SECONDS, self._reclaim.do),
            Maintenance("backlog", maintenance.BACKLOG_EVERY_SECONDS, self._check_backlog),
            Maintenance("upkeep", UPKEEP_EVERY_SECONDS, maintenance.upkeep),
            Maintenance("clean", maintenance.CLEAN_EVERY_SECONDS, maintenance.clean),
        )
        self._watch = schema.VersionWatch()
        self._on_pass = on_pass
        self._on_failure = on_failure or (lambda _: None)
        self.heartbeat = Heartbeat(_longest_round(poll, statement_timeout))
        number = next(_serial)
        process = f":{os.getpid()}" + (f".{number}" if number > 1 else "")
        self.name = socket.gethostname()[: _LONGEST_NAME - len(process)] + process
        self._lock = threading.Lock()

    def run(self, stop: threading.Event | None = None) -> Totals:
        """Work until ``stop`` is set; without ``stop``, until :meth:`stop` is called. Returns the totals.

        Passes in progress are finished first. At the start, the observers of the given queues are declared, unless they
        are declared already.

        At the start it raises QueueNotFoundError if a queue of ``queues`` or ``app`` doesn't exist, NotGrantedError if
        the role lacks the right work, ObserversMissingError if a queue of ``queues`` has Python observers that the
        worker lacks, ConnectError if the server refuses the connection or doesn't answer, and the errors of
        ``pgcombine.add_observer`` if an observer can't be declared. It raises SchemaError if the schema doesn't fit
        this program, also later.
        """
        stop = self._until_stopped() if stop is None else stop
        with self.heartbeat.loop():
            if not when_ready(self._prepare, stop, timeout=self.connect_timeout):
                return self.totals
        log.info("worker.start queues=%s concurrency=%d", ",".join(self.queues) or "*", self.concurrency)
        self._since = datetime.now(UTC)
        with closing(Waker()) as waker:
            dispatcher = Dispatcher(
                *(self.queues, self._observers, self._count, waker), poll=self.poll, failed=self._on_failure
            )
            loops = [partial(self._poller, dispatcher, waker), partial(self._upkeep)]
            loops += [partial(self._loop, dispatcher)] * self.concurrency
            try:
                run_together([partial(self._connected, loop) for loop in loops], stop, "pgcombine")
            finally:
                log.info(
                    "worker.stop passes=%d updates=%d conflicts=%d",
                    *(self.totals.passes, self.totals.updates, self.totals.conflicts),
                )
        return self.totals

    def _open(self, name: str = NAME) -> Connection:
        self.heartbeat.beat()
        timeouts = {"lock_timeout": self.lock_timeout, "statement_timeout": self.statement_timeout}
        return open_connection(self.dsn, name=name, timeout=0, **timeouts)

    def _connected(self, loop: Callable[[Connection, threading.Event], None], stop: threading.Event) -> None:
        """Run a loop. After a temporary error, open another connection and run the loop again. Raises other errors."""
        opened = partial(self._open, f"{NAME} {self.name}")
        pause = _SHORTEST_PAUSE
        with self.heartbeat.loop():
            while not stop.is_set():
                with closing(retry(opened, stop, unlimited=unreachable)) as connection, self.heartbeat.connected():
                    began = time.monotonic()
                    try:
                        if not pooled(connection):
                            connection.execute(sqlfiles.query("announce_session"), (self.concurrency + 2,))
                        loop(connection, stop)
                    except (ServerNotReadyError, pg.ReadOnlySqlTransaction):
                        pass  # connecting again finds and logs the reason
                    except psycopg.OperationalError as error:
                        lost = _log(error, connection)
                        pause = _SHORTEST_PAUSE if lost or time.monotonic() > began + _CALM else pause
                    except psycopg.Error:
                        # raises SchemaError if an upgrade has replaced the functions
                        schema.check_connection(connection)
                        raise
                stop.wait(pause * random.uniform(0.5, 1.5))
                pause = min(2 * pause, _LONGEST_PAUSE)

    def _prepare(self) -> None:
        with closing(self._open()) as connection:
            queues.require(connection, [*self.queues, *self._observers])
            require_work(connection, self.queues)
            for queue in self._given:
                python_pass.declare(connection, queue)
            for name in self.queues:
                python_pass.require(connection, name, self._observers.get(name, NO_OBSERVERS))
            warn_of_superuser(connection)

    def _poller(self, dispatcher: Dispatcher, waker: Waker, connection: Connection, stop: threading.Event) -> None:
        """Poll for due buckets, and sleep while there are none."""
        listener = QueueListener(connection, self.queues, dispatcher.refuses, poll=self.poll, waker=waker)
        if listener.listens:
            announced = one(connection, sqlfiles.query("announce_worker"), list(self.queues) or None, self._since)
            if announced != (True,):
                log.warning(
                    "worker.unannounced reason=%s", "another session holds the advisory locks of the view worker"
                )
        rounds = 0  # consecutive rounds with work
        found: list[Bucket] = []

        def may_work() -> bool:
            nonlocal found
            found = dispatcher.poll(connection, listener.queues())
            return bool(found)

        while not stop.is_set():
            self.heartbeat.beat()
            began = time.monotonic()
            self._watch.check(connection)
            found = found or dispatcher.poll(connection, listener.queues(busy=rounds > 0))
            worked = False
            if found:
                dispatcher.dispatch(found)
                listener.found_work_in({queue for queue, _ in found})
                dispatcher.wait(stop, STOP_CHECK, self.heartbeat.beat)
                worked, found = dispatcher.passes > 0, []
            rounds = rounds + 1 if worked else 0
            if not worked:
                listener.sleep(stop, may_work)
                dispatcher.retry_deferred()
            elif rounds > 1:
                fixed = _PASS_COST * dispatcher.passes
                share = fixed / (fixed + dispatcher.updates)
                stop.wait(min(self.max_delay, (1 + 2 * share) * (time.monotonic() - began)))

    def _loop(self, dispatcher: Dispatcher, connection: Connection, stop: threading.Event) -> None:
        """Run passes over the buckets that the poller dispatches."""
        while not stop.is_set():
            self.heartbeat.beat()
            self._watch.check(connection)
            dispatcher.next_pass(connection, stop, timeout=STOP_CHECK)

    def _upkeep(self, connection: Connection, stop: threading.Event) -> None:
        """Run the maintenance tasks at their intervals."""
        while not stop.is_set():
            self.heartbeat.beat()
            self._watch.check(connection)
            for task in self._maintenance:
                task.run_if_due(connection)
            stop.wait(ROUND_SECONDS if self._reclaim.active else UPKEEP_EVERY_SECONDS)

    def _check_backlog(self, connection: Connection) -> None:
        for queue in self.queues or (None,):
            connection.execute("select pgcombine_internal.check_backlog(%s)", (queue,))

    def _count(self, done: Pass) -> None:
        with self._lock:
            self.totals.add(done)
        self._reclaim.passed_over(done.queue)
        if self._on_pass:
            self._on_pass(done)


def _log(error: psycopg.OperationalError, connection: Connection) -> bool:
    """Log the error that ended a loop. Returns whether the connection was lost, or the server isn't ready."""
    reason = first_line(error)
    if connection.closed or not_ready(error):
        log.warning("worker.disconnected reason=%s", reason)
        return True
    # a statement outside of passes can conflict if a pooler keeps the server's default isolation level
    if isinstance(error, pg.SerializationFailure):
        log.debug("worker.conflict reason=%s", reason)
    else:
        log.warning(
            "worker.trouble sqlstate=%s reason=%s hint=%s", error.sqlstate, reason, error.diag.message_hint or "none"
        )
    return False


def _longest_round(poll: float, statement_timeout: float | None) -> float:
    """Return how many seconds a round of a loop may take: a sleep, and three statements up to the timeout."""
    if statement_timeout == 0:
        return math.inf
    return max(STALLED_SECONDS, poll + 3 * (statement_timeout or STATEMENT_TIMEOUT_SECONDS))


def _name(queue: str | CombineQueue) -> str:
    return queue if isinstance(queue, str) else queue.name
