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

from pgcombine import schema
from pgcombine.database.connect import PATIENCE_SECONDS, Connection, connect, require_writable
from pgcombine.errors import AppNeeded, NotGranted, PassError, translate
from pgcombine.queue.callbacks import Functions
from pgcombine.runtime.wakeup import pooled
from pgcombine.worker import python_pass
from pgcombine.worker.maintenance import adopt
from pgcombine.worker.python_pass import Plan
from pgcombine.worker.totals import Pass

log = logging.getLogger("pgcombine.worker")

_PLAN = (
    "select p::text, p.mask, p.slice, p.pending, p.more, p.held, p.observe from pgcombine.claim_bucket(%s, %s) b "
    "cross join lateral pgcombine.plan_pass(%s, b, observers => %s::text[], combiners => %s::text[]) p "
    "where b is not null"
)
NAME = "pgcombine worker"
LOCK_TIMEOUT_SECONDS = 10.0
# A pass takes about a million updates (pass_limit): seconds, or a minute on a busy server. What takes longer than this
# is no ordinary pass. It keeps a bucket, a snapshot and locks for so long at most; then slices of the keys are tried.
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

    ``name`` is its ``application_name``; ``patience`` is that of :func:`~pgcombine.database.connect.connect`, whose
    errors are raised, too. Raises ServerNotReady where the server takes no writes.

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


def run_pass(connection: Connection, queue: str, bucket: int, functions: Functions | None = None) -> Pass | None:
    """One pass over a bucket in a transaction of its own; None if another worker has the bucket.

    None as well where somebody locks its tables for longer than the connection's lock timeout: it isn't the pass's
    fault, and nothing is lost.

    ``functions`` are the queue's functions in Python. The connection must be idle in autocommit with isolation level
    repeatable read. Conflicts are run again. Raises QueueNotFound; InvalidDefinition for a bucket that isn't there;
    AppNeeded where the queue has functions that aren't given; NotGranted where the role may not run passes over the
    queue; PassError when a combiner or an observer raises, or the server cancels the pass (nothing is lost);
    ServerNotReady when the server takes no writes any more; psycopg.OperationalError when the connection is lost.
    """
    began = time.monotonic()

    def take(plan: Plan) -> Pass:
        if functions:
            counts = python_pass.run(connection, plan, functions)
            connection.execute("select pgcombine.end_pass(%s::pgcombine.plan, %s, %s, %s)", (plan.text, *counts))
        else:
            counts = connection.execute(
                "select updates, keys, changes from pgcombine.run_pass(%s::pgcombine.plan)", (plan.text,)
            ).fetchall()[0]
        return Pass(queue, bucket, *counts, plan.more)

    done, conflicts = planned(connection, queue, bucket, functions, take)
    if done is None:
        return None
    log.debug(
        "pass queue=%s bucket=%d updates=%d keys=%d changes=%d ms=%.1f",
        *(queue, bucket, done.updates, done.keys, done.changes, 1000 * (time.monotonic() - began)),
    )
    return dataclasses.replace(done, conflicts=conflicts) if conflicts else done


def planned(
    connection: Connection, queue: str, bucket: int, functions: Functions | None, take: Callable[[Plan], R]
) -> tuple[R | None, int]:
    """Claim a bucket, plan its next pass, and return what ``take`` makes of it, and how many conflicts there were.

    None where run_pass returns None; errors as it raises them.
    """
    known = functions or Functions()
    parameters = (queue, bucket, queue, list(known.observers), list(known.combiners))
    for conflicts in itertools.count():
        part: tuple[int | None, int | None] = (None, None)
        try:
            with connection.transaction():
                row = connection.execute(_PLAN, parameters).fetchone()
                if row is None:
                    return None, conflicts
                plan = Plan(queue, bucket, *row)
                part = (plan.mask, plan.slice)
                return take(plan), conflicts
        except _CONFLICTS as error:
            log.debug("pass.conflict queue=%s bucket=%d sqlstate=%s", queue, bucket, error.sqlstate)
        except pg.LockNotAvailable:
            log.warning("pass.locked queue=%s bucket=%d", queue, bucket)
            return None, conflicts
        except PassError as error:
            raise _failed(queue, bucket, part, str(error), None) from error
        except psycopg.Error as error:
            if connection.closed:
                raise
            if isinstance(error, pg.ReadOnlySqlTransaction):
                require_writable(connection)
            own = translate(error, queue=queue, bucket=bucket)
            its_own = isinstance(own, AppNeeded | NotGranted) or not _there(connection, queue, bucket)
            if own is not None and its_own:  # an observer may raise the same, of another queue that isn't there, say
                raise own from error
            raise _failed(queue, bucket, part, reason(error), error.sqlstate) from error
    raise AssertionError("unreachable")


def _setting(connection: Connection, name: str) -> str:
    row = connection.execute("select current_setting(%s)", (name,)).fetchone()
    assert row is not None
    return str(row[0])


def _there(connection: Connection, queue: str, bucket: int) -> bool:
    found = connection.execute("select from pgcombine.bucket where queue = %s and bucket = %s", (queue, bucket))
    return found.fetchone() is not None


def _failed(
    queue: str, bucket: int, part: tuple[int | None, int | None], reason: str, sqlstate: str | None
) -> PassError:
    error = PassError(
        f'pass over bucket {bucket} of queue "{queue}" failed: {reason} '
        "(its updates stay pending; the pass is tried again)",
        queue=queue,
        bucket=bucket,
        sqlstate=sqlstate,
    )
    error.reason = reason
    error.part = part
    return error


def reason(error: psycopg.Error) -> str:
    """What the server says, without the statement; what to do as well, where it lacks memory, locks or room."""
    primary = error.diag.message_primary or str(error).strip()
    hint = error.diag.message_hint if (error.sqlstate or "").startswith("53") else None
    return " ".join([primary, *(f"({part})" for part in (error.diag.message_detail, hint) if part)])
