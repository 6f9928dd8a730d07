"""One pass over a bucket, in a transaction of its own."""

from __future__ import annotations

import dataclasses
import itertools
import logging
import time
from collections.abc import Callable
from typing import TypeVar

import psycopg
from psycopg import errors as pg

from pgcombine import schema
from pgcombine.database.connect import (
    READY_SECONDS,
    Connection,
    Database,
    closed_on_error,
    connect,
    one,
    require_writable,
)
from pgcombine.errors import NotGrantedError, ObserversMissingError, PassError, translate
from pgcombine.queue.callbacks import NO_OBSERVERS, Observers
from pgcombine.runtime.spans import span
from pgcombine.runtime.wakeup import pooled
from pgcombine.worker import python_pass
from pgcombine.worker.maintenance import post_restore
from pgcombine.worker.totals import Pass

log = logging.getLogger("pgcombine.worker")

_PASS = (
    "select updates, keys, changes, more, expired, next_page is not null, observe "
    "from pgcombine_internal.run_pass(%s, %s, %s::text[], -1, arrived => %s)"
)
NAME = "pgcombine worker"
LOCK_TIMEOUT_SECONDS = 10.0
# A pass normally takes seconds. A pass that exceeds this timeout is cancelled, since it blocks its bucket and keeps its
# snapshot and locks. The next pass over the bucket normally takes fewer updates.
STATEMENT_TIMEOUT_SECONDS = 300.0
R = TypeVar("R")
_CONFLICTS = (pg.SerializationFailure, pg.DeadlockDetected)


def open_connection(
    dsn: Database,
    *,
    name: str = NAME,
    lock_timeout: float | None = None,
    statement_timeout: float | None = None,
    timeout: float | None = READY_SECONDS,
) -> Connection:
    """Open a connection for :func:`run_pass`.

    In a database that was restored from a dump, this calls ``pgcombine.post_restore``. ``name`` is the connection's
    ``application_name``. ``timeout`` is as for :func:`~pgcombine.database.connect.connect`. Raises SchemaError if the
    schema isn't this program's, ServerNotReadyError if the server takes no writes, and the errors of ``connect``.

    ``lock_timeout`` and ``statement_timeout`` are in seconds. 0 means no limit. None leaves the setting that the
    connection has, for example from its URI or role; but if that is 0, LOCK_TIMEOUT_SECONDS or
    STATEMENT_TIMEOUT_SECONDS applies. Through a pooler this function sets neither timeout, since it would stay with the
    server's session. For a pooler, set the timeouts with ``alter role … set``.
    """
    connection = connect(dsn, name=name, timeout=timeout)
    with closed_on_error(connection):
        require_writable(connection)
        if not pooled(connection):
            for name, seconds, default in (
                ("lock_timeout", lock_timeout, LOCK_TIMEOUT_SECONDS),
                ("statement_timeout", statement_timeout, STATEMENT_TIMEOUT_SECONDS),
            ):
                if seconds is None and one(connection, "select current_setting(%s)", name) == ("0",):
                    seconds = default
                if seconds is not None:
                    connection.execute("select set_config(%s, %s, false)", (name, f"{round(seconds * 1000)}ms"))
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        schema.check_connection(connection)
        post_restore(connection)
    return connection


def run_pass(connection: Connection, queue: str, bucket: int, observers: Observers = NO_OBSERVERS) -> Pass | None:
    """Run one pass over a bucket in a transaction of its own (``pgcombine_internal.run_pass``).

    Returns None if another worker has the bucket, if the queue is paused, or if the pass waits for a lock for longer
    than the connection's lock timeout. None isn't a failure.

    ``observers`` are the queue's Python observers. The connection must be idle in autocommit with isolation level
    repeatable read. After a serialization failure or a deadlock the pass is run again. The function raises:

    - QueueNotFoundError, and InvalidDefinitionError for a bucket that doesn't exist;
    - ObserversMissingError if the queue has Python observers that ``observers`` lacks;
    - NotGrantedError if the role lacks the right work;
    - PassError if the pass fails for another reason: a combiner or an observer raises, the server cancels the pass, or
      the server lacks memory, for example;
    - SchemaError if the pass failed and the schema is of another version now;
    - ServerNotReadyError if the server takes no writes any more;
    - psycopg.OperationalError if the connection is lost.
    """

    def take() -> Pass | None:
        read = python_pass.reads_arrivals(observers)
        row = connection.execute(_PASS, (queue, bucket, list(observers), read)).fetchone()
        if row is None:
            return None
        *counts, observe = row
        python_pass.call(connection, queue, bucket, observe, observers, changes=counts[2])
        return Pass(queue, bucket, *counts)

    began = time.monotonic()
    with span("combine", queue, bucket) as count:
        done, conflicts = again(connection, queue, bucket, take)
        count(done.updates if done else 0)
    if done is None:
        return None
    seconds = time.monotonic() - began
    log.debug(
        "pass queue=%s bucket=%d updates=%d keys=%d changes=%d expired=%d ms=%.1f",
        *(queue, bucket, done.updates, done.keys, done.changes, done.expired, 1000 * seconds),
    )
    return dataclasses.replace(done, conflicts=conflicts, seconds=seconds)


def again(connection: Connection, queue: str, bucket: int, take: Callable[[], R | None]) -> tuple[R | None, int]:
    """Call ``take`` in a transaction, and again after each conflict. Returns its result and the number of conflicts.

    The result is also None if a lock wasn't granted in time. Raises the errors of :func:`run_pass`.
    """
    for conflicts in itertools.count():
        try:
            with connection.transaction():
                return take(), conflicts
        except _CONFLICTS as error:
            log.debug("pass.conflict queue=%s bucket=%d sqlstate=%s", queue, bucket, error.sqlstate)
        except pg.LockNotAvailable:
            log.warning("pass.locked queue=%s bucket=%d", queue, bucket)
            return None, conflicts
        except PassError as error:
            raise _failed(queue, bucket, str(error), None) from error
        except psycopg.Error as error:
            if connection.closed:
                raise
            if isinstance(error, pg.ReadOnlySqlTransaction):
                require_writable(connection)
            mapped = translate(error, queue=queue, bucket=bucket)
            about_bucket = isinstance(mapped, ObserversMissingError | NotGrantedError) or not _exists(
                connection, queue, bucket
            )
            # Any other error of pgcombine may be about another queue, which an observer uses. Then the pass failed.
            if mapped is not None and about_bucket:
                raise mapped from error
            # If an upgrade has replaced the functions, this raises SchemaError: the failure isn't the pass's.
            schema.check_connection(connection)
            raise _failed(queue, bucket, reason(error), error.sqlstate) from error
    raise AssertionError("unreachable")


def _exists(connection: Connection, queue: str, bucket: int) -> bool:
    found = connection.execute("select from pgcombine.bucket where queue = %s and bucket = %s", (queue, bucket))
    return found.fetchone() is not None


def _failed(queue: str, bucket: int, reason: str, sqlstate: str | None) -> PassError:
    error = PassError(
        f'pass over bucket {bucket} of queue "{queue}" failed: {reason} '
        "(its updates stay pending; the pass is tried again)",
        queue=queue,
        bucket=bucket,
        sqlstate=sqlstate,
    )
    error.reason = reason
    return error


def reason(error: psycopg.Error) -> str:
    """Return the message and the detail of a server's error, and the hint if the server lacks memory, locks or disk."""
    primary = error.diag.message_primary or str(error).strip()
    hint = error.diag.message_hint if (error.sqlstate or "").startswith("53") else None
    return " ".join([primary, *(f"({part})" for part in (error.diag.message_detail, hint) if part)])
