"""What a contender is: its tables, its ways to write and to read, and its consumer if it has one.

All contenders count words: key ``word text``, value ``n bigint``. A contender that isn't one of SQL overrides
``load``, ``totals``, ``read``, ``add`` and ``size`` too. A contender's errors aren't caught here: its turn is shown as
failed.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgcombine.bench.scratch import running
from pgcombine.database.connect import Connection

from .load import Done, Load, pgbench_load

Consumer = subprocess.Popen[bytes]
ROOT = Path(__file__).parents[3]
WRITES = frozenset({"end-to-end-1", "end-to-end-10", "end-to-end-100"})  # the figures that further variants are in
_SQL = Path(__file__).with_name("sql")


class Contender:
    """A way to keep totals. ``name`` is shown, ``summary`` says in one line what it is."""

    name: str
    summary: str
    only: frozenset[str] = frozenset()  # the figures in which it takes part; empty: all
    unmeasured: frozenset[str] = frozenset()  # metrics that say nothing of it
    tables: tuple[str, ...] = ()  # relations that grow, partitioned ones with their partitions
    totals_query: str  # rows of word and n: the exact totals, once it is settled
    read_query: str  # n of the key %s, as a reader would look it up

    def missing(self, connection: Connection) -> str | None:
        """Return why it can't run on this server, or None."""
        return None

    def make(self, connection: Connection) -> None:
        """Make its tables in a new database that has the schemas ``pgcombine`` and ``bench``."""
        raise NotImplementedError

    def write(self, source: str) -> str:
        """Return the statements of a pgbench script that add 1 to each word of ``select word {source}``.

        Words may be repeated. There are ``:k`` of them. The statements are part of one transaction.
        """
        raise NotImplementedError

    def one(self, word: str) -> str:
        """Return the statement that adds 1 to one key, for which ``word`` is an SQL expression."""
        raise NotImplementedError

    @contextmanager
    def consumer(self, dsn: str) -> Iterator[Consumer | None]:
        """Run its consumer as a process of its own during the block. It is connected when the block begins."""
        yield None

    def settled(self, connection: Connection) -> bool:
        """Whether all committed updates are in the totals, and its consumer has nothing left to do."""
        return True

    def load(self, load: Load) -> Done:
        """Run a load to its end. Returns what was done."""
        return pgbench_load(load, self.write, self.one)

    def totals(self, connection: Connection) -> dict[str, int]:
        """Return the exact totals by word."""
        return {str(word): int(n) for word, n in connection.execute(self.totals_query.encode()).fetchall()}

    def add(self, connection: Connection, word: str) -> None:
        """Add 1 to one key and commit, for the measurement of freshness."""
        connection.execute(self.one("%s").encode(), (word,))

    def read(self, connection: Connection, word: str) -> int:
        """Return the value of one key that a reader finds, 0 if it finds none."""
        row = connection.execute(self.read_query.encode(), (word,)).fetchone()
        return int(row[0] or 0) if row else 0

    def size(self, connection: Connection) -> int:
        """Return the bytes of its tables with their indexes."""
        row = connection.execute(
            "select sum(pg_total_relation_size(part))::bigint from unnest(%(tables)s::regclass[]) as its, "
            "lateral (select its as part union select relid from pg_partition_tree(its)) as parts",
            {"tables": list(self.tables)},
        ).fetchone()
        assert row is not None
        return int(row[0])


@contextmanager
def repeated(dsn: str, statement: str, *, pause: float = 0.0, vacuum: str = "") -> Iterator[Consumer]:
    """Run a consumer that executes ``statement`` again and again, see :mod:`.consume`."""
    command = [sys.executable, "-m", "tests.programs.peers.consume", dsn, statement]
    command += ["--pause", str(pause), "--vacuum", vacuum]
    with running(dsn, command, "peers consumer", cwd=ROOT) as process:
        yield process


def extension_missing(connection: Connection, name: str, source: str) -> str | None:
    """Return that the server hasn't the extension, and where it comes from; or None."""
    found = connection.execute("select true from pg_available_extensions where name = %s", (name,)).fetchone()
    return None if found else f"the server hasn't the extension {name} ({source})"


def sql_file(name: str) -> bytes:
    """Return the text of ``sql/{name}.sql``."""
    return (_SQL / f"{name}.sql").read_bytes()
