"""The throw-away database of a benchmark: keys, baseline tables, a queue, and workers on it.

The schema ``bench`` has three tables. ``zipf(i, word)`` is a random sample of keys, from which scripts take consecutive
rows. ``total(word, n)`` is the table that upserts contend for. ``bare(word, n)`` has no index. The queue ``bench`` has
the key ``word`` and the value ``n``.
"""

from __future__ import annotations

import bisect
import itertools
import random
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from psycopg.conninfo import make_conninfo

from pgcombine import schema
from pgcombine.database.connect import Connection, connect, one
from pgcombine.database.sqlfiles import query
from pgcombine.errors import PgCombineError

SAMPLE = 500_000
QUEUE = "bench"
UPDATES = f"pgcombine.{QUEUE}_updates"


@dataclass(frozen=True)
class Settings:
    """The settings of the load, and of the measurements. ``seconds`` is the length of most measurements."""

    keys: int
    skew: float
    clients: int
    seconds: float
    rounds: int
    buckets: int
    rows: int  # updates of the figures "combine" and "spark"


@contextmanager
def throwaway_database(dsn: str) -> Iterator[str]:
    """Create a database with pgcombine's schema, yield its connection string, and drop it at the end."""
    name = f"pgcombine_bench_{uuid4().hex[:12]}"
    with closing(connect(dsn)) as connection:
        connection.execute(f"create database {name} template template0 encoding 'UTF8'".encode())
        try:
            database = make_conninfo(dsn, dbname=name)
            schema.upgrade(database)
            yield database
        finally:
            connection.execute(f"drop database {name} with (force)".encode())


def fill(connection: Connection, words: Iterable[str]) -> None:
    """Make the schema ``bench`` with a sample of keys."""
    connection.execute(query("bench_tables"))
    with connection.cursor().copy("copy bench.zipf (i, word) from stdin") as copy:
        for row in enumerate(words):
            copy.write_row(row)
    connection.execute("vacuum (freeze, analyze)")


class Scratch:
    """The database of one benchmark run, with its sample of keys."""

    def __init__(self, dsn: str, connection: Connection, settings: Settings) -> None:
        self.dsn = dsn
        self.settings = settings
        self.connection = connection
        self._words = list(zipf(SAMPLE, settings.keys, settings.skew))
        fill(connection, self._words)

    def fresh(self) -> None:
        """Empty the baseline tables, and replace the queue by an empty one."""
        self.connection.execute("truncate bench.total, bench.bare")
        if one(self.connection, "select exists (select from pgcombine.queue where queue = %s)", QUEUE)[0]:
            self.connection.execute("select pgcombine.drop_queue(%s, force => true)", (QUEUE,))
        create_queue(self.connection, self.settings.buckets)
        self.connection.execute("checkpoint")  # else a measurement writes the dirty pages of the one before it

    def rows(self, count: int) -> bytes:
        """Return ``count`` updates in COPY's text format."""
        return "".join(f"{word}\t1\n" for word in itertools.islice(itertools.cycle(self._words), count)).encode()

    def copy(self, table: str, rows: bytes) -> None:
        """COPY such updates into a table."""
        with self.connection.cursor().copy(f"copy {table} (word, n) from stdin".encode()) as copy:
            copy.write(rows)

    def wal_position(self) -> int:
        """Return the bytes of write-ahead log written so far."""
        return int(one(self.connection, "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')")[0])

    def wait_idle(self, process: subprocess.Popen[bytes]) -> None:
        """Wait until the worker has combined all updates. Raises PgCombineError if it ends, or takes five minutes."""
        deadline = time.monotonic() + 300
        while one(self.connection, "select exists (select from pgcombine_internal.busy(%s))", QUEUE)[0]:
            if process.poll() is not None or time.monotonic() > deadline:
                raise PgCombineError("the benchmark's worker ended, or took longer than 300 s")
            time.sleep(0.005)

    def check(self, expected: int, view: str = "values") -> None:
        """Raise PgCombineError unless ``n`` sums up to ``expected`` in this view of the queue."""
        total = one(self.connection, f"select coalesce(sum(n), 0)::bigint from pgcombine.{QUEUE}_{view}")[0]  # noqa: S608
        if total != expected:
            raise PgCombineError(f"the benchmark enqueued {expected:,} updates, but the {view} hold {total:,}")


def create_queue(connection: Connection, buckets: int) -> None:
    """Create the queue with a number of buckets."""
    connection.execute(
        "select pgcombine.create_queue(%s, key => array['word text'], value => array['n bigint sum'], "
        "delete_when => 'n = 0', buckets => %s)",
        (QUEUE, buckets),
    )


def worker(dsn: str) -> AbstractContextManager[subprocess.Popen[bytes]]:
    """Run a worker process on the queue in the database ``dsn`` during the block. See :func:`running`."""
    main = "from pgcombine.cli import main; main()"
    return running(dsn, [sys.executable, "-P", "-c", main, "worker", QUEUE, "--dsn", dsn], "pgcombine worker")


@contextmanager
def running(
    dsn: str, command: Sequence[str], name: str, *, cwd: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program during the block. The program is connected to the database when the block begins.

    ``name`` is the beginning of the program's ``application_name``. Raises PgCombineError if the program ends before it
    is connected.
    """
    sessions = "from pg_stat_activity where starts_with(application_name, %s) and datname = current_database()"
    with (
        closing(connect(dsn, name="pgcombine bench")) as connection,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=cwd) as process,
    ):
        try:
            while not one(connection, f"select count(*) {sessions}".encode(), name)[0]:
                if process.poll() is not None:
                    raise PgCombineError(f"the benchmark's {name} ended with status {process.returncode}")
                time.sleep(0.02)
            yield process
        finally:
            process.terminate()


def zipf(count: int, keys: int, skew: float) -> Iterator[str]:
    """Yield ``count`` random keys, the same in every run. The k-th most frequent key has the weight 1/k^skew."""
    weights = list(itertools.accumulate(1 / k**skew for k in range(1, keys + 1)))
    source = random.Random(20)
    for _ in range(count):
        yield f"word{bisect.bisect(weights, source.random() * weights[-1]):07d}"
