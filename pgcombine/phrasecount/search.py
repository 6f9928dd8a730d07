"""The search table: ``phrasecount.search`` (phrase, docs, total). An export keeps it equal to the values.

It is in the queue's database, or in another one. The export ``phrases_search`` is created when the first run's updates
are combined. From then on each pass writes its changes as entries, in its own transaction, and the end of a run
delivers them. If a run dies, its entries wait for the next run, or for ``pgcombine export run phrases_search``. Entries
that are delivered twice change nothing. The row of a deleted phrase stays, with ``pgcombine_deleted``.
"""

from __future__ import annotations

from contextlib import closing, suppress
from dataclasses import dataclass

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgcombine.config import libpq_dsn
from pgcombine.database.connect import Connection, connect
from pgcombine.database.sqlfiles import query
from pgcombine.errors import ConfigError, QueueError, QueueExists, translated
from pgcombine.export.entries import Exporter
from pgcombine.export.postgres import PostgresExporter, statements
from pgcombine.export.queue import ExportQueue, exports
from pgcombine.export.worker import ExportWorker
from pgcombine.phrasecount.report import Report
from pgcombine.phrasecount.state import QUEUE
from pgcombine.phrasecount.tokens import Document

EXPORT = "phrases_search"
SEARCHING = "keeping the search table"  # the name of the step in a run
NAME = "pgcombine phrasecount"  # application_name


@dataclass(frozen=True)
class Search:
    """The search table of the queue in database ``dsn``.

    ``there`` is the database for the table. None means where it is now, and for a new table the queue's database.
    """

    dsn: str
    there: str | None = None

    def keep(self) -> None:
        """Create the export if it doesn't exist. If ``there`` is another destination than before, create it anew.

        Raises QueueError if another export has that name, or if the destination has another queue's search table.
        Raises ConnectError if the destination doesn't answer.
        """
        with closing(connect(self.dsn, name=NAME)) as connection:
            target = self._wanted(connection)
            found = self._export(connection)
            if found is not None and (target is None or found == target):
                return
            here = _here(connection)
            target = target or here
            if target != here:
                with closing(connect(self.there or target, name=NAME)) as other, translated(queue=QUEUE):
                    other.execute("set client_min_messages = warning")
                    other.execute(query("phrasecount_search_there"))
            if found is not None:
                ExportQueue(EXPORT).drop(connection, force=True)
            with suppress(QueueExists), translated(queue=QUEUE):  # another run was faster
                connection.execute("select phrasecount.keep_search(%s, %s)", (target, target == here))

    def deliver(self, report: Report) -> int:
        """Deliver the waiting entries. Returns their number. Raises DestinationDown, whose message names the remedy."""
        with closing(connect(self.dsn, name=NAME)) as connection:
            (found,) = exports(connection, EXPORT)
            if found["state"] == "paused":
                report.line(f"the search table is paused (pgcombine export resume {EXPORT}): {found['pending']:,} wait")
                return 0
            if found["state"] != "up":
                ExportQueue(EXPORT).resume(connection)  # the destination may be up again
            where = self._place(connection)

        def make() -> Exporter:
            with closing(connect(self.dsn, name=NAME)) as connection:
                return PostgresExporter(where, statements(connection, EXPORT))

        return ExportWorker(self.dsn, EXPORT, make=make).drain()

    def find(self, text: str, top: int) -> list[tuple[str, int, int]]:
        """Return (phrase, docs, total) of the ``top`` most frequent phrases with the words of ``text`` in a row.

        Raises ConfigError for a text without words, and if there is no search table.
        """
        words = " ".join(Document(text).chunks())
        if not words:
            raise ConfigError(f"there is no word in {text!r}: give one to four words")
        with closing(connect(self.dsn, name=NAME)) as connection:
            where = self._place(connection)
        with closing(connect(where, name=NAME)) as connection:
            try:
                rows = connection.execute(query("phrasecount_find"), {"words": words, "top": top}).fetchall()
            except (psycopg.errors.UndefinedTable, psycopg.errors.InvalidSchemaName):
                raise ConfigError("there is no search table yet: run 'pgcombine phrasecount DIR' first") from None
        return [(phrase, docs, total) for phrase, docs, total in rows]

    def _wanted(self, connection: Connection) -> str | None:
        """Return the destination for ``there``, in the form that exports store, without a password.

        Returns None if ``there`` isn't given.
        """
        if self.there is None:
            return None
        with closing(connect(self.there, name=NAME)) as other:
            if _address(other) == _address(connection):
                return _here(connection)
            given = conninfo_to_dict(libpq_dsn(self.there)) | _address(other)
        for secret in ("password", "sslpassword"):
            given.pop(secret, None)
        return make_conninfo("", **given)

    def _export(self, connection: Connection) -> str | None:
        """Return the export's destination, or None if there is no export.

        Raises QueueError if it isn't phrasecount's.
        """
        for found in exports(connection):
            if found["export"] == EXPORT:
                if (found["queue"], found["exporter"]) != (QUEUE, "postgres"):
                    raise QueueError(
                        f"export \"{EXPORT}\" is there but isn't phrasecount's: drop it "
                        f"(pgcombine export drop {EXPORT}), or run with --no-search",
                        queue=QUEUE,
                    )
                return str(found["target"])
        return None

    def _place(self, connection: Connection) -> str:
        """Return a connection string of the table's database, with the password if one is known."""
        if self.there is not None:
            return self.there
        target = self._export(connection)
        return self.dsn if target is None or target == _here(connection) else target


def _address(connection: Connection) -> dict[str, str]:
    info = connection.info
    return {"host": info.host, "port": str(info.port), "dbname": info.dbname, "user": info.user}


def _here(connection: Connection) -> str:
    """Return the queue's own database as a destination. It has no host, since the host may change."""
    return make_conninfo("", dbname=connection.info.dbname)
