"""A turn: one contender runs in a new, filled database with its consumer; at the end its totals are checked.

A turn raises PgCombineError if a load fails, or if the consumer ends or doesn't settle within a minute.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from uuid import uuid4

import psutil
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgcombine.bench.scratch import SAMPLE, fill, throwaway_database, zipf
from pgcombine.database.connect import Connection, connect, one
from pgcombine.errors import PgCombineError

from .contender import Consumer, Contender
from .load import Done, Ledger, Load, Work
from .measurement import Measurement
from .processor import ServerTime, family_seconds

KEYS, SKEW = 300_000, 1.2
_FILL = Work(1000)
_TIMEOUT = 60.0  # seconds within which a consumer must settle


@dataclass(frozen=True)
class Base:
    """The database of which each turn makes a copy, and its sample of words.

    ``admin`` is the URI of a role that may make and drop the copies.
    """

    dsn: str
    words: list[str]
    admin: str


@contextmanager
def base(dsn: str) -> Iterator[Base]:
    """Make the base database on the server, and drop it at the end of the block."""
    with throwaway_database(dsn) as database:
        yield filled(database, list(zipf(SAMPLE, KEYS, SKEW)), dsn)


def filled(dsn: str, words: list[str], admin: str) -> Base:
    """Make the schema ``bench`` with the sample in a database that has the schema ``pgcombine``."""
    with closing(connect(dsn)) as connection:
        fill(connection, words)
    return Base(dsn, words, admin)


@dataclass
class Used:
    """The resources of a measured window: bytes of write-ahead log, processor seconds, whether a checkpoint came."""

    log: float = 0.0
    server: float | None = 0.0  # None: the server's processor time can't be read
    consumer: float = 0.0
    checkpoint: bool = False


class Turn:
    """One contender's database while it is measured.

    ``failed`` is the number of transactions that pgbench has counted as failed since the last ``judge``.
    """

    def __init__(self, contender: Contender, dsn: str, connection: Connection, ledger: Ledger) -> None:
        self.contender = contender
        self.dsn = dsn
        self.connection = connection
        self.ledger = ledger
        self.failed = 0
        self._deadlocks = 0
        self.checkpoint = False
        self._consumer: Consumer | None = None
        self._begin = 0

    @contextmanager
    def consumer(self) -> Iterator[None]:
        """Run the consumer during the block."""
        with self.contender.consumer(self.dsn) as process:
            self._consumer = process
            try:
                yield
            finally:
                self._consumer = None

    def warm(self, transactions: int = 100) -> None:
        """Fill the tables by transactions of 1,000 updates, settle, vacuum and analyze. The consumer must run."""
        self.load(_FILL, clients=1, transactions=transactions)
        self.settle()
        for table in self.contender.tables:
            self.connection.execute(f"vacuum (analyze) {table}".encode())

    def load(
        self,
        work: Work,
        *,
        clients: int,
        seconds: float = 0.0,
        transactions: int | None = None,
        rate: float | None = None,
        first: int = 0,
    ) -> Done:
        """Run a load, and enter its committed transactions into the ledger."""
        load = Load(self.dsn, work, clients, seconds, transactions, rate, first, self._begin)
        done = self.contender.load(load)
        self.ledger.enter(work, done.committed)
        self.failed += done.failed
        return done

    def next_window(self) -> None:
        """Let the next loads write other transactions than before."""
        self._begin += 10_000_000

    def settle(self) -> float:
        """Wait until the contender has settled. Returns the seconds that this took."""
        began = time.monotonic()
        while not self.contender.settled(self.connection):
            if self._consumer is not None and self._consumer.poll() is not None:
                raise PgCombineError(f"the consumer of {self.contender.name} ended ({self._consumer.returncode})")
            if time.monotonic() - began > _TIMEOUT:
                raise PgCombineError(f"{self.contender.name} hasn't settled after {_TIMEOUT:.0f} s")
            # polling itself takes processor time, so polls become rarer with time
            time.sleep(min(0.1, 0.005 + (time.monotonic() - began) / 20))
        return time.monotonic() - began

    @contextmanager
    def used(self) -> Iterator[Used]:
        """Measure the resources that the block uses; the values are set after the block."""
        found = Used()
        consumer = None if self._consumer is None else psutil.Process(self._consumer.pid)
        consumer_before = 0.0 if consumer is None else family_seconds(consumer)
        log_before, checkpoint_before = self._log()
        with ServerTime(self.connection) as server:
            yield found
        log, checkpoint = self._log()
        found.log, found.server = log - log_before, server.seconds if server.readable else None
        found.consumer = 0.0 if consumer is None else family_seconds(consumer) - consumer_before
        found.checkpoint = checkpoint != checkpoint_before
        self.checkpoint |= found.checkpoint

    def _log(self) -> tuple[float, str]:
        position, checkpoint = one(
            self.connection,
            "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0'), checkpoint_lsn::text "
            "from pg_control_checkpoint()",
        )
        return float(position), str(checkpoint)

    def difference(self) -> str | None:
        """Return a line about wrong totals, or None. The contender must have settled."""
        return self.contender.difference(self.connection, self.ledger.totals())

    def judge(self, found: Measurement) -> None:
        """Record wrong totals, and the failures, deadlocks and checkpoints since the last call, in ``found``.

        The contender must have settled.
        """
        found.wrong = self.difference()
        deadlocks = one(self.connection, "select deadlocks from pg_stat_database where datname = current_database()")[0]
        found.failed, found.deadlocks, found.checkpoint = self.failed, deadlocks - self._deadlocks, self.checkpoint
        self.failed, self._deadlocks, self.checkpoint = 0, deadlocks, False


@contextmanager
def database(base: Base, contender: Contender) -> Iterator[Turn]:
    """Make a turn's database with the contender's tables, and drop it at the end."""
    name = f"peers_{uuid4().hex[:12]}"
    template = sql.Identifier(str(conninfo_to_dict(base.dsn)["dbname"]))
    with closing(connect(make_conninfo(base.admin, dbname="template1"))) as server:
        server.execute(sql.SQL("create database {} template {}").format(sql.Identifier(name), template))
        try:
            dsn = make_conninfo(base.dsn, dbname=name)
            with closing(connect(dsn, name="peers")) as connection:
                connection.execute("checkpoint")
                contender.make(connection)
                yield Turn(contender, dsn, connection, Ledger(base.words))
        finally:
            server.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
