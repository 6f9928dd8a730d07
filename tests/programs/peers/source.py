"""Contenders that keep the sums of a table by word, while clients insert, update and delete its rows.

A rollup keeps the sums with this queue, pg_ivm with a view. The other contenders have triggers as users write them,
which upsert sums, or append rows for a job.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pgcombine.bench.scratch import QUEUE
from pgcombine.database.connect import Connection, one

from .contender import Consumer, Contender, sql_file
from .ivm import Ivm
from .load import differences
from .manual import SequenceWindow, SortedUpsert, Squash
from .queues import Queue

CHANGE = """\
\\if :j % 10 = 3
update bench.source set n = n + 1 where client = :client_id::int + :first::int and number = :j::bigint - 2;
\\elif :j % 10 = 7
delete from bench.source where client = :client_id::int + :first::int and number = :j::bigint - 2;
\\endif
"""
_UPSERT_END = "order by word on conflict (word) do update set n = t.n + excluded.n"


class OfSource(Contender):
    """Keeps the sums of ``bench.source``. ``other`` is a contender that counts words; its consumer is used here."""

    def __init__(self, other: Contender) -> None:
        self.other = other
        self.name, self.summary = other.name, other.summary
        self.tables = ("bench.source", *(table for table in other.tables if table != "bench.event"))
        self.read_query = other.read_query

    def missing(self, connection: Connection) -> str | None:
        return self.other.missing(connection)

    def make(self, connection: Connection) -> None:
        connection.execute(sql_file("source"))
        self.follow(connection)

    def follow(self, connection: Connection) -> None:
        """Make what keeps the sums of ``bench.source``: triggers and tables, a view, or a rollup."""
        raise NotImplementedError

    def write(self, source: str) -> str:
        return (
            "insert into bench.source (client, number, word, n) "
            f"select :client_id::int + :first::int, :j, word, 1 + :j::bigint * 7919 % 1000 {source};\n"
        )

    def one(self, word: str) -> str:
        return (
            "insert into bench.source (client, number, word, n) "  # noqa: S608
            f"values (:client_id::int + :first::int, :j, {word}, 1 + :j::bigint * 7919 % 1000)"
        )

    def change(self) -> str:
        return CHANGE

    def add(self, connection: Connection, word: str) -> None:
        connection.execute("insert into bench.source (client, number, word, n) values (-1, 0, %s, 1)", (word,))

    @contextmanager
    def consumer(self, dsn: str) -> Iterator[Consumer | None]:
        with self.other.consumer(dsn) as process:
            yield process

    def settled(self, connection: Connection) -> bool:
        return self.other.settled(connection)

    def totals(self, connection: Connection) -> dict[str, int]:
        return {word: n for word, n in self.other.totals(connection).items() if n}

    def difference(self, connection: Connection, expected: dict[str, int]) -> str | None:
        """Compare with the sums of ``bench.source``, and ignore ``expected``, in which each word counts 1."""
        found = connection.execute("select word, sum(n) from bench.source group by word").fetchall()
        return differences({str(word): int(n) for word, n in found}, self.totals(connection))


class Triggers(OfSource):
    """Keeps the sums by statement triggers.

    A trigger runs one statement: ``append``, a query of the sums of the changed rows by word, and ``end``.
    """

    def __init__(self, other: Contender, append: str, end: str = "") -> None:
        super().__init__(other)
        self._append, self._end = append, end

    def follow(self, connection: Connection) -> None:
        self.other.make(connection)
        text = sql_file("source_triggers").decode().replace("{append}", self._append).replace("{end}", self._end)
        connection.execute(text.encode())


class View(OfSource):
    """Keeps the sums in a view of pg_ivm."""

    def follow(self, connection: Connection) -> None:
        self.other.make(connection)
        connection.execute(
            "select pgivm.create_immv('bench.sums', 'select word, sum(n) as n from bench.source group by word')"
        )
        self.tables = ("bench.source", "bench.sums")
        self.read_query = "select n from bench.sums where word = %s"

    def totals(self, connection: Connection) -> dict[str, int]:
        return {str(word): int(n) for word, n in connection.execute("select word, n from bench.sums").fetchall()}


class Rollup(OfSource):
    """Keeps the sums by a rollup, which with ``greatest`` has the maxima, too. Readers read the rollup's view."""

    def __init__(self, name: str, summary: str, *, greatest: bool = False) -> None:
        super().__init__(Queue(4))
        self.name, self.summary = name, summary
        self.read_query = f"select n from pgcombine.{QUEUE} where word = %s"  # noqa: S608
        self.only = frozenset({"source"})  # no figure has this name; the figures of a table's sums ignore ``only``
        self._value = ["sum(n) as n", *(["max(n) as most"] if greatest else [])]

    def follow(self, connection: Connection) -> None:
        if len(self._value) > 1:
            connection.execute("create index on bench.source (word, n)")
        connection.execute(
            "select pgcombine.create_rollup(%s, 'bench.source', key => array['word'], value => %s)",
            (QUEUE, self._value),
        )
        connection.execute("call pgcombine.backfill(%s)", (QUEUE,))

    def difference(self, connection: Connection, expected: dict[str, int]) -> str | None:
        problems = one(connection, "select count(*) from pgcombine.verify_rollup(%s)", QUEUE)[0]
        return super().difference(connection, expected) or (f"{problems} problems of the rollup" if problems else None)


OF_SOURCE: tuple[OfSource, ...] = (
    Triggers(SortedUpsert(), "insert into bench.total as t (word, n)", _UPSERT_END),
    Rollup("rollup", "create_rollup with sum; one worker"),
    Rollup(
        "rollup with max",
        "create_rollup with sum and max, which needs an index on (word, n); one worker",
        greatest=True,
    ),
    Triggers(Squash(), "insert into bench.squashed (word, n)"),
    Triggers(SequenceWindow(), "insert into bench.event (word, n)"),
    View(Ivm()),
)
