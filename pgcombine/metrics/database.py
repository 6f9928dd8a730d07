"""The figures of the database: gauges, such as each queue's lag.

Normally, one of the processes that serve metrics gives these figures.

- The process that holds an advisory lock gives the figures. The others try to take the lock at each scrape, without
  waiting for it. When the holder ends, fails to read the database, or isn't scraped for five minutes, the lock is free
  for another process. Behind a pooler, which can't keep such a lock, each process gives the figures.
- Any role can take the lock. If the holder's role lacks the right ``monitor``, each process gives the figures.
- Except behind a pooler, a process whose role lacks the right ``monitor`` gives no figures, since the role doesn't see
  all queues.
- Scrapes within a few seconds get the same figures. If the server refuses or cancels a query, the figures of this query
  are missing, and ``figures_read`` says so. After any other failure all figures are missing, and the next attempt is
  some seconds later.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any, TypeVar

import psycopg
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from pgcombine import schema
from pgcombine.config import libpq_dsn
from pgcombine.database import sqlfiles
from pgcombine.database.connect import closed_on_error, normalized, one
from pgcombine.database.deadline import DeadlineConnection
from pgcombine.errors import PgCombineError, SchemaError, first_line
from pgcombine.metrics.names import FIGURES_READ, OF_THE_DATABASE
from pgcombine.runtime.wakeup import pooled

log = logging.getLogger("pgcombine.metrics")

# the limit for each part of a scrape or probe: the wait for another scrape or probe, the first queries of a connection,
# and all queries after them; by default, Prometheus waits for ten seconds
DEADLINE_SECONDS = 4.0
_STATEMENT_SECONDS = 2.0
_KEPT_SECONDS = 3.0  # the time for which scrapes get the same figures
_REST_SECONDS = 5.0  # the time from a failure to the next attempt
_UNASKED_SECONDS = 300.0  # after this time without a scrape, the server ends the session and so frees the lock

Row = dict[str, Any]
T = TypeVar("T")


class DatabaseFigures(Collector):
    """The figures of the database at ``dsn``, as a collector of prometheus-client."""

    def __init__(self, dsn: str) -> None:
        self._dsn = libpq_dsn(dsn)
        self._lock = threading.Lock()  # guards the attributes below
        self._connection: DeadlineConnection | None = None
        self._turn: bool | None = False  # see metrics_turn.sql
        self._pooled = False
        self._strangers: str | None = None
        self._found: list[Metric] = []
        self._asked = self._kept_until = self._rest_until = 0.0  # monotonic times
        self._trouble: str | None = None

    def collect(self) -> Iterator[Metric]:
        """Yield the figures.

        Yields none if another process gives them, if the role lacks the right ``monitor``, or if the database can't be
        read, or not in time.
        """
        if not self._lock.acquire(timeout=DEADLINE_SECONDS):
            return
        try:
            self._asked = time.monotonic()
            if self._asked >= self._kept_until:
                self._found = []
                self._found = self._attempt(self._figures) or []
                self._kept_until = time.monotonic() + _KEPT_SECONDS
            found = self._found
        finally:
            self._lock.release()
        yield from found

    def unfit(self) -> str | None:
        """Return why the program can't use the database, or None if it can."""
        if not self._lock.acquire(timeout=DEADLINE_SECONDS):
            return "the database doesn't answer"
        try:
            if self._turn and time.monotonic() > self._asked + _UNASKED_SECONDS:
                self._close()  # otherwise probes of /readyz would keep the session, and so the lock, alive
            self._attempt(schema.check_connection)
            return self._trouble
        finally:
            self._lock.release()

    def close(self) -> None:
        with self._lock:
            self._close()

    def _attempt(self, read: Callable[[DeadlineConnection], T]) -> T | None:
        """Return the result of ``read``, or None if it fails."""
        if time.monotonic() < self._rest_until:
            return None
        try:
            connection = self._connected()
            with connection.within(DEADLINE_SECONDS):
                result = read(connection)
        except (psycopg.Error, PgCombineError) as error:
            self._close()
            self._rest_until = time.monotonic() + _REST_SECONDS
            if self._trouble is None:
                log.warning("metrics.failed reason=%s", first_line(error))
            # the reason is shown over HTTP, so it must not name an address or a role
            self._trouble = str(error) if isinstance(error, SchemaError) else "the database can't be reached"
            return None
        if self._trouble is not None:
            log.info("metrics.recovered")
        self._trouble = None
        return result

    def _connected(self) -> DeadlineConnection:
        if self._connection is not None and not self._connection.closed:
            return self._connection
        connection = DeadlineConnection.connect(
            self._dsn, application_name="pgcombine metrics", autocommit=True, prepare_threshold=None, connect_timeout=2
        )
        with closed_on_error(connection), connection.within(DEADLINE_SECONDS):
            normalized(connection)
            self._pooled = pooled(connection)
            if not self._pooled:
                for name, seconds in (
                    ("idle_session_timeout", _UNASKED_SECONDS),
                    ("statement_timeout", _STATEMENT_SECONDS),
                ):
                    connection.execute("select set_config(%s, %s, false)", (name, f"{seconds:.0f}s"))
            schema.check_connection(connection)
        self._connection, self._turn = connection, False
        return connection

    def _figures(self, connection: DeadlineConnection) -> list[Metric]:
        return list(self._read(connection)) if self._its_turn(connection) else []

    def _its_turn(self, connection: DeadlineConnection) -> bool:
        if self._pooled:
            return True
        if not self._turn:
            before = self._turn
            self._turn, strangers = one(connection, sqlfiles.query("metrics_turn"))
            if strangers is not None:
                if self._strangers != strangers:
                    log.warning("metrics.lock_taken by=%s hint=%s", strangers, "end these sessions")
                self._strangers = strangers
                return True
            if self._turn:
                log.info("metrics.gives figures=database")
            elif self._turn is None and before is False:
                log.warning("metrics.partial role=%s hint=pgcombine.grant_right", connection.info.user)
        return bool(self._turn)

    def _read(self, connection: DeadlineConnection) -> Iterator[Metric]:
        """Yield which queries the server has answered, and the figures of all queries that it has answered."""
        rows = {query: self._rows(connection, query) for query in dict.fromkeys(one.query for one in OF_THE_DATABASE)}
        answered = GaugeMetricFamily(FIGURES_READ.name, FIGURES_READ.help, labels=FIGURES_READ.labels)
        for query, found in rows.items():
            answered.add_metric([query], float(found is not None))
        yield answered
        for gauge in OF_THE_DATABASE:
            family = GaugeMetricFamily(gauge.name, gauge.help, labels=gauge.labels)
            for row in rows[gauge.query] or ():
                if row[gauge.column] is not None:
                    family.add_metric([str(row[label]) for label in gauge.labels], float(row[gauge.column]))
            yield family

    @staticmethod
    def _rows(connection: DeadlineConnection, query: str) -> list[Row] | None:
        try:
            cursor = connection.execute(sqlfiles.query(query).encode())
        except psycopg.Error as error:
            if connection.closed:
                raise
            log.warning("metrics.failed query=%s reason=%s", query, first_line(error))
            return None
        columns = [column.name for column in cursor.description or ()]
        return [dict(zip(columns, row, strict=True)) for row in cursor]

    def _close(self) -> None:
        if self._connection is not None:
            self._connection.close()
        self._connection, self._turn, self._found = None, False, []
