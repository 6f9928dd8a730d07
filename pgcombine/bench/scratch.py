"""The throw-away database of a benchmark: keys, baseline tables, a queue, and workers on it.

The schema ``bench`` has four tables. ``zipf(i, word)`` is a random sample of keys, from which scripts take consecutive
rows. ``total(word, n)`` is the table that upserts contend for. ``slot(word, slot, n)`` has a row for each key and slot.
``bare(word, n)`` has no index. The queue ``bench`` has the key ``word`` and the value ``n``.
"""

from __future__ import annotations

import bisect
import itertools
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from uuid import uuid4

from psycopg import sql
from psycopg.conninfo import make_conninfo

from pgcombine import schema
from pgcombine.bench.settings import Settings
from pgcombine.database.connect import Connection, connect, one
from pgcombine.database.sqlfiles import query
from pgcombine.errors import PgCombineError

SAMPLE = 500_000
QUEUE = "bench"
_TIMEOUT = 300.0  # seconds for which wait_idle waits at most


@contextmanager
def throwaway_database(dsn: str) -> Iterator[str]:
    """Create a database with pgcombine's schema, yield its connection string, and drop it at the end."""
    name = f"pgcombine_bench_{uuid4().hex[:12]}"
    with closing(connect(dsn)) as connection:
        connection.execute(
            sql.SQL("create database {} template template0 encoding 'UTF8'").format(sql.Identifier(name))
        )
        try:
            database = make_conninfo(dsn, dbname=name)
            schema.upgrade(database)
            yield database
        finally:
            connection.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))


class Scratch:
    """The database of one benchmark run, with its sample of keys."""

    def __init__(self, dsn: str, settings: Settings) -> None:
        self.dsn = dsn
        self.settings = settings
        self._worker: subprocess.Popen[bytes] | None = None
        self.connection: Connection = connect(dsn, name="pgcombine bench")
        self.connection.execute(query("bench_tables"))
        with self.connection.cursor().copy("copy bench.zipf (i, word) from stdin") as copy:
            for row in enumerate(zipf(SAMPLE, settings.keys, settings.skew)):
                copy.write_row(row)
        self.connection.execute("vacuum analyze bench.zipf")

    def fresh(self, buckets: int | None = None) -> None:
        """Empty the baseline tables, and replace the queue by an empty one.

        The queue has ``buckets`` buckets (default: the number in the settings).
        """
        connection = self.connection
        connection.execute("truncate bench.total, bench.slot, bench.bare")
        if connection.execute("select from pgcombine.queue where queue = %s", (QUEUE,)).fetchone() is not None:
            connection.execute("select pgcombine.drop_queue(%s, force => true)", (QUEUE,))
        connection.execute(
            "select pgcombine.create_queue(%s, key => array['word text'], value => array['n bigint sum'], "
            "delete_when => 'n = 0', buckets => %s)",
            (QUEUE, buckets or self.settings.buckets),
        )
        connection.execute("checkpoint")  # so that no measurement writes the dirty pages of the measurement before it

    def rows(self, count: int) -> bytes:
        """Return ``count`` updates in COPY's text format."""
        words = [word for (word,) in self.connection.execute("select word from bench.zipf order by i").fetchall()]
        return "".join(f"{word}\t1\n" for word in itertools.islice(itertools.cycle(words), count)).encode()

    def different_rows(self, count: int) -> bytes:
        """Return one update for each of ``count`` keys, in random order, in COPY's text format.

        Every run gets the same updates in the same order.
        """
        keys = random.Random(20).sample(range(count), count)
        return "".join(f"word{key:024d}\t1\n" for key in keys).encode()

    def wal_position(self) -> int:
        """Return the bytes of write-ahead log written so far."""
        row = self.connection.execute("select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0')").fetchone()
        assert row is not None
        return int(row[0])

    def wait_combined(self, expected: int) -> None:
        """Wait until no updates are pending.

        Raises PgCombineError as :meth:`wait_idle` does, or if the values don't sum up to ``expected``.
        """
        self.wait_idle()
        self.check(expected)

    def wait_idle(self) -> None:
        """Wait until no updates are pending.

        Raises PgCombineError if updates are pending and no worker runs, or if the worker takes five minutes.
        """
        deadline = time.monotonic() + _TIMEOUT
        while self.one("select exists (select from pgcombine_internal.busy(%s))", QUEUE):
            if self._worker is None or self._worker.poll() is not None or time.monotonic() > deadline:
                pending = self.one("select pgcombine.backlog(%s)", QUEUE)
                raise PgCombineError(
                    f"the benchmark's worker ended, or took longer than {_TIMEOUT:g} s: {pending:,} updates are pending"
                )
            time.sleep(0.005)

    def check(self, expected: int) -> None:
        """Raise PgCombineError unless the values sum up to ``expected``."""
        total = self.one("select coalesce(sum(n), 0) from pgcombine.bench_values")
        if total != expected:
            raise PgCombineError(f"the benchmark enqueued {expected:,} updates, but the values hold {total:,}")

    def one(self, statement: str, *parameters: object) -> int:
        """Return the first column of the statement's first row, as an integer."""
        row = self.connection.execute(statement, parameters or None).fetchone()
        assert row is not None
        return int(row[0])

    @contextmanager
    def worker(self) -> Iterator[None]:
        """Run a worker process on the queue during the block. The worker is connected when the block begins."""
        with worker(self.dsn) as process:
            try:
                self._worker = process
                yield
            finally:
                self._worker = None


@contextmanager
def worker(dsn: str) -> Iterator[subprocess.Popen[bytes]]:
    """Run a worker process on the queue in the database ``dsn`` during the block. See :func:`running`."""
    main = "from pgcombine.cli import main; main()"
    with running(dsn, [sys.executable, "-P", "-c", main, "worker", QUEUE, "--dsn", dsn], "pgcombine worker") as process:
        yield process


@contextmanager
def running(
    dsn: str, command: Sequence[str], name: str, *, cwd: Path | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Run a program during the block. The program is connected to the database when the block begins.

    ``name`` is the beginning of the program's ``application_name``. Raises PgCombineError if the program ends before it
    is connected.
    """
    with (
        closing(connect(dsn, name="pgcombine bench")) as connection,
        subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=cwd) as process,
    ):
        try:
            while not one(
                connection,
                "select count(*) from pg_stat_activity "
                "where starts_with(application_name, %s) and datname = current_database()",
                name,
            )[0]:
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
