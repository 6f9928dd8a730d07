"""``CombineQueue``: a queue as Python sees it.

Everything runs in the *caller's* transaction on the caller's connection: psycopg's ``Connection`` or
``AsyncConnection``, or SQLAlchemy's ``Connection``, ``Session``, ``AsyncConnection`` or ``AsyncSession``. What is
enqueued rolls back with it. On an asynchronous connection a method gives what is to be awaited:
``await queue.enqueue(session, rows)``. Errors raised by the database's functions become the classes of
:mod:`pgcombine.errors`; PostgreSQL's own stay the driver's.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from typing import Any, TypeVar, overload

import psycopg
from psycopg import sql

from pgcombine.database.caller import Statement, Steps, run, stream
from pgcombine.database.connect import AsyncCaller, SyncCaller, unwrap
from pgcombine.errors import ConfigError, QueueNotFound
from pgcombine.queue import content
from pgcombine.queue.callbacks import Combiner, Functions, Observer
from pgcombine.queue.initialize import initialize
from pgcombine.queue.rows import Row
from pgcombine.queue.wait import wait

F = TypeVar("F", bound=Callable[..., Any])


class CombineQueue:
    """A combine queue by name.

    ``key`` and ``value`` are column definitions as for ``pgcombine.create_queue`` (``["word text"]``,
    ``["n bigint sum"]``), a single one also by itself; they and the options, which are its as well, are needed for
    :meth:`create` only.
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
        pass_limit: int | None = None,
        quarantine_after: int = 5,
        buckets_per_partition: int = 1,
        tablespaces: Sequence[str] = (),
        max_backlog: int | None = None,
    ) -> None:
        self.name = name
        self.key = [key] if isinstance(key, str) else list(key)
        self.value = [value] if isinstance(value, str) else list(value)
        self.delete_when = delete_when
        self.buckets = buckets
        self.notify = notify
        self.pass_limit = pass_limit
        self.quarantine_after = quarantine_after
        self.buckets_per_partition = buckets_per_partition
        self.tablespaces = list(tablespaces)
        self.max_backlog = max_backlog
        self.functions = Functions()

    def __repr__(self) -> str:
        return f"CombineQueue({self.name!r})"

    @overload
    def create(self, connection: SyncCaller) -> None: ...
    @overload
    def create(self, connection: AsyncCaller) -> Coroutine[Any, Any, None]: ...
    def create(self, connection: Any) -> Any:
        """Make the queue and declare its observers.

        Raises QueueExists; InvalidDefinition with what is wrong; TooManyLocks.
        """
        return run(connection, self._create(), queue=self.name)

    def _create(self) -> Steps[None]:
        options: dict[str, Any] = {
            "key": self.key,
            "value": self.value,
            "delete_when": self.delete_when,
            "buckets": self.buckets,
            "notify": self.notify,
            "pass_limit": self.pass_limit,
            "quarantine_after": self.quarantine_after,
            "buckets_per_partition": self.buckets_per_partition,
            "tablespaces": self.tablespaces or None,
            "max_backlog": self.max_backlog,
        }
        given = {name: option for name, option in options.items() if option is not None}
        named = ", ".join(f"{name} => %s" for name in given)
        yield Statement(f"select pgcombine.create_queue(%s, {named})", (self.name, *given.values()))
        for name in self.functions.observers:
            yield Statement("select pgcombine.add_observer(%s, %s, language => 'python')", (self.name, name))

    def on_change(self, observer: Observer, *, name: str | None = None) -> Observer:
        """Register an observer, ``fn(tx, changes)``, under ``name`` (default: the function's); use it as a decorator.

        A worker that was given this queue (``pgcombine worker --app``) runs it in every pass that changed something:
        ``tx`` is the pass's connection, in its transaction, ``changes`` streams (key, old, new). If it raises, the
        pass rolls back and is tried again. :meth:`create`, or the worker, declares it in the database; from then on
        passes that can't run it are refused. Raises ConfigError for a name that is taken, and for an asynchronous
        function: passes are synchronous.
        """
        return self._register(
            self.functions.observers, name or str(getattr(observer, "__name__", repr(observer))), observer
        )

    def combiner(self, column: str) -> Callable[[Combiner], Combiner]:
        """Register, as a decorator, the combiner of a value column that is declared as ``'name type python'``.

        ``fn(key, values) -> value | None``: ``values`` iterates the old value, if there is one, and all pending ones,
        in no order, without nulls; it must give the same in whatever portions they come. None deletes the key.
        """
        return lambda function: self._register(self.functions.combiners, column, function)

    def _register(self, functions: dict[str, F], name: str, function: F) -> F:
        kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
        if any(kind(function) for kind in kinds):
            raise ConfigError(
                f'the function for "{name}" of queue "{self.name}" is asynchronous or a generator: it would never run'
            )
        if functions.setdefault(name, function) is not function:
            raise ConfigError(f'queue "{self.name}" has a function for "{name}" already')
        return function

    @overload
    def drop(self, connection: SyncCaller, *, force: bool = False) -> None: ...
    @overload
    def drop(self, connection: AsyncCaller, *, force: bool = False) -> Coroutine[Any, Any, None]: ...
    def drop(self, connection: Any, *, force: bool = False) -> Any:
        """Drop the queue with its values.

        Unless ``force`` is given, raises QueueNotEmpty while updates are pending or the queue is exported (with it the
        exports are dropped, too, and what waits in them), InvalidDefinition where the connection's isolation level
        isn't read committed. Raises TooManyLocks where the server has no room for the
        locks on so many buckets: then ``pgcombine queue drop`` does it in several transactions.
        """
        return self._run(connection, "select pgcombine.drop_queue(%s, force => %s)", (self.name, force), latest=True)

    @overload
    def enqueue(self, connection: SyncCaller, rows: Iterable[Row]) -> int: ...
    @overload
    def enqueue(self, connection: AsyncCaller, rows: Iterable[Row]) -> Coroutine[Any, Any, int]: ...
    def enqueue(self, connection: Any, rows: Iterable[Row]) -> Any:
        """Append updates by COPY in the connection's transaction; returns how many.

        A row is a mapping of column names (a missing value column takes its default) or a sequence of all
        columns, keys first. SQLAlchemy over another driver than psycopg enqueues JSON by ``pgcombine.enqueue``.
        Raises InvalidUpdate for a row that doesn't fit the queue's columns.
        """
        return run(connection, content.enqueue(self.name, rows), queue=self.name)

    @overload
    def get(self, connection: SyncCaller, keys: Iterable[Any]) -> dict[Any, Any]: ...
    @overload
    def get(self, connection: AsyncCaller, keys: Iterable[Any]) -> Coroutine[Any, Any, dict[Any, Any]]: ...
    def get(self, connection: Any, keys: Iterable[Any]) -> Any:
        """Current values (combined with pending updates) of the keys that have one, in one snapshot.

        A key is a scalar, or a tuple where the queue has several key columns; so is a value. In the keys of the
        result an array is a tuple, and a JSON value its text. Updates that are held because their key is quarantined
        are in no value. Raises InvalidUpdate for a key of other columns.
        """
        return run(connection, content.get(self.name, keys), queue=self.name)

    @overload
    def values(self, connection: SyncCaller) -> Iterator[tuple[Any, Any]]: ...
    @overload
    def values(self, connection: AsyncCaller) -> AsyncIterator[tuple[Any, Any]]: ...
    def values(self, connection: Any) -> Any:
        """All keys with their combined values, without pending updates, in one snapshot and in no order.

        Keys and values as :meth:`get` gives them. An iterator, asynchronous on asynchronous connections, that reads
        them in portions: end it, or close it, before the transaction ends. Raises QueueNotFound, ConfigError if the
        transaction has ended.
        """
        return stream(connection, content.values(self.name), queue=self.name)

    @overload
    def backlog(self, connection: SyncCaller) -> int: ...
    @overload
    def backlog(self, connection: AsyncCaller) -> Coroutine[Any, Any, int]: ...
    def backlog(self, connection: Any) -> Any:
        """How many updates are pending."""
        return run(connection, self._backlog(), queue=self.name)

    def _backlog(self) -> Steps[int]:
        ((pending,),) = yield Statement("select pgcombine.backlog(%s)", (self.name,))
        return int(pending)

    @overload
    def pause(self, connection: SyncCaller) -> None: ...
    @overload
    def pause(self, connection: AsyncCaller) -> Coroutine[Any, Any, None]: ...
    def pause(self, connection: Any) -> Any:
        """Stop passes over the queue; enqueues go on."""
        return self._run(connection, "select pgcombine.pause(%s)", (self.name,))

    @overload
    def resume(self, connection: SyncCaller) -> None: ...
    @overload
    def resume(self, connection: AsyncCaller) -> Coroutine[Any, Any, None]: ...
    def resume(self, connection: Any) -> Any:
        """Let passes over the queue go on."""
        return self._run(connection, "select pgcombine.resume(%s)", (self.name,))

    @overload
    def wait(self, connection: psycopg.Connection[Any], *, timeout: float | None = None) -> None: ...
    @overload
    def wait(
        self, connection: psycopg.AsyncConnection[Any], *, timeout: float | None = None
    ) -> Coroutine[Any, Any, None]: ...
    def wait(self, connection: Any, *, timeout: float | None = None) -> Any:
        """Return when all that was committed before is combined; workers must run. Not in a transaction.

        ``timeout`` in seconds, None: no limit. Raises WaitTimeout; InvalidDefinition in a transaction.
        """
        return wait(connection, self.name, timeout)

    @overload
    def initialize(self, connection: SyncCaller, rows: Iterable[Row], *, force: bool = False) -> int: ...
    @overload
    def initialize(
        self, connection: AsyncCaller, rows: Iterable[Row], *, force: bool = False
    ) -> Coroutine[Any, Any, int]: ...
    def initialize(self, connection: Any, rows: Iterable[Row], *, force: bool = False) -> Any:
        """Load values straight into the queue, past updates and observers, all or nothing; returns how many.

        Rows as for :meth:`enqueue`. Those for which ``delete_when`` holds are left out. Raises QueueNotEmpty
        unless ``force``, InvalidUpdate for a key that comes twice or has a value, InvalidDefinition where the
        connection's isolation level isn't read committed.
        """
        return run(connection, initialize(self.name, rows, force), queue=self.name, latest=True)

    @overload
    def rebucket(
        self, connection: SyncCaller, buckets: int, *, buckets_per_partition: int | None = None, timeout: float = 300
    ) -> None: ...
    @overload
    def rebucket(
        self, connection: AsyncCaller, buckets: int, *, buckets_per_partition: int | None = None, timeout: float = 300
    ) -> Coroutine[Any, Any, None]: ...
    def rebucket(
        self, connection: Any, buckets: int, *, buckets_per_partition: int | None = None, timeout: float = 300
    ) -> Any:
        """Change the number of buckets while writers and workers go on; the locks last until the commit.

        ``timeout`` in seconds bounds the wait for transactions that use the queue's tables, then WaitTimeout is
        raised. Raises InvalidDefinition for invalid numbers, TooManyLocks.
        """
        return self._run(
            connection,
            "select pgcombine.rebucket(%s, %s, buckets_per_partition => %s, timeout => %s * interval '1 second')",
            (self.name, buckets, buckets_per_partition, timeout),
            latest=True,
        )

    @overload
    def attach(self, connection: SyncCaller, source: str, mapping: str, *, existing: bool = True) -> None: ...
    @overload
    def attach(
        self, connection: AsyncCaller, source: str, mapping: str, *, existing: bool = True
    ) -> Coroutine[Any, Any, None]: ...
    def attach(self, connection: Any, source: str, mapping: str, *, existing: bool = True) -> Any:
        """Enqueue from now on what changes of the table ``source`` mean, by a select over its rows.

        See ``pgcombine.attach``. Raises InvalidDefinition with what is wrong, QueueExists if it is attached.
        """
        return self._run(
            connection,
            "select pgcombine.attach(%s, %s::text::regclass, %s, existing => %s)",
            (self.name, source, mapping, existing),
            latest=True,
        )

    @overload
    def detach(self, connection: SyncCaller, source: str) -> None: ...
    @overload
    def detach(self, connection: AsyncCaller, source: str) -> Coroutine[Any, Any, None]: ...
    def detach(self, connection: Any, source: str) -> Any:
        """End what :meth:`attach` began. Raises InvalidDefinition if the table isn't attached."""
        return self._run(connection, "select pgcombine.detach(%s, %s::text::regclass)", (self.name, source))

    @overload
    def verify(self, connection: SyncCaller, *, recount: bool = False) -> list[str]: ...
    @overload
    def verify(self, connection: AsyncCaller, *, recount: bool = False) -> Coroutine[Any, Any, list[str]]: ...
    def verify(self, connection: Any, *, recount: bool = False) -> Any:
        """Read the whole queue; what isn't as it must be, one sentence each.

        With ``recount`` the values are compared with the attached tables as well, and the keys that differ are named:
        by a change that no trigger saw, or by updates from elsewhere. Raises InvalidDefinition if none is attached.
        """
        return run(connection, self._verify(recount), queue=self.name)

    def _verify(self, recount: bool) -> Steps[list[str]]:
        found = yield Statement("select problem from pgcombine.verify(%s, recount => %s)", (self.name, recount))
        return [str(problem) for (problem,) in found]

    def _run(self, connection: Any, statement: str, parameters: Sequence[Any], *, latest: bool = False) -> Any:
        """Run one statement of which nothing but its effect is wanted."""

        def steps() -> Steps[None]:
            yield Statement(statement, parameters)

        return run(connection, steps(), queue=self.name, latest=latest)

    @property
    def updates(self) -> sql.Identifier:
        """The table that enqueues insert into."""
        return sql.Identifier("pgcombine", f"{self.name}_updates")


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
