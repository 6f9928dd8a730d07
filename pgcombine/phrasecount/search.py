"""The search table: ``phrasecount.search`` (phrase, docs, total). An export brings changes of the values into it.

The table is in the queue's database, or in another one. The first run with a search table creates the export
``phrases_search`` after its updates are combined. From then on each pass writes its changes as entries, in the pass's
transaction. A run delivers the entries at its end. If a run dies, its entries wait for the next run, or for ``pgcombine
export run phrases_search``. The row of a deleted phrase stays in the table, marked as ``pgcombine_deleted``.
"""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgcombine import ExportQueue, ExportWorker
from pgcombine.errors import ConfigError, DestinationDownError, QueueError, QueueExistsError, first_line
from pgcombine.phrasecount.database import Connection, connect, query
from pgcombine.phrasecount.report import Report
from pgcombine.phrasecount.state import QUEUE
from pgcombine.phrasecount.tokens import Document

EXPORT = "phrases_search"
SEARCHING = "keeping the search table"  # the name of the step in a run


@dataclass(frozen=True)
class Search:
    """The search table of the queue in database ``dsn``.

    ``there`` is the database for the table. None means the database that has the table now, or the queue's database if
    there is no table yet.
    """

    dsn: str
    there: str | None = None

    def keep(self) -> None:
        """Create the export that fills the search table, :data:`EXPORT`, if it doesn't exist.

        If ``there`` is given and the export has another destination, the export is dropped and created again. Raises
        QueueError if an export with this name isn't phrasecount's, or if the destination is another database that has
        a search table of its own. Raises DestinationDownError if ``there`` doesn't answer.
        """
        with closing(connect(self.dsn)) as connection:
            target = self._wanted(connection)
            found, _ = self._export(connection)
            if found is not None and (target is None or found == target):
                return
            here = _here(connection)
            target = target or here
            if target != here:
                with closing(_connected(self.there or target)) as other:
                    _prepare(other)
            if found is not None:
                ExportQueue(EXPORT).drop(connection, force=True)
            export = ExportQueue(
                EXPORT,
                queue=QUEUE,
                exporter="postgres",
                target=target,
                target_table="phrasecount.search",
                # to another database the present values are delivered; in the queue's database fill_search copies them
                existing=target != here,
            )
            with suppress(QueueExistsError), connection.transaction():  # QueueExistsError: another run was faster
                export.create(connection)
                if target == here:
                    connection.execute(query("fill_search"))

    def deliver(self, report: Report) -> int:
        """Deliver the waiting entries. Returns their number.

        Raises DestinationDownError if the table's database is down. If the export is paused, prints a line and returns
        0.
        """
        with closing(connect(self.dsn)) as connection:
            export = ExportQueue(EXPORT)
            state = self._export(connection)[1]
            if state == "paused":
                waiting = export.backlog(connection)
                report.line(
                    f"the search table is paused (pgcombine export resume {EXPORT}); waiting entries: {waiting:,}"
                )
                return 0
            if state != "up":
                export.resume(connection)  # the destination may be up again
            where = self._place(connection)
        return ExportWorker(self.dsn, EXPORT, target=where).drain()

    def find(self, text: str, top: int) -> list[tuple[str, int, int]]:
        """Return (phrase, docs, total) of the ``top`` most frequent phrases that contain ``text``'s words in a row.

        Raises ConfigError for a text without words, and if there is no search table. Raises QueueError if the export
        isn't phrasecount's, and DestinationDownError if the table's database doesn't answer.
        """
        words = " ".join(Document(text).chunks())
        if not words:
            raise ConfigError(f"there is no word in {text!r}: give one to four words")
        with closing(connect(self.dsn)) as connection:
            where = self._place(connection)
        with closing(_connected(where)) as connection:
            try:
                rows = connection.execute(query("find"), {"words": words, "top": top}).fetchall()
            except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
                raise ConfigError("there is no search table yet: run 'pgcombine phrasecount DIR' first") from None
        return [(phrase, docs, total) for phrase, docs, total in rows]

    def _wanted(self, connection: Connection) -> str | None:
        """Return ``there`` in the form in which exports store a destination, without passwords. None stays None."""
        if self.there is None:
            return None
        with closing(_connected(self.there)) as other:
            if _address(other) == _address(connection):
                return _here(connection)
            given = conninfo_to_dict(self.there) | _address(other)
        for secret in ("password", "sslpassword"):
            given.pop(secret, None)
        return make_conninfo("", **given)

    def _export(self, connection: Connection) -> tuple[str | None, str]:
        """Return the export's destination and its state, or None and "". Raises QueueError for another's export."""
        found = connection.execute(query("search_export")).fetchone()
        if found is None:
            return None, ""
        queue, exporter, target, state = found
        if (queue, exporter) != (QUEUE, "postgres"):
            raise QueueError(
                f"export \"{EXPORT}\" is there but isn't phrasecount's: drop it "
                f"(pgcombine export drop {EXPORT}), or run with --no-search",
                queue=QUEUE,
            )
        return target, state

    def _place(self, connection: Connection) -> str:
        """Return a connection string of the table's database."""
        if self.there is not None:
            return self.there
        target, _ = self._export(connection)
        return self.dsn if target is None or target == _here(connection) else target


def _connected(where: str) -> Connection:
    """Connect to the table's database. Raises DestinationDownError if that database doesn't answer."""
    try:
        return connect(where)
    except psycopg.OperationalError as error:
        raise DestinationDownError(f"the search table's database can't be reached: {first_line(error)}") from error


def _prepare(there: Connection) -> None:
    """Prepare another database for the search table: make the schema, and drop the table of an earlier export."""
    if there.execute("select to_regclass('pgcombine.phrases_search_exports')").fetchone() != (None,):
        raise QueueError(
            f'database "{there.info.dbname}" has its own search table (give --search-dsn another database, '
            f"or drop its export {EXPORT})",
            queue=QUEUE,
        )
    there.execute(query("prepare_search"))


def _address(connection: Connection) -> dict[str, str]:
    info = connection.info
    return {"host": info.host, "port": str(info.port), "dbname": info.dbname, "user": info.user}


def _here(connection: Connection) -> str:
    """Return the queue's database as a destination, without the host, which may change."""
    return make_conninfo("", dbname=connection.info.dbname)
