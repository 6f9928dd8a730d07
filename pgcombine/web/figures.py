"""Reads what the pages show, except for the figures of :mod:`pgcombine.web.history`.

A :class:`Part` has a sentence instead of rows if the role lacks a right to read it, if reading it takes too long, or if
another session has locked one of its tables.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql
from psycopg.rows import dict_row

from pgcombine.database.connect import Connection, dicts
from pgcombine.database.sqlfiles import query
from pgcombine.errors import first_line
from pgcombine.queue import status
from pgcombine.queue.status import Column
from pgcombine.worker.maintenance import old_snapshots

QUARANTINED_KEYS = 100  # greatest number of quarantined keys on a queue's page
QUARANTINED_UPDATES = 50  # greatest number of updates on the page of a quarantined key
GREATEST = 20  # greatest number of keys on the page of the greatest values
LONGEST = 4000  # characters of a queue's key or value; longer ones are cut in the database


@dataclass(frozen=True)
class Part:
    """Rows, or in ``trouble`` a sentence that says why they can't be shown."""

    rows: Sequence[dict[str, Any]] = ()
    trouble: str = ""


def part(connection: Connection, name: str, *parameters: Any) -> Part:
    """Return the rows of the query ``name`` of ``sql/queries``."""
    return _guarded(connection, lambda: dicts(connection, query(name), parameters))


def _guarded(connection: Connection, read: Callable[[], list[dict[str, Any]]]) -> Part:
    """Return the rows that ``read`` returns, or a sentence for an expected error. The transaction stays usable."""
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
    """Return the rows of :func:`~pgcombine.worker.maintenance.old_snapshots`."""
    return _guarded(connection, lambda: old_snapshots(connection, older_than))


def workers(connection: Connection) -> Part:
    """Return the connected workers."""
    return _guarded(connection, lambda: status.workers(connection))


def identity(connection: Connection) -> dict[str, str]:
    """Return the names of the database and of the role, and the server's version."""
    (found,) = dicts(connection, query("web_identity"))
    return found


def operable(connection: Connection, queues: Sequence[str]) -> frozenset[str]:
    """Return those of the queues that the role may pause, and whose quarantined keys it may retry and drop."""
    statement = "select q from unnest(%s::text[]) q where pgcombine_internal.has_right(q, 'work')"
    return frozenset(queue for (queue,) in connection.execute(statement, ([*queues],)))


def greatest(connection: Connection, queue: str, found: Sequence[Column], by: str) -> Part:
    """Return at most GREATEST keys, those with the greatest values of ``by``. ``found`` are the queue's columns."""
    statement = sql.SQL("select {} from {} order by {} desc nulls last limit {}").format(
        _texts(found),
        sql.Identifier("pgcombine", f"{queue}_values"),
        sql.Identifier("pgcombine", f"{queue}_values", by),
        sql.Literal(GREATEST),
    )
    return _guarded(connection, lambda: _rows(connection, statement))


def quarantined_key(connection: Connection, queue: str, number: int) -> dict[str, Any] | None:
    """Return the row of ``pgcombine.quarantine`` with the id ``number``, or None."""
    return next(iter(dicts(connection, query("web_quarantined_key"), (queue, number))), None)


def quarantined_updates(connection: Connection, queue: str, number: int, found: Sequence[Column]) -> Part:
    """Return at most QUARANTINED_UPDATES updates of a quarantined key. ``found`` are the columns of the queue."""
    statement = sql.SQL("select {} from {} where pgcombine_key = {} limit {}").format(
        _texts(found),
        sql.Identifier("pgcombine", f"{queue}_quarantine"),
        sql.Literal(number),
        sql.Literal(QUARANTINED_UPDATES),
    )
    return _guarded(connection, lambda: _rows(connection, statement))


def _texts(found: Sequence[Column]) -> sql.Composed:
    """Return a select list of the columns as text, since Python can't represent some values, such as infinite dates."""
    return sql.SQL(", ").join(
        sql.SQL("left({0}::text, {1}) as {0}").format(sql.Identifier(column.name), sql.Literal(LONGEST))
        for column in found
    )


def _rows(connection: Connection, statement: sql.Composed) -> list[dict[str, Any]]:
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(statement).fetchall()
