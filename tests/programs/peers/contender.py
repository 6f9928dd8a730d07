"""The interface of a contender: its tables, how it writes and reads, and its consumer, if any.

All contenders keep totals by word: key ``word text``, value ``n bigint``. A contender outside SQL overrides ``load``
and ``totals``; for figures of freshness also ``add`` and ``read``, for the figure of a held snapshot also ``size``.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgcombine.bench.scratch import running
from pgcombine.database.connect import Connection

from .load import Done, Load, differences, pgbench_load

Consumer = subprocess.Popen[bytes]
ROOT = Path(__file__).parents[3]
# The figures of end-to-end rates. PgQ with an event an update has only these.
WRITES = frozenset({"end-to-end-1", "end-to-end-10", "end-to-end-100"})
_SQL = Path(__file__).with_name("sql")


class Contender:
    """A way to keep totals. The report shows ``name`` and the one-line ``summary``."""

    name: str
    summary: str
    only: frozenset[str] = frozenset()  # the figures of this contender; empty: all
    unmeasured: frozenset[str] = frozenset()  # metrics that don't apply to this contender
    tables: tuple[str, ...] = ()  # relations to vacuum; their sizes count, with those of their partitions
    totals_query: str  # returns rows of word and n: the exact totals, once the contender is settled
    read_query: str  # returns n of the key %s; null or no row if the key has no value

    def missing(self, connection: Connection) -> str | None:
        """Return why the contender can't run on this server, or None."""
        return None

    def make(self, connection: Connection) -> None:
        """Make the contender's tables in a new database that has the schemas ``pgcombine`` and ``bench``."""
        raise NotImplementedError

    def write(self, source: str) -> str:
        """Return the part of a pgbench script whose single statement adds 1 to each word of ``select word {source}``.

        The select returns ``:k`` words, and a word may be repeated.
        """
        raise NotImplementedError

    def one(self, word: str) -> str:
        """Return the statement that adds 1 to one key. ``word`` is the key as an SQL expression."""
        raise NotImplementedError

    def change(self) -> str:
        """Return the part of a pgbench script that changes rows of the client's earlier transactions now and then."""
        return ""

    @contextmanager
    def consumer(self, dsn: str) -> Iterator[Consumer | None]:
        """Run the consumer, if any, as another process during the block. The block begins when the process is ready."""
        yield None

    def settled(self, connection: Connection) -> bool:
        """Whether the totals have all committed updates and the consumer has nothing left to do."""
        return True

    def load(self, load: Load) -> Done:
        """Run a load to its end. Returns what was done."""
        return pgbench_load(load, self.write, self.one, self.change)

    def totals(self, connection: Connection) -> dict[str, int]:
        """Return the exact totals by word."""
        return {str(word): int(n) for word, n in connection.execute(self.totals_query.encode()).fetchall()}

    def difference(self, connection: Connection, expected: dict[str, int]) -> str | None:
        """Return one line about the differences between the totals and the expected ones; None if there are none."""
        return differences(expected, self.totals(connection))

    def add(self, connection: Connection, word: str) -> None:
        """Add 1 to one key."""
        connection.execute(self.one("%s").encode(), (word,))

    def read(self, connection: Connection, word: str) -> int:
        """Return the value of one key as a reader finds it, or 0."""
        row = connection.execute(self.read_query.encode(), (word,)).fetchone()
        return int(row[0] or 0) if row else 0

    def size(self, connection: Connection) -> int:
        """Return the bytes of ``tables`` and their partitions, with indexes."""
        row = connection.execute(
            "select sum(pg_total_relation_size(part))::bigint from unnest(%(tables)s::regclass[]) as its, "
            "lateral (select its as part union select relid from pg_partition_tree(its)) as parts",
            {"tables": list(self.tables)},
        ).fetchone()
        assert row is not None
        return int(row[0])


@contextmanager
def repeated(dsn: str, statement: str, *, pause: float = 0.0, vacuum: str = "") -> Iterator[Consumer]:
    """Run a consumer that repeats ``statement`` (:mod:`.consume`) during the block."""
    command = [sys.executable, "-m", "tests.programs.peers.consume", dsn, statement]
    command += ["--pause", str(pause), "--vacuum", vacuum]
    with running(dsn, command, "peers consumer", cwd=ROOT) as process:
        yield process


def extension_missing(connection: Connection, name: str, source: str) -> str | None:
    """Return a message with the extension's source if the server lacks the extension, or None."""
    found = connection.execute("select true from pg_available_extensions where name = %s", (name,)).fetchone()
    return None if found else f"the server lacks the extension {name} ({source})"


def sql_file(name: str) -> bytes:
    """Return the text of ``sql/{name}.sql``."""
    return (_SQL / f"{name}.sql").read_bytes()
