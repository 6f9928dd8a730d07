"""One pass over a bucket, in a transaction of its own.

A pass is one transaction under repeatable read; 40001 and deadlocks are normal flow and are run again. Any other
failure loses nothing: it rolls back and is a :class:`PassError`. A lost connection raises
``psycopg.OperationalError``.
"""

from __future__ import annotations

import dataclasses
import itertools
import logging
import time
from collections.abc import Callable
from typing import TypeVar

import psycopg
from psycopg import errors as pg

from pgcombine import observers, schema
from pgcombine.database import PATIENCE_SECONDS, Connection, connect, require_writable
from pgcombine.errors import NotGranted, PassError, translate
from pgcombine.functions import Functions
from pgcombine.model import Isolation, Pass
from pgcombine.retiring import adopt
from pgcombine.wakeup import pooled

log = logging.getLogger("pgcombine.worker")

_COMBINE = "select bucket, updates, keys, changes, more from pgcombine.combine(%s, %s)"
_SLICE = "select bucket, updates, keys, changes, more from pgcombine.combine_slice(%s, %s, %s, %s)"
_ISOLATE = "select updates, keys, changes, tries, quarantined, settled from pgcombine.isolate(%s, %s, %s)"
NAME = "pgcombine worker"
LOCK_TIMEOUT_SECONDS = 10.0
# A pass takes about a million updates (pass_limit): seconds, or a minute on a busy server. What takes longer than this
# is no ordinary pass. It keeps a bucket, a snapshot and locks for so long at most, and is then passed over in slices.
STATEMENT_TIMEOUT_SECONDS = 300.0
R = TypeVar("R")
_CONFLICTS = (pg.SerializationFailure, pg.DeadlockDetected)


def open_connection(
    dsn: str,
    *,
    name: str = NAME,
    lock_timeout: float | None = None,
    statement_timeout: float | None = None,
    patience: float | None = PATIENCE_SECONDS,
) -> Connection:
    """A connection as :func:`run_pass` wants it. Raises SchemaError if the schema isn't this program's.

    A database that was restored from a dump is adopted (``pgcombine.adopt``).

    ``name`` is its ``application_name``; ``patience`` is that of :func:`~pgcombine.database.connect`, whose errors are
    raised, too. Raises ServerNotReady where the server takes no writes.

    The timeouts are in seconds; 0: none. By default what the URI, the role or the server says holds. Where none of
    them limits the waiting for locks, LOCK_TIMEOUT_SECONDS does; where none of them limits statements,
    STATEMENT_TIMEOUT_SECONDS does. Through a pooler in transaction mode they aren't set, since they would stay with
    the server's session: there ``alter role … set`` does it.
    """
    connection = connect(dsn, name=name, patience=patience)
    try:
        require_writable(connection)
        if not pooled(connection):
            for name, seconds, default in (
                ("lock_timeout", lock_timeout, LOCK_TIMEOUT_SECONDS),
                ("statement_timeout", statement_timeout, STATEMENT_TIMEOUT_SECONDS),
            ):
                if seconds is None and _setting(connection, name) == "0":
                    seconds = default
                if seconds is not None:
                    connection.execute("select set_config(%s, %s, false)", (name, f"{round(seconds * 1000)}ms"))
        connection.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        schema.check_connection(connection)
        adopt(connection)
    except BaseException:
        connection.close()
        raise
    return connection


def run_pass(
    connection: Connection,
    queue: str,
    bucket: int,
    functions: Functions | None = None,
    part: tuple[int, int] | None = None,
) -> Pass | None:
    """One pass over a bucket in a transaction of its own; None if another worker has the bucket.

    None as well where somebody locks its tables for longer than the connection's lock timeout: it isn't the pass's
    fault, and nothing is lost.

    ``functions`` are the queue's functions in Python; ``part`` restricts the pass to keys whose hash & mask = slice,
    given as (mask, slice). The connection must be idle in autocommit with isolation level repeatable read. Conflicts
    are run again. Raises QueueNotFound; InvalidDefinition for a bucket that isn't there; AppNeeded where the queue has
    functions that aren't given; NotGranted where the role may not run passes over the queue; PassError when a combiner
    or an observer raises, or the server cancels the pass (nothing is lost); ServerNotReady when the server takes no
    writes any more; psycopg.OperationalError when the connection is lost.
    """
    began = time.monotonic()

    def take() -> Pass | None:
        if functions:
            return observers.run(connection, queue, bucket, functions, part)
        statement = _COMBINE if part is None else _SLICE
        row = connection.execute(statement, (queue, bucket, *(part or ()))).fetchone()
        return Pass(queue, *row) if row else None

    done, conflicts = _transaction(connection, queue, bucket, take)
    if done is None:
        return None
    log.debug(
        "pass queue=%s bucket=%d updates=%d keys=%d changes=%d ms=%.1f",
        *(queue, bucket, done.updates, done.keys, done.changes, 1000 * (time.monotonic() - began)),
    )
    return dataclasses.replace(done, conflicts=conflicts) if conflicts else done


def run_isolation(connection: Connection, queue: str, bucket: int, attempts: int) -> Isolation | None:
    """Combine the keys of a failing bucket that don't fail, quarantine the others: ``pgcombine.isolate``.

    None if another worker has the bucket. ``connection`` and what is raised are as for :func:`run_pass`.
    """

    def take() -> Isolation | None:
        row = connection.execute(_ISOLATE, (queue, bucket, attempts)).fetchone()
        if row is None:
            return None
        updates, keys, changes, tries, quarantined, settled = row
        return Isolation(Pass(queue, bucket, updates, keys, changes, not settled), tries, quarantined, settled)

    return _transaction(connection, queue, bucket, take)[0]


def _transaction(connection: Connection, queue: str, bucket: int, take: Callable[[], R | None]) -> tuple[R | None, int]:
    """What ``take`` returns in a transaction, and how many conflicts there were; its errors as run_pass raises them."""
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
            own = translate(error, queue=queue, bucket=bucket)
            its_own = error.sqlstate == "PC008" or isinstance(own, NotGranted) or not _there(connection, queue, bucket)
            if own is not None and its_own:  # an observer may raise the same, of another queue that isn't there, say
                raise own from error
            raise _failed(queue, bucket, _reason(error), error.sqlstate) from error
    raise AssertionError("unreachable")


def _setting(connection: Connection, name: str) -> str:
    row = connection.execute("select current_setting(%s)", (name,)).fetchone()
    assert row is not None
    return str(row[0])


def _there(connection: Connection, queue: str, bucket: int) -> bool:
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


def _reason(error: psycopg.Error) -> str:
    """What the server says, without the statement; what to do as well, where it lacks memory, locks or room."""
    primary = error.diag.message_primary or str(error).strip()
    hint = error.diag.message_hint if (error.sqlstate or "").startswith("53") else None
    return " ".join([primary, *(f"({part})" for part in (error.diag.message_detail, hint) if part)])
