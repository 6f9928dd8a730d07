"""Combine until nothing is pending.

A failing bucket doesn't block the others. As in a worker, the failure is recorded, and a search for the failing keys
may follow (:func:`~pgcombine.worker.quarantine.recover`). Unless ``recover`` asks for another pass at once, the
bucket isn't tried again, and PassError is raised at the end.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing

from pgcombine.database.connect import Connection, Database
from pgcombine.errors import InvalidDefinitionError, ObserversMissingError, PassError, WaitTimeoutError, operational
from pgcombine.queue import combine_queue as queues
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.worker import python_pass, quarantine
from pgcombine.worker.maintenance import reclaim, unreclaimed
from pgcombine.worker.passes import open_connection, run_pass
from pgcombine.worker.rights import require_work
from pgcombine.worker.totals import Pass, Totals

_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.1  # seconds
_RECENT = 0.6  # seconds between two calls of ``reclaim``, which truncates more after half a second without a pass
_RECLAIMS = 4  # calls of ``reclaim`` at most; a call leaves a segment that a session reads or writes


@operational()
def drain(
    dsn: Database,
    queue: str | CombineQueue,
    *,
    timeout: float | None = None,
    lock_timeout: float | None = None,
    statement_timeout: float | None = None,
    on_pass: Callable[[Pass], None] | None = None,
) -> Totals:
    """Combine until the queue has no pending updates. Returns the totals of this call's passes.

    Workers may combine at the same time. ``queue`` is a name, or a CombineQueue with its Python observers, which the
    call declares unless they are declared already. ``timeout`` is in seconds; None means no limit. A pass in progress
    isn't ended at the timeout. ``lock_timeout`` and ``statement_timeout`` are as for
    :func:`~pgcombine.worker.passes.open_connection`. ``on_pass`` is called after each pass, or search for
    failing keys, that took updates.

    Raises WaitTimeoutError after ``timeout`` seconds, or if the queue is paused and has pending updates;
    ServerNotReadyError if the server isn't ready within ``timeout`` seconds, or takes no writes; ConnectError if it
    doesn't answer or refuses the connection; SchemaError; QueueNotFoundError; NotGrantedError if the role lacks the
    right work; ObserversMissingError if the queue has Python observers that ``queue`` lacks;
    OperationalError if the connection is lost; and the errors of ``pgcombine.add_observer`` if an observer can't be
    declared. If passes over a bucket fail, the other buckets are drained before PassError is raised.
    """
    given = queue if isinstance(queue, CombineQueue) else CombineQueue(queue)
    name = given.name
    began = time.monotonic()
    totals = Totals()

    def count(done: Pass) -> None:
        totals.add(done)
        if on_pass:
            on_pass(done)

    opened = open_connection(dsn, lock_timeout=lock_timeout, statement_timeout=statement_timeout, timeout=timeout)
    with closing(opened) as connection:
        queues.require(connection, [name])
        require_work(connection, [name])
        python_pass.declare(connection, given)
        connection.execute("select pgcombine_internal.before_drain(%s)", (name,))
        failures = _run_passes(connection, given, count, began, timeout)
        _reclaim(connection, name)
        if failures:
            raise next(iter(failures.values()))
        paused = connection.execute("select paused from pgcombine.queue where queue = %s", (name,)).fetchone()
        if paused == (True,) and given.backlog(connection):
            raise WaitTimeoutError(
                f'queue "{given.name}" is paused and has pending updates: resume it first', queue=given.name
            )
    return totals


def _reclaim(connection: Connection, queue: str) -> None:
    """Do what workers do after passes. Try again if large segments are left, since perhaps no worker comes later."""
    connection.execute("select pgcombine_internal.check_backlog(%s)", (queue,))
    reclaim(connection, queue)
    for _ in range(1, _RECLAIMS):
        if not unreclaimed(connection, [queue]):
            break
        time.sleep(_RECENT)
        reclaim(connection, queue)


def _run_passes(
    connection: Connection, queue: CombineQueue, on_pass: Callable[[Pass], None], began: float, timeout: float | None
) -> dict[int, PassError]:
    """Run passes until no bucket has pending updates, except for failing ones. Returns the failures by bucket."""
    name = queue.name
    failures: dict[int, PassError] = {}
    pause = _SHORTEST_PAUSE
    while True:
        found = connection.execute("select bucket from pgcombine_internal.busy(%s)", (name,)).fetchall()
        buckets = [int(bucket) for (bucket,) in found if bucket not in failures]
        if not buckets:
            return failures
        taken = False
        for bucket in buckets:
            if timeout is not None and time.monotonic() > began + timeout:
                raise WaitTimeoutError(
                    f'queue "{name}" still has pending updates after {timeout:g} s: raise the timeout', queue=name
                )
            try:
                done = run_pass(connection, name, bucket, queue.observers)
            except ObserversMissingError:
                raise
            except InvalidDefinitionError:
                continue  # the queue has fewer buckets now
            except PassError as error:
                taken = True
                try:
                    quarantine.recover(connection, error, queue.observers)
                except PassError:
                    failures[bucket] = error
            else:
                if done and done.updates:
                    on_pass(done)
                    taken = True
        if taken:
            pause = _SHORTEST_PAUSE
        else:  # the buckets are locked, mostly by other workers
            time.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE)
