"""Export into a table of another PostgreSQL database. The exporter applies the changes of the queue's values there.

The table has the key columns as its primary key, the value columns, ``pgcombine_seq`` and ``pgcombine_deleted``. The
exporter creates the table before the first delivery. If it is missing later, it was dropped or renamed: a new table
would have later entries only, so DestinationDownError is raised.

A batch is one transaction, and one statement applies it: a row changes only for a higher sequence number. So a batch
that was delivered before changes nothing, even if a worker whose claim has ended delivers it late. Rows of deleted keys
stay and are marked as deleted, so late entries of these keys change nothing either.

The table ``pgcombine_owner`` at the destination records which server owns the export, and the owner's epoch. A batch of
a former owner is refused (FencedError).

A table is *ahead* if it has sequence numbers beyond those that this server has drawn: this server was restored from an
older backup or created again, or another server also delivers to the table. The table ignores new entries of the keys
with these numbers. If a batch changes fewer rows than it has entries, the exporter checks whether the table is ahead
for the batch's keys, and raises DestinationDownError if it is. A role without the right to read the export's sequence
can't check.

Errors of the data (SQLSTATE classes 22 and 23, a trigger's exception, a row too large for the index) raise
DeliveryRejectedError. Other errors of the destination raise DestinationDownError.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict

from pgcombine.config import libpq_dsn
from pgcombine.database.address import guarded, refused
from pgcombine.database.connect import closed_on_error, normalized, one
from pgcombine.database.deadline import DeadlineConnection
from pgcombine.errors import ConfigError, DeliveryRejectedError, DestinationDownError, FencedError, first_line
from pgcombine.export.entries import TIMEOUT_SECONDS, Entry
from pgcombine.runtime.wakeup import pooled

EPOCH_BITS = 40  # the number of low bits of a sequence number; the higher bits are the epoch (own_export)
_CONNECT_SECONDS = 10
_SWEEP = 20  # a sweep may take this many times the timeout of a batch
_DATA_FAULTS = ("22", "23")  # SQLSTATE classes: data exception, integrity constraint violation
# pgcombine_internal.portable_text makes these settings in the queue's database, and the exporter in the other one
_TEXT = {
    "datestyle": "ISO, MDY",
    "timezone": "UTC",
    "intervalstyle": "postgres",
    "lc_monetary": "C",
    "extra_float_digits": "1",
}
_MORE_DATA_FAULTS = ("P0001", "54000")  # SQLSTATEs: an exception of a trigger; an index row that is too large


class Statements(NamedTuple):
    """The statements for the other database: the result of ``pgcombine_internal.export_target``."""

    create_table: str
    create_stage: str
    copy: str
    put: str
    apply: str
    create_owner: str
    ask: str
    set_owner: str
    sweep: str
    drop_stage: str
    ahead: str
    begun: bool


class PostgresExporter:
    """Delivers to the database ``dsn``. The password is in ``dsn``, or libpq finds it.

    ``timeout``, in seconds, is for a batch at the other server, so that a hanging server doesn't block the bucket
    forever. Behind a pooler in transaction mode, no setting and no temporary table stays on the pooler's connections.
    """

    def __init__(self, dsn: str, statements: Statements, *, timeout: float = TIMEOUT_SECONDS) -> None:
        self._dsn = libpq_dsn(dsn)
        self._statements = statements
        self._timeout = timeout
        self._connection: DeadlineConnection | None = None
        self._pooled = False
        self._owner = ("", 0)
        self._drawn: int | None = None

    def owned(self, owner: str, epoch: int, drawn: int | None) -> None:
        """Deliver from now on for the server ``owner``, which has owned the export since ``epoch``.

        ``owner`` is empty if no owner was chosen. ``drawn`` is an upper bound of the sequence numbers that this server
        has drawn for the export, or None if the role may not read it.
        """
        self._owner = (owner, epoch)
        self._drawn = drawn

    def sweep(self, epoch: int) -> None:
        """Mark the keys that weren't delivered since ``epoch`` as deleted. This may take longer than a batch."""
        with self._transaction(_SWEEP * self._timeout) as connection:
            connection.execute(_text(self._statements.sweep), (epoch << EPOCH_BITS,))

    def deliver(self, entries: Sequence[Entry]) -> None:
        """Deliver a list of entries."""
        with self._transaction() as connection:
            put = connection.execute(_text(self._statements.put), (f"[{','.join(entry.json for entry in entries)}]",))
            self._apply(connection, put.rowcount)

    def load(self, chunks: Iterable[bytes], ready: Callable[[], object]) -> None:
        """Deliver the rows that a COPY reads from the export's entries."""
        with self._transaction() as connection, connection.cursor() as cursor:
            with cursor.copy(_text(self._statements.copy)) as copy:
                for chunk in chunks:
                    copy.write(chunk)
            ready()
            self._apply(connection, cursor.rowcount)

    def fetch(self, statement: str, *parameters: object) -> list[tuple[Any, ...]]:
        """Run a statement in the other database, and return its rows."""
        with self._transaction() as connection:
            return connection.execute(_text(statement), parameters).fetchall()

    def close(self) -> None:
        """Close the connection."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    @contextmanager
    def _transaction(self, seconds: float | None = None) -> Iterator[DeadlineConnection]:
        try:
            if self._connection is None:
                self._connection = self._open()
            with self._connection.within(seconds or self._timeout), self._connection.transaction():
                if self._pooled or seconds:
                    self._prepare(self._connection, seconds or self._timeout, local=True)
                self._refuse_former(self._connection)
                yield self._connection
                if self._pooled:
                    self._connection.execute(_text(self._statements.drop_stage))
            self._statements = self._statements._replace(begun=True)
        except psycopg.Error as error:
            state = error.sqlstate or ""
            message = first_line(error)
            if isinstance(error, psycopg.errors.UndefinedTable):
                message += " (if the table was dropped or renamed: pgcombine export resync makes it again)"
            if state[:2] in _DATA_FAULTS or state in _MORE_DATA_FAULTS:
                raise DeliveryRejectedError(message, sqlstate=state) from error
            self.close()
            raise DestinationDownError(message, sqlstate=error.sqlstate) from error

    def _apply(self, connection: DeadlineConnection, entries: int) -> None:
        applied = connection.execute(_text(self._statements.apply)).rowcount
        if applied >= entries or self._drawn is None:
            return
        (ahead,) = connection.execute(_text(self._statements.ahead), (self._drawn,)).fetchone() or (None,)
        if ahead is not None:
            raise DestinationDownError(
                f"the table has an entry with the number {ahead}, but this server has drawn only numbers up to "
                f"{self._drawn}: this server was restored from an older backup or created again, or another server "
                "also fills the table (pgcombine export own replaces the table's contents with this server's values)"
            )

    def _refuse_former(self, connection: DeadlineConnection) -> None:
        owner, epoch = self._owner
        found = connection.execute(_text(self._statements.ask)).fetchone()
        if found is None or found[0] < epoch:
            connection.execute(_text(self._statements.set_owner), (epoch, owner))
            found = connection.execute(_text(self._statements.ask)).fetchone()
        assert found is not None
        if (found[1], found[0]) != self._owner:
            raise FencedError(
                f'server "{found[1]}" owns the export since epoch {found[0]}', owner=found[1], epoch=found[0]
            )

    def _open(self) -> DeadlineConnection:
        connection = DeadlineConnection.connect(
            self._dsn,
            application_name="pgcombine export",
            autocommit=True,
            prepare_threshold=None,
            cursor_factory=psycopg.RawCursor,  # the statements have parameters $1, and may have % in names
            # libpq waits for 2 seconds at least
            connect_timeout=max(2, min(_CONNECT_SECONDS, math.ceil(self._timeout))),
            keepalives_idle=10,
            keepalives_interval=5,
            keepalives_count=3,
            tcp_user_timeout=60_000,
        )
        with closed_on_error(connection), connection.within(self._timeout):
            self._pooled = pooled(normalized(connection))
            try:
                self._make(connection)
            except (psycopg.errors.UniqueViolation, psycopg.errors.DuplicateTable):
                self._make(connection)  # again: if two sessions create a table at once, one of them fails
        return connection

    def _make(self, connection: DeadlineConnection) -> None:
        """Create the tables that don't exist. Unless a pooler shares the connection, also set up the session."""
        with connection.transaction():
            self._prepare(connection, self._timeout, local=self._pooled)
            if not self._statements.begun:
                connection.execute(_text(self._statements.create_table))
            connection.execute(_text(self._statements.create_owner))
            if self._pooled:
                connection.execute(_text(self._statements.drop_stage))

    def _prepare(self, connection: DeadlineConnection, seconds: float, *, local: bool) -> None:
        """Change settings, of the transaction if ``local``, else of the session, and create the staging table."""
        settings = {**_TEXT, "client_min_messages": "warning", "statement_timeout": f"{round(seconds * 1000)}ms"}
        for name, value in settings.items():
            connection.execute("select set_config($1, $2, $3)", (name, value, local))
        connection.execute(_text(self._statements.create_stage))


def _text(statement: str) -> bytes:
    return statement.encode()


def registered(export: str, target: str) -> str:
    """Return the connection string for a target that comes from the database (:mod:`pgcombine.database.address`).

    Without a host, a service is allowed: then this program's own service file has the address. Raises ConfigError.
    """
    given = conninfo_to_dict(libpq_dsn(target))
    if more := [name for name in refused(target) if name != "service"]:
        raise ConfigError(
            f'the target of export "{export}" must not set {", ".join(more)}: set it in the worker\'s environment '
            "(PGSSLMODE, PGSSLROOTCERT) or in a service file, and create the export with host, port, dbname and user"
        )
    return target if "service" in given and "host" not in given else guarded(target, anonymous=True)


def statements(connection: psycopg.Connection[Any], export: str) -> Statements:
    """Return the statements for this export. Raises psycopg's error with SQLSTATE PC021 for an unknown export."""
    return Statements(*one(connection, "select * from pgcombine_internal.export_target(%s)", export))
