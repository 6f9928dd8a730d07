"""Steps: statements in a caller's own transaction, for any kind of connection.

The statements are written once, as a generator of steps. :func:`run` executes each step and sends its rows into the
generator. The connection is psycopg's (synchronous or asynchronous), or SQLAlchemy's ``Connection``, ``Session``,
``AsyncConnection``, ``AsyncSession`` or a scoped session, also over other drivers. ``run`` neither commits nor rolls
back, with one exception: on a psycopg connection in autocommit, outside a transaction, the steps are one transaction.
Errors that pgcombine's SQL functions raise become exceptions of :mod:`pgcombine.errors`. PostgreSQL's own errors remain
exceptions of the driver. A connection of another kind, or in pipeline mode, raises
:class:`~pgcombine.errors.ConfigError`.
:mod:`pgcombine.database.caller` makes methods and iterators from steps.
"""

from __future__ import annotations

import itertools
import json
import math
import re
import sys
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, overload

import psycopg
from psycopg import sql
from psycopg.abc import AdaptContext
from psycopg.adapt import Transformer
from psycopg.pq import PipelineStatus, TransactionStatus
from psycopg.rows import tuple_row

from pgcombine.database.connect import AsyncCaller, SyncCaller, driver_of
from pgcombine.database.loading import hold_all
from pgcombine.database.texts import name_of, text_of
from pgcombine.errors import ConfigError, from_sqlstate, translated

if TYPE_CHECKING:
    import sqlalchemy

R = TypeVar("R")
Rows: TypeAlias = list[tuple[Any, ...]]

_BATCH = 1000  # rows in one call of ``pgcombine.enqueue`` or ``pgcombine_internal.load_values``
_READ_COMMITTED = "set local transaction isolation level read committed"


@dataclass(frozen=True)
class Statement:
    """A statement with a ``%s`` for each parameter. As a step it returns its rows, or no rows if it has no result.

    ``values`` says that the rows have keys or values of a queue, which psycopg may not be able to load
    (:mod:`pgcombine.database.loading`).
    """

    text: str | sql.Composed
    parameters: Sequence[Any] = ()
    values: bool = False


@dataclass(frozen=True)
class Append:
    """Rows to append to a table of a queue: its ``updates``, ``values``, or a ``contribution`` that was begun.

    As a step it returns one row: the number of rows appended. psycopg sends the rows by COPY, another driver as JSON.
    """

    queue: str
    columns: Sequence[str]
    rows: Iterable[Sequence[Any]]
    into: str = "updates"

    @property
    def relation(self) -> str:
        return f"{self.queue}_{self.into}" if self.into != "contribution" else f"pgcombine_contribution_{self.queue}"

    @property
    def table(self) -> sql.Identifier:
        return sql.Identifier("pg_temp" if self.into == "contribution" else "pgcombine", self.relation)

    @property
    def copy(self) -> sql.Composed:
        columns = sql.SQL(", ").join(map(sql.Identifier, self.columns))
        return sql.SQL("copy {} ({}) from stdin").format(self.table, columns)

    def insert(self, rows: str) -> Statement:
        """Return the statement that appends rows, given as JSON, and returns their number."""
        if self.into != "contribution":
            function = "pgcombine_internal.load_values" if self.into == "values" else "pgcombine.enqueue"
            return Statement(f"select {function}(%s, %s)", (self.queue, rows))
        insert = (
            "with appended as (insert into {table} ({columns}) select {columns} "
            "from jsonb_populate_recordset(null::{table}, %s) returning 1) select count(*) from appended"
        )
        columns = sql.SQL(", ").join(map(name_of, self.columns))
        return Statement(sql.SQL(insert).format(table=self.table, columns=columns), (rows,))


@dataclass(frozen=True)
class Texts:
    """Rows of values. As a step it returns the rows with the texts that the driver's COPY sends for the values."""

    rows: Sequence[Sequence[Any]]


class Untyped(str):
    """A parameter that is a text in a value's form, and gets its type from the statement."""


Step: TypeAlias = Statement | Append | Texts
Steps: TypeAlias = Generator[Step, Rows, R]


def _texts(step: Texts, context: AdaptContext | None = None) -> Rows:
    transformer = Transformer(context)
    return [tuple(text_of(value, transformer) for value in row) for row in step.rows]


@overload
def run(connection: SyncCaller, steps: Steps[R], *, queue: str | None = None, latest: bool = False) -> R: ...
@overload
def run(
    connection: AsyncCaller, steps: Steps[R], *, queue: str | None = None, latest: bool = False
) -> Coroutine[Any, Any, R]: ...
def run(
    connection: Any, steps: Steps[R], *, queue: str | None = None, latest: bool = False
) -> R | Coroutine[Any, Any, R]:
    """Run the steps in the connection's transaction, and return their result.

    On an asynchronous connection the result is an awaitable. ``latest`` says that the steps must see transactions that
    commit while the steps run, which needs a read committed transaction. Then on a psycopg connection in autocommit,
    outside a transaction, this function begins a read committed transaction, regardless of the connection's default.
    Any other transaction must be read committed already.
    """
    if isinstance(connection, psycopg.AsyncConnection):
        return _run_async(connection, steps, queue, latest)
    # if the program hasn't imported the module, the connection isn't of one of the module's classes
    asynchronous = sys.modules.get("sqlalchemy.ext.asyncio")
    if asynchronous is not None:
        if isinstance(connection, asynchronous.async_scoped_session):
            connection = connection()
        if isinstance(connection, (asynchronous.AsyncConnection, asynchronous.AsyncSession)):
            awaitable: Coroutine[Any, Any, R] = connection.run_sync(
                lambda behind: run(behind, steps, queue=queue, latest=latest)
            )
            return awaitable
    driver = driver_of(connection)
    if isinstance(driver, psycopg.Connection):
        return _run_sync(driver, steps, queue, latest)
    if isinstance(driver, psycopg.AsyncConnection):
        from sqlalchemy.util import await_only

        return await_only(_run_async(driver, steps, queue, latest))
    return _run_sqlalchemy(driver, steps, queue)


async def drive(steps: Steps[R], execute: Callable[[Step], Awaitable[Rows]]) -> R:
    """Execute each step, and send its rows, or its error, into the generator. Returns the generator's result."""
    try:
        step = next(steps)
        while True:
            try:
                rows = await execute(step)
            except Exception as error:
                step = steps.throw(error)
            else:
                step = steps.send(rows)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]


def _at_once(coroutine: Coroutine[Any, Any, R]) -> R:
    """Return the result of a coroutine that never waits, such as :func:`drive` over a synchronous connection."""
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value  # type: ignore[no-any-return]
    raise AssertionError("unreachable")


def _run_sync(driver: psycopg.Connection[Any], steps: Steps[R], queue: str | None, latest: bool) -> R:
    _refuse_pipeline(driver)
    alone = is_alone(driver)
    with (
        translated(queue=queue),
        driver.transaction() if alone else nullcontext(),
        # The connection's own cursor class may return rows of another form, and may have other placeholders.
        psycopg.Cursor(driver, row_factory=tuple_row) as cursor,
    ):
        if alone and latest:
            cursor.execute(_READ_COMMITTED)
        return _at_once(drive(steps, partial(_execute, cursor)))


async def _execute(cursor: psycopg.Cursor[tuple[Any, ...]], step: Step) -> Rows:
    if isinstance(step, Statement):
        if step.values:
            hold_all(cursor.adapters)  # the caller's connection keeps its loaders
        # never prepared: a generic plan would lock all partitions
        cursor.execute(step.text, step.parameters, prepare=False)
        return cursor.fetchall() if cursor.description else []
    if isinstance(step, Texts):
        return _texts(step, cursor)
    count = 0
    with cursor.copy(step.copy) as copy:
        for count, row in enumerate(step.rows, 1):  # noqa: B007
            copy.write_row(row)
    return [(count,)]


async def _run_async(driver: psycopg.AsyncConnection[Any], steps: Steps[R], queue: str | None, latest: bool) -> R:
    _refuse_pipeline(driver)
    alone = is_alone(driver)
    with translated(queue=queue):
        async with (
            driver.transaction() if alone else nullcontext(),
            psycopg.AsyncCursor(driver, row_factory=tuple_row) as cursor,
        ):
            if alone and latest:
                await cursor.execute(_READ_COMMITTED)
            return await drive(steps, partial(_execute_async, cursor))


async def _execute_async(cursor: psycopg.AsyncCursor[tuple[Any, ...]], step: Step) -> Rows:
    if isinstance(step, Statement):
        if step.values:
            hold_all(cursor.adapters)
        await cursor.execute(step.text, step.parameters, prepare=False)
        return await cursor.fetchall() if cursor.description else []
    if isinstance(step, Texts):
        return _texts(step, cursor)
    count = 0
    async with cursor.copy(step.copy) as copy:
        for count, row in enumerate(step.rows, 1):  # noqa: B007
            await copy.write_row(row)
    return [(count,)]


def _refuse_pipeline(driver: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> None:
    if driver.pgconn.pipeline_status != PipelineStatus.OFF:
        raise ConfigError("the connection is in pipeline mode, in which no COPY can run: call this after the pipeline")


def is_alone(driver: psycopg.Connection[Any] | psycopg.AsyncConnection[Any]) -> bool:
    """Whether each statement on the connection would be a separate transaction."""
    return driver.autocommit and driver.info.transaction_status == TransactionStatus.IDLE


def parts_of(error: BaseException | None) -> tuple[str | None, str, str | None]:
    """Return the SQLSTATE, the message and the hint of a driver's error."""
    # For psycopg and psycopg2 the message and the hint are in diag, for asyncpg in the cause of SQLAlchemy's error.
    parts = getattr(error, "diag", None) or getattr(error, "__cause__", None)
    return (
        getattr(error, "sqlstate", None) or getattr(error, "pgcode", None),
        getattr(parts, "message_primary", None) or getattr(parts, "message", None) or str(error),
        getattr(parts, "message_hint", None) or getattr(parts, "hint", None),
    )


@contextmanager
def translated_sqlalchemy(*, queue: str | None = None) -> Iterator[None]:
    """Raise pgcombine's exceptions in place of errors that SQLAlchemy wraps, for any driver.

    :func:`~pgcombine.errors.translated` does the same for psycopg's errors.
    """
    from sqlalchemy.exc import DBAPIError

    try:
        yield
    except DBAPIError as error:
        mapped = from_sqlstate(*parts_of(error.orig), queue=queue)
        if mapped is None:
            raise
        raise mapped from error


def _run_sqlalchemy(connection: sqlalchemy.Connection, steps: Steps[R], queue: str | None) -> R:
    with translated_sqlalchemy(queue=queue):
        return _at_once(drive(steps, partial(_execute_sqlalchemy, connection)))


async def _execute_sqlalchemy(connection: sqlalchemy.Connection, step: Step) -> Rows:
    if isinstance(step, Statement):
        return _rows_of(connection, step)
    if isinstance(step, Texts):
        return _texts(step)
    return [(sum(_rows_of(connection, call)[0][0] for call in _calls(step)),)]


def _rows_of(connection: sqlalchemy.Connection, statement: Statement) -> Rows:
    from sqlalchemy import bindparam, text
    from sqlalchemy.types import NullType

    words = statement.text if isinstance(statement.text, str) else statement.text.as_string(None)
    numbers = itertools.count()

    def named(token: re.Match[str]) -> str:
        if token[0] != "%s":
            return {"%%": "%", ":": r"\:"}[token[0]]
        value = statement.parameters[number := next(numbers)]
        # asyncpg would want a Python value of the type that the statement gives the parameter
        return _literal(value).replace(":", r"\:") if isinstance(value, Untyped) else f":p{number}"

    # Without NullType, SQLAlchemy would cast a parameter to a type that it guesses from the Python value.
    binds = [
        bindparam(f"p{number}", value, type_=NullType())
        for number, value in enumerate(statement.parameters)
        if not isinstance(value, Untyped)
    ]
    result = connection.execute(text(re.sub("%s|%%|:", named, words)).bindparams(*binds))
    return [tuple(row) for row in result] if result.returns_rows else []


def _literal(text: str) -> str:
    """Return a literal that every setting of standard_conforming_strings reads alike."""
    return "E'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


def _calls(append: Append) -> Iterable[Statement]:
    rows = iter(append.rows)
    while batch := list(itertools.islice(rows, _BATCH)):
        yield append.insert(json_of([dict(zip(append.columns, row, strict=True)) for row in batch]))


def json_of(rows: Iterable[Mapping[str, Any]]) -> str:
    """Return rows as the JSON that ``pgcombine.enqueue`` takes."""
    return json.dumps([{name: _finite(value) for name, value in row.items()} for row in rows], default=_plain)


def _finite(value: Any) -> Any:
    return str(value) if isinstance(value, float) and not math.isfinite(value) else value


def _plain(value: Any) -> str:
    """Return the text that PostgreSQL reads for a value that JSON can't represent."""
    if isinstance(value, (bytes, bytearray, memoryview)):
        return rf"\x{bytes(value).hex()}"
    return str(value)
