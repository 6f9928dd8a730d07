"""Export workers deliver the changes of an export until an event stops them, or until none waits.

* Delivery is at least once: an entry may be delivered again (:mod:`pgcombine.export.entries`).
* If the destination fails, the entries stay. The destination is ``suspect`` and then ``down`` for all workers. One
  worker at a time tries again, at growing intervals (:mod:`pgcombine.runtime.destinations`).
* Entries that the destination refuses for their data are found by halving the batch, and quarantined.
* Several workers may run. A worker claims a bucket of the queue before it delivers the bucket's entries. A dead
  worker's claim ends with its connection, and the entries whose delivery it hadn't committed wait again.
* A loop without waiting entries sleeps. A pass with a change wakes the loop (:mod:`pgcombine.runtime.wakeup`).
* A lost connection to the queue's own database is opened again with back-off. If the export is dropped, the worker ends
  with ExportNotFoundError, and if the schema gets another version, with SchemaError.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from contextlib import closing
from functools import partial

import psycopg

from pgcombine import schema
from pgcombine.database import sqlfiles
from pgcombine.database.connect import (
    READY_SECONDS,
    Connection,
    Database,
    closed_on_error,
    connect,
    require_writable,
)
from pgcombine.errors import ConfigError, DestinationDownError, WaitTimeoutError, first_line, operational
from pgcombine.export import signing
from pgcombine.export.cloudevents import CloudEvents, source
from pgcombine.export.delivery import Delivery, Nothing, lost
from pgcombine.export.entries import TIMEOUT_SECONDS, Exporter
from pgcombine.export.files import FILE_MODE, FileExporter
from pgcombine.export.functions import CustomExporter, Function, installed
from pgcombine.export.postgres import PostgresExporter, registered, statements
from pgcombine.export.queue import exports
from pgcombine.export.webhook import WebhookExporter
from pgcombine.runtime.background import Background
from pgcombine.runtime.heartbeat import STALLED_SECONDS, Heartbeat
from pgcombine.runtime.loops import run_together
from pgcombine.runtime.reconnect import retry, unreachable, when_ready
from pgcombine.runtime.wakeup import Listener, Source

log = logging.getLogger("pgcombine.export")

POLL_SECONDS = 1.0
_DRAIN_POLL = 0.2  # seconds
_SHORTEST_REST = 0.01


class _ExportListener(Listener):
    """The listener of a loop over one export. New entries of the export end the loop's sleep."""

    def __init__(self, connection: Connection, export: str, *, poll: float) -> None:
        super().__init__(connection, poll=poll)
        self._export = export

    def sources(self) -> list[Source]:
        found = self._connection.execute(
            "select e.queue, to_regclass(format('pgcombine.%%I', e.queue || '_changes'))::oid "
            "from pgcombine.export e where e.export = %s",
            (self._export,),
        )
        return [
            Source(int(table), [f"pgcombine.changes {queue}", f"pgcombine.export {self._export}"])
            for queue, table in found
            if table is not None
        ]


class ExportWorker(Background):
    """Delivers the entries of ``export`` in ``concurrency`` loops.

    Each loop is a thread with two connections to the queue's database.

    ``dsn`` is a connection string, or a function that returns a new psycopg connection each time it is called.
    :meth:`run` returns when the worker has ended. :meth:`start` and :meth:`stop`, or a ``with`` block, run the worker
    in the background.

    ``exporter`` is a function that takes a list of entries, a class (:class:`~pgcombine.Exporter`), or the name of an
    installed class (an entry point ``pgcombine.exporters``). Without it, the export's own exporter is used. ``target``
    takes the place of the export's stored target, for example with a password. ``poll``, in seconds, is how long a loop
    without waiting entries sleeps at most. ``batch`` is the largest number of entries in a delivery (None: the export's
    own). ``timeout``, in seconds, is for a delivery by ``postgres`` or ``webhook``. ``file_mode`` is the permissions of
    exported files. ``secrets`` sign the requests of ``webhook``: secrets ``whsec_…`` with white space between them, or
    a function that returns them and is called here and for each delivery. ``heartbeat`` records that the loops make
    progress. Raises ConfigError for a number that isn't positive, a malformed secret, and the name of a class that
    isn't installed.
    """

    def __init__(
        self,
        dsn: Database,
        export: str,
        exporter: Function | type[Exporter] | str | None = None,
        *,
        target: str | None = None,
        concurrency: int = 1,
        poll: float = POLL_SECONDS,
        batch: int | None = None,
        timeout: float = TIMEOUT_SECONDS,
        file_mode: int = FILE_MODE,
        secrets: signing.Secrets | None = None,
    ) -> None:
        super().__init__()
        if min(concurrency, poll, timeout, 1 if batch is None else batch) <= 0:
            raise ConfigError(
                f"concurrency {concurrency}, poll {poll}, batch {batch} and timeout {timeout} must be positive"
            )
        self.dsn = dsn
        self.export = export
        self.concurrency = concurrency
        self.poll = poll
        self.batch = batch
        self.timeout = timeout
        self.file_mode = file_mode
        self.delivered = 0
        self.heartbeat = Heartbeat(max(STALLED_SECONDS, poll + 3 * timeout))
        self._custom = installed(exporter) if isinstance(exporter, str) else exporter
        self._target = target
        signing.keys(secrets)
        self._secrets = secrets
        self._lock = threading.Lock()

    def run(self, stop: threading.Event | None = None) -> int:
        """Work until ``stop`` is set; without ``stop``, until :meth:`stop` is called. Returns ``delivered``, the number
        of entries that this object has delivered or quarantined since it was made.

        When ``stop`` is set, the worker finishes the batch in progress. But an HTTP request in progress is cancelled,
        and its entries are sent again later. At the start, the worker waits for a server that isn't ready yet. Raises
        ExportNotFoundError, ConfigError if the exporter can't be made, SchemaError, and ConnectError if the server
        can't be connected to at the start.
        """
        stop = self._until_stopped() if stop is None else stop
        with self.heartbeat.loop():
            if not when_ready(self._prepare, stop):
                return self.delivered
        log.info("export.start export=%s concurrency=%d", self.export, self.concurrency)
        try:
            run_together([self._connected] * self.concurrency, stop, "pgcombine-export")
        finally:
            log.info("export.stop export=%s entries=%d", self.export, self.delivered)
        return self.delivered

    @operational()
    def drain(self, timeout: float | None = None) -> int:
        """Deliver until no entry waits. Returns ``delivered``, as :meth:`run` does.

        Raises DestinationDownError if entries wait and the destination is paused or down, WaitTimeoutError if entries
        still wait after ``timeout`` seconds, the errors of :meth:`run`, and OperationalError if the connection is lost.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        with (
            closing(self._open()) as claims,
            closing(self._open()) as control,
            closing(self._exporter(control)) as exporter,
        ):
            delivery = Delivery(claims, control, self.export, exporter, self.batch)
            while True:
                done = delivery.once()
                if not isinstance(done, Nothing):
                    self._count(done)
                    if deadline is None or time.monotonic() <= deadline:
                        continue
                (found,) = exports(control, self.export)
                if not found["pending"]:
                    return self.delivered
                if found["state"] in ("paused", "down"):
                    raise DestinationDownError(
                        f'export "{self.export}": its destination is {found["state"]}, {found["pending"]} entries '
                        f"wait: {found['reason'] or 'no reason was given'} (pgcombine export resume {self.export} "
                        "tries again at once)"
                    )
                if deadline is not None and time.monotonic() > deadline:
                    why = "another worker has claimed them" if done is Nothing.IDLE else "others were delivered"
                    raise WaitTimeoutError(
                        f'export "{self.export}" still has {found["pending"]} waiting entries after {timeout:g} s '
                        f"({found['reason'] or why})"
                    )
                time.sleep(min(self.poll, _DRAIN_POLL))

    def _prepare(self) -> None:
        with closing(self._open(timeout=0)) as connection:
            self._exporter(connection).close()

    def _open(self, *, timeout: float = READY_SECONDS) -> Connection:
        self.heartbeat.beat()
        connection = connect(self.dsn, name="pgcombine export worker", timeout=timeout)
        with closed_on_error(connection):
            require_writable(connection)
            schema.check_connection(connection)
        return connection

    def _exporter(self, connection: Connection, stop: threading.Event | None = None) -> Exporter:
        """Return the exporter for one loop. A WebhookExporter gives up its delivery when ``stop`` is set."""
        (found,) = exports(connection, self.export)
        target = self._target or found["target"]
        if self._custom is not None:
            return CustomExporter(self._custom, target, self.export)
        if found["exporter"] == "postgres":
            dsn = self._target or registered(self.export, target)
            return PostgresExporter(dsn, statements(connection, self.export), timeout=self.timeout)
        if found["exporter"] == "files":
            return FileExporter(target, self.export, mode=self.file_mode)
        if found["exporter"] == "webhook":
            return WebhookExporter(
                target,
                self.export,
                timeout=self.timeout,
                stop=stop,
                secrets=self._secrets,
                events=self._events(connection),
            )
        raise ConfigError(
            f'export "{self.export}" delivers to Python: give a function or an exporter (pgcombine export run '
            f"{self.export} --app module:attribute)"
        )

    def _events(self, connection: Connection) -> CloudEvents | None:
        row = connection.execute(sqlfiles.query("export_events"), (self.export,)).fetchone()
        return CloudEvents(self.export, source(*row[:3]), row[3]) if row else None

    def _connected(self, stop: threading.Event) -> None:
        """Run a loop. If a connection is lost, run the loop again with new connections. Raises other errors of the
        loop.
        """
        opened = partial(self._open, timeout=0)
        with self.heartbeat.loop():
            while not stop.is_set():
                with (
                    closing(retry(opened, stop, unlimited=unreachable)) as claims,
                    closing(retry(opened, stop, unlimited=unreachable)) as control,
                    self.heartbeat.connected(),
                ):
                    self._loop(claims, control, stop)

    def _loop(self, claims: Connection, control: Connection, stop: threading.Event) -> None:
        try:
            with closing(self._exporter(control, stop)) as exporter:
                delivery = Delivery(claims, control, self.export, exporter, self.batch)
                listener = _ExportListener(control, self.export, poll=self.poll)
                watch = schema.VersionWatch()
                while not stop.is_set():
                    self.heartbeat.beat()
                    watch.check(control)
                    done = delivery.once()
                    if done is Nothing.IDLE:
                        listener.sleep(stop, delivery.waits)
                    elif isinstance(done, Nothing):
                        listener.rest(stop, max(_SHORTEST_REST, delivery.destination.retry_in()))
                    else:
                        listener.found_work()
                        self._count(done)
        except psycopg.Error as error:
            if not lost(error, claims, control):
                schema.check_connection(control)  # the error may come from functions of another version
                raise
            log.warning("export.disconnected reason=%s", first_line(error))
            stop.wait(random.uniform(0.05, 0.15))

    def _count(self, entries: int) -> None:
        with self._lock:
            self.delivered += entries
