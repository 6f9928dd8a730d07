"""Failing buckets: back-off, the search for the keys at fault, and their quarantine.

A failed pass rolls back. The failure is recorded, and all workers leave the bucket alone for a growing while. After
enough failures a search combines the keys that don't fail and quarantines those that do. ``run_search``
describes the search. For a queue with Python observers it runs here. A process that is killed during it loses nothing.
"""

from __future__ import annotations

import dataclasses
import logging
import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from pgcombine.database.connect import Connection, dicts, one
from pgcombine.errors import AppNeeded, PassError, translated
from pgcombine.queue.callbacks import Observers
from pgcombine.worker import python_pass
from pgcombine.worker.passes import planned, reason, run_pass
from pgcombine.worker.python_pass import Plan
from pgcombine.worker.totals import Pass

log = logging.getLogger("pgcombine.worker")

_PATIENCE_SECONDS = 10.0  # for one search, so that the other buckets get their turn
_HOPELESS = 200  # tries without a changed value, after which a search ends
_FIRST_TRY = 1024  # keys


@dataclass(frozen=True)
class Isolation:
    """The result of a search for the keys at fault.

    ``tries`` is the number of passes tried, ``taken`` the sum of their results, ``quarantined`` the number of keys.
    ``settled`` is True if no key is left that fails or wasn't tried.
    """

    taken: Pass
    tries: int
    quarantined: int
    settled: bool


def attempt(
    connection: Connection,
    queue: str,
    bucket: int,
    observers: Observers,
    *,
    on_pass: Callable[[Pass], None],
    on_failure: Callable[[PassError], None] = lambda _: None,
    stopped: Callable[[], bool] = lambda: False,
) -> bool | None:
    """Try one pass, and record a failure or search for the keys at fault. Returns whether there was progress.

    Returns None if another worker has the bucket, or if the queue is paused. ``on_pass`` is called with each pass that
    took updates, ``on_failure`` with the error of each that failed. The connection and the errors are as for
    :func:`~pgcombine.worker.passes.run_pass`. But PassError is raised only if nothing more can be done about the bucket
    for now.
    """
    try:
        done = run_pass(connection, queue, bucket, observers)
    except AppNeeded:
        raise
    except PassError as error:
        on_failure(error)
        attempts, due, smaller = _failed(connection, error)
        if smaller:
            return True
        if not due:
            raise
        try:
            if _isolate(connection, queue, bucket, attempts, observers, on_pass, stopped):
                return True
        except PassError as trouble:
            on_failure(trouble)
            if _failed(connection, trouble)[2]:
                return True
        raise
    if done is None:
        return None
    if done.updates:
        on_pass(done)
    return done.updates > 0


def _failed(connection: Connection, error: PassError) -> tuple[int, bool, bool]:
    """Record a failed pass. Returns ``attempts``, ``isolate`` and ``smaller`` of ``pgcombine_internal.fail_pass``.

    Raises QueueNotFound if the queue was dropped meanwhile.
    """
    with translated(queue=error.queue):
        attempts, due, smaller = one(
            connection,
            "select attempts, isolate, smaller from pgcombine_internal.fail_pass(%s, %s, %s, %s)",
            *(error.queue, error.bucket, error.sqlstate, error.reason),
        )
    log.error(
        "pass.failed queue=%s bucket=%s attempts=%d sqlstate=%s error=%s",
        *(error.queue, error.bucket, attempts, error.sqlstate, error.reason),
    )
    return attempts, due, smaller


def _isolate(
    connection: Connection,
    queue: str,
    bucket: int,
    attempts: int,
    observers: Observers,
    on_pass: Callable[[Pass], None],
    stopped: Callable[[], bool],
) -> bool:
    """Combine the keys that don't fail, and quarantine those that fail. Returns whether there was progress."""

    def take(plan: Plan) -> Isolation:
        if plan.observe:
            return _search(connection, plan, attempts, observers, stopped)
        updates, keys, changes, tries, quarantined, settled = one(
            connection,
            "select updates, keys, changes, tries, quarantined, settled "
            "from pgcombine_internal.run_search(%s::pgcombine.plan, %s)",
            *(plan.text, attempts),
        )
        return Isolation(Pass(queue, bucket, updates, keys, changes, not settled), tries, quarantined, settled)

    began = time.monotonic()
    found, conflicts = planned(connection, queue, bucket, observers, take)
    if found is None:
        return False
    if found.taken.updates:
        on_pass(dataclasses.replace(found.taken, conflicts=conflicts, seconds=time.monotonic() - began))
    log.warning(
        "bucket.isolated queue=%s bucket=%d tries=%d changes=%d quarantined=%d settled=%s",
        *(queue, bucket, found.tries, found.taken.changes, found.quarantined, found.settled),
    )
    return found.settled or found.taken.updates > 0 or found.quarantined > 0


def _search(
    connection: Connection, plan: Plan, attempts: int, observers: Observers, stopped: Callable[[], bool]
) -> Isolation:
    """Run the search of ``pgcombine_internal.run_search`` for a queue with Python observers."""
    call = partial(one, connection)
    began = time.monotonic()
    (until,) = call("select pgcombine_internal.open_search(%s::pgcombine.plan)", plan.text)
    # updates of quarantined keys are held only at the end of the search
    (text,) = call("select (jsonb_populate_record(%s::pgcombine.plan, '{\"held\": false}'))::text", plan.text)
    open_plan = plan._replace(text=text, held=False)
    suspects: list[dict[str, object]] = []
    first, size, tries, changes = 1, _FIRST_TRY, 0, 0
    ended = False
    while first <= until:
        out_of_time = time.monotonic() > began + _PATIENCE_SECONDS if changes else tries >= _HOPELESS
        if not ended and first > 1 and (out_of_time or stopped()):
            ended = True
            (until,) = call("select pgcombine_internal.search_border(%s)", first - 1)
            continue
        last = min(until, first + size - 1)
        tries += 1
        try:
            changes += _try_keys(connection, open_plan, observers, first, last)
        except (PassError, psycopg.Error) as error:
            state = error.sqlstate
            if connection.closed or call("select pgcombine_internal.blameless(%s)", state)[0] or _lacks_locks(error):
                raise
            if last > first:
                size = (last - first + 1) // 2
                continue
            why = reason(error) if isinstance(error, psycopg.Error) else str(error)
            suspects.append({"key": first, "sqlstate": state, "error": why, "proven": False})
            first += 1
        else:
            first, size = last + 1, 2 * size
    updates, keys, quarantined, settled = call(
        "select * from pgcombine_internal.close_search(%s::pgcombine.plan, %s, %s, %s, %s)",
        *(plan.text, until, attempts, changes, Jsonb(suspects)),
    )
    return Isolation(Pass(plan.queue, plan.bucket, updates, keys, changes, not settled), tries, quarantined, settled)


def _lacks_locks(error: PassError | psycopg.Error) -> bool:
    hint = error.diag.message_hint if isinstance(error, psycopg.Error) and error.sqlstate == "53200" else None
    return re.search(r"max_\w+_per_", hint or "") is not None


def _try_keys(connection: Connection, plan: Plan, observers: Observers, first: int, last: int) -> int:
    """Combine the keys with the numbers ``first`` to ``last`` of a search. Returns the number of changed values."""
    with connection.transaction():
        connection.execute("set constraints all deferred")  # as at the end of a transaction of its own
        statement = "select pgcombine_internal.search_source(%s, %s, %s)"
        (source,) = one(connection, statement, plan.queue, str(first), str(last))
        _, _, changes = python_pass.run(connection, plan, observers, source)
        connection.execute("set constraints all immediate")
    return changes


def ls(connection: Connection, queue: str | None = None) -> list[dict[str, Any]]:
    """Return the quarantined keys, longest held first.

    Each is a dict of queue, key, updates, attempts, sqlstate, error, since.
    """
    return dicts(
        connection,
        "select queue, key, updates, attempts, sqlstate, error, since from pgcombine.quarantine "
        "where queue = coalesce(%s, queue) order by since, queue, key",
        (queue,),
    )


def updates(connection: Connection, queue: str, key: Mapping[str, Any], limit: int) -> list[dict[str, Any]]:
    """Return the first ``limit`` held updates of a quarantined key. An update is a dict by column."""
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
        ).format(
            sql.SQL(", ").join(sql.SQL(sql.Identifier(c).as_string(None).replace("%", "%%")) for c in columns),
            sql.Identifier("pgcombine", f"{queue}_quarantine"),
        ),
        (queue, Jsonb(key), limit),
    )
    return [dict(zip(columns, row, strict=True)) for row in cursor]


def retry(connection: Connection, queue: str, key: Mapping[str, Any] | None = None) -> int:
    """Make the updates of a quarantined key pending again, or those of all keys for None.

    Returns the number of updates. ``key`` is a mapping by column. Raises QueueNotFound, NotQuarantined, and
    InvalidUpdate if ``key`` isn't a key of the queue.
    """
    return _release(connection, "select pgcombine.quarantine_retry(%s, %s)", queue, key)


def drop(connection: Connection, queue: str, key: Mapping[str, Any] | None = None) -> int:
    """Delete the updates of a quarantined key, or of all keys for None. Returns their number.

    Raises as :func:`retry`.
    """
    return _release(connection, "select pgcombine.quarantine_drop(%s, %s)", queue, key)


def _release(connection: Connection, statement: str, queue: str, key: Mapping[str, Any] | None) -> int:
    with translated(queue=queue):
        return int(one(connection, statement, queue, None if key is None else Jsonb(key))[0])
