"""This queue as a contender: with 1 bucket or 4, combined by one worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pgcombine.bench.figures import enqueue
from pgcombine.bench.scratch import QUEUE, UPDATES, create_queue, worker
from pgcombine.database.connect import Connection, one

from .contender import Consumer, Contender


class Queue(Contender):
    """pgcombine's queue with ``buckets`` buckets."""

    tables: tuple[str, ...] = (UPDATES, f"pgcombine.{QUEUE}_values", "pgcombine.pass")
    totals_query = f"select word, n from pgcombine.{QUEUE}_values"  # noqa: S608
    read_query = f"select n from pgcombine.{QUEUE}_values where word = %s"  # noqa: S608

    def __init__(self, buckets: int) -> None:
        self.name = f"pgcombine, {buckets} bucket{'s' if buckets > 1 else ''}"
        self.summary = "this queue; one worker"
        self._buckets = buckets

    def make(self, connection: Connection) -> None:
        create_queue(connection, self._buckets)

    def write(self, source: str) -> str:
        return enqueue(source)

    def one(self, word: str) -> str:
        return f"insert into {UPDATES} (word, n) values ({word}, 1)"  # noqa: S608

    @contextmanager
    def consumer(self, dsn: str) -> Iterator[Consumer]:
        with worker(dsn) as process:
            yield process

    def settled(self, connection: Connection) -> bool:
        return not one(connection, "select exists (select from pgcombine_internal.busy(%s))", QUEUE)[0]


QUEUES: tuple[Contender, ...] = (Queue(1), Queue(4))
