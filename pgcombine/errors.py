"""Exceptions of pgcombine, and how errors raised in SQL become them.

Functions under ``sql/`` raise with SQLSTATEs of class ``PC``; :func:`translate` maps those to the classes
below. The driver's error stays as ``__cause__``; ``sqlstate``, ``queue`` and ``bucket`` are set where known.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

import psycopg


class PgCombineError(Exception):
    """Base of all errors of pgcombine. The message says what is wrong, with which value, and what to do."""

    def __init__(
        self,
        message: str,
        *,
        queue: str | None = None,
        bucket: int | None = None,
        sqlstate: str | None = None,
    ) -> None:
        super().__init__(message)
        self.queue = queue
        self.bucket = bucket
        self.sqlstate = sqlstate


class ConfigError(PgCombineError):
    """A setting is missing or wrong, or a program that is needed can't be found."""


class ConnectError(ConfigError):
    """The server can't be connected to."""


class ServerNotReady(ConnectError):
    """The server is there, but takes no connections yet: it starts up, recovers or shuts down (SQLSTATE 57P03).

    Or it takes no writes, and writes are needed: it is a standby, or read-only.
    """


class SchemaError(PgCombineError):
    """The database's pgcombine schema isn't the one this program works with."""


class SchemaMissing(SchemaError):
    """The database has no pgcombine schema."""


class SchemaMismatch(SchemaError):
    """The schema is older or newer than this program."""


class QueueError(PgCombineError):
    """A queue's definition or use is wrong."""


class QueueNotFound(QueueError):
    """There is no queue of that name."""


class QueueExists(QueueError):
    """A queue of that name is there already."""


class InvalidDefinition(QueueError):
    """A name, column, type, combiner or option of a queue is invalid."""


class QueueNotEmpty(QueueError):
    """The operation would lose pending updates, or entries that wait to be exported."""


class InvalidUpdate(QueueError):
    """Updates don't fit the queue's columns. ``row`` is the number of the first that doesn't, where that is known."""

    row: int | None = None


class NotGranted(QueueError):
    """The role lacks a right of pgcombine's; the message says which, and what grants it."""


class BacklogFull(QueueError):
    """The queue has as many pending updates as it may have."""


class NotAdopted(QueueError):
    """The database was restored from a dump, and no worker has adopted it yet: try again when one has started."""


class TooManyLocks(QueueError):
    """The operation takes more locks at once than the server has room for."""


class PassError(PgCombineError):
    """A pass failed: a combiner or an observer raised. ``reason`` is what it said.

    ``part`` is the slice of the keys that the pass took, as (mask, slice); (None, None): all keys.
    """

    reason: str = ""
    part: tuple[int | None, int | None] = (None, None)


class AppNeeded(PassError):
    """The queue has functions in Python that this program wasn't given."""


class NotQuarantined(QueueError):
    """The key, or the entry of an export, isn't quarantined."""


class LoadError(QueueError):
    """A load from Spark can't be completed; nothing of it was applied. Run it again with the same run id."""


class WaitTimeout(QueueError):
    """Updates were still pending when the time was up."""


class DestinationError(PgCombineError):
    """Something is wrong with a destination, or with what is delivered to it."""


class DestinationNotFound(DestinationError):
    """There is no destination of that name."""


class DestinationDown(DestinationError):
    """A destination couldn't take what was delivered, for its health or its configuration: try the same again."""


class DestinationRejected(DestinationError):
    """A destination refuses what was delivered for the data in it: the same will be refused again."""


class Fenced(DestinationDown):
    """A destination obeys another server, ``owner``, which owns the export since ``epoch``."""

    def __init__(self, message: str, *, owner: str, epoch: int) -> None:
        super().__init__(message)
        self.owner = owner
        self.epoch = epoch


class HandoffError(PgCombineError):
    """Several servers hold the same queue, and something is wrong with one of them or between them."""


class Unavailable(HandoffError):
    """No server took the write: nothing was written. For a read: too few servers answered."""


class HintsFull(Unavailable):
    """So much waits for a server already that no more writes are taken: nothing was written."""


class Indeterminate(HandoffError):
    """Too few servers acknowledged a write in time, which isn't rolled back.

    ``token`` is that of the write: retrying with it is safe. ``acked`` are the servers that acknowledged it,
    ``hinted`` those that get it by hints. Where both are empty, nobody knows whether it was written.
    """

    def __init__(
        self,
        message: str,
        *,
        token: UUID,
        acked: tuple[str, ...] = (),
        hinted: tuple[str, ...] = (),
        queue: str | None = None,
    ) -> None:
        super().__init__(message, queue=queue)
        self.token = token
        self.acked = acked
        self.hinted = hinted


class TokenConflict(HandoffError):
    """The token was used for other updates."""


class TokenExpired(HandoffError):
    """The token is too old, so that nobody knows whether it was used, or it is of another time to come."""


class WrongServer(HandoffError):
    """The server isn't the one that is meant: another one, a standby, a copy, or older than it was."""


class QueueMismatch(HandoffError):
    """The queue isn't on the server, or is defined otherwise there."""


class BeingRebuilt(HandoffError):
    """The server takes no writes while it is made a copy of another one; hints wait for it."""


class ReplicaError(HandoffError):
    """A server isn't registered, or can't be registered so."""


class ExportError(PgCombineError):
    """An export's definition or use is wrong."""


class ExportNotFound(ExportError):
    """There is no export of that name."""


_BY_SQLSTATE: dict[str, type[PgCombineError]] = {
    "PC001": QueueNotFound,
    "PC002": QueueExists,
    "PC003": InvalidDefinition,
    "PC004": InvalidUpdate,
    "PC005": QueueNotEmpty,
    "PC006": WaitTimeout,
    "PC007": PassError,
    "PC008": AppNeeded,
    "PC009": NotQuarantined,
    "PC010": BacklogFull,
    "PC030": LoadError,
    "PC031": LoadError,
    "PC032": LoadError,
    "PC011": TooManyLocks,
    "PC012": NotAdopted,
    "PC020": DestinationNotFound,
    "PC021": ExportNotFound,
    "PC022": NotQuarantined,
    "PC040": TokenConflict,
    "PC041": TokenExpired,
    "PC042": WrongServer,
    "PC043": QueueMismatch,
    "PC044": HintsFull,
    "PC045": ReplicaError,
    "PC046": BeingRebuilt,
}


def translate(error: psycopg.Error, *, queue: str | None = None, bucket: int | None = None) -> PgCombineError | None:
    """The pgcombine exception for an error raised by ``sql/``, or None if it is not one of those."""
    message = error.diag.message_primary or str(error)
    return from_sqlstate(error.sqlstate, message, error.diag.message_hint, queue=queue, bucket=bucket)


def from_sqlstate(
    sqlstate: str | None, message: str, hint: str | None, *, queue: str | None = None, bucket: int | None = None
) -> PgCombineError | None:
    """:func:`translate` for the parts of an error, whatever driver told them."""
    kind = _BY_SQLSTATE.get(sqlstate or "")
    if sqlstate == "42501" and hint and hint.startswith("select pgcombine.grant_"):  # not of any table
        kind = NotGranted
    if kind is None:
        return None
    return kind(f"{message} ({hint})" if hint else message, queue=queue, bucket=bucket, sqlstate=sqlstate)


@contextmanager
def translated(*, queue: str | None = None, bucket: int | None = None) -> Iterator[None]:
    """Raise pgcombine's exceptions in place of the driver's for errors raised by ``sql/``."""
    try:
        yield
    except psycopg.Error as error:
        own = translate(error, queue=queue, bucket=bucket)
        if own is None:
            raise
        raise own from error
