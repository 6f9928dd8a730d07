"""``Feed``: the changes of a queue's values, which a consumer reads from where it stopped (``sql/feed``)."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from contextlib import suppress
from dataclasses import KW_ONLY, dataclass
from datetime import timedelta
from typing import Any, NamedTuple, overload

import psycopg
from psycopg import sql
from psycopg.pq import TransactionStatus

from pgcombine.database.caller import Reading, in_transaction, is_asynchronous, stream
from pgcombine.database.connect import AsyncCaller, Connection, SyncCaller, dicts
from pgcombine.database.sqlfiles import query
from pgcombine.database.steps import Statement, Steps, run
from pgcombine.database.texts import name_of
from pgcombine.errors import FeedNotFoundError, InvalidDefinitionError

Offset = Mapping[str, int]
Rows = list[dict[str, Any]]

_SUCCESSION = 1.0  # seconds at most until the next read while another session has the idle lock, as any role can
_NAP = 0.05  # seconds at most until the next read while passes are in progress that won't notify


class Batch(NamedTuple):
    """A portion of changes, and the offset to store once the portion is processed.

    A row is a dict by column: ``_bucket``, ``_sequence``, ``_change_type``, ``_commit_version``, ``_commit_timestamp``,
    the key columns, ``old_…`` and ``new_…``. A batch may have no rows.
    """

    rows: Rows
    after: dict[str, int]


@dataclass(eq=False, repr=False)
class Feed:
    """A feed by name: the changes of ``queue``, each of which is kept for ``retention`` at least.

    Only :meth:`create` needs ``queue``, ``retention`` and ``max_bytes``. An offset says how far a consumer has read: it
    is a dict with a sequence number for each bucket. Connections are as for :class:`~pgcombine.CombineQueue`. On an
    asynchronous connection :meth:`read` returns an asynchronous iterator, and any other method an awaitable.

    Methods raise FeedNotFoundError; OffsetTooOldError if changes after the offset are no longer kept;
    InvalidDefinitionError for an invalid argument, such as an offset that doesn't fit the feed; and NotGrantedError if
    the role lacks a right.
    """

    name: str
    _: KW_ONLY
    queue: str = ""
    retention: timedelta = timedelta(days=7)
    max_bytes: int | None = None

    def __repr__(self) -> str:
        return f"Feed({self.name!r})"

    @in_transaction(queue="queue")
    def create(self, *, if_not_exists: bool = False) -> Steps[None]:
        """Create the feed.

        With ``if_not_exists`` a feed with the same definition may exist already. Raises QueueNotFoundError,
        QueueExistsError if the name is taken, and InvalidDefinitionError.
        """
        yield Statement(
            "select pgcombine.create_feed(%s, %s, make_interval(secs => %s), %s, %s)",
            (self.name, self.queue, self.retention.total_seconds(), self.max_bytes, if_not_exists),
        )

    @in_transaction(queue="queue")
    def drop(self) -> Steps[None]:
        """Drop the feed with its changes.

        Raises WaitTimeoutError if sessions read the feed for longer than ``lock_timeout``, or 5 seconds if that is 0.
        """
        yield Statement("select pgcombine.drop_feed(%s)", (self.name,))

    @in_transaction(queue="queue")
    def offset(self, after: Offset | None = None, *, most: int | None = None) -> Steps[dict[str, int]]:
        """Return the present offset; or, if ``after`` is given, the end of a portion of the changes after it.

        The portion has at most ``most`` changes; None means no limit. It doesn't reach beyond a rebucket of the queue.
        """
        return (yield from self._offset(after, most))

    @in_transaction(queue="queue")
    def commit(self, consumer: str, after: Offset | None) -> Steps[None]:
        """Register the offset up to which a consumer has read. If ``after`` is None, forget the consumer."""
        yield Statement("select pgcombine.commit_feed(%s, %s, %s::text::jsonb)", (self.name, consumer, _text(after)))

    @in_transaction(queue="queue")
    def committed(self, consumer: str) -> Steps[dict[str, int] | None]:
        """Return the offset that a consumer has registered, or None if it hasn't registered any.

        Also returns None if there is no such feed.
        """
        for name, after, _ in (yield Statement(query("feed_consumers"), (self.name,))):
            if name == consumer:
                return _offset(after)
        return None

    @overload
    def snapshot(self, connection: SyncCaller) -> tuple[dict[str, int], Iterator[dict[str, Any]]]: ...
    @overload
    def snapshot(
        self, connection: AsyncCaller
    ) -> Coroutine[Any, Any, tuple[dict[str, int], AsyncIterator[dict[str, Any]]]]: ...
    def snapshot(self, connection: Any) -> Any:
        """Return the present offset, and all values as of this offset: an iterator of dicts by column.

        The iterator reads in portions, so read it to the end, or close it, before the transaction ends.
        """
        rows: Any = stream(connection, self._snapshot(), queue=self.queue or None)
        if not is_asynchronous(connection):
            return next(rows), rows

        async def begun() -> Any:
            return await anext(rows), rows

        return begun()

    @overload
    def read(
        self,
        connection: SyncCaller,
        *,
        after: Offset | None = None,
        most: int = 10_000,
        compact: bool = False,
        follow: bool = False,
        poll: float = 1.0,
    ) -> Iterator[Batch]: ...
    @overload
    def read(
        self,
        connection: AsyncCaller,
        *,
        after: Offset | None = None,
        most: int = 10_000,
        compact: bool = False,
        follow: bool = False,
        poll: float = 1.0,
    ) -> AsyncIterator[Batch]: ...
    def read(
        self,
        connection: Any,
        *,
        after: Offset | None = None,
        most: int = 10_000,
        compact: bool = False,
        follow: bool = False,
        poll: float = 1.0,
    ) -> Any:
        """Iterate over the changes after an offset, in batches that are made from at most ``most`` changes.

        ``after`` is the offset of the last batch that the consumer has processed. With ``{}`` the iterator begins at
        the first change that is kept, with None at the present offset. With ``compact`` the changes of a key in a batch
        become one row, with the old values of the first change and the new values of the last one.

        The iterator ends when all changes are read. With ``follow`` it waits for further changes instead: for a
        notification, but for ``poll`` seconds at most. This needs a psycopg connection in autocommit, outside of a
        transaction; another connection raises InvalidDefinitionError. Other notifications that the connection gets
        meanwhile are lost.
        """
        if follow and not (
            isinstance(connection, (psycopg.Connection, psycopg.AsyncConnection))
            and connection.autocommit
            and connection.info.transaction_status == TransactionStatus.IDLE
        ):
            raise InvalidDefinitionError(
                f'feed "{self.name}" can only be followed on a psycopg connection in autocommit, in no transaction'
            )
        read = self._read_async if is_asynchronous(connection) else self._read_sync
        return read(connection, after, _Options(most, compact, follow, poll))

    def _read_sync(self, connection: Any, after: Offset | None, options: _Options) -> Iterator[Batch]:
        idle = None
        try:
            while True:
                batch = run(connection, self._batch(after, options), queue=self.queue or None)
                if batch.after != after:
                    idle = run(connection, self._rest(idle))
                    if after is not None:
                        yield batch
                    after = batch.after
                elif not options.follow:
                    return
                elif idle is None:
                    idle = run(connection, self._listen())
                else:
                    for _ in connection.notifies(timeout=idle.seconds(options.poll), stop_after=1):
                        pass
                    idle = run(connection, self._rest(idle))
        finally:
            with suppress(psycopg.Error):
                run(connection, self._rest(idle))

    async def _read_async(self, connection: Any, after: Offset | None, options: _Options) -> AsyncIterator[Batch]:
        idle = None
        try:
            while True:
                batch = await run(connection, self._batch(after, options), queue=self.queue or None)
                if batch.after != after:
                    idle = await run(connection, self._rest(idle))
                    if after is not None:
                        yield batch
                    after = batch.after
                elif not options.follow:
                    return
                elif idle is None:
                    idle = await run(connection, self._listen())
                else:
                    async for _ in connection.notifies(timeout=idle.seconds(options.poll), stop_after=1):
                        pass
                    idle = await run(connection, self._rest(idle))
        finally:
            with suppress(psycopg.Error):
                await run(connection, self._rest(idle))

    def _offset(self, after: Offset | None, most: int | None) -> Steps[dict[str, int]]:
        call = "select pgcombine_internal.feed_offset(%s, %s::text::jsonb, %s::integer)::text"
        ((found,),) = yield Statement(call, (self.name, _text(after), most))
        return _offset(found)

    def _batch(self, after: Offset | None, options: _Options) -> Steps[Batch]:
        ((columns, _),) = yield Statement(query("feed_columns"), (self.name,))
        (first, *rows) = yield Statement(
            sql.SQL("select f._after::text, f.* from {}(%s::text::jsonb, %s, %s) f").format(
                sql.Identifier("pgcombine", f"{self.name}_read")
            ),
            (_text(after), options.most, options.compact),
            values=True,
        )
        return Batch([dict(zip(columns, row[2:], strict=True)) for row in rows], _offset(first[0]))

    def _snapshot(self) -> Steps[Reading[Any]]:
        ((_, columns),) = yield Statement(query("feed_columns"), (self.name,))

        def become(row: tuple[Any, ...]) -> Any:
            return dict(zip(columns, row[1:], strict=True)) if row[0] is None else _offset(row[0])

        name = sql.Identifier("pgcombine", f"{self.name}_snapshot")
        return Statement(
            sql.SQL("select _after::text, {} from {}()").format(sql.SQL(", ").join(map(name_of, columns)), name)
        ), become

    def _listen(self) -> Steps[_Idle]:
        """Listen, and try to take the idle lock, with which passes notify. Afterwards the caller reads once more."""
        ((queue,),) = yield Statement("select (pgcombine_internal.require_feed(%s)).queue", (self.name,))
        yield Statement(sql.SQL("listen {}").format(sql.Identifier(f"pgcombine.changes {queue}")))
        ((relation, state),) = yield Statement(query("feed_listen"), (queue,))
        return _Idle(int(relation), str(state))

    def _rest(self, idle: _Idle | None) -> Steps[None]:
        """Release the idle lock, if it is taken."""
        if idle is not None and idle.state == "taken":
            yield Statement(query("release_idle_locks"), ([idle.relation],))


class _Options(NamedTuple):
    most: int
    compact: bool
    follow: bool
    poll: float


class _Idle(NamedTuple):
    """The table of the changes, and the result of ``pgcombine_internal.take_idle_lock`` for it."""

    relation: int
    state: str

    def seconds(self, poll: float) -> float:
        """Return how long to wait for a notification."""
        return min(poll, {"writers": _NAP, "other": _SUCCESSION}.get(self.state, poll))


def _text(offset: Offset | None) -> str | None:
    return None if offset is None else json.dumps(offset)


def _offset(text: str) -> dict[str, int]:
    found: dict[str, int] = json.loads(text)
    return found


def feeds(connection: Connection, name: str | None = None) -> list[dict[str, Any]]:
    """Return the feeds, or only the one named ``name``, each as a dict with columns of ``pgcombine.feed_stat``.

    Raises FeedNotFoundError if there is no feed of that name.
    """
    found = dicts(connection, query("feeds"), [name])
    if name is not None and not found:
        raise FeedNotFoundError(f'there is no feed "{name}" (pgcombine feed ls lists them)')
    return found
