"""Passes with Python observers.

A pass runs in a repeatable read transaction that the caller has begun. The changes are read in portions through a
server-side cursor.
"""

from __future__ import annotations

import math
import pickle
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, closing
from tempfile import SpooledTemporaryFile
from typing import Any, Generic, TypeVar

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from pgcombine.database.connect import Connection, one
from pgcombine.errors import ObserversMissingError, PassError, QueueExistsError, translated
from pgcombine.queue.callbacks import Arrival, Change, Columns, Observers, OfArrivals
from pgcombine.queue.combine_queue import CombineQueue

_PORTION = 1000  # rows fetched at once
_KEPT_IN_MEMORY = 1 << 20  # bytes
T = TypeVar("T")


class Stream(Generic[T]):
    """Rows of a pass. An observer may iterate over them several times, and use the connection meanwhile.

    If the rows take more than a megabyte, they are stored in a temporary file, which is read in portions. So memory
    stays bounded, and an observer may, for example, COPY into another queue while it iterates. ``shape`` converts a row
    to what the observer gets.
    """

    def __init__(self, portions: Iterable[list[tuple[Any, ...]]], shape: Callable[[tuple[Any, ...]], T]) -> None:
        self._count = 0
        self._shape = shape
        self._file = SpooledTemporaryFile(max_size=_KEPT_IN_MEMORY)  # noqa: SIM115 (closed with the pass)
        self._places: list[int] = []
        for rows in portions:
            self._places.append(self._file.tell())
            self._count += len(rows)
            pickle.dump(rows, self._file, pickle.HIGHEST_PROTOCOL)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[T]:
        for place in self._places:
            self._file.seek(place)
            for row in pickle.load(self._file):
                yield self._shape(row)

    def close(self) -> None:
        """Delete the rows."""
        self._file.close()


def call(
    connection: Connection, queue: str, bucket: int, names: list[str], observers: Observers, *, changes: int
) -> None:
    """Call the observers ``names`` in order, with the rows from the pass's cursor, and close the cursor.

    The first ``changes`` rows of the cursor are changes. If an observer reads arrivals (the updates of the pass,
    combined by key but not with the old values), they are the rows after the changes. An observer isn't called if there
    is nothing for it. Raises psycopg's errors as they are, and PassError if an observer raises another error, ends the
    transaction or leaves it in an error state.
    """
    if not names:
        return
    key_names, value_names = one(
        connection,
        "select array_agg(name order by position) filter (where role = 'key'), "
        "array_agg(name order by position) filter (where role = 'value') from pgcombine.queue_column where queue = %s",
        queue,
    )
    key_columns, value_columns = Columns.named(key_names), Columns.named(value_names)

    def split(row: tuple[Any, ...]) -> tuple[Any, Any, Any]:
        """Return the last columns of a row: the key columns, the old values and the new values."""
        keys, values = len(key_names), len(value_names)
        columns = row[len(row) - keys - 2 * values :]
        old, new = value_columns(columns[keys : keys + values]), value_columns(columns[keys + values :])
        return _scalar(key_columns(columns[:keys])), old, new

    def change(row: tuple[Any, ...]) -> Change:
        key, old, new = split(row)
        return Change(key, _value(old), _value(new))

    def arrival(row: tuple[Any, ...]) -> Arrival:
        key, _, value = split(row)
        return Arrival(key, _scalar(value))

    with ExitStack() as files:
        changed = files.enter_context(closing(Stream(_portions(connection, changes), change)))
        arrived = None
        if reads_arrivals(observers):
            arrived = files.enter_context(closing(Stream(_portions(connection), arrival)))
        for name in names:
            observer = observers[name]
            try:
                if not isinstance(observer, OfArrivals):
                    if changed:
                        observer(connection, changed)
                elif arrived:
                    observer.function(connection, arrived)
            except psycopg.Error:
                raise
            except Exception as error:
                raise PassError(
                    f'observer "{name}" raised {type(error).__name__}: {error}', queue=queue, bucket=bucket
                ) from error
            _require_transaction(connection, name, queue, bucket)
    connection.execute("close pgcombine_changes")


def declare(connection: Connection, queue: CombineQueue) -> None:
    """Declare the queue's Python observers that aren't declared yet.

    Raises QueueNotFoundError, and the errors of ``pgcombine.add_observer``, for example if the role isn't the owner.
    """
    found = connection.execute("select observer from pgcombine.observer where queue = %s", (queue.name,))
    known = {name for (name,) in found}
    for name in queue.observers:
        if name not in known:
            try:
                with translated(queue=queue.name):
                    connection.execute(
                        "select pgcombine.add_observer(%s, %s, language => 'python')", (queue.name, name)
                    )
            except QueueExistsError:
                pass  # another worker was faster


def reads_arrivals(observers: Observers) -> bool:
    """Whether one of the observers reads arrivals."""
    return any(isinstance(observer, OfArrivals) for observer in observers.values())


def require(connection: Connection, queue: str, observers: Observers) -> None:
    """Raise ObserversMissingError if the queue has Python observers that ``observers`` lacks."""
    declared = connection.execute(
        "select observer from pgcombine.observer where queue = %s and language = 'python' order by position", (queue,)
    )
    lacking = [f'"{name}"' for (name,) in declared if name not in observers]
    if lacking:
        raise ObserversMissingError(
            f'queue "{queue}" has observers in Python that aren\'t given: {", ".join(lacking)} '
            "(pgcombine worker --app module:attribute runs them)",
            queue=queue,
        )


def _require_transaction(connection: Connection, observer: str, queue: str, bucket: int) -> None:
    """Raise PassError if the observer has ended the transaction, or left it in an error state."""
    status = connection.info.transaction_status
    if status == TransactionStatus.INERROR:
        what = "went on after an error that aborted the transaction: run what may fail in tx.transaction()"
    elif status == TransactionStatus.IDLE:
        what = "ended the pass's transaction: leave commit and rollback to the worker"
    else:
        return
    raise PassError(f'observer "{observer}" {what}', queue=queue, bucket=bucket)


def _portions(connection: Connection, count: float = math.inf) -> Iterator[list[tuple[Any, ...]]]:
    """Yield the next ``count`` rows of a pass's cursor in portions. By default, yield all rows that are left."""
    fetch = sql.SQL("fetch {} from pgcombine_changes")
    while count > 0 and (rows := connection.execute(fetch.format(min(_PORTION, count))).fetchall()):
        count -= len(rows)
        yield rows


def _scalar(columns: tuple[Any, ...]) -> Any:
    return columns[0] if len(columns) == 1 else columns


def _value(columns: tuple[Any, ...]) -> Any:
    return None if all(column is None for column in columns) else _scalar(columns)
