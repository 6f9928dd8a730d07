"""What the role of a worker may do, where that is too much."""

from __future__ import annotations

import logging

from pgcombine.database import Connection

log = logging.getLogger("pgcombine.worker")


def warn_of_superuser(connection: Connection) -> None:
    """Log a warning if the connection's role is a superuser.

    Observers' statements, and triggers on the tables that they write, run with a worker's rights: whoever may make one
    could become a superuser, too.
    """
    row = connection.execute(
        "select rolname from pg_roles where rolname in (current_user, session_user) and rolsuper limit 1"
    ).fetchone()
    if row is not None:
        log.warning(
            "worker.superuser role=%s: triggers on observers' tables run with a superuser's rights; "
            "let an ordinary role own the schema and run workers",
            row[0],
        )
