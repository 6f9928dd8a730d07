"""This queue as a contender: updates as rows or as arrays, 4 buckets or 1, combined by one worker."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pgcombine.bench import scratch, scripts
from pgcombine.bench.scratch import QUEUE
from pgcombine.database.connect import Connection, one

from .contender import WRITES, Consumer, Contender


class Queue(Contender):
    """A queue with ``buckets``. With ``arrays``, the updates of a transaction are one call with two arrays."""

    tables: tuple[str, ...] = (f"pgcombine.{QUEUE}_updates", f"pgcombine.{QUEUE}_values", "pgcombine.pass")
    totals_query = f"select word, n from pgcombine.{QUEUE}_values"  # noqa: S608
    read_query = f"select n from pgcombine.{QUEUE}_values where word = %s"  # noqa: S608

    def __init__(self, buckets: int, *, arrays: bool, only: frozenset[str] = frozenset()) -> None:
        shape = "arrays" if arrays else "rows"
        self.name = f"pgcombine, {shape}, {buckets} bucket{'s' if buckets > 1 else ''}"
        self.summary = f"this queue; a transaction's updates as {shape}; one worker"
        self.only = only
        self._buckets = buckets
        self._arrays = arrays

    def make(self, connection: Connection) -> None:
        connection.execute(
            "select pgcombine.create_queue(%s, key => array['word text'], value => array['n bigint sum'], "
            "delete_when => 'n = 0', buckets => %s)",
            (QUEUE, self._buckets),
        )

    def write(self, source: str) -> str:
        return scripts.enqueue_arrays(source) if self._arrays else scripts.enqueue(source)

    def one(self, word: str) -> str:
        return f"insert into pgcombine.{QUEUE}_updates (word, n) values ({word}, 1)"  # noqa: S608

    @contextmanager
    def consumer(self, dsn: str) -> Iterator[Consumer]:
        with scratch.worker(dsn) as process:
            yield process

    def settled(self, connection: Connection) -> bool:
        return not one(connection, "select exists (select from pgcombine_internal.busy(%s))", QUEUE)[0]


QUEUES: tuple[Contender, ...] = (
    Queue(4, arrays=False),
    Queue(1, arrays=True),
    Queue(1, arrays=False, only=WRITES),
    Queue(4, arrays=True, only=WRITES),
)
