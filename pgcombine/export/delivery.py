"""One batch of an export: the next changes of a bucket, delivered in one transaction that also stores how far it is.

The transaction is on the ``claims`` connection. It claims the bucket, takes its next entries
(``pgcombine_internal.export_take``), delivers them, and commits. After a failure before the commit, the entries wait
again. Before they are delivered, the query ``flush_commits`` makes the commits that wrote them durable. This query runs
on the ``control`` connection, which is in autocommit. The destination's state is also reported on that connection.

Entries that the destination refuses for their data, and later entries of their keys in the batch, are quarantined in
the transaction that delivers the others. The search for such entries uses small batches. Each batch is committed, so a
killed worker loses only the search of the batch in progress.

If several servers have the export, one of them can be made its owner, and then only the owner delivers. If the
destination accepts only deliveries of another server, this server records that server as the owner and stops
delivering, provided that the worker's role may record it. The *sweep*: after a new owner has delivered all its values,
the exporter ``postgres`` marks the keys that the owner lacks as deleted at the destination.
"""

from __future__ import annotations

import itertools
import logging
from collections.abc import Iterable, Iterator
from contextlib import suppress
from enum import Enum

import psycopg
from psycopg import sql
from psycopg.errors import InsufficientPrivilege

from pgcombine.database import sqlfiles
from pgcombine.database.connect import Connection, one
from pgcombine.errors import DeliveryRejectedError, DestinationDownError, FencedError, translated
from pgcombine.export.entries import Entry, Exporter, OwnedExporter, RawExporter
from pgcombine.runtime.destinations import Destination, bisect
from pgcombine.runtime.spans import span

log = logging.getLogger("pgcombine.export")

SEARCH_ENTRIES = 256  # the largest batch in a search for entries that the destination refuses
_GROWTH = 4  # the factor by which a batch may grow after each delivered batch
_ROWS = 1000  # the largest number of COPY's rows in a piece that a RawExporter gets


class Nothing(Enum):
    """The reason why no entry was delivered."""

    IDLE = "idle"  # no entry waits in a bucket that other workers haven't claimed
    BLOCKED = "blocked"  # the destination is paused, or the next attempt isn't due
    FAILED = "failed"  # the delivery, or the sweep after it, failed


class Delivery:
    """Delivers batches of one export. ``batch`` is the largest number of entries in a batch (None: the export's own).

    Raises ExportNotFoundError if the export doesn't exist, or is dropped later.
    """

    def __init__(
        self, claims: Connection, control: Connection, export: str, exporter: Exporter, batch: int | None = None
    ) -> None:
        self._claims = claims
        self._control = control
        self._export = export
        self._exporter = exporter
        with translated():
            row = one(control, sqlfiles.query("export_size").encode(), export)
        self._batch = int(batch or row[0])
        self._size = self._batch  # the largest number of entries in the next batch
        self._keys = int(row[1])
        self.destination = Destination(control, "export", export)

    def once(self) -> int | Nothing:
        """Deliver one batch. Returns the number of entries delivered or quarantined, or why there are none.

        If a sweep is due, it follows the batch. A failure of the destination is recorded and returned as
        ``Nothing.FAILED``. After FencedError the new owner is recorded instead, if the role may do so and this server
        doesn't claim the same or a later epoch. Raises psycopg.OperationalError if the connection to the queue's own
        database is lost, and Interrupted if the exporter gave up because the worker must stop.
        """
        ticket: int | None = None
        try:
            with translated(), self._claims.transaction():
                (bucket,) = one(
                    self._claims,
                    "select pgcombine_internal.claim_export(%s) from pgcombine_internal.portable_text()",
                    self._export,
                )
                sweep = self._own()  # the owner doesn't change while a bucket is claimed
                if bucket is None and not sweep:
                    return Nothing.IDLE
                ticket = self.destination.attempt()
                if ticket is None:
                    return Nothing.BLOCKED
                count = 0
                if bucket is not None:
                    with span("deliver", self._export, bucket) as told:
                        count = self._deliver(bucket)
                        told(count)
            if sweep:
                self._sweep()
        except DestinationDownError as error:
            if self._claims.closed:  # the connection to the queue's own database is lost; the destination hasn't failed
                raise psycopg.OperationalError(str(error)) from error
            if isinstance(error, FencedError):
                log.warning("export.fenced export=%s owner=%s epoch=%d", self._export, error.owner, error.epoch)
                disown = "select pgcombine_internal.disown_export(%s, %s, %s)"
                with suppress(InsufficientPrivilege):
                    if one(self._control, disown, self._export, error.owner, error.epoch)[0]:
                        return Nothing.FAILED
            self.destination.failed(error, ticket)
            return Nothing.FAILED
        self.destination.delivered(ticket)
        return Nothing.IDLE if bucket is None else count

    def waits(self) -> bool:
        """Whether an entry waits in a bucket that no worker has claimed."""
        with translated():
            return one(self._control, "select pgcombine_internal.claim_export(%s)", self._export) != (None,)

    def _own(self) -> bool:
        """Pass the owner to an exporter that needs it. Returns whether a sweep by this exporter is still to be done."""
        if not isinstance(self._exporter, OwnedExporter):
            return False
        row = self._claims.execute(sqlfiles.query("export_owner"), (self._export,)).fetchone()
        if row is None:
            return False
        *who, sweep = row
        self._exporter.owned(*who)
        return bool(sweep)

    def _sweep(self) -> None:
        row = self._control.execute(sqlfiles.query("export_sweep"), (self._export,)).fetchone()
        if row is not None and isinstance(self._exporter, OwnedExporter):
            self._exporter.sweep(row[0])
            self._control.execute(sqlfiles.query("export_swept"), (self._export, row[0]))

    def _deliver(self, bucket: int) -> int:
        try:
            with self._claims.transaction():
                count = self._whole(bucket)
            self._size = min(self._batch, _GROWTH * self._size)
        except DeliveryRejectedError:
            self._size = min(self._size, SEARCH_ENTRIES)
            count = self._search(bucket)
        self._claims.execute(sqlfiles.query("export_delivered").encode(), (count, self._export, bucket))
        log.debug("export.delivered export=%s bucket=%d entries=%d", self._export, bucket, count)
        return count

    def _whole(self, bucket: int) -> int:
        """Deliver a batch. Raises DeliveryRejectedError if the destination refuses one of its entries."""
        if not isinstance(self._exporter, RawExporter):
            entries = self._entries(bucket)
            if entries:
                self._exporter.deliver(entries)
            return len(entries)
        take = sql.SQL("copy ({}) to stdout").format(sql.SQL(self._take(bucket, raw=True)))
        with self._claims.cursor() as cursor:
            with cursor.copy(take) as copy:
                self._exporter.load(_joined(copy), self._flush)
            return cursor.rowcount

    def _search(self, bucket: int) -> int:
        """Deliver a batch without the entries that the destination refuses, and quarantine these and what follows them.

        The entries of a key are one part of the batch. If the destination refuses them, they are delivered one by one
        up to the first refused one.
        """
        entries = self._entries(bucket)
        keys = [list(group) for _, group in itertools.groupby(entries, key=lambda entry: entry.key)]
        outcome = bisect(keys, lambda part: self._exporter.deliver([entry for key in part for entry in key]))
        if outcome.down is not None:
            raise outcome.down
        for key, error in outcome.rejected:
            held, reason = self._from_refused(key, error)
            for entry in held:
                refused = (self._export, bucket, str(reason), entry.json)
                self._claims.execute(sqlfiles.query("export_refused").encode(), refused)
                log.error("export.quarantined export=%s seq=%d error=%s", self._export, entry.seq, reason)
        return len(entries)

    def _from_refused(
        self, key: list[Entry], error: DeliveryRejectedError
    ) -> tuple[list[Entry], DeliveryRejectedError]:
        """Deliver a key's entries one by one up to the first refused one. Returns this and the later ones, and why."""
        if len(key) > 1:
            for place, entry in enumerate(key):
                try:
                    self._exporter.deliver([entry])
                except DeliveryRejectedError as refused:
                    return key[place:], refused
            return [], error
        return key, error

    def _entries(self, bucket: int) -> list[Entry]:
        """Take the entries of a batch, make the commits that wrote them durable, and return the entries."""
        rows = self._claims.execute(self._take(bucket, raw=False).encode()).fetchall()
        self._flush()
        return [self._entry(row) for row in rows]

    def _take(self, bucket: int, *, raw: bool) -> str:
        statement = "select pgcombine_internal.export_take(%s, %s, %s, %s)"
        return str(one(self._claims, statement, self._export, bucket, self._size, raw)[0])

    def _entry(self, row: tuple[object, ...]) -> Entry:
        *columns, seq, json = row
        values = (len(columns) - self._keys) // 2
        key, old, new = columns[: self._keys], columns[self._keys : self._keys + values], columns[self._keys + values :]
        assert isinstance(seq, int)
        return Entry(key[0] if len(key) == 1 else tuple(key), _value(old), _value(new), seq, str(json))

    def _flush(self) -> None:
        self._control.execute(sqlfiles.query("flush_commits").encode())


def _joined(rows: Iterable[bytes | bytearray | memoryview]) -> Iterator[bytes]:
    """Join the rows of a COPY into chunks: a write for each row would be slower."""
    found = iter(rows)
    while chunk := b"".join(itertools.islice(found, _ROWS)):
        yield chunk


def _value(columns: list[object]) -> object:
    if all(column is None for column in columns):
        return None
    return columns[0] if len(columns) == 1 else tuple(columns)


def lost(error: psycopg.Error, *connections: Connection) -> bool:
    """Whether the error is psycopg's OperationalError, or one of the connections is closed."""
    return isinstance(error, psycopg.OperationalError) or any(connection.closed for connection in connections)
