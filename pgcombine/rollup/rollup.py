"""``Rollup``: an aggregate of a table by key, kept up to date by triggers and passes (``sql/rollup``)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import psycopg
from psycopg import sql

from pgcombine.database.caller import in_transaction as _in_transaction
from pgcombine.database.connect import Connection, dicts, one, read_committed
from pgcombine.database.sqlfiles import query
from pgcombine.database.steps import Statement, Steps
from pgcombine.errors import InvalidDefinitionError, translated
from pgcombine.queue.combine_queue import CombineQueue


class Rollup:
    """A rollup by name. The queue of the same name, :attr:`queue`, combines the changes of the source.

    ``source`` is a table. ``key`` has expressions over its columns (``["customer", "lower(page) as page"]``), and
    ``value`` has aggregates (``["count(*) as requests", "sum(tokens) as tokens"]``). A single expression or aggregate
    may be a string. The other arguments are those of ``pgcombine.create_rollup``. Only :meth:`create` uses the
    arguments after the name.
    """

    def __init__(
        self,
        name: str,
        *,
        source: str = "",
        key: Sequence[str] = (),
        value: Sequence[str] = (),
        filter: str | None = None,
        keep: str | None = None,
        buckets: int = 1,
        slice_by: str | None = None,
    ) -> None:
        self.name = name
        self.source = source
        self.key = [key] if isinstance(key, str) else list(key)
        self.value = [value] if isinstance(value, str) else list(value)
        self.filter = filter
        self.keep = keep
        self.buckets = buckets
        self.slice_by = slice_by

    def __repr__(self) -> str:
        return f"Rollup({self.name!r})"

    @property
    def queue(self) -> CombineQueue:
        """The queue that combines the changes of the source."""
        return CombineQueue(self.name)

    @property
    def view(self) -> sql.Identifier:
        """The view that shows the rollup: its key and value columns. The values contain pending changes."""
        return sql.Identifier("pgcombine", self.name)

    @_in_transaction(latest=True)
    def create(self, *, if_not_exists: bool = False) -> Steps[None]:
        """Create the rollup. Writers of the source wait until the caller's transaction ends.

        :meth:`backfill` or workers add the rows that the source has already. With ``if_not_exists`` a rollup with the
        same definition may exist already. Raises QueueExistsError if the name is taken, and InvalidDefinitionError for
        an invalid definition.
        """
        yield Statement(
            "select pgcombine.create_rollup(%s, %s::text::regclass, %s, %s, filter => %s, keep => %s, "
            "buckets => %s, slice_by => %s, if_not_exists => %s)",
            (
                *(self.name, self.source, self.key, self.value, self.filter, self.keep),
                *(self.buckets, self.slice_by, if_not_exists),
            ),
        )

    def backfill(self, connection: psycopg.Connection[Any]) -> Iterator[tuple[int, int]]:
        """Add the rows that the source had before the rollup, in slices. Each slice is a transaction.

        Yields after each slice the number of finished slices and the number of all slices. Both are 0 while the number
        of slices isn't known. If the iteration stops, the next call goes on after the last finished slice. Raises
        InvalidDefinitionError if the connection is in a transaction or the queue isn't a rollup, and
        QueueNotFoundError if there is no queue of the name.
        """
        if connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
            raise InvalidDefinitionError(
                f'can\'t backfill rollup "{self.name}" in a transaction: end the transaction first', queue=self.name
            )
        more = True
        while more:
            with translated(queue=self.name), read_committed(connection), connection.transaction():
                (more,) = one(connection, "select pgcombine_internal.backfill_slice(%s)", self.name)
                done, slices = one(
                    connection,
                    "select done, case when done > 0 then slices else 0 end from pgcombine.rollup where queue = %s",
                    self.name,
                )
            yield int(done), int(slices)

    @_in_transaction(latest=True)
    def verify(self, *, repair: bool = False) -> Steps[list[str]]:
        """Compare the rollup with its source, and return the problems found, one sentence each.

        With ``repair`` it also enqueues updates that correct the values. Raises InvalidDefinitionError if the queue
        isn't a rollup or isn't backfilled yet, or the isolation level isn't read committed. Raises QueueNotFoundError
        if there is no queue of the name.
        """
        found = yield Statement("select problem from pgcombine.verify_rollup(%s, repair => %s)", (self.name, repair))
        return [str(problem) for (problem,) in found]

    @_in_transaction(latest=True)
    def drop(self, *, force: bool = False) -> Steps[None]:
        """Drop the rollup; the source stays. With ``force`` it is dropped even if it is exported or feeds a tier.

        Pending and quarantined updates don't prevent the drop. Without ``force``, raises QueueNotEmptyError if the
        rollup is exported or feeds a tier, for example. Raises QueueNotFoundError if there is no queue of the name,
        InvalidDefinitionError if the queue isn't a rollup, and the other errors of ``queue.drop`` with ``force``.
        """
        yield Statement("select pgcombine.drop_rollup(%s, force => %s)", (self.name, force))


def rollups(connection: Connection, name: str | None = None) -> list[dict[str, Any]]:
    """Return a dict for each rollup, or only for the rollup ``name``.

    A dict has the definition, ``state`` (``"ready"``, or how far the backfill is), ``ready_at``, and ``problems``,
    which are sentences that say why the rollup may miss changes. Raises InvalidDefinitionError if there is no rollup of
    that name.
    """
    found = dicts(connection, query("rollups"), [name, name])
    if name is not None and not found:
        raise InvalidDefinitionError(f'there is no rollup "{name}" (pgcombine rollup ls lists them)', queue=name)
    return found
