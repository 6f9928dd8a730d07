"""The state in the database: the lock that lets one run at a time work, the work tables, and the commit.

The lock belongs to a transaction that stays open until the run's commit. While the run reads and counts, this
transaction has no snapshot and no transaction id. If a run dies, the server frees the lock. The dead run may leave rows
in the work tables, and chunks of documents that no file has. The next run removes both. Errors of the database are
psycopg's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg

from pgcombine import CombineQueue
from pgcombine.errors import ConfigError, QueueError, QueueExistsError
from pgcombine.phrasecount.database import Connection, connect, ensure_schema, query

QUEUE = "phrases"
_COLUMNS = [("phrase", "text", None), ("docs", "bigint", "sum"), ("total", "bigint", "sum")]
# Only one run at a time can hold this lock. A role with only the right to read or insert can't take it. The lock
# doesn't conflict with a run's statements, and autovacuum skips a table that it can't lock.
_LOCK = "lock table phrasecount.directory in share update exclusive mode"


@dataclass(frozen=True)
class Comparison:
    """The changes that a scan found, as numbers.

    ``documents`` is the number of files that are counted. ``added``, ``edited`` and ``removed`` are the numbers of
    files that differ from the last run. ``live`` and ``dead`` are the numbers of documents that are added to the counts
    and removed from them, and ``bytes`` is their size. ``left_out`` is how often phrases that are too long occur in the
    added documents.
    """

    documents: int
    added: int
    edited: int
    removed: int
    live: int
    dead: int
    left_out: int
    bytes: int

    @property
    def positions(self) -> list[int]:
        """The positions of these documents in the table ``phrasecount.delta``."""
        return list(range(1, self.live + self.dead + 1))


@contextmanager
def locked(dsn: str, waiting: Callable[[], None]) -> Iterator[Connection]:
    """Yield the connection whose open transaction holds the lock.

    If another run has the lock, ``waiting`` is called, and then the function waits for the lock. Leaving the block
    without a commit rolls back. Before the block, :func:`ensure_schema` is called.
    """
    with closing(connect(dsn, autocommit=False)) as connection:
        ensure_schema(connection)
        connection.execute(query("no_timeouts"))
        if not _try_lock(connection):
            waiting()
            connection.execute(_LOCK)
        yield connection


def clean_after(lock: Connection, work: Connection) -> None:
    """Empty the work tables after the run's commit, which freed the lock.

    If another run has the lock already, that run empties the tables.
    """
    if _try_lock(lock):
        clean(work)
    lock.rollback()


def clean(connection: Connection) -> None:
    """Empty the work tables, and delete the chunks that dead runs left. The caller holds the lock.

    If a writer of a dead run still holds locks after two seconds, the rows stay, which does no harm.
    """
    try:
        with connection.transaction():
            connection.execute("select set_config('lock_timeout', '2s', true)")
            connection.execute("select phrasecount.clean()")
    except psycopg.errors.LockNotAvailable:
        pass


def ensure_queue(connection: Connection) -> bool:
    """Create the queue ``phrases`` if it doesn't exist. Returns whether this call created it.

    Raises QueueError if another queue has that name, or if the queue was dropped after documents had been counted.
    Raises ConfigError if the database's encoding can't hold every text.
    """
    encoding = _one(connection, "select current_setting('server_encoding')")[0]
    if encoding != "UTF8":
        raise ConfigError(
            f"the database's encoding is {encoding}, which can't hold every phrase: use a database made with "
            "encoding 'UTF8' (create database … encoding 'UTF8' template template0)"
        )
    columns = connection.execute(query("columns")).fetchall()
    if columns and columns != _COLUMNS:
        raise QueueError(
            f"queue \"{QUEUE}\" is there but isn't phrasecount's (phrase text; docs, total bigint sum): "
            "give phrasecount a separate database",
            queue=QUEUE,
        )
    if columns:
        return False
    if _one(connection, query("documents"))[0]:
        raise QueueError(
            f'queue "{QUEUE}" was dropped, but its documents are still recorded: '
            "run 'truncate phrasecount.directory, phrasecount.document cascade' to count them again",
            queue=QUEUE,
        )
    try:
        CombineQueue(
            QUEUE,
            key=["phrase text"],
            value=["docs bigint sum", "total bigint sum"],
            delete_when="docs = 0 and total = 0",
        ).create(connection)
    except QueueExistsError:
        return ensure_queue(connection)
    return True


def list_work(connection: Connection, load: UUID, paths: Iterable[str], limit: int | None) -> None:
    """Store the paths of the files that were found. Files after the first ``limit`` are marked as not counted."""
    with (
        connection.cursor() as cursor,
        cursor.copy("copy phrasecount.listed (load, n, path, counted) from stdin") as copy,
    ):
        for n, path in enumerate(paths):
            copy.write_row((load, n, path, limit is None or n < limit))
    connection.execute("analyze phrasecount.listed")


def known(connection: Connection, directory: str) -> dict[str, bytes]:
    """Return the SHA-256 of the content of each file that has a stored document, by path."""
    with connection.cursor(binary=True) as cursor:
        return dict(cursor.execute(query("known"), {"directory": directory}))


def beyond_limit(connection: Connection, load: UUID, directory: str) -> tuple[int, str | None]:
    """Return the number of stored files that exist but are beyond the limit, and the path of the first one or None."""
    count, first = _one(connection, query("beyond_limit"), {"load": load, "directory": directory})
    return int(count), first


def problems(connection: Connection, load: UUID) -> Iterator[tuple[str, str, str]]:
    """Return (kind, detail, path) of the files that the scan couldn't count, ordered by kind and path."""
    return iter(connection.execute(query("problems"), {"load": load}))


def compare(connection: Connection, load: UUID, directory: str) -> Comparison:
    """Find the changes since the last run, and store them in the work tables."""
    connection.execute("analyze phrasecount.scanned, phrasecount.kept")
    row = _one(connection, "select * from phrasecount.compare(%s, %s)", (load, directory))
    connection.execute("analyze phrasecount.move, phrasecount.delta")
    return Comparison(*row)


def apply(connection: Connection, load: UUID, directory: str) -> None:
    """Change the documents' state, in the transaction that holds the lock and enqueued the updates."""
    connection.execute("select phrasecount.apply(%s, %s)", (load, directory))


def top(connection: Connection, count: int) -> list[tuple[str, int, int]]:
    """Return the ``count`` phrases with the highest totals: (phrase, docs, total)."""
    return [(p, d, t) for p, d, t in connection.execute(query("top"), {"top": count})]


def phrases(connection: Connection) -> int:
    """Return the number of phrases that have a value."""
    return int(_one(connection, query("phrases"))[0])


def _try_lock(connection: Connection) -> bool:
    connection.execute("savepoint pgcombine_lock")
    try:
        connection.execute(f"{_LOCK} nowait")
    except psycopg.errors.LockNotAvailable:
        connection.execute("rollback to savepoint pgcombine_lock")
        return False
    return True


def _one(connection: Connection, statement: str, parameters: Any = None) -> tuple[Any, ...]:
    row = connection.execute(statement, parameters).fetchone()
    assert row is not None
    return row
