"""Finds the keys with the greatest values, for ``pgcombine top``."""

from __future__ import annotations

import time
from datetime import timedelta
from decimal import Decimal
from typing import Any

import typer
from psycopg import sql
from rich.text import Text

from pgcombine.cli.options import table_of
from pgcombine.cli.watch import History, Shown
from pgcombine.database.connect import Connection, dicts
from pgcombine.database.loading import as_text
from pgcombine.database.sqlfiles import query
from pgcombine.database.texts import name_of
from pgcombine.queue import combine_queue as queues
from pgcombine.queue.status import Column, columns
from pgcombine.runtime.printable import printable

Row = tuple[Any, ...]


def greatest(connection: Connection, name: str, by: str | None, limit: int) -> tuple[list[Column], list[Row], str]:
    """Return the columns, the rows with the greatest values, and the column that orders them.

    Raises typer.BadParameter if ``by`` is no column, or is missing though there are several value columns. Raises
    QueueNotFoundError.
    """
    as_text(connection)
    queues.require(connection, [name])
    found = columns(connection, name)
    names = [column.name for column in found]
    if by is None:
        values = [column.name for column in found if column.role == "value"]
        if len(values) > 1:
            raise typer.BadParameter(f"give one of the value columns of {name}: {', '.join(values)}", param_hint="--by")
        by = values[0]
    elif by not in names:
        raise typer.BadParameter(f"{by!r} is no column of {name}; columns: {', '.join(names)}", param_hint="--by")
    rows = connection.execute(
        sql.SQL("select {} from {} order by {} desc nulls last, {} limit %s").format(
            sql.SQL(", ").join(map(name_of, names)),
            sql.Identifier("pgcombine", f"{name}_values"),
            name_of(by),
            name_of(names[0]),
        ),
        (limit,),
    ).fetchall()
    return found, rows, by


class Watched:
    """The polls of ``top --watch``.

    If the column that orders the keys has numbers, a poll also shows by how much it changed per second since the
    previous poll, for each key that the previous poll showed.
    """

    def __init__(self, name: str, by: str | None, limit: int) -> None:
        self._name, self._by, self._limit = name, by, limit
        self._history = History()
        self._before: dict[Row, Any] = {}
        self._at = 0.0

    def poll(self, connection: Connection) -> Shown:
        """Return the keys with their values, and the queue's lag and rate, as ``--watch`` shows them."""
        found, rows, by = greatest(connection, self._name, self._by, self._limit)
        now = time.monotonic()
        names = [column.name for column in found]
        keys = [place for place, column in enumerate(found) if column.role == "key"]
        place = names.index(by)
        current = {tuple(row[key] for key in keys): row[place] for row in rows}
        rates = [self._rate(key, value, now - self._at) for key, value in current.items()]
        self._before, self._at = current, now
        stat = dicts(connection, query("queue_stat"), (self._name,))
        shown = [dict(zip(names, row, strict=True)) for row in rows]
        return Shown(
            {"queue": self._name, "keys": shown, "stat": stat[0] if stat else None},
            [
                table_of(
                    [*names, "change"],
                    [[*row, "" if rate is None else f"{rate:+.1f}/s"] for row, rate in zip(rows, rates, strict=True)],
                ),
                *[self._told(one) for one in stat],
            ],
            [{"queue": self._name, **one, "per_second": rate} for one, rate in zip(shown, rates, strict=True)],
        )

    def _rate(self, key: Row, value: Any, seconds: float) -> float | None:
        before = self._before.get(key)
        if not all(isinstance(one, (int, float, Decimal)) for one in (before, value)) or seconds <= 0:
            return None
        return float(value - before) / seconds

    def _told(self, stat: dict[str, Any]) -> Text:
        lag = self._history.line("lag", figure=stat["lag_seconds"])
        rate = self._history.line("rate", figure=stat["updates_per_second_1m"])
        age = timedelta(seconds=round(stat["lag_seconds"]))
        return Text(
            printable(f"\n{self._name}: about {stat['pending']} pending")
            + f"\nlag      {lag} {age}\ncombined {rate} {stat['updates_per_second_1m']:.0f}/s"
        )
