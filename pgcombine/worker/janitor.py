"""Loads from Spark that died, and ids of runs from long ago, are removed: by workers, and by who asks for it.

The rules are those of ``pgcombine.clean_loads``. A worker whose role may run passes over no queue leaves it to others.
"""

from __future__ import annotations

import logging
from typing import NamedTuple

from psycopg.errors import InsufficientPrivilege

from pgcombine.database.connect import Connection
from pgcombine.worker.chores import Chore

log = logging.getLogger("pgcombine.worker")

LOADS_SECONDS = 86_400.0  # a load of which nobody was heard for so long has died
RUNS_SECONDS = 30 * 86_400.0  # ids of runs are kept for so long
EVERY_SECONDS = 600.0


class Cleaned(NamedTuple):
    """How many dead loads, and ids of old runs, were removed."""

    loads: int
    runs: int


def clean(connection: Connection, *, loads: float = LOADS_SECONDS, runs: float = RUNS_SECONDS) -> Cleaned:
    """Remove loads of which nobody was heard for ``loads`` seconds, and ids of runs older than ``runs`` seconds."""
    row = connection.execute(
        "select * from pgcombine.clean_loads(make_interval(secs => %s), make_interval(secs => %s))", (loads, runs)
    ).fetchone()
    assert row is not None
    return Cleaned(*row)


class Janitor(Chore):
    """Cleans."""

    def __init__(self, *, every: float = EVERY_SECONDS) -> None:
        super().__init__(every)

    def do(self, connection: Connection) -> None:
        """Clean now."""
        try:
            row = connection.execute("select * from pgcombine.tidy_loads()").fetchone()
        except InsufficientPrivilege:
            return
        assert row is not None
        cleaned = Cleaned(*row)
        if any(cleaned):
            log.info("spark.cleaned loads=%d runs=%d", cleaned.loads, cleaned.runs)
