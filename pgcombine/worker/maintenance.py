"""The tasks of a worker besides passes.

A worker reclaims segments, trims the journal, runs the components' upkeep and clean-up, and warns of old snapshots. In
a database that was restored from a dump, it also calls ``pgcombine.post_restore``.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Any

import psycopg
from psycopg import errors as pg

from pgcombine.database.connect import Connection, dicts, one
from pgcombine.database.sqlfiles import query
from pgcombine.errors import first_line
from pgcombine.runtime.wakeup import Turns

log = logging.getLogger("pgcombine.worker")

ROUND_SECONDS = 0.1  # the pause between two checks for a new round (see Reclaim)
RECLAIM_EVERY_SECONDS = 1.0
RECENT_SECONDS = 60.0
TRIM_EVERY_SECONDS = 60.0
SMALL_SEGMENT = 128 * 1024  # bytes; a segment up to this size may keep combined updates
POST_RESTORE_EVERY_SECONDS = 1.0
BACKLOG_EVERY_SECONDS = 1.0
CLEAN_EVERY_SECONDS = 600.0
UPKEEP_EVERY_SECONDS = 0.5  # also the pause between two looks for due tasks
OLD_SECONDS = 60.0  # the age from which a snapshot counts as old, by default
WATCH_EVERY_SECONDS = 60.0


class Maintenance:
    """A task that runs every ``every`` seconds. ``name`` identifies it in the log."""

    def __init__(self, name: str, every: float, do: Callable[[Connection], object]) -> None:
        self._name, self._every, self._do = name, every, do
        self._next = 0.0

    def run_if_due(self, connection: Connection) -> None:
        """Run the task if it is due. The connection is idle in autocommit.

        Raises psycopg.OperationalError, and any error of psycopg that closed the connection. Other errors of psycopg
        are logged.
        """
        now = time.monotonic()
        if now < self._next:
            return
        self._next = now + self._every
        try:
            self._do(connection)
        # other errors, for example because a user has changed the database, must not end the worker
        except psycopg.Error as error:
            if connection.closed or isinstance(error, psycopg.OperationalError):
                raise
            log.warning("maintenance.failed what=%s reason=%s", self._name, first_line(error))


def post_restore(connection: Connection) -> bool:
    """Call ``pgcombine.post_restore`` if the database was restored from a dump and the function hasn't run since.

    Returns whether the function had something to do.
    """
    (own,) = one(connection, "select pgcombine_internal.own_cluster()")
    return not own and bool(one(connection, "select pgcombine.post_restore()")[0])


def reclaim(connection: Connection, queue: str) -> None:
    """Reclaim segments of a queue. The connection is idle in autocommit.

    Afterwards the function vacuums large segments with dead rows if the role has the rights of their owner: combined
    updates may have been deleted instead of truncated, and autovacuum may come much later. If the server cancels a
    statement, for example at the statement timeout, the function returns, and a later call does the rest.
    """
    with suppress(pg.QueryCanceled):
        connection.execute("call pgcombine.reclaim(%s)", (queue,))
        for (segment,) in connection.execute(query("dead_segments"), (queue,)).fetchall():
            connection.execute(f"vacuum (skip_locked) {segment}".encode())


def unreclaimed(connection: Connection, queues: Sequence[str], size: int = SMALL_SEGMENT) -> list[str]:
    """Return which queues have a segment of more than ``size`` bytes (0: or tokens that ``reclaim`` may delete)."""
    found = connection.execute(query("unreclaimed"), (list(queues), size, size)).fetchall()
    return [str(name) for (name,) in found]


def reclaiming(connection: Connection) -> str:
    """Return how workers of this role reclaim the log: ``truncating`` or ``deleting``.

    Workers delete if neither the role nor the schema's owner is a member of pg_read_all_stats.
    """
    return str(one(connection, query("reclaiming"))[0])


class Reclaim:
    """Reclaims the logs of ``queues`` (empty: of all queues), and trims their journals.

    ``pgcombine.reclaim`` says what it truncates. If a pass of this worker combined updates of a queue in the last
    minute, or if a large segment was left, the log is reclaimed every second, and whenever transaction ids have reached
    the next segment (a *round* has ended). The other logs take turns, at least one a second, and are reclaimed if they
    aren't empty.
    """

    def __init__(self, queues: tuple[str, ...]) -> None:
        self._queues = queues
        self._passed_over: dict[str, float] = {}  # by queue: when the last pass ended, or a large segment was left
        # by queue: the round of the last call, and the time of the next call
        self._reclaimed: dict[str, tuple[int, float]] = {}
        self._turns = Turns()
        self._next_turn = self._next_trim = 0.0

    @property
    def active(self) -> bool:
        """Whether a queue may begin a new round."""
        return bool(self._passed_over)

    def passed_over(self, queue: str) -> None:
        """Record that a pass has combined updates of a queue."""
        self._passed_over[queue] = time.monotonic()

    def do(self, connection: Connection) -> None:
        """Reclaim the logs that are due."""
        now = time.monotonic()
        if now >= self._next_trim:
            self._next_trim = now + TRIM_EVERY_SECONDS
            for name in self._queues or (None,):
                connection.execute("select pgcombine_internal.trim_journal(%s)", (name,))
        if now >= self._next_turn:
            self._next_turn = now + RECLAIM_EVERY_SECONDS
            every = "select queue from pgcombine.queue"
            turn = self._turns.next(lambda: self._queues or [name for (name,) in connection.execute(every)])
            names = [name for name in turn if name not in self._passed_over]
            found = unreclaimed(connection, names, 0)
            for name in found:
                reclaim(connection, name)
            # ``reclaim`` leaves a segment that a session reads. The entry in _passed_over makes further calls follow.
            for name in unreclaimed(connection, found) if found else ():
                self._passed_over.setdefault(name, now)
        for queue, when in list(self._passed_over.items()):
            if when < now - RECENT_SECONDS:
                self._passed_over.pop(queue, None)
                self._reclaimed.pop(queue, None)
        if not self._passed_over:
            return
        rounds = connection.execute(query("rounds"), (list(self._passed_over),))
        for queue, number in rounds.fetchall():
            last, due = self._reclaimed.get(queue, (-1, 0.0))
            if number != last or now >= due:
                self._reclaimed[queue] = number, now + RECLAIM_EVERY_SECONDS
                reclaim(connection, queue)


def clean(connection: Connection) -> None:
    """Run the components' queries for the event ``clean_up``, which remove what is no longer needed.

    The table ``pgcombine.hook`` has these queries. The counts that they return are logged. If the role lacks a
    privilege for a query, the query is skipped.
    """
    for (statement,) in connection.execute("select query from pgcombine.hook where event = 'clean_up'").fetchall():
        with suppress(pg.InsufficientPrivilege):
            for what, count in connection.execute(statement.encode()).fetchall():
                log.info("worker.cleaned what=%s count=%d", what, count)


def upkeep(connection: Connection) -> None:
    """Run the statements that the components' queries for the event ``upkeep`` return.

    The table ``pgcombine.hook`` has these queries. A statement is repeated while one of its rows is true. If a
    statement fails, the error is logged and the others still run, unless the connection is closed.
    """
    all_hooks = "select string_agg(query, e'\n union all ') from pgcombine.hook where event = 'upkeep'"
    (hooks,) = one(connection, all_hooks)
    for (statement,) in connection.execute(hooks.encode()).fetchall() if hooks else ():
        try:
            while any(more for (more,) in connection.execute(statement.encode()).fetchall()):
                pass
        except psycopg.Error as error:
            if connection.closed:
                raise
            log.warning("upkeep.failed statement=%s reason=%s", statement, first_line(error))


def old_snapshots(connection: Connection, older_than: float = OLD_SECONDS) -> list[dict[str, Any]]:
    """Return the holders of snapshots, and the writing transactions, older than ``older_than`` seconds, oldest first.

    Unused replication slots come last, at any age. Each result is a dict of ``holder``, ``pid``, ``name``, ``since``,
    ``age_seconds`` and ``detail``.
    """
    return dicts(connection, query("old_snapshots"), [float(older_than)] * 4)


def warn_of_old_snapshots(connection: Connection, older_than: float) -> None:
    """Log a warning for each row of :func:`old_snapshots`.

    Old snapshots slow passes down (``sql/queries/old_snapshots.sql`` explains why). The worker doesn't end them.
    """
    for found in old_snapshots(connection, older_than):
        log.warning(
            "snapshot.old holder=%s pid=%s name=%s age_seconds=%s detail=%s",
            found["holder"].replace(" ", "_"),
            found["pid"],
            found["name"],
            "unknown" if found["age_seconds"] is None else round(found["age_seconds"]),
            found["detail"],
        )
