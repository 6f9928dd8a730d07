"""The exceptions of pgcombine, and their SQLSTATEs.

Most errors of the functions under ``sql/`` have SQLSTATEs of the class ``PC``. :func:`translate` maps these errors, and
those about a missing right of pgcombine, to the classes below. A caller can act on the base classes alone:

==================== ===============================================================================================
ConfigError          The programmer or the operator must change something, such as an argument, a setting or a right.
OperationalError     The call may succeed later: for example, a server is unreachable, or a queue is full.
QueueError           The definition or the use of a queue is wrong.
PassError            A pass failed, for example because a combiner or an observer raised.
ExportError          The definition, the use or the destination of an export is wrong.
ReplicationError     Something is wrong with one of the servers that hold the same queue, or between them.
==================== ===============================================================================================

Some classes have two bases: for example, ``except OperationalError`` also catches DestinationDownError.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID


def pip_install(extra: str) -> str:
    """Return the command that installs an extra of pgcombine."""
    return f"pip install 'pgcombine[{extra}]'"


try:
    import psycopg
except ImportError as error:
    raise ImportError(f"psycopg finds no libpq, PostgreSQL's client library: {pip_install('binary')}") from error


class PgCombineError(Exception):
    """The base class of pgcombine's errors.

    ``hint`` is the hint of the server's error, if it has one. The message includes it. ``queue``, ``bucket`` and
    ``sqlstate`` are set where they are known.
    """

    def __init__(
        self,
        message: str,
        *,
        queue: str | None = None,
        bucket: int | None = None,
        sqlstate: str | None = None,
        hint: str | None = None,
    ) -> None:
        super().__init__(f"{message} ({hint})" if hint else message)
        self.queue = queue
        self.bucket = bucket
        self.sqlstate = sqlstate
        self.hint = hint


class ConfigError(PgCombineError):
    """The programmer or the operator must change something, such as an argument, a setting or a right."""


class SchemaError(ConfigError):
    """The database's pgcombine schema doesn't fit this program, or can't be changed."""


class SchemaMissingError(SchemaError):
    """The database has no pgcombine schema."""


class SchemaMismatchError(SchemaError):
    """The database's pgcombine schema is of another version than this program."""


class NotGrantedError(ConfigError):
    """The role lacks a right of pgcombine. The message names the right, and the call that grants it.

    No right includes what only the schema's owner can do. In that case the message names the owner.
    """


class OperationalError(PgCombineError):
    """The same call may succeed later: for example, a server is unreachable or not ready, or a queue is full."""


class ConnectError(OperationalError):
    """A connection to the server can't be opened."""


class ServerNotReadyError(ConnectError):
    """The server takes no connections now, since it starts up, recovers or shuts down (SQLSTATE 57P03).

    Also raised if writes are needed and the server takes none, since it is a standby or read-only.
    """


class WaitTimeoutError(OperationalError):
    """The operation's time was up, for example while updates were still pending.

    Also raised without a wait, for example if the queue to drain is paused.
    """


class BacklogFullError(OperationalError):
    """The queue has ``max_backlog`` pending updates or more, and takes no further ones until workers combine some."""


class PostRestorePendingError(OperationalError):
    """The database was restored from a dump, and ``post_restore`` hasn't run yet. Workers call it."""


class QueueError(PgCombineError):
    """The definition or the use of a queue is wrong."""


class QueueNotFoundError(QueueError):
    """There is no queue of that name."""


class QueueExistsError(QueueError):
    """The name is taken, for example by another queue, rollup, export, feed or observer."""


class InvalidDefinitionError(QueueError):
    """A definition or an argument is invalid, or the call isn't possible in this transaction."""


class QueueNotEmptyError(QueueError):
    """The operation would lose updates or waiting entries, or the queue's state or use doesn't allow it.

    For example, a tier uses the queue, or a shard is being moved.
    """


class InvalidUpdateError(QueueError):
    """Updates or keys don't fit the queue's columns.

    ``row`` is the number of the first row that doesn't fit, counted from 1, or None if it isn't known.
    """

    row: int | None = None


class NotQuarantinedError(QueueError):
    """The key, the entry of an export, or the update for another server isn't quarantined."""


class LoadError(QueueError):
    """A load from Spark can't be completed, and no row was applied on the server that raised this.

    Run the load again, with the same run id if it has one.
    """


class PassError(PgCombineError):
    """A pass failed, for example because a combiner or an observer raised. ``reason`` says why."""

    reason: str = ""


class ObserversMissingError(PassError):
    """The queue has Python observers that this program lacks."""


class ExportError(PgCombineError):
    """The definition, the use or the destination of an export is wrong."""


class ExportNotFoundError(ExportError):
    """There is no export of that name."""


class FeedNotFoundError(QueueError):
    """There is no feed of that name."""


class OffsetTooOldError(QueueError):
    """Changes after the offset are no longer kept. The consumer must read everything again, from a snapshot."""


class DestinationError(ExportError):
    """Something is wrong with a destination, or with the data delivered to it."""


class DestinationNotFoundError(DestinationError):
    """There is no destination of that name."""


class DestinationDownError(DestinationError, OperationalError):
    """A delivery failed because of the destination's state or configuration. The same delivery may work later.

    ``retry_after`` is for how many seconds the destination asked to be left alone, or None.
    """

    retry_after: float | None = None


class FencedError(DestinationDownError):
    """Several servers have the export, and the destination accepts only deliveries of the server ``owner``.

    ``epoch`` rises when another server becomes the owner.
    """

    def __init__(self, message: str, *, owner: str, epoch: int) -> None:
        super().__init__(message)
        self.owner = owner
        self.epoch = epoch


class DeliveryRejectedError(DestinationError):
    """A destination refuses a delivery because of its data. The same delivery would be refused again."""


class ReplicationError(PgCombineError):
    """Something is wrong with one of the servers that hold the same queue, or between them."""


class UnavailableError(ReplicationError, OperationalError):
    """No server took a write, so nothing was written; or too few servers answered a read."""


class HintsFullError(UnavailableError):
    """The hints for a server, which are copies of writes, have reached their quota. So nothing was written."""


class IndeterminateError(ReplicationError):
    """Too few servers acknowledged a write in time. The write isn't rolled back.

    ``token`` is the write's token: a retry with it doesn't write twice. ``acked`` are the servers that acknowledged the
    write, ``hinted`` those that get the write by hints. If both are empty, it isn't known whether the write was made.
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


class TokenConflictError(ReplicationError):
    """The token was used for other updates."""


class TokenExpiredError(ReplicationError):
    """The token is so old that a server may have forgotten it, or the token's time is in the future."""


class WrongServerError(ReplicationError):
    """The server isn't the expected one: it is another server, a standby, a copy, or an older state of itself."""


class QueueMismatchError(ReplicationError):
    """The queue isn't on the server, or is defined differently there."""


class RebuildInProgressError(ReplicationError, OperationalError):
    """The server takes no writes while it is rebuilt from another server."""


class ReplicaError(ReplicationError):
    """A server isn't registered, can't be registered like this, or is in a state that doesn't allow the operation."""


_BY_SQLSTATE: dict[str, type[PgCombineError]] = {
    "PC001": QueueNotFoundError,
    "PC002": QueueExistsError,
    "PC003": InvalidDefinitionError,
    "PC004": InvalidUpdateError,
    "PC005": QueueNotEmptyError,
    "PC006": WaitTimeoutError,
    "PC007": PassError,
    "PC008": ObserversMissingError,
    "PC009": NotQuarantinedError,
    "PC010": BacklogFullError,
    "PC030": LoadError,
    "PC031": LoadError,
    "PC012": PostRestorePendingError,
    "PC013": QueueError,
    "PC014": QueueError,
    "PC015": OperationalError,
    "PC020": DestinationNotFoundError,
    "PC021": ExportNotFoundError,
    "PC022": NotQuarantinedError,
    "PC040": TokenConflictError,
    "PC041": TokenExpiredError,
    "PC042": WrongServerError,
    "PC043": QueueMismatchError,
    "PC044": HintsFullError,
    "PC045": ReplicaError,
    "PC046": RebuildInProgressError,
    "PC050": FeedNotFoundError,
    "PC051": OffsetTooOldError,
    "PC060": WaitTimeoutError,
}


def class_of(error: BaseException) -> type[PgCombineError] | None:
    """Return the class that an error's SQLSTATE stands for, or None if the SQLSTATE isn't one of pgcombine's."""
    return _BY_SQLSTATE.get(getattr(error, "sqlstate", None) or "")


def sqlstate_of(kind: type[PgCombineError]) -> str:
    """Return the SQLSTATE that stands for the class, or the first if there are several."""
    return next(sqlstate for sqlstate, one in _BY_SQLSTATE.items() if one is kind)


def translate(error: psycopg.Error, *, queue: str | None = None, bucket: int | None = None) -> PgCombineError | None:
    """Return the pgcombine exception for an error of a function under ``sql/``, or None if there is none.

    There is one for each of pgcombine's SQLSTATEs, and one for a missing right of pgcombine.
    """
    message = error.diag.message_primary or str(error)
    return from_sqlstate(error.sqlstate, message, error.diag.message_hint, queue=queue, bucket=bucket)


def from_sqlstate(
    sqlstate: str | None, message: str, hint: str | None, *, queue: str | None = None, bucket: int | None = None
) -> PgCombineError | None:
    """Do the same as :func:`translate` for an error of any driver, given by its parts."""
    kind = _BY_SQLSTATE.get(sqlstate or "")
    # The hint of an error about a missing right of pgcombine is a call of grant_right, or names the schema's owner. Any
    # other 42501 stays the driver's error: for example, the role lacks a privilege on another table.
    if sqlstate == "42501" and hint and ("pgcombine.grant_right(" in hint or hint.endswith('" can do this')):
        kind = NotGrantedError
    return None if kind is None else kind(message, queue=queue, bucket=bucket, sqlstate=sqlstate, hint=hint)


def first_line(error: BaseException) -> str:
    """Return the first line of an error's message, or the name of its class if it has no message."""
    message = error.diag.message_primary if isinstance(error, psycopg.Error) else None
    return ((message or str(error)).strip().splitlines() or [type(error).__name__])[0]


@contextmanager
def operational() -> Iterator[None]:
    """Raise pgcombine's OperationalError in place of psycopg's."""
    try:
        yield
    except psycopg.OperationalError as error:
        hint = error.diag.message_hint
        raise OperationalError(first_line(error), sqlstate=error.sqlstate, hint=hint) from error


@contextmanager
def translated(*, queue: str | None = None) -> Iterator[None]:
    """Raise pgcombine's exceptions in place of psycopg's, for the errors that :func:`translate` maps."""
    try:
        yield
    except psycopg.Error as error:
        mapped = translate(error, queue=queue)
        if mapped is None:
            raise
        raise mapped from error
