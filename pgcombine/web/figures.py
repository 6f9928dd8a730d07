"""Reads the parts of the pages, except for the figures of :mod:`pgcombine.web.history`.

If the role lacks the right to read a part, if reading it takes too long, or if another session has locked a table of
it, its :class:`Part` has a sentence instead of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from pgcombine.database.connect import Connection, dicts, one
from pgcombine.database.sqlfiles import query
from pgcombine.errors import first_line
from pgcombine.queue import status
from pgcombine.queue.status import Column
from pgcombine.worker.maintenance import old_snapshots

QUARANTINED_KEYS = 100  # quarantined keys on a queue's page
QUARANTINED_UPDATES = 50  # updates on the page of a quarantined key
GREATEST = 20  # keys on the page of the greatest values
LONGEST = 4000  # characters; the database cuts longer cells


@dataclass(frozen=True)
class Part:
    """Rows, or a sentence that says why there are none."""

    rows: Sequence[dict[str, Any]] = ()
    trouble: str = ""


def part(connection: Connection, name: str, *parameters: Any) -> Part:
    """Return the rows of a named query."""
    return _guarded(connection, lambda: dicts(connection, query(name), parameters))


def _guarded(connection: Connection, read: Callable[[], list[dict[str, Any]]]) -> Part:
    """Return the rows, or the sentence for an expected error. Afterwards the caller can go on with its transaction."""
    try:
        with connection.transaction():
            return Part(read())
    except psycopg.errors.InsufficientPrivilege as error:
        hint = f"; {error.diag.message_hint} grants the right" if error.diag.message_hint else ""
        return Part(trouble=f"The page's role isn't allowed to see this: {first_line(error)}{hint}.")
    except psycopg.errors.QueryCanceled:
        return Part(trouble="This took too long, so it was left out.")
    except psycopg.errors.LockNotAvailable:
        return Part(trouble="Another session has locked this until it ends its transaction.")


def snapshots(connection: Connection, older_than: float) -> Part:
    """Return the holders of snapshots that are older than ``older_than`` seconds, oldest first."""
    return _guarded(connection, lambda: old_snapshots(connection, older_than))


def workers(connection: Connection) -> Part:
    """Return the connected workers."""
    return _guarded(connection, lambda: status.workers(connection))


def identity(connection: Connection) -> dict[str, str]:
    """Return the names of the database and of the role, and the server's version."""
    (found,) = dicts(connection, query("web_identity"))
    return found


def may_operate(connection: Connection, queue: str) -> bool:
    """Whether the role may pause the queue, and retry and drop its quarantined keys."""
    return bool(one(connection, "select pgcombine_internal.has_right(%s, 'operate')", queue)[0])


def greatest(connection: Connection, queue: str, found: Sequence[Column], by: str) -> Part:
    """Return the keys with the greatest values of the column ``by``. ``found`` are the queue's columns."""
    statement = sql.SQL("select {} from {} order by {} desc nulls last limit {}").format(
        _texts(found),
        sql.Identifier("pgcombine", f"{queue}_values"),
        sql.Identifier("pgcombine", f"{queue}_values", by),
        sql.Literal(GREATEST),
    )
    return _guarded(connection, lambda: _rows(connection, statement))


def quarantined_key(connection: Connection, queue: str, number: int) -> dict[str, Any] | None:
    """Return the row of ``pgcombine.quarantine`` with this id, or None."""
    return next(iter(dicts(connection, query("web_quarantined_key"), (queue, number))), None)


def quarantined_updates(connection: Connection, queue: str, number: int, found: Sequence[Column]) -> Part:
    """Return the first updates of a quarantined key. ``found`` are the columns of the queue."""
    statement = sql.SQL("select {} from {} where pgcombine_key = {} limit {}").format(
        _texts(found),
        sql.Identifier("pgcombine", f"{queue}_quarantine"),
        sql.Literal(number),
        sql.Literal(QUARANTINED_UPDATES),
    )
    return _guarded(connection, lambda: _rows(connection, statement))


def _texts(found: Sequence[Column]) -> sql.Composed:
    """Return the columns as text, cut to LONGEST. Python can't represent all values, such as infinite dates."""
    return sql.SQL(", ").join(
        sql.SQL("left({0}::text, {1}) as {0}").format(sql.Identifier(column.name), sql.Literal(LONGEST))
        for column in found
    )


def _rows(connection: Connection, statement: sql.Composed) -> list[dict[str, Any]]:
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(statement).fetchall()
