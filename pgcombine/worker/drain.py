"""Combine until nothing is pending.

A failing bucket doesn't keep the others waiting. Its pass is tried once. The failure is recorded, and the keys at fault
are searched for, as workers do it. At the end the failure is raised as :class:`PassError`.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing

from pgcombine.errors import AppNeeded, InvalidDefinition, PassError, WaitTimeout
from pgcombine.queue import combine_queue as queues
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.worker import python_pass, quarantine
from pgcombine.worker.maintenance import retire
from pgcombine.worker.passes import open_connection
from pgcombine.worker.rights import require_work
from pgcombine.worker.totals import Pass, Totals


def drain(
    dsn: str,
    queue: str | CombineQueue,
    *,
    timeout: float | None = None,
    lock_timeout: float | None = None,
    statement_timeout: float | None = None,
    on_pass: Callable[[Pass], None] | None = None,
) -> Totals:
    """Combine until the queue has no pending updates. Returns the totals of this call's passes.

    Other workers may combine at the same time. ``queue`` is a name, or a CombineQueue with its Python functions.
    ``timeout`` is in seconds; None means no limit. ``lock_timeout`` and ``statement_timeout`` are as for
    ``open_connection``. A failed pass counts as an attempt. After ``quarantine_after`` attempts the keys at fault are
    quarantined, and their updates aren't pending any more.

    Raises WaitTimeout after ``timeout`` seconds or for a paused queue, ServerNotReady if the server isn't ready by
    then, PassError once the other buckets are drained, QueueNotFound, NotGranted if the role may not run passes over
    the queue, and AppNeeded if the queue has Python functions that ``queue`` lacks.
    """
    given = queue if isinstance(queue, CombineQueue) else CombineQueue(queue)
    name, functions = given.name, given.functions
    deadline = None if timeout is None else time.monotonic() + timeout
    failures: dict[int, PassError] = {}
    totals = Totals()

    def count(done: Pass) -> None:
        totals.add(done)
        if on_pass:
            on_pass(done)

    opened = open_connection(dsn, lock_timeout=lock_timeout, statement_timeout=statement_timeout, patience=timeout)
    with closing(opened) as connection:
        queues.require(connection, [name])
        require_work(connection, [name])
        python_pass.declare(connection, given)
        pause = 0.001
        while True:
            found = connection.execute("select bucket from pgcombine_internal.busy(%s)", (name,)).fetchall()
            buckets = [int(bucket) for (bucket,) in found if bucket not in failures]
            if not buckets:
                break
            taken = False
            for bucket in buckets:
                if deadline is not None and time.monotonic() > deadline:
                    raise WaitTimeout(f'queue "{name}" still has pending updates after {timeout:g} s', queue=name)
                try:
                    worked = quarantine.attempt(connection, name, bucket, functions, on_pass=count)
                except AppNeeded:
                    raise
                except InvalidDefinition:
                    continue  # the queue has fewer buckets now
                except PassError as error:
                    failures[bucket] = error
                    worked = True
                taken = taken or bool(worked)
            if not taken:  # other workers have the buckets
                time.sleep(pause)
                pause = min(2 * pause, 0.1)
            else:
                pause = 0.001
        retire(connection, name)
        if failures:
            raise next(iter(failures.values()))
        if given.backlog(connection):
            raise WaitTimeout(f'queue "{name}" is paused and has pending updates: resume it first', queue=name)
    return totals
