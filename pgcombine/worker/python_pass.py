"""Passes with Python functions: Python combiners make the new values, Python observers read the changes.

A pass runs in a transaction that the caller has begun under repeatable read. Updates and changes are read through
server-side cursors, a portion at a time. Only where a queue has several Python combiners, all updates of one key are in
memory together. An exception of a function becomes :class:`PassError`, unless it is an error of the database.
"""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from operator import itemgetter
from tempfile import SpooledTemporaryFile
from typing import Any, NamedTuple, TypeVar

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus
from psycopg.types.json import Json

from pgcombine.database.connect import Connection
from pgcombine.errors import AppNeeded, ConfigError, PassError, QueueExists, translated
from pgcombine.queue.callbacks import Change, Functions
from pgcombine.queue.combine_queue import CombineQueue

_PORTION = 1000  # rows fetched or written at once
_KEPT_IN_MEMORY = 1 << 20  # bytes

R = TypeVar("R")


class Plan(NamedTuple):
    """The plan of a pass: the fields of ``pgcombine.plan`` that Python needs.

    ``text`` is the whole plan, for the server.
    """

    queue: str
    bucket: int
    text: str
    mask: int | None
    slice: int | None
    pending: int
    more: bool
    held: bool
    observe: list[str]


class Changes:
    """The changes of a pass. They may be iterated several times, while the connection is used for other statements.

    The changes are in a file, and a portion at a time is read from it. So memory stays bounded, and the connection is
    free: an observer may COPY into another queue while it iterates.
    """

    def __init__(self, portions: Iterable[list[tuple[Any, ...]]], count: int, keys: int, values: int) -> None:
        self._count = count
        self._keys = keys
        self._values = values
        self._file = SpooledTemporaryFile(max_size=_KEPT_IN_MEMORY)  # noqa: SIM115 (closed with the pass)
        self._places: list[int] = []
        for rows in portions:
            self._places.append(self._file.tell())
            pickle.dump(rows, self._file, pickle.HIGHEST_PROTOCOL)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[Change]:
        for place in self._places:
            self._file.seek(place)
            for row in pickle.load(self._file):
                columns = row[len(row) - self._keys - 2 * self._values :]
                old, new = columns[self._keys : self._keys + self._values], columns[self._keys + self._values :]
                yield Change(_scalar(columns[: self._keys]), _value(old), _value(new))

    def close(self) -> None:
        """Delete the file of the changes."""
        self._file.close()


def run(connection: Connection, plan: Plan, functions: Functions, source: str | None = None) -> tuple[int, int, int]:
    """Run a planned pass. Returns the numbers of updates taken, of their keys, and of changed values.

    ``source`` is an SQL expression for the updates to take instead of the plan's. Raises the errors of the database,
    and PassError if a function raises.
    """
    if not plan.pending:
        return 0, 0, 0
    if source is not None or (plan.mask or 0) >= 4095:
        connection.execute("select pgcombine_internal.refuse_bytes(%s::pgcombine.plan, %s)", (plan.text, source))
    columns = _columns(connection, plan.queue)
    taken = None
    if functions.combiners:
        taken = _combine(connection, plan, source, columns, functions)
        source = "pg_temp.pgcombine_combined as updates"
    connection.execute("select pgcombine_internal.open_changes(%s::pgcombine.plan, %s)", (plan.text, source))
    portions = _portions(connection, "pgcombine_changes")
    first = next(portions)
    updates, keys, changed, held = first[0][:4]
    if changed and plan.observe:
        portions = itertools.chain([first], portions)
        key_columns = sum(role == "key" for _, role, _, _ in columns)
        with closing(Changes(portions, changed, key_columns, len(columns) - key_columns)) as changes:
            for name in plan.observe:
                _call(f'observer "{name}"', plan, functions.observers[name], connection, changes)
                _require_transaction(connection, name, plan)
    connection.execute("close pgcombine_changes")
    return (updates if taken is None else taken) + held, keys, changed


def declare(connection: Connection, queue: CombineQueue) -> None:
    """Declare the queue's Python observers that aren't declared yet.

    Raises QueueNotFound, and ConfigError if a function is registered for a column without a Python combiner.
    """
    functions = queue.functions
    python = [name for name, _, combiner, _ in _columns(connection, queue.name) if combiner == "python"]
    for name in functions.combiners:
        if name not in python:
            raise ConfigError(
                f'queue "{queue.name}" has no value column "{name}" with the combiner python, '
                "but a function is registered for it"
            )
    found = connection.execute("select observer from pgcombine.observer where queue = %s", (queue.name,))
    known = {name for (name,) in found}
    for name in functions.observers:
        if name not in known:
            try:
                with translated(queue=queue.name):
                    connection.execute(
                        "select pgcombine.add_observer(%s, %s, language => 'python')", (queue.name, name)
                    )
            except QueueExists:
                pass  # another worker was faster


def require(connection: Connection, queue: str, functions: Functions | None) -> None:
    """Raise AppNeeded if the queue has Python functions that ``functions`` lacks."""
    given = functions or Functions()
    lacking = [name for name, _, combiner, _ in _columns(connection, queue) if combiner == "python"]
    lacking = [f'combiner of column "{name}"' for name in lacking if name not in given.combiners]
    declared = connection.execute(
        "select observer from pgcombine.observer where queue = %s and language = 'python' order by position", (queue,)
    )
    lacking += [f'observer "{name}"' for (name,) in declared if name not in given.observers]
    if lacking:
        raise AppNeeded(
            f'queue "{queue}" needs functions in Python that aren\'t given: {", ".join(lacking)} '
            "(pgcombine worker --app module:attribute runs them)",
            queue=queue,
        )


def _combine(
    connection: Connection,
    plan: Plan,
    source: str | None,
    columns: Sequence[tuple[str, str, str | None, str]],
    functions: Functions,
) -> int:
    """Fill the table pgcombine_combined with one update for each key. Returns the number of updates read.

    The Python columns of these updates hold the new values.
    """
    keys = [name for name, role, _, _ in columns if role == "key"]
    python = [(name, kind) for name, _, combiner, kind in columns if combiner == "python"]
    others = [name for name, role, combiner, _ in columns if role == "value" and combiner != "python"]
    connection.execute("select pgcombine_internal.open_combiner(%s::pgcombine.plan, %s)", (plan.text, source))
    copy = sql.SQL("copy pg_temp.pgcombine_combined ({}) from stdin").format(
        sql.SQL(", ").join(map(sql.Identifier, [*keys, *others, *(name for name, _ in python)]))
    )
    counted = _Count(itertools.chain.from_iterable(_portions(connection, "pgcombine_combiner")))
    made: list[list[Any]] = []
    for _, group in itertools.groupby(counted, key=itemgetter(0)):
        first = next(group)
        rows: Iterable[tuple[Any, ...]] = itertools.chain([first], group)  # noqa: B031 (the rest of the group)
        if len(python) > 1:
            rows = list(rows)  # several functions read the rows; a single one gets them as they come
        key = _scalar(first[1 : 1 + len(keys)])
        results = []
        for number, (name, kind) in enumerate(python):
            values = _values(rows, 1 + len(keys) + 2 * number)
            value = next(values, None)
            if value is not None:  # a combiner is not called without a value
                values = itertools.chain([value], values)
                value = _call(f'combiner of "{name}"', plan, functions.combiners[name], key, values)
            results.append(Json(value) if kind in ("json", "jsonb") and value is not None else value)
        made.append([*first[1 + len(keys) + 2 * len(python) :], *results])
        if len(made) >= _PORTION:
            _write(connection, copy, made)
    _write(connection, copy, made)
    connection.execute("close pgcombine_combiner")
    return counted.count


def _values(rows: Iterable[tuple[Any, ...]], place: int) -> Iterator[Any]:
    """Iterate the old value, which is the same in each row, and then the updates' values, without nulls."""
    for number, row in enumerate(rows):
        yield from (value for value in row[place + (number > 0) : place + 2] if value is not None)


def _write(connection: Connection, copy: sql.Composed, rows: list[list[Any]]) -> None:
    with connection.cursor().copy(copy) as stream:
        for row in rows:
            stream.write_row(row)
    rows.clear()


def _call(what: str, plan: Plan, function: Callable[..., R], *arguments: Any) -> R:
    try:
        return function(*arguments)
    except psycopg.Error:
        raise
    except Exception as error:
        raise PassError(
            f"{what} raised {type(error).__name__}: {error}", queue=plan.queue, bucket=plan.bucket
        ) from error


def _require_transaction(connection: Connection, observer: str, plan: Plan) -> None:
    """Raise PassError if the observer left no transaction that can be committed.

    Without this check the pass would seem to succeed.
    """
    status = connection.info.transaction_status
    if status == TransactionStatus.INERROR:
        what = "went on after an error that aborted the transaction: run what may fail in tx.transaction()"
    elif status == TransactionStatus.IDLE:
        what = "ended the pass's transaction: leave commit and rollback to the worker"
    else:
        return
    raise PassError(f'observer "{observer}" {what}', queue=plan.queue, bucket=plan.bucket)


class _Count(Iterator[tuple[Any, ...]]):
    """An iterator of rows that counts them."""

    def __init__(self, rows: Iterator[tuple[Any, ...]]) -> None:
        self._rows = rows
        self.count = 0

    def __next__(self) -> tuple[Any, ...]:
        row = next(self._rows)
        self.count += 1
        return row


def _portions(connection: Connection, cursor: str) -> Iterator[list[tuple[Any, ...]]]:
    fetch = sql.SQL("fetch {} from {}").format(_PORTION, sql.Identifier(cursor))
    while rows := connection.execute(fetch).fetchall():
        yield rows


def _columns(connection: Connection, queue: str) -> list[tuple[str, str, str | None, str]]:
    return connection.execute(
        "select name, role, combiner, type from pgcombine.queue_column where queue = %s order by position", (queue,)
    ).fetchall()


def _scalar(columns: tuple[Any, ...]) -> Any:
    return columns[0] if len(columns) == 1 else columns


def _value(columns: tuple[Any, ...]) -> Any:
    return None if all(column is None for column in columns) else _scalar(columns)
