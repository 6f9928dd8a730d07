"""Methods and iterators that run in a caller's transaction.

Both are made from generators of statements, which :mod:`pgcombine.database.steps` describes.
"""

from __future__ import annotations

import functools
import inspect
import itertools
import sys
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import nullcontext
from typing import Any, Concatenate, ParamSpec, Protocol, TypeAlias, TypeVar, cast, overload

import psycopg
from psycopg import sql

from pgcombine.database.connect import AsyncCaller, SyncCaller, driver_of
from pgcombine.database.steps import Rows, Statement, Steps, is_alone, parts_of, run
from pgcombine.errors import ConfigError

S = TypeVar("S")
P = ParamSpec("P")
R = TypeVar("R")
R_co = TypeVar("R_co", covariant=True)
# a statement, and the function applied to each of its rows
Reading: TypeAlias = tuple[Statement, Callable[[tuple[Any, ...]], R]]

_PORTION = 2000  # rows in one fetch from a cursor
_cursors = itertools.count(1)


class Call(Protocol[P, R_co]):
    """A method whose first argument is a connection. For an asynchronous connection it returns an awaitable."""

    @overload
    def __call__(self, connection: SyncCaller, *args: P.args, **kwargs: P.kwargs) -> R_co: ...
    @overload
    def __call__(self, connection: AsyncCaller, *args: P.args, **kwargs: P.kwargs) -> Coroutine[Any, Any, R_co]: ...


class Method(Protocol[P, R_co]):
    """The type of a decorated method in its class. Read from an instance, the method is a :class:`Call`."""

    def __get__(self, instance: object, owner: type) -> Call[P, R_co]: ...


def in_transaction(
    *, queue: str = "name", latest: bool = False
) -> Callable[[Callable[Concatenate[S, P], Steps[R]]], Method[P, R]]:
    """Return a decorator for a method that is a generator of steps.

    The decorated method takes a connection as its first argument, and runs the steps in the connection's transaction.
    ``queue`` names the attribute with the queue's name, for errors. ``latest`` is as for :func:`run`.
    """

    def method(steps: Callable[Concatenate[S, P], Steps[R]]) -> Method[P, R]:
        @functools.wraps(steps)
        def call(self: S, connection: Any, *args: P.args, **kwargs: P.kwargs) -> Any:
            return run(connection, steps(self, *args, **kwargs), queue=getattr(self, queue) or None, latest=latest)

        instance, *others = inspect.signature(steps).parameters.values()
        place = inspect.Parameter("connection", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        call.__signature__ = inspect.Signature([instance, place, *others])  # type: ignore[attr-defined]
        return cast("Method[P, R]", call)

    return method


@overload
def stream(connection: SyncCaller, steps: Steps[Reading[R]], *, queue: str | None = None) -> Iterator[R]: ...
@overload
def stream(connection: AsyncCaller, steps: Steps[Reading[R]], *, queue: str | None = None) -> AsyncIterator[R]: ...
def stream(connection: Any, steps: Steps[Reading[R]], *, queue: str | None = None) -> Iterator[R] | AsyncIterator[R]:
    """Iterate the rows of a statement, from one snapshot.

    The steps return the statement, and a function to apply to each row. The steps run when the caller asks for the
    first row. A cursor in the connection's transaction reads the rows in portions. On a psycopg connection in
    autocommit, outside a transaction, the iterator opens a transaction and ends it. Otherwise the transaction is the
    caller's. Raises ConfigError if the transaction ends before the last row is read.
    """
    return (_stream_async if is_asynchronous(connection) else _stream_sync)(connection, steps, queue)


def is_asynchronous(connection: Any) -> bool:
    """Return whether the methods of the connection are coroutines."""
    asynchronous = sys.modules.get("sqlalchemy.ext.asyncio")
    kinds: tuple[type, ...] = (psycopg.AsyncConnection,)
    if asynchronous is not None:
        kinds += (asynchronous.AsyncConnection, asynchronous.AsyncSession, asynchronous.async_scoped_session)
    return isinstance(connection, kinds)


def _stream_sync(connection: Any, steps: Steps[Reading[R]], queue: str | None) -> Iterator[R]:
    cursor = f"pgcombine_cursor_{next(_cursors)}"
    driver = driver_of(connection)
    alone = isinstance(driver, psycopg.Connection) and is_alone(driver)
    with driver.transaction() if isinstance(driver, psycopg.Connection) and alone else nullcontext():
        become = run(connection, _open(cursor, steps), queue=queue)
        while rows := run(connection, _fetch(cursor), queue=queue):
            yield from map(become, rows)
        run(connection, _close(cursor), queue=queue)


async def _stream_async(connection: Any, steps: Steps[Reading[R]], queue: str | None) -> AsyncIterator[R]:
    cursor = f"pgcombine_cursor_{next(_cursors)}"
    alone = isinstance(connection, psycopg.AsyncConnection) and is_alone(connection)
    async with connection.transaction() if alone else nullcontext():
        become = await run(connection, _open(cursor, steps), queue=queue)
        while rows := await run(connection, _fetch(cursor), queue=queue):
            for row in rows:
                yield become(row)
        await run(connection, _close(cursor), queue=queue)


def _open(cursor: str, steps: Steps[Reading[R]]) -> Steps[Callable[[tuple[Any, ...]], R]]:
    statement, become = yield from steps
    text = statement.text if isinstance(statement.text, sql.Composed) else sql.SQL(statement.text)
    yield Statement(sql.SQL("declare {} no scroll cursor for {}").format(sql.Identifier(cursor), text))
    return become


def _fetch(cursor: str) -> Steps[Rows]:
    try:
        return (yield Statement(f"fetch forward {_PORTION} from {cursor}", values=True))
    except Exception as error:
        if parts_of(getattr(error, "orig", error))[0] != "34000":  # invalid_cursor_name
            raise
        raise ConfigError(
            "the transaction in which the reading began has ended: read all rows before the transaction ends"
        ) from error


def _close(cursor: str) -> Steps[None]:
    yield Statement(f"close {cursor}")
