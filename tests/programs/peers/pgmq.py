"""pgmq (https://github.com/pgmq/pgmq), installed from its SQL file, without an extension.

The file is ``pgmq-extension/sql/pgmq.sql`` in pgmq's repository. A transaction sends one JSON message with its words
and their numbers. In one transaction the consumer reads up to 1,000 messages, adds them up, upserts the totals and
deletes the messages. If the transaction is rolled back, the messages are visible again at once.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgcombine.database.connect import Connection, one

from .contender import Consumer, repeated, sql_file
from .manual import Total


class Pgmq(Total):
    """pgmq with one JSON message a transaction. ``file`` is pgmq's SQL file; without it the contender can't run."""

    name = "pgmq"
    summary = "a JSON message a transaction; its consumer upserts the sums of 1,000 messages and deletes them"
    tables = ("pgmq.q_bench", "bench.total")

    def __init__(self, file: Path | None = None) -> None:
        self.file = file

    def missing(self, connection: Connection) -> str | None:
        return "give its pgmq.sql by --pgmq FILE" if self.file is None else None

    def make(self, connection: Connection) -> None:
        assert self.file is not None
        connection.execute(self.file.read_bytes())
        connection.execute(sql_file("pgmq"))

    def write(self, source: str) -> str:
        return (
            f"select pgmq.send('bench', jsonb_build_object('word', array(select word {source}), "
            "'n', array_fill(1::bigint, array[:k::int])));\n"
        )

    def one(self, word: str) -> str:
        return f"select pgmq.send('bench', jsonb_build_object('word', array[{word}]::text[], 'n', array[1]))"

    @contextmanager
    def consumer(self, dsn: str) -> Iterator[Consumer]:
        with repeated(dsn, "select bench.take()", vacuum="pgmq.q_bench") as process:
            yield process

    def settled(self, connection: Connection) -> bool:
        return not one(connection, "select exists (select from pgmq.q_bench)")[0]
