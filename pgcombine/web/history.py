"""The figures of the queues over time, kept in this process's memory.

All readers share the polls: :meth:`History.poll` reads the query ``web_queues`` about once a second at most. A thread
also polls every few seconds, so that the charts have no gaps while no page is open. The lag and the backlog are known
since the process started. ``pgcombine.minute_stat`` has the throughput, also of earlier times.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg

from pgcombine import schema
from pgcombine.database.connect import Connection, dicts
from pgcombine.database.sqlfiles import query
from pgcombine.errors import PgCombineError, SchemaError, first_line
from pgcombine.queue.status import require_monitor
from pgcombine.web.database import BUSY, BusyError, Database

EVERY = 5.0  # seconds between two polls of the thread
YOUNGEST = 1.0  # seconds for which all readers get the result or the error of one poll
KEPT = 720  # greatest number of points of a queue, those of about an hour
MINUTES_EVERY = 30.0  # seconds for which all readers get the result of one read of pgcombine.minute_stat

log = logging.getLogger("pgcombine.web")


class Point(NamedTuple):
    """The figures of a queue at one time. ``at`` is in seconds since 1970, ``lag`` in seconds.

    ``updates`` and ``changes`` are rates per second, averages of the minute before. ``inserted`` is the number of rows
    ever inserted into the log, or None if it isn't known.
    """

    at: float
    pending: float
    lag: float
    updates: float
    changes: float
    inserted: int | None


class History:
    """The latest figures of the queues, and those since ``began`` (in seconds since 1970).

    :meth:`poll`, :meth:`points` and :meth:`minutes` raise the errors of :meth:`Database.run`.
    """

    def __init__(self, database: Database, *, clock: Callable[[], float] = time.time) -> None:
        self._database = database
        self._clock = clock
        self.began = clock()
        self._lock = threading.Lock()
        self._rows: list[dict[str, Any]] = []
        self._at = 0.0
        self._error: PgCombineError | psycopg.Error | None = None
        self._failed_at = 0.0
        self._minutes: dict[str, list[dict[str, Any]]] = {}
        self._minutes_at = 0.0
        self._points: dict[str, deque[Point]] = defaultdict(lambda: deque(maxlen=KEPT))

    def poll(self) -> list[dict[str, Any]]:
        """Return the rows of ``web_queues``, read about YOUNGEST seconds ago at most."""
        with self._turn():
            if self._clock() - self._at > YOUNGEST:
                self._poll()
            return self._rows

    @contextmanager
    def _turn(self) -> Iterator[None]:
        """Hold the lock. If another thread holds it, wait for a limited time, then raise BusyError."""
        error = self._error
        if not self._lock.acquire(timeout=self._database.seconds if error is None else 0):
            raise BusyError(BUSY) if error is None else error.with_traceback(None)
        try:
            yield
        finally:
            self._lock.release()

    def _poll(self) -> None:
        if self._error is not None and self._clock() - self._failed_at < YOUNGEST:
            raise self._error.with_traceback(None)
        try:
            self._rows = self._database.run(_stat)
        except (PgCombineError, psycopg.Error) as error:
            self._error, self._failed_at = error, self._clock()
            raise
        self._error, self._at = None, self._clock()
        for row in self._rows:
            points = self._points[row["queue"]]
            if not points or self._at - points[-1].at >= EVERY * 0.9:
                updates, changes = row["updates_per_second_1m"], row["changes_per_second_1m"]
                points.append(Point(self._at, row["pending"], row["lag_seconds"], updates, changes, row["inserted"]))
        for gone in self._points.keys() - {row["queue"] for row in self._rows}:
            del self._points[gone]

    def points(self, queue: str) -> Sequence[Point]:
        """Return the points of a queue, oldest first."""
        with self._turn():
            return [*self._points[queue]] if queue in self._points else []

    def minutes(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        """Return the rows of ``pgcombine.minute_stat`` of the last hour by queue. A queue without rows is missing.

        The rows were read MINUTES_EVERY seconds ago at most.
        """
        with self._turn():
            if self._clock() - self._minutes_at > MINUTES_EVERY:
                found: dict[str, list[dict[str, Any]]] = defaultdict(list)
                for row in self._database.run(lambda connection: dicts(connection, query("web_history"))):
                    found[row["queue"]].append(row)
                self._minutes, self._minutes_at = dict(found), self._clock()
            return self._minutes

    def run(self, stop: threading.Event) -> None:
        """Poll every few seconds until ``stop`` is set. Logs when polls begin to fail, and when they succeed again.

        Raises SchemaError if the schema fitted this program before and no longer does.
        """
        away = right = False
        while not stop.is_set():
            try:
                self._database.run(schema.check_connection)
                right = True
                self.poll()
                if away:
                    log.info("web.database_back")
                away = False
            except (PgCombineError, psycopg.Error) as error:
                if right and isinstance(error, SchemaError):
                    raise
                if not away:
                    log.warning("web.database_away reason=%s", first_line(error))
                away = True
            stop.wait(EVERY)


def _stat(connection: Connection) -> list[dict[str, Any]]:
    require_monitor(connection)
    return dicts(connection, query("web_queues"))
