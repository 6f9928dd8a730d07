"""The part of a worker that removes keys that have expired (``pgcombine.set_retain``).

It takes the buckets that are due a step at a time, in a transaction each (``pgcombine_internal.plan_retain``). If an
observer raises, the step is rolled back, the failure is recorded in ``pgcombine.retention``, and after a pause the
search goes on with the next pages. Passes over the bucket go on. A queue with Python observers that this worker lacks
is left to other workers. A lost connection raises psycopg's OperationalError.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from functools import partial

from pgcombine.database.connect import Connection, one
from pgcombine.errors import AppNeeded, InvalidDefinition, NotGranted, PassError, QueueNotFound
from pgcombine.queue.callbacks import NO_OBSERVERS, Observers
from pgcombine.worker import python_pass
from pgcombine.worker.maintenance import Maintenance
from pgcombine.worker.passes import planned
from pgcombine.worker.python_pass import Plan

log = logging.getLogger("pgcombine.worker")

RETAIN_EVERY_SECONDS = 1.0  # between two looks for buckets that are due
_BUDGET = 0.5  # seconds; after this time passes have their turn
_REFUSED_PAUSE = 60.0  # seconds without steps over a queue whose Python observers are missing


def step(
    connection: Connection, queue: str, bucket: int, observers: Observers = NO_OBSERVERS
) -> tuple[int, bool] | None:
    """Remove the expired keys of some pages of a bucket. Returns their number, and whether pages are left.

    Returns None where :func:`~pgcombine.worker.passes.run_pass` does, and if the bucket isn't due. The connection and
    the errors are as for that function. A PassError is recorded, unless it is AppNeeded.
    """
    tried: list[Plan] = []
    try:
        done, _ = planned(
            connection, queue, bucket, observers, partial(_run, connection, observers, tried), retains=True
        )
    except AppNeeded:
        raise
    except PassError as error:
        if tried:
            connection.execute(
                "select pgcombine_internal.fail_retain(%s::pgcombine.plan, %s, %s)",
                (tried[-1].text, error.sqlstate, error.reason),
            )
        else:
            connection.execute("select pgcombine_internal.put_off_retain(%s, %s)", (queue, bucket))
        raise
    return done


def _run(connection: Connection, observers: Observers, tried: list[Plan], plan: Plan) -> tuple[int, bool]:
    tried.append(plan)
    if plan.observe:
        # there are changes without a pending update, and nothing to combine
        _, removed, _ = python_pass.run(connection, plan._replace(pending=1), observers)
        (page,) = one(connection, "select pgcombine_internal.end_retain(%s::pgcombine.plan, %s)", plan.text, removed)
    else:
        removed, page = one(
            connection, "select removed, next_page from pgcombine_internal.run_retain(%s::pgcombine.plan)", plan.text
        )
    return removed, page is not None


class Retain(Maintenance):
    """Removes expired keys of ``queues`` (empty: of all queues). ``observers`` are their Python observers, by queue."""

    rests = True

    def __init__(
        self, queues: tuple[str, ...], observers: Mapping[str, Observers], *, every: float = RETAIN_EVERY_SECONDS
    ) -> None:
        super().__init__(every)
        self._queues = queues
        self._observers = observers
        self._refused: dict[str, float] = {}  # by queue; monotonic time before which it isn't tried

    def do(self, connection: Connection) -> None:
        """Take steps over the buckets that are due, for about half a second."""
        began = time.monotonic()
        found = connection.execute(
            "select queue, bucket from pgcombine_internal.retain_due(%s)", (list(self._queues) or None,)
        ).fetchall()
        for queue, bucket in found:
            more = True
            while more and self._refused.get(queue, 0.0) <= began:
                more = self._step(connection, queue, bucket)
                if time.monotonic() > began + _BUDGET:
                    return

    def _step(self, connection: Connection, queue: str, bucket: int) -> bool:
        """Take one step, and log a failure. Returns whether pages of the bucket are left."""
        try:
            done = step(connection, queue, bucket, self._observers.get(queue, NO_OBSERVERS))
        except (InvalidDefinition, NotGranted, QueueNotFound):
            return False  # the queue was dropped, the bucket is gone, or the right was revoked
        except AppNeeded as error:
            self._refused[queue] = time.monotonic() + _REFUSED_PAUSE
            log.error("queue.refused queue=%s error=%s", queue, error)
            return False
        except PassError as error:
            log.error(
                "retain.failed queue=%s bucket=%d sqlstate=%s error=%s", queue, bucket, error.sqlstate, error.reason
            )
            return False
        if done is None:
            return False
        removed, more = done
        log.debug("retain queue=%s bucket=%d removed=%d", queue, bucket, removed)
        return more
