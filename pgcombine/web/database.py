"""A small pool of connections, opened on demand."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgcombine import schema
from pgcombine.config import libpq_dsn
from pgcombine.database.connect import Connection, closed_on_error, connect
from pgcombine.database.deadline import DeadlineConnection
from pgcombine.errors import ConnectError

CONNECTIONS = 4
SECONDS = 5.0  # limit of a statement, and of the wait for a free connection
IDLE_SECONDS = 2.0  # seconds in which an idle connection must answer before it is used again
CONNECT_SECONDS = 5  # limit for connecting to a host, unless the connection string has one

BUSY = "all connections of pgcombine web are in use (wait a moment: the database answers slowly)"

T = TypeVar("T")


class BusyError(ConnectError):
    """No connection of the pool became free in time."""


class Database:
    """The database that the pages show.

    ``dsn`` is a libpq connection string or a SQLAlchemy URL. ``seconds`` is the limit of a statement, and of the wait
    for a free connection. ``connections`` is the greatest number of connections.
    """

    def __init__(self, dsn: str, *, seconds: float = SECONDS, connections: int = CONNECTIONS) -> None:
        self.dsn = make_conninfo("", **({"connect_timeout": CONNECT_SECONDS} | conninfo_to_dict(libpq_dsn(dsn))))
        self.seconds = seconds
        self._free = threading.Semaphore(connections)
        self._idle: list[DeadlineConnection] = []
        self._lock = threading.Lock()
        self._closed = False

    def run(self, work: Callable[[Connection], T]) -> T:
        """Return the result of ``work``, which runs in one transaction.

        Raises what ``work`` raises. Raises BusyError if no connection becomes free in time, ConnectError if none can be
        opened, and SchemaError if the schema doesn't fit this program. A statement raises psycopg.errors.QueryCanceled
        after ``seconds``, and psycopg.errors.LockNotAvailable if it has waited for a lock for a second. If the server
        still doesn't answer a second after ``seconds``, the statement raises psycopg.OperationalError.
        """
        with self._one() as connection, connection.transaction():
            milliseconds = round(self.seconds * 1000)
            connection.execute(f"set local statement_timeout = {milliseconds}; set local lock_timeout = '1s'")
            return work(connection)

    @contextmanager
    def _one(self) -> Iterator[DeadlineConnection]:
        if not self._free.acquire(timeout=self.seconds):
            raise BusyError(BUSY)
        try:
            connection = self._taken() or self._opened()
            try:
                yield connection
            finally:
                self._put_back(connection)
        finally:
            self._free.release()

    def _taken(self) -> DeadlineConnection | None:
        """Return an idle connection, or None. If the connection doesn't answer, close all idle ones and return None."""
        with self._lock:
            if not self._idle:
                return None
            connection = self._idle.pop()
        with suppress(psycopg.OperationalError), connection.within(IDLE_SECONDS):
            connection.execute("select")
            return connection
        connection.close()
        self._close_idle()
        return None

    def _opened(self) -> DeadlineConnection:
        connection = connect(self.dsn, name="pgcombine web", timeout=0, limit=self.seconds + 1)
        with closed_on_error(connection):
            schema.check_connection(connection)
        return connection

    def _put_back(self, connection: DeadlineConnection) -> None:
        with self._lock:
            if not self._closed and not connection.closed:
                self._idle.append(connection)
                return
        connection.close()

    def close(self) -> None:
        """Close the idle connections. A connection in use is closed after its transaction."""
        with self._lock:
            self._closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()
