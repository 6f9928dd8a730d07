"""What a worker does besides passes: it retires segments, removes dead loads, and warns of old snapshots.

Each is done once in a while, however many loops ask for it. Nothing raises but a lost connection: psycopg's
OperationalError.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod
from contextlib import suppress
from typing import Any, NamedTuple

import psycopg
from psycopg import errors as pg

from pgcombine.database.connect import Connection, dicts
from pgcombine.database.sqlfiles import query

log = logging.getLogger("pgcombine.worker")

RETIRE_EVERY_SECONDS = 1.0  # over queues that passes were made over
RETIRE_ALL_SECONDS = 60.0
CLEAN_EVERY_SECONDS = 600.0
LOADS_SECONDS = 86_400.0  # a load of which nobody was heard for so long has died
RUNS_SECONDS = 30 * 86_400.0  # ids of runs are kept for so long
OLD_SECONDS = 60.0  # the age at which a snapshot is old
WATCH_EVERY_SECONDS = 60.0


class Maintenance(ABC):
    """Something to do every ``every`` seconds, by whichever loop comes first."""

    def __init__(self, every: float) -> None:
        self.every = every
        self._next = 0.0
        self._lock = threading.Lock()

    def look(self, connection: Connection) -> None:
        """Do it if it is time. The connection is idle in autocommit."""
        now = time.monotonic()
        with self._lock:
            if now < self._next:
                return
            self._next = now + self.every
        try:
            self.do(connection)
        except psycopg.Error as error:  # what somebody did to the database must not end a worker
            if connection.closed or isinstance(error, psycopg.OperationalError):
                raise
            log.warning("maintenance.failed what=%s reason=%s", type(self).__name__, str(error).strip().splitlines()[0])

    @abstractmethod
    def do(self, connection: Connection) -> None:
        """Do it now."""


def adopt(connection: Connection) -> bool:
    """Make a database that was restored from a dump this program's own, if it isn't yet: ``pgcombine.adopt``.

    The connection is idle in autocommit.
    """
    row = connection.execute("select not pgcombine.own_lineage()").fetchone()
    assert row is not None
    if row[0]:
        row = connection.execute("select pgcombine.adopt()").fetchone()
        assert row is not None
    return bool(row[0])


def retire(connection: Connection, queue: str | None) -> None:
    """Retire segments of a queue, of all for None. The connection is idle in autocommit; its timeouts may end this."""
    with suppress(pg.QueryCanceled):
        connection.execute("call pgcombine.retire(%s)", (queue,))


class Retire(Maintenance):
    """Truncates what passes leave of ``queues`` (all when none is named), and trims the journal.

    These are updates that are combined and that nobody needs any more; the rules are those of ``pgcombine.retire``. A
    queue that passes were made over is looked at every second, the others once a minute.
    """

    def __init__(self, queues: tuple[str, ...], *, every: float = RETIRE_EVERY_SECONDS) -> None:
        super().__init__(every)
        self._queues = queues
        self._passed_over: dict[str, float] = {}  # when
        self._next_all = 0.0

    def passed_over(self, queue: str) -> None:
        """Note that a pass has combined updates of a queue."""
        self._passed_over[queue] = time.monotonic()

    def do(self, connection: Connection) -> None:
        """Retire what can be."""
        adopt(connection)
        now = time.monotonic()
        if now >= self._next_all:
            self._next_all = now + RETIRE_ALL_SECONDS
            for queue in self._queues or (None,):
                retire(connection, queue)
                connection.execute("select pgcombine.trim_journal(%s)", (queue,))
            return
        for queue, when in list(self._passed_over.items()):
            if when < now - RETIRE_ALL_SECONDS:
                self._passed_over.pop(queue, None)
            else:
                retire(connection, queue)


class Cleaned(NamedTuple):
    """How many dead loads, and ids of old runs, were removed."""

    loads: int
    runs: int


def clean(connection: Connection, *, loads: float = LOADS_SECONDS, runs: float = RUNS_SECONDS) -> Cleaned:
    """Remove loads of which nobody was heard for ``loads`` seconds, and ids of runs older than ``runs`` seconds."""
    row = connection.execute(
        "select * from pgcombine.clean_loads(make_interval(secs => %s), make_interval(secs => %s))", (loads, runs)
    ).fetchone()
    assert row is not None
    return Cleaned(*row)


class Clean(Maintenance):
    """Removes loads from Spark that died, and ids of runs from long ago, by the rules of ``pgcombine.clean_loads``.

    A worker whose role may run passes over no queue leaves it to others.
    """

    def __init__(self, *, every: float = CLEAN_EVERY_SECONDS) -> None:
        super().__init__(every)

    def do(self, connection: Connection) -> None:
        """Clean now."""
        try:
            row = connection.execute("select * from pgcombine.tidy_loads()").fetchone()
        except pg.InsufficientPrivilege:
            return
        assert row is not None
        cleaned = Cleaned(*row)
        if any(cleaned):
            log.info("spark.cleaned loads=%d runs=%d", cleaned.loads, cleaned.runs)


def old_snapshots(connection: Connection, older_than: float = OLD_SECONDS) -> list[dict[str, Any]]:
    """Who holds snapshots older than ``older_than`` seconds: ``holder``, ``pid``, ``name``, ``since``, ``age_seconds``,
    ``detail``, the oldest first."""
    return dicts(connection, query("old_snapshots"), (float(older_than), float(older_than)))


class Watch(Maintenance):
    """Logs a warning for each old snapshot that is held elsewhere in the database.

    They slow passes down (``sql/queries/old_snapshots.sql`` tells why), and only who holds them can end them.
    """

    def __init__(self, *, older_than: float = OLD_SECONDS, every: float = WATCH_EVERY_SECONDS) -> None:
        super().__init__(every)
        self.older_than = older_than

    def do(self, connection: Connection) -> None:
        """Look now."""
        for found in old_snapshots(connection, self.older_than):
            log.warning(
                "snapshot.old holder=%s pid=%s name=%s age_seconds=%s detail=%s",
                found["holder"].replace(" ", "_"),
                found["pid"],
                found["name"],
                "unknown" if found["age_seconds"] is None else round(found["age_seconds"]),
                found["detail"],
            )
