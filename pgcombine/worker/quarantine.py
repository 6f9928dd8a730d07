"""Failing buckets: back-off, the search for the failing keys, and their quarantine.

A failed pass is rolled back and recorded (``pgcombine_internal.fail_pass``). Normally no worker then tries the bucket
for a time that grows from a fifth of a second to about a minute. After ``quarantine_after`` failures in a row, if a key
may have caused the last one, a search tries the pass over some of the keys (``pgcombine_internal.open_search``). Each
try is rolled back. The search quarantines the failing keys, unless all keys may fail for a common reason
(``close_search``). Then the next pass moves the updates of these keys to quarantine, and combines the others.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from pgcombine.database.connect import Connection, dicts, one
from pgcombine.database.texts import name_of
from pgcombine.errors import PassError, translated
from pgcombine.queue.callbacks import Observers
from pgcombine.worker import python_pass
from pgcombine.worker.passes import again, reason

log = logging.getLogger("pgcombine.worker")

_TIME_LIMIT_SECONDS = 10.0  # after this time a search ends as soon as it has found a failing key


def recover(
    connection: Connection,
    error: PassError,
    observers: Observers,
    *,
    on_failure: Callable[[PassError], None] = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
) -> bool:
    """Record that a pass failed with ``error``, and search for the failing keys if a search is due.

    Returns True if the next pass over the bucket should be tried at once. Otherwise raises ``error``. ``on_failure`` is
    called with ``error`` and with the error of a failed search. The connection is as for
    :func:`~pgcombine.worker.passes.run_pass`, whose other errors may be raised, too. ``stopped`` says whether a search
    should end soon.
    """
    on_failure(error)
    attempts, due, smaller = _failed(connection, error)
    if smaller:
        return True
    if due:
        try:
            if _bisect(connection, str(error.queue), int(error.bucket or 0), attempts, observers, stopped):
                return True
        except PassError as trouble:
            on_failure(trouble)
            if _failed(connection, trouble)[2]:
                return True
    raise error


def _failed(connection: Connection, error: PassError) -> tuple[int, bool, bool]:
    """Record a failed pass. Returns ``attempts``, ``bisect`` and ``smaller`` of ``pgcombine_internal.fail_pass``."""
    with translated(queue=error.queue):
        attempts, due, smaller = one(
            connection,
            "select attempts, bisect, smaller from pgcombine_internal.fail_pass(%s, %s, %s, %s)",
            *(error.queue, error.bucket, error.sqlstate, error.reason),
        )
    log.error(
        "pass.failed queue=%s bucket=%s attempts=%d sqlstate=%s error=%s",
        *(error.queue, error.bucket, attempts, error.sqlstate, error.reason),
    )
    return attempts, due, smaller


def _bisect(
    connection: Connection, queue: str, bucket: int, attempts: int, observers: Observers, stopped: Callable[[], bool]
) -> bool:
    """Search for the failing keys. Returns whether the next pass may succeed."""

    def search() -> tuple[Any, ...] | None:
        return _search(connection, queue, bucket, attempts, observers, stopped)

    found, _ = again(connection, queue, bucket, search)
    if found is None:
        return False
    tries, changes, quarantined, progress = found
    log.warning(
        "bucket.bisected queue=%s bucket=%d tries=%d changes=%d quarantined=%d progress=%s",
        *(queue, bucket, tries, changes, quarantined, progress),
    )
    return bool(progress)


def _search(
    connection: Connection, queue: str, bucket: int, attempts: int, observers: Observers, stopped: Callable[[], bool]
) -> tuple[Any, ...] | None:
    """Take the steps of ``pgcombine_internal.bisect``, and call the Python observers in each try."""
    connection.execute("set transaction isolation level read committed")
    (search,) = one(
        connection,
        "select pgcombine_internal.open_search(%s, %s, %s, make_interval(secs => %s), %s::text[], %s)",
        *(queue, bucket, attempts, _TIME_LIMIT_SECONDS, list(observers), python_pass.reads_arrivals(observers)),
    )
    if search is None:
        return None
    while search["first"] <= search["count"]:
        changes, sqlstate, why = 0, None, None
        try:
            with connection.transaction(force_rollback=True):
                changes, observe = one(
                    connection, "select changes, observe from pgcombine_internal.try_keys(%s)", Jsonb(search)
                )
                python_pass.call(connection, queue, bucket, observe, observers, changes=changes)
                # as in a pass, deferrable constraints are checked at the end
                connection.execute("set constraints all immediate")
        except (PassError, psycopg.Error) as error:
            sqlstate, why = error.sqlstate, reason(error) if isinstance(error, psycopg.Error) else str(error)
            hint = error.diag.message_hint if isinstance(error, psycopg.Error) else None
            # A cancelled try has failed, too: a try of fewer keys takes less time.
            transient = "select %s <> '57014' and pgcombine_internal.is_transient(%s, %s)"
            if connection.closed or one(connection, transient, sqlstate, sqlstate, hint)[0]:
                raise
        (search,) = one(
            connection,
            "select pgcombine_internal.next_try(%s, %s, %s, %s, %s)",
            *(Jsonb(search), changes, sqlstate, why, stopped()),
        )
    return one(
        connection,
        "select tries, changes, quarantined, progress from pgcombine_internal.close_search(%s)",
        Jsonb(search),
    )


def ls(connection: Connection, queue: str | None = None) -> list[dict[str, Any]]:
    """Return the quarantined keys of a queue, or of all queues for None, longest in quarantine first.

    Each key is a dict of queue, key, updates, attempts, sqlstate,
    error, since.
    """
    return dicts(
        connection,
        "select queue, key, updates, attempts, sqlstate, error, since from pgcombine.quarantine "
        "where queue = coalesce(%s, queue) order by since, queue, key",
        (queue,),
    )


def updates(connection: Connection, queue: str, key: Mapping[str, Any], limit: int) -> list[dict[str, Any]]:
    """Return up to ``limit`` updates of a quarantined key, or none for another key. An update is a dict by column."""
    columns = [
        str(name)
        for (name,) in connection.execute(
            "select name from pgcombine.queue_column where queue = %s order by position", (queue,)
        )
    ]
    cursor = connection.execute(
        sql.SQL(
            "select {} from {} where pgcombine_key in "
            "(select id from pgcombine.quarantine where queue = %s and key = %s) limit %s"
        ).format(sql.SQL(", ").join(map(name_of, columns)), sql.Identifier("pgcombine", f"{queue}_quarantine")),
        (queue, Jsonb(key), limit),
    )
    return [dict(zip(columns, row, strict=True)) for row in cursor]


def retry(connection: Connection, queue: str, key: Mapping[str, Any] | None = None) -> int:
    """End the quarantine of a key, or of all keys, and make the quarantined updates pending again.

    Returns the number of updates. ``key`` is a mapping by column; None: all keys. Raises QueueNotFoundError,
    NotQuarantinedError, InvalidUpdateError if ``key`` isn't a key of the queue, BacklogFullError,
    PostRestorePendingError, and NotGrantedError if the role lacks the right work.
    """
    return _release(connection, "select pgcombine.retry_quarantined(%s, %s)", queue, key)


def drop(connection: Connection, queue: str, key: Mapping[str, Any] | None = None) -> int:
    """Delete the quarantined updates of a key, or of all keys for None, and end the quarantine.

    Returns the number of updates. Raises the errors of :func:`retry`, except for those about the backlog and about a
    restored database.
    """
    return _release(connection, "select pgcombine.drop_quarantined(%s, %s)", queue, key)


def _release(connection: Connection, statement: str, queue: str, key: Mapping[str, Any] | None) -> int:
    with translated(queue=queue):
        return int(one(connection, statement, queue, None if key is None else Jsonb(key))[0])
