"""Old snapshots held elsewhere in the database: found, and logged at most once a minute.

They slow passes down (``sql/queries/old_snapshots.sql`` tells why), and only who holds them can end them. Nothing
raises but a lost connection: psycopg's OperationalError.
"""

from __future__ import annotations

import logging
from typing import Any

from pgcombine.database import sqlfiles
from pgcombine.database.connect import Connection, dicts
from pgcombine.worker.chores import Chore

log = logging.getLogger("pgcombine.worker")

OLD_SECONDS = 60.0
EVERY_SECONDS = 60.0


def old_snapshots(connection: Connection, older_than: float = OLD_SECONDS) -> list[dict[str, Any]]:
    """Who holds snapshots older than ``older_than`` seconds: ``holder``, ``pid``, ``name``, ``since``, ``age_seconds``,
    ``detail``, the oldest first."""
    return dicts(connection, sqlfiles.query("old_snapshots"), (float(older_than), float(older_than)))


class Watch(Chore):
    """Logs a warning for each old snapshot."""

    def __init__(self, *, older_than: float = OLD_SECONDS, every: float = EVERY_SECONDS) -> None:
        super().__init__(every)
        self.older_than = older_than

    def do(self, connection: Connection) -> None:
        """Look now."""
        for found in old_snapshots(connection, self.older_than):
            log.warning(
                "snapshot.old holder=%s pid=%s name=%s age_seconds=%s detail=%s",
                found["holder"].replace(" ", "_"),
                found["pid"],
                found["name"],
                "unknown" if found["age_seconds"] is None else round(found["age_seconds"]),
                found["detail"],
            )
