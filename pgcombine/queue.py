"""``CombineQueue``: a queue as Python sees it.

Everything runs in the *caller's* transaction on the caller's connection: psycopg's, or SQLAlchemy's
``Connection`` or ``Session``. What is enqueued rolls back with it. Errors raised by the database's functions
become the classes of :mod:`pgcombine.errors`; PostgreSQL's own stay psycopg's.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import psycopg
from psycopg import sql

from pgcombine.database import unwrap
from pgcombine.errors import InvalidUpdate, QueueNotFound, translated

Row = Mapping[str, Any] | Sequence[Any]


class CombineQueue:
    """A combine queue by name.

    ``key`` and ``value`` are column definitions as for ``pgcombine.create_queue`` (``["word text"]``,
    ``["n bigint sum"]``); they and the options are needed for :meth:`create` only.
    """

    def __init__(
        self,
        name: str,
        *,
        key: Sequence[str] = (),
        value: Sequence[str] = (),
        delete_when: str | None = None,
        buckets: int = 16,
        notify: bool = True,
    ) -> None:
        self.name = name
        self.key = list(key)
        self.value = list(value)
        self.delete_when = delete_when
        self.buckets = buckets
        self.notify = notify

    def __repr__(self) -> str:
        return f"CombineQueue({self.name!r})"

    def create(self, connection: Any) -> None:
        """Make the queue. Raises QueueExists, or InvalidDefinition with what is wrong."""
        with translated(queue=self.name):
            unwrap(connection).execute(
                "select pgcombine.create_queue(queue => %s, key => %s, value => %s, delete_when => %s, "
                "buckets => %s, notify => %s)",
                (self.name, self.key, self.value, self.delete_when, self.buckets, self.notify),
            )

    def drop(self, connection: Any, *, force: bool = False) -> None:
        """Drop the queue with its values. Raises QueueNotEmpty while updates are pending, unless ``force``."""
        with translated(queue=self.name):
            unwrap(connection).execute("select pgcombine.drop_queue(%s, force => %s)", (self.name, force))

    def enqueue(self, connection: Any, rows: Iterable[Row]) -> int:
        """Append updates by COPY in the connection's transaction; returns how many.

        A row is a mapping of column names (a missing value column takes its default) or a sequence of all
        columns, keys first. Raises InvalidUpdate for a row that doesn't fit the queue's columns.
        """
        driver = unwrap(connection)
        columns = self._columns(driver)
        count = 0
        with driver.cursor() as cursor:
            for names, group in itertools.groupby(rows, key=lambda row: self._names(row, columns)):
                copy_sql = sql.SQL("copy {} ({}) from stdin").format(
                    self.updates, sql.SQL(", ").join(map(sql.Identifier, names))
                )
                with cursor.copy(copy_sql) as copy:
                    for row in group:
                        copy.write_row([row[name] for name in names] if isinstance(row, Mapping) else row)
                        count += 1
        return count

    def get(self, connection: Any, keys: Iterable[Any]) -> dict[Any, Any]:
        """Current values (combined with pending updates) of the keys that have one, in one snapshot.

        A key is a scalar, or a tuple where the queue has several key columns; so is a value.
        """
        driver = unwrap(connection)
        roles = self._roles(driver)
        names = [name for name, role in roles if role == "key"]
        wanted = [key if len(names) > 1 else (key,) for key in keys]
        for key in wanted:
            if len(key) != len(names):
                raise InvalidUpdate(
                    f'key {key!r} doesn\'t fit queue "{self.name}": its key is ({", ".join(names)})',
                    queue=self.name,
                )
        if not wanted:
            return {}
        one = sql.SQL(" and ").join(sql.SQL("{} = %s").format(sql.Identifier(name)) for name in names)
        statement = sql.SQL("select {} from {} where {}").format(
            sql.SQL(", ").join(sql.Identifier(name) for name, _ in roles),
            sql.Identifier("pgcombine", f"{self.name}_current"),
            sql.SQL(" or ").join(sql.SQL("({})").format(one) for _ in wanted),
        )
        found = driver.cursor().execute(statement, [part for key in wanted for part in key])
        result = {}
        for row in found:
            key, value = tuple(row[: len(names)]), tuple(row[len(names) :])
            result[key if len(key) > 1 else key[0]] = value if len(value) > 1 else value[0]
        return result

    def backlog(self, connection: Any) -> int:
        """How many updates are pending."""
        with translated(queue=self.name):
            row = unwrap(connection).execute("select pgcombine.backlog(%s)", (self.name,)).fetchone()
        assert row is not None
        return int(row[0])

    def pause(self, connection: Any) -> None:
        """Stop passes over the queue; enqueues go on."""
        with translated(queue=self.name):
            unwrap(connection).execute("select pgcombine.pause(%s)", (self.name,))

    def resume(self, connection: Any) -> None:
        """Let passes over the queue go on."""
        with translated(queue=self.name):
            unwrap(connection).execute("select pgcombine.resume(%s)", (self.name,))

    @property
    def updates(self) -> sql.Identifier:
        """The table that enqueues insert into."""
        return sql.Identifier("pgcombine", f"{self.name}_updates")

    def _roles(self, driver: psycopg.Connection[Any]) -> list[tuple[str, str]]:
        found = driver.execute(
            "select name, role from pgcombine.queue_column where queue = %s order by position", (self.name,)
        ).fetchall()
        if not found:
            raise QueueNotFound(f'there is no queue "{self.name}"', queue=self.name)
        return [(str(name), str(role)) for name, role in found]

    def _columns(self, driver: psycopg.Connection[Any]) -> list[str]:
        return [name for name, _ in self._roles(driver)]

    def _names(self, row: Row, columns: list[str]) -> tuple[str, ...]:
        if isinstance(row, Mapping):
            unknown = [name for name in row if name not in columns]
            if unknown:
                raise InvalidUpdate(
                    f'queue "{self.name}" has no column "{unknown[0]}"; its columns: {", ".join(columns)}',
                    queue=self.name,
                )
            return tuple(name for name in columns if name in row)
        if isinstance(row, (str, bytes)) or not isinstance(row, Sequence):
            raise InvalidUpdate(f"an update is a mapping or a sequence of columns, not {row!r}", queue=self.name)
        if len(row) != len(columns):
            raise InvalidUpdate(
                f'update {row!r} of queue "{self.name}" has {len(row)} columns, not {len(columns)}: '
                f"{', '.join(columns)}",
                queue=self.name,
            )
        return tuple(columns)


def queues(connection: Any) -> list[str]:
    """Names of the database's queues."""
    return [str(name) for (name,) in unwrap(connection).execute("select queue from pgcombine.queue order by queue")]


def require(connection: Any, names: Iterable[str]) -> None:
    """Raise QueueNotFound for the first of ``names`` that is no queue."""
    there = queues(connection)
    for name in names:
        if name not in there:
            known = ", ".join(there) or "none"
            raise QueueNotFound(f'there is no queue "{name}"; queues: {known}', queue=name)
