"""The types of the doctor's checks: what a check gets, and what it returns.

A check is a function that takes a :class:`Context` and yields findings. The name of the function, with ``-`` for ``_``,
is the ``check`` of its findings.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeAlias

from pgcombine.database.connect import Connection, dicts
from pgcombine.database.sqlfiles import query
from pgcombine.queue import status as figures
from pgcombine.runtime.wakeup import pooled
from pgcombine.shard import nodes

AGAIN = 1.0  # seconds after which a lag above the limit is read again


class Level(StrEnum):
    """The severity of a finding, in ascending order. Only ``error`` makes the command ``doctor`` fail."""

    ok = "ok"
    info = "info"
    warning = "warning"
    error = "error"


@dataclass(frozen=True)
class Finding:
    """One finding.

    ``check`` is the name of the check. ``subject`` is the queue, shard, export, feed or server concerned, or empty.
    ``found`` says what was found. ``value`` is the number, version or list in it, for programs, or None. ``advice``
    says what to do; it is empty if ``level`` is ok, and may be empty for an error.
    """

    level: Level
    found: str
    advice: str = ""
    subject: str = ""
    value: Any = None
    check: str = ""

    def as_dict(self) -> dict[str, Any]:
        names = ("check", "level", "subject", "found", "advice", "value")
        return {name: getattr(self, name) for name in names}


def ok(found: str, *, subject: str = "", value: Any = None) -> Finding:
    """Return a finding that needs no action."""
    return Finding(Level.ok, found, "", subject, value)


def info(found: str, advice: str, *, subject: str = "", value: Any = None) -> Finding:
    """Return a finding about something that may be intended."""
    return Finding(Level.info, found, advice, subject, value)


def warning(found: str, advice: str, *, subject: str = "", value: Any = None) -> Finding:
    """Return a finding about something that should be looked at."""
    return Finding(Level.warning, found, advice, subject, value)


def error(found: str, advice: str, *, subject: str = "", value: Any = None) -> Finding:
    """Return a finding about something that keeps pgcombine, or a part of it, from working."""
    return Finding(Level.error, found, advice, subject, value)


@dataclass(frozen=True)
class Limits:
    """The limits of the checks. Times are in seconds."""

    lag: float = 60.0  # age of the oldest pending update, or of the oldest entry or write that waits
    snapshot: float = 60.0  # age of a snapshot or of a transaction that has written
    clock: float = 2.0  # difference between the clocks of the server and of this machine
    round_trip: float = 1.0  # time from a notification to its arrival
    wait: float = 5.0  # time until a notification counts as lost
    answer: float = 15.0  # time that a server takes to answer, or for which a queue's updates can't be counted
    load: float = 3600.0  # time since a load from Spark was last seen alive
    waiting_bytes: int = 256 * 2**20  # size of a queue's segments that wait to be truncated
    retained_bytes: int = 2**30  # size of the write-ahead log that a slot keeps
    full: float = 0.9  # share of the disk that is used


@dataclass
class Context:
    """A database as its checks see it.

    ``connection`` is in autocommit. ``dsn`` opens more connections to the database. ``queues`` are the names of the
    queues to examine (empty: all). ``rights`` are the rights that the role must have. If none is named, the
    check ``rights`` examines the rights that the role has, completely or in part. ``clock`` returns this machine's time
    in seconds since 1970.
    """

    connection: Connection
    dsn: str
    queues: Sequence[str] = ()
    rights: Sequence[str] = ()
    limits: Limits = field(default_factory=Limits)
    clock: Callable[[], float] = time.time

    @cached_property
    def attributes(self) -> dict[str, Any]:
        """The attributes of the connection's role.

        ``role`` is its name. The others say whether it is a ``superuser``, ``sees`` the sessions of all roles, and may
        create ``temporary`` tables.
        """
        (found,) = self.rows("doctor_role")
        return found

    @property
    def role(self) -> str:
        return str(self.attributes["role"])

    @cached_property
    def settings(self) -> dict[str, str]:
        """The settings with which the session began, in the units of ``pg_settings``."""
        return dict(self.connection.execute(query("doctor_settings")).fetchall())

    @cached_property
    def pooled(self) -> bool:
        return pooled(self.connection)

    @cached_property
    def stats(self) -> list[dict[str, Any]]:
        """The rows of the query ``doctor_queues`` for the queues to examine.

        If a lag is above the limit, the rows are read again after AGAIN seconds. The first lag may be too high: if no
        worker has recorded the time recently, a new update seems old.
        """

        def read() -> list[dict[str, Any]]:
            return [row for row in self.rows("doctor_queues") if not self.queues or row["queue"] in self.queues]

        found = read()
        if any(row["lag_seconds"] > self.limits.lag for row in found):
            time.sleep(AGAIN)
            found = read()
        return found

    @cached_property
    def workers(self) -> list[dict[str, Any]]:
        """The workers that are connected: the rows of ``pgcombine.worker``."""
        return figures.workers(self.connection)

    @cached_property
    def shards(self) -> list[dict[str, Any]]:
        """The shards of the fronts, as :func:`pgcombine.shard.nodes.shards` returns them."""
        return nodes.shards(self.connection)

    def rows(self, name: str, *parameters: Any) -> list[dict[str, Any]]:
        return dicts(self.connection, query(name), parameters)


Check: TypeAlias = Callable[[Context], Iterator[Finding]]


def name_of(check: Check) -> str:
    return check.__name__.replace("_", "-")


def worst(findings: Iterable[Finding]) -> Level:
    """Return the highest level among the findings; ok if there are none."""
    order = list(Level)
    return max((finding.level for finding in findings), key=order.index, default=Level.ok)


def megabytes(size: float) -> str:
    return f"{size / 2**20:.0f} MB"
