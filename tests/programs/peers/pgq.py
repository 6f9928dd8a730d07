"""PgQ, the queue of Skytools (https://github.com/pgq/pgq), from Debian's package ``postgresql-15-pgq3``.

The consumer itself makes the ticks, so the daemon ``pgqd`` isn't needed. In one transaction the consumer makes a tick,
reads the next batch, upserts the totals and finishes the batch; 50 ms later it begins the next transaction. The event
tables rotate every 10 s.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pgcombine.database.connect import Connection, one

from .contender import WRITES, Consumer, extension_missing, repeated, sql_file
from .manual import Total

_PERIOD = 0.05  # seconds between two transactions of the consumer


class PgQ(Total):
    """PgQ with one event for each transaction, which holds all updates as arrays, or one event for each update."""

    # the event tables of the first queue in a database
    tables = ("pgq.event_1_0", "pgq.event_1_1", "pgq.event_1_2", "pgq.tick", "bench.total")

    def __init__(self, *, packed: bool) -> None:
        self.name = "PgQ, an event a transaction" if packed else "PgQ, an event an update"
        self.summary = (
            f"{'a transaction is one event with arrays' if packed else 'each update is an event'}; "
            "its consumer makes a tick and upserts the sums of a batch, 50 ms after the batch before"
        )
        self.only = frozenset() if packed else WRITES
        self._packed = packed

    def missing(self, connection: Connection) -> str | None:
        return extension_missing(connection, "pgq", "Debian's package postgresql-15-pgq3")

    def make(self, connection: Connection) -> None:
        connection.execute(sql_file("pgq"))

    def write(self, source: str) -> str:
        if not self._packed:
            return f"select count(pgq.insert_event('bench', word, '1')) {source};\n"
        return (
            f"select pgq.insert_event('bench', 'run', array(select word {source})::text, "
            "array_fill(1::bigint, array[:k::int])::text, null, null, null);\n"
        )

    def one(self, word: str) -> str:
        if not self._packed:
            return f"select pgq.insert_event('bench', {word}, '1')"
        return f"select pgq.insert_event('bench', 'run', array[{word}]::text[]::text, '{{1}}', null, null, null)"

    @contextmanager
    def consumer(self, dsn: str) -> Iterator[Consumer]:
        with repeated(dsn, f"select bench.take({self._packed})", pause=_PERIOD) as process:
            yield process

    def settled(self, connection: Connection) -> bool:
        return bool(one(connection, "select bench.taken()")[0])
