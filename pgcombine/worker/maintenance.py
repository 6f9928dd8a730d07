"""Truncating what passes leave: updates that are combined and that nobody needs any more; and old rows of the journal.

The rules are those of ``pgcombine.retire``. A queue that passes were made over is looked at every second, the others
once a minute. Nothing raises but a lost connection: psycopg's OperationalError.
"""

from __future__ import annotations

import time
from contextlib import suppress

from psycopg import errors as pg

from pgcombine.database.connect import Connection
from pgcombine.worker.chores import Chore

EVERY_SECONDS = 1.0
ALL_SECONDS = 60.0


def adopt(connection: Connection) -> bool:
    """Make a database that was restored from a dump this program's own, if it isn't yet: ``pgcombine.adopt``.

    The connection is idle in autocommit.
    """
    row = connection.execute("select not pgcombine.own_lineage()").fetchone()
    assert row is not None
    if row[0]:
        row = connection.execute("select pgcombine.adopt()").fetchone()
        assert row is not None
    return bool(row[0])


def retire(connection: Connection, queue: str | None) -> None:
    """Retire segments of a queue, of all for None. The connection is idle in autocommit; its timeouts may end this."""
    with suppress(pg.QueryCanceled):
        connection.execute("call pgcombine.retire(%s)", (queue,))


class Retire(Chore):
    """Retires segments of ``queues`` (all when none is named)."""

    def __init__(self, queues: tuple[str, ...], *, every: float = EVERY_SECONDS) -> None:
        super().__init__(every)
        self._queues = queues
        self._passed_over: dict[str, float] = {}  # when
        self._next_all = 0.0

    def passed_over(self, queue: str) -> None:
        """Tell that a pass has combined updates of a queue."""
        self._passed_over[queue] = time.monotonic()

    def do(self, connection: Connection) -> None:
        """Retire what can be."""
        adopt(connection)
        now = time.monotonic()
        if now >= self._next_all:
            self._next_all = now + ALL_SECONDS
            for queue in self._queues or (None,):
                retire(connection, queue)
                connection.execute("select pgcombine.trim_journal(%s)", (queue,))
            return
        for queue, when in list(self._passed_over.items()):
            if when < now - ALL_SECONDS:
                self._passed_over.pop(queue, None)
            else:
                retire(connection, queue)
