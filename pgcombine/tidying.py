"""Vacuuming what passes leave: deleted updates, which every further pass walks over until they are gone.

Autovacuum looks once a minute, in which a busy bucket gathers millions of them. Nothing raises but a lost connection:
psycopg's OperationalError.
"""

from __future__ import annotations

import logging
import time

from psycopg import errors as pg
from psycopg import sql

from pgcombine.chores import Chore
from pgcombine.database import Connection

log = logging.getLogger("pgcombine.worker")

EVERY_SECONDS = 1.0


class Tidy(Chore):
    """Vacuums updates of ``queues`` (all when none is named), a partition of each at a time."""

    def __init__(self, queues: tuple[str, ...], *, every: float = EVERY_SECONDS) -> None:
        super().__init__(every)
        self._queues = queues or (None,)

    def do(self, connection: Connection) -> None:
        """Vacuum the partition most worth it, if there is one."""
        for queue in self._queues:
            found = connection.execute("select * from pgcombine.bloated(%s) limit 1", (queue,)).fetchone()
            if found is not None:
                began = time.monotonic()
                try:
                    _vacuum(connection, found[0])
                except (pg.QueryCanceled, pg.UndefinedTable, pg.LockNotAvailable) as error:
                    log.debug("vacuum.failed table=%s reason=%s", found[0], error)  # a timeout, or it was dropped
                else:
                    log.debug("vacuum table=%s seconds=%.3f", found[0], time.monotonic() - began)


def _vacuum(connection: Connection, table: str) -> None:
    """Vacuum without the limit that the connection has for passes; those of the URI, the role and the server hold."""
    row = connection.execute(
        "select setting from pg_settings where name = 'statement_timeout' and setting <> reset_val"
    ).fetchone()
    if row is not None:
        connection.execute("reset statement_timeout")
    try:
        # neither wait for autovacuum, nor truncate the file, which would hold up who enqueues
        connection.execute(sql.SQL("vacuum (skip_locked, truncate false) {}").format(sql.SQL(table)), prepare=False)
    finally:
        if row is not None and not connection.closed:
            connection.execute("select set_config('statement_timeout', %s, false)", (row[0],))
