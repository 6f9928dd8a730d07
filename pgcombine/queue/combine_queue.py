"""``CombineQueue``: a queue as Python sees it.

A method that takes a connection, other than ``wait``, runs in the transaction of this connection, and its effects roll
back with the transaction. On a psycopg connection in autocommit, outside a transaction, the call is a transaction of
its own. ``wait`` needs a connection that is in no transaction. A connection is psycopg's ``Connection`` or
``AsyncConnection``, or SQLAlchemy's ``Connection``, ``Session``, ``AsyncConnection``, ``AsyncSession`` or a scoped
session. On an asynchronous connection ``values`` returns an asynchronous iterator, and any other method an awaitable:
``await queue.enqueue(session, rows)``. Errors that pgcombine's SQL functions raise become exceptions of
:mod:`pgcombine.errors`. PostgreSQL's own errors remain exceptions of the driver. Any method that takes a connection may
raise NotGrantedError if the role lacks a right, PostRestorePendingError in a restored database before ``post_restore``
has run, and ConfigError for an object that is no such connection; the methods name further errors.
"""

from __future__ import annotations

import inspect
from collections.abc import AsyncIterator, Callable, Coroutine, Iterable, Iterator, Sequence
from datetime import timedelta
from typing import Any, TypeVar, overload

import psycopg
from psycopg import sql

from pgcombine.database.caller import in_transaction as _in_transaction
from pgcombine.database.caller import stream
from pgcombine.database.connect import AsyncCaller, SyncCaller, unwrap
from pgcombine.database.sqlfiles import query
from pgcombine.database.steps import Statement, Steps
from pgcombine.errors import ConfigError, translated
from pgcombine.queue import content
from pgcombine.queue.callbacks import ArrivalObserver, Observer, OfArrivals
from pgcombine.queue.initialize import initialize
from pgcombine.queue.rows import Row
from pgcombine.queue.wait import wait

_OPTIONS = (
    *("key", "value", "delete_when", "buckets", "notify", "pass_limit", "quarantine_after", "buckets_per_partition"),
    *("tablespaces", "max_backlog", "expire_when", "expire_silently", "expire_every", "token_retention"),
)

_OF_SOURCE = {
    "value": "a tier has the value columns of its source",
    "delete_when": "a tier has the delete_when of its source",
    "max_backlog": "a full tier would make passes over its source fail",
}

F = TypeVar("F", bound=Observer)
A = TypeVar("A", bound=ArrivalObserver)


class CombineQueue:
    """A combine queue by name.

    ``key`` and ``value`` are column definitions as for ``pgcombine.create_queue`` (``["word text"]``,
    ``["n bigint sum"]``). A single definition may be a string. The other arguments are the options of
    ``pgcombine.create_queue``. Only :meth:`create` and :meth:`create_tier` need arguments other than the name.
    """

    def __init__(
        self,
        name: str,
        *,
        key: Sequence[str] = (),
        value: Sequence[str] = (),
        delete_when: str | None = None,
        buckets: int = 1,
        notify: bool = True,
        pass_limit: int | None = None,
        quarantine_after: int = 5,
        buckets_per_partition: int = 1,
        tablespaces: Sequence[str] = (),
        max_backlog: int | None = None,
        expire_when: str | None = None,
        expire_silently: bool = False,
        expire_every: timedelta | None = None,
        token_retention: timedelta | None = None,
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
        self.expire_when, self.expire_silently, self.expire_every = expire_when, expire_silently, expire_every
        self.token_retention = token_retention
        self.observers: dict[str, Observer | OfArrivals] = {}

    def __repr__(self) -> str:
        return f"CombineQueue({self.name!r})"

    @_in_transaction()
    def create(self, *, if_not_exists: bool = False) -> Steps[None]:
        """Create the queue and declare its observers.

        With ``if_not_exists``, nothing is raised if a queue with the same definition exists already. ``buckets``,
        ``buckets_per_partition``, ``tablespaces`` and ``pass_limit`` aren't compared. Raises QueueExistsError
        or InvalidDefinitionError (its message names the fault).
        """
        yield self._created_by("pgcombine.create_queue", _OPTIONS, if_not_exists=if_not_exists)
        yield from self._declare()

    @_in_transaction(latest=True)
    def create_tier(self, source: str, *, existing: bool = True, if_not_exists: bool = False) -> Steps[None]:
        """Create the queue as a tier that the queue ``source`` feeds, and declare its observers.

        ``key`` has expressions over the key columns of the source (``["date_trunc('day', hour) as day", "page"]``);
        ``pgcombine.create_tier`` describes them. Value columns and ``delete_when`` are those of the source, and a tier
        has no ``max_backlog``: ConfigError is raised if this object has one of these three. With ``existing`` the
        values that the source has now are enqueued. With ``if_not_exists`` the same tier of the source may exist
        already. Raises as :meth:`create`, and QueueNotFoundError for an unknown source.
        """
        given = [name for name in _OF_SOURCE if getattr(self, name)]
        if given:
            raise ConfigError(f'queue "{self.name}" can\'t be a tier with {given[0]}: {_OF_SOURCE[given[0]]}')
        options = [name for name in _OPTIONS if name not in _OF_SOURCE]
        yield self._created_by(
            "pgcombine.create_tier", options, source=source, existing=existing, if_not_exists=if_not_exists
        )
        yield from self._declare()

    def _created_by(self, function: str, options: Iterable[str], **arguments: object) -> Statement:
        given = {name: option for name in options if (option := getattr(self, name)) is not None} | arguments
        named = ", ".join(f"{name} => %s" for name in given)
        return Statement(f"select {function}(%s, {named})", (self.name, *given.values()))

    def _declare(self) -> Steps[None]:
        found = yield Statement("select observer from pgcombine.observer where queue = %s", (self.name,))
        declared = {name for (name,) in found}
        for name in (name for name in self.observers if name not in declared):
            yield Statement("select pgcombine.add_observer(%s, %s, language => 'python')", (self.name, name))

    @overload
    def on_change(self, observer: F, *, name: str | None = None) -> F: ...
    @overload
    def on_change(self, *, name: str | None = None) -> Callable[[F], F]: ...
    def on_change(self, observer: F | None = None, *, name: str | None = None) -> F | Callable[[F], F]:
        """Register an observer, a function ``fn(tx, changes)``: ``@queue.on_change``, ``@queue.on_change(name=…)``.

        The default name is that of the function. A worker that has this queue (``pgcombine worker --app``) calls the
        function in every pass that changed a value. ``tx`` is the pass's connection, inside the pass's transaction.
        ``changes`` is a :class:`~pgcombine.queue.callbacks.ChangeStream` of (key, old, new). If the function raises,
        the pass rolls back and is tried again. :meth:`create`, :meth:`create_tier` or the worker declares the observer
        in the database. From then on the database refuses a pass by a program that lacks the function.

        Raises ConfigError if another observer has the name, or if the function is asynchronous or a generator: a pass
        would never run its body.
        """
        if observer is None:
            return lambda function: self.on_change(function, name=name)
        self._observe(observer, observer, name)
        return observer

    @overload
    def on_arrival(self, observer: A, *, name: str | None = None) -> A: ...
    @overload
    def on_arrival(self, *, name: str | None = None) -> Callable[[A], A]: ...
    def on_arrival(self, observer: A | None = None, *, name: str | None = None) -> A | Callable[[A], A]:
        """Register a function ``fn(tx, arrived)`` as an observer of updates, to feed another queue.

        A worker calls the function in every pass with updates, also if they change no value. ``arrived`` is an
        :class:`~pgcombine.queue.callbacks.ArrivalStream` of (key, value): for each key the pass's updates, combined
        with each other but not with the old value. In all else the observer is like one of :meth:`on_change`.
        """
        if observer is None:
            return lambda function: self.on_arrival(function, name=name)
        self._observe(observer, OfArrivals(observer), name)
        return observer

    def _observe(self, function: Callable[..., object], observer: Observer | OfArrivals, name: str | None) -> None:
        name = name or str(getattr(function, "__name__", repr(function)))
        kinds = (inspect.iscoroutinefunction, inspect.isgeneratorfunction, inspect.isasyncgenfunction)
        if any(kind(function) for kind in kinds):
            raise ConfigError(
                f'observer "{name}" of queue "{self.name}" is asynchronous or a generator: it would never run, so '
                "pass a plain function"
            )
        if self.observers.setdefault(name, observer) != observer:
            raise ConfigError(f'queue "{self.name}" has an observer "{name}" already: choose another name')

    @_in_transaction(latest=True)
    def drop(self, *, force: bool = False) -> Steps[None]:
        """Drop the queue with its values.

        With ``force``, the call also drops pending and quarantined updates, and what other parts of pgcombine have made
        for the queue. Without ``force``, it raises QueueNotEmptyError if there is any of these, and
        InvalidDefinitionError if the transaction's isolation level isn't read committed.

        Raises WaitTimeoutError if the tables aren't free within ``lock_timeout``. Raises QueueNotFoundError. If the
        server has no room for a lock on each of the queue's tables (psycopg.errors.OutOfMemory), ``pgcombine queue
        drop`` drops the queue in several transactions.
        """
        yield Statement("select pgcombine.drop_queue(%s, force => %s)", (self.name, force))

    @_in_transaction()
    def enqueue(self, rows: Iterable[Row], *, token: str | None = None) -> Steps[int]:
        """Append updates by COPY in the connection's transaction. Returns the number of updates.

        A row is a mapping from column names to values, or a sequence of the values of all columns, the key columns
        first. A value column that a mapping lacks takes its default. SQLAlchemy with another driver than psycopg
        enqueues JSON by ``pgcombine.enqueue``.

        A ``token`` names the input, as in ``pgcombine.enqueue_once``: the id of an event or of a message. If an earlier
        call with the same token was committed, or was made in this transaction, this call appends nothing and returns
        0. Workers delete tokens that are older than ``token_retention``. With a token the call reads all rows before it
        appends the first one.

        Raises InvalidUpdateError for a row that doesn't fit the queue's columns, or a token that is empty or too long,
        BacklogFullError if too many updates are pending, and QueueNotFoundError.
        """
        if token is not None:
            # An error in a row must be raised before the token is stored. Otherwise the caller's transaction could go
            # on, and commit the token.
            rows = yield from content.checked(self.name, rows)
        return (yield from content.enqueue(self.name, rows, token))

    @_in_transaction()
    def contribute(self, source: str, rows: Iterable[Row]) -> Steps[int]:
        """Replace what ``source`` contributes by ``rows``, in the connection's transaction.

        Returns the number of enqueued updates: the differences from what the source contributed before. No rows take
        its contribution back. Of two calls for one source, the second waits for the first one's transaction. Rows are
        as for :meth:`enqueue`, and may have a key several times. All values need combiners that can take a value back,
        such as ``sum`` and ``count``.

        Raises InvalidDefinitionError for another combiner, InvalidUpdateError for a row that doesn't fit the queue's
        columns, a sum beyond its type's range, or a source that is empty or too long, BacklogFullError if too many
        updates are pending, and QueueNotFoundError.
        """
        return (yield from content.contribute(self.name, source, rows))

    @_in_transaction()
    def get(self, keys: Iterable[Any]) -> Steps[dict[Any, Any]]:
        """Return the current value of each key that has one. All values come from one snapshot.

        A current value is the combined value together with the pending updates, without quarantined ones. A key is a
        scalar, or a tuple if the queue has several key columns. Each part has a form that :meth:`enqueue` takes. A
        value is a scalar, or a tuple if the queue has several value columns. In the keys of the result an array is a
        tuple, and a JSON value or a multirange is its text. Raises InvalidUpdateError for a key that doesn't fit the
        queue's key columns, and QueueNotFoundError.
        """
        return (yield from content.get(self.name, keys))

    @overload
    def values(self, connection: SyncCaller) -> Iterator[tuple[Any, Any]]: ...
    @overload
    def values(self, connection: AsyncCaller) -> AsyncIterator[tuple[Any, Any]]: ...
    def values(self, connection: Any) -> Any:
        """Iterate all keys with their combined values, without pending updates.

        The values come from one snapshot, in no particular order. Keys and values are as in :meth:`get`. The iterator
        is asynchronous on an asynchronous connection. It reads in portions, so read it to the end, or close it, before
        the transaction ends; otherwise it raises ConfigError. Raises QueueNotFoundError.
        """
        return stream(connection, content.values(self.name), queue=self.name)

    @_in_transaction()
    def backlog(self) -> Steps[int]:
        """Return the number of pending updates. Raises QueueNotFoundError."""
        ((pending,),) = yield Statement("select pgcombine.backlog(%s)", (self.name,))
        return int(pending)

    @_in_transaction()
    def pause(self) -> Steps[None]:
        """Let no new pass over the queue begin. Passes in progress and enqueues go on. Raises QueueNotFoundError."""
        yield Statement("select pgcombine.pause(%s)", (self.name,))

    @_in_transaction()
    def resume(self) -> Steps[None]:
        """Let passes over the queue run again, those over failing buckets at once. Raises QueueNotFoundError."""
        yield Statement("select pgcombine.resume(%s)", (self.name,))

    @overload
    def wait(self, connection: psycopg.Connection[Any], *, timeout: float | None = None) -> None: ...
    @overload
    def wait(
        self, connection: psycopg.AsyncConnection[Any], *, timeout: float | None = None
    ) -> Coroutine[Any, Any, None]: ...
    def wait(self, connection: Any, *, timeout: float | None = None) -> Any:
        """Return when all updates that were committed before the call are combined. Workers must run.

        ``timeout`` is in seconds; None means no limit. Raises WaitTimeoutError, QueueNotFoundError,
        InvalidDefinitionError in a transaction, and ConfigError for a connection that isn't psycopg's.
        """
        return wait(connection, self.name, timeout)

    @_in_transaction(latest=True)
    def initialize(self, rows: Iterable[Row], *, force: bool = False) -> Steps[int]:
        """Write values into the queue without updates, and without calling observers. Returns the number of values.

        Either all rows are written or none. Rows are as for :meth:`enqueue`. Rows for which ``delete_when`` or
        ``expire_when`` holds are left out. Without ``force``, raises QueueNotEmptyError if the queue has values or
        pending updates. Raises InvalidUpdateError for a row that doesn't fit the queue's columns, or whose key comes
        twice or has a value already, InvalidDefinitionError if the transaction's isolation level isn't read committed,
        and QueueNotFoundError.
        """
        return (yield from initialize(self.name, rows, force))

    @_in_transaction(latest=True)
    def rebucket(self, buckets: int, *, buckets_per_partition: int | None = None, timeout: float = 300) -> Steps[None]:
        """Change the number of buckets while writers and readers go on. No pass runs until the commit.

        At its end the call locks the queue's tables, until the commit. It raises WaitTimeoutError if transactions that
        use the tables don't end within ``timeout`` seconds of the call's beginning. Raises InvalidDefinitionError for
        invalid numbers, or if the transaction's isolation level isn't read committed; and QueueNotFoundError. With None
        for ``buckets_per_partition`` this number stays.
        """
        yield Statement(
            "select pgcombine.rebucket(%s, %s, buckets_per_partition => %s, timeout => %s * interval '1 second')",
            (self.name, buckets, buckets_per_partition, timeout),
        )

    @_in_transaction()
    def set_expiry(self, expire_when: str | None) -> Steps[None]:
        """Set the condition under which keys expire. With None no key expires.

        Raises InvalidDefinitionError for an invalid condition, and QueueNotFoundError.
        """
        yield Statement("select pgcombine.set_expiry(%s, %s)", (self.name, expire_when))

    @_in_transaction()
    def verify(self) -> Steps[list[str]]:
        """Read the whole queue, and return the problems found, one sentence each. Raises QueueNotFoundError."""
        found = yield Statement("select problem from pgcombine.verify(%s)", (self.name,))
        return [str(problem) for (problem,) in found]

    @property
    def updates(self) -> sql.Identifier:
        """The table of the queue's updates. Enqueues insert into it."""
        return sql.Identifier("pgcombine", f"{self.name}_updates")


def queues(connection: Any) -> list[str]:
    """Return the names of the database's queues."""
    return [str(name) for (name,) in unwrap(connection).execute(query("queues"))]


def require(connection: Any, names: Iterable[str]) -> None:
    """Raise QueueNotFoundError for the first of ``names`` that isn't a queue."""
    known = set(queues(connection))
    for name in names:
        if name in known:
            continue
        with translated(queue=name):
            unwrap(connection).execute("select pgcombine_internal.require_queue(%s)", (name,))
