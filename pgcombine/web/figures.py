"""What the pages show beside the figures of :mod:`pgcombine.web.history`: read by the monitoring views.

What the role may not see, and what takes too long, is a :class:`Part` with a sentence instead of rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import psycopg
from psycopg import sql

from pgcombine.database.connect import Connection, dicts, one
from pgcombine.database.sqlfiles import query
from pgcombine.errors import first_line

HELD_KEYS = 100  # quarantined keys on a queue's page
HELD_UPDATES = 50  # of one key
GREATEST = 20
LONGEST = 2000  # characters of a cell that is read from the database


@dataclass(frozen=True)
class Part:
    """Rows, or a sentence that says why there are none."""

    rows: Sequence[dict[str, Any]] = ()
    trouble: str = ""
    columns: Sequence[str] = field(default=())


def part(connection: Connection, name: str, *parameters: Any) -> Part:
    """Return the rows of a named query."""
    return guarded(connection, lambda: Part(dicts(connection, query(name), parameters)))


def guarded(connection: Connection, work: Callable[[], Part]) -> Part:
    """Return the result of ``work``, or the sentence for an error that isn't the connection's end."""
    try:
        with connection.transaction():
            return work()
    except psycopg.errors.InsufficientPrivilege as error:
        hint = f": {error.diag.message_hint}" if error.diag.message_hint else ""
        return Part(trouble=f"The page's role may not see this ({first_line(error)}{hint}).")
    except psycopg.errors.QueryCanceled:
        return Part(trouble="This took too long and was left out.")
    except psycopg.errors.LockNotAvailable:
        return Part(trouble="Another session has locked this; it comes back when that ends.")


def identity(connection: Connection) -> dict[str, str]:
    """Return the names of the database and of the role, and the server's version."""
    (found,) = dicts(
        connection,
        "select current_database() as database, current_user as role, current_setting('server_version') as version",
    )
    return found


def may_operate(connection: Connection, queue: str) -> bool:
    """Whether the role may pause the queue, and retry and drop its quarantined keys."""
    return bool(one(connection, "select pgcombine_internal.has_right(%s, 'operate')", queue)[0])


def columns(connection: Connection, queue: str) -> list[dict[str, Any]]:
    """Return name, type and role (key or value) of the queue's columns."""
    return dicts(
        connection, "select name, type, role from pgcombine.queue_column where queue = %s order by position", (queue,)
    )


def greatest(connection: Connection, queue: str, by: str | None) -> Part:
    """Return the keys with the greatest values of a column; the first value column for None or an unknown one."""
    found = columns(connection, queue)
    values = [column["name"] for column in found if column["role"] == "value"]
    by = by if by in values else values[0]
    names = [column["name"] for column in found]
    statement = sql.SQL("select {} from {} order by {} desc nulls last limit {}").format(
        sql.SQL(", ").join(map(_text, names)),
        sql.Identifier("pgcombine", f"{queue}_values"),
        sql.Identifier(by),
        sql.Literal(GREATEST),
    )
    return guarded(connection, lambda: _rows(connection, statement, names))


def held_key(connection: Connection, queue: str, number: int) -> dict[str, Any] | None:
    """Return the row of ``pgcombine.quarantine`` with this id, or None."""
    rows = dicts(connection, query("web_held_key"), (queue, number))
    return rows[0] if rows else None


def held_updates(connection: Connection, queue: str, number: int) -> Part:
    """Return the first held updates of a quarantined key."""
    names = [column["name"] for column in columns(connection, queue)]
    statement = sql.SQL("select {} from {} where pgcombine_key = {} limit {}").format(
        sql.SQL(", ").join(map(_text, names)),
        sql.Identifier("pgcombine", f"{queue}_quarantine"),
        sql.Literal(number),
        sql.Literal(HELD_UPDATES),
    )
    return guarded(connection, lambda: _rows(connection, statement, names))


def _text(name: str) -> sql.Composable:
    """Return the column as PostgreSQL writes it: infinite dates and long numbers stay as they are."""
    return sql.SQL("left({}::text, {})").format(sql.Identifier(name), sql.Literal(LONGEST))


def _rows(connection: Connection, statement: sql.Composed, names: Sequence[str]) -> Part:
    rows = connection.execute(statement).fetchall()
    return Part([dict(zip(names, row, strict=True)) for row in rows], columns=names)
