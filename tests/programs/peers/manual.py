"""Contenders in plain SQL, as users write them: upserts, slots, squashed rows, a trigger, a window over a sequence.

Their tables are made by files in ``sql/`` beside this module, or by the product's ``sql/queries/bench_tables.sql``.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from pgcombine.bench.figures import upsert
from pgcombine.database.connect import Connection, one

from .contender import Consumer, Contender, repeated, sql_file

SLOTS = 16  # rows for each key in the slotted counter


class Total(Contender):
    """A contender whose totals are rows of ``bench.total``."""

    tables: tuple[str, ...] = ("bench.total",)
    totals_query = "select word, n from bench.total"
    read_query = "select n from bench.total where word = %s"

    def make(self, connection: Connection) -> None:
        pass  # ``bench_tables`` has made the table


class SortedUpsert(Total):
    """The baseline: an upsert of the keys in sorted order."""

    name = "sorted upsert"
    summary = "insert … on conflict do update, keys in order; the baseline"

    def write(self, source: str) -> str:
        return upsert(source, "word")

    def one(self, word: str) -> str:
        return (
            f"insert into bench.total as t (word, n) values ({word}, 1) "  # noqa: S608
            "on conflict (word) do update set n = t.n + 1"
        )


class RandomUpsert(SortedUpsert):
    """An upsert of the keys in random order, so that transactions can deadlock."""

    name = "unsorted upsert"
    summary = "insert … on conflict do update, keys in no order: deadlocks"
    only = frozenset({"end-to-end-10", "end-to-end-100"})

    def write(self, source: str) -> str:
        return upsert(source, "random()")


class Slots(Contender):
    """Each key's counter is divided over several rows."""

    name = f"slotted counter, {SLOTS} slots"
    summary = f"upsert of one of {SLOTS} rows a key at random; a reader adds them up"
    tables = ("bench.slot",)
    totals_query = "select word, sum(n) from bench.slot group by word"
    read_query = "select sum(n) from bench.slot where word = %s"

    def make(self, connection: Connection) -> None:
        connection.execute(
            "create table bench.slot (word text, slot integer, n bigint not null, primary key (word, slot)) "
            "with (fillfactor = 85)"
        )

    def write(self, source: str) -> str:
        return (
            f"\\set s random(0, {SLOTS - 1})\n"  # the same slot for all keys of the transaction
            f"insert into bench.slot as t (word, slot, n) select word, :s::int, count(*) {source} group by word "
            "order by word on conflict (word, slot) do update set n = t.n + excluded.n;\n"
        )

    def one(self, word: str) -> str:
        return (
            f"insert into bench.slot as t (word, slot, n) values ({word}, floor(random() * {SLOTS}), 1) "  # noqa: S608
            "on conflict (word, slot) do update set n = t.n + 1"
        )


class Squash(Contender):
    """A job replaces rows by their sums. Readers add up all rows of a key, so values are always current."""

    name = "insert and squash"
    summary = "rows with an index on the key; a job replaces the rows of a key by their sum; a reader adds them up"
    tables = ("bench.squashed",)
    totals_query = "select word, sum(n) from bench.squashed group by word"
    read_query = "select sum(n) from bench.squashed where word = %s"

    def make(self, connection: Connection) -> None:
        connection.execute(sql_file("squash"))

    def write(self, source: str) -> str:
        return f"insert into bench.squashed (word, n) select word, 1 {source};\n"

    def one(self, word: str) -> str:
        return f"insert into bench.squashed (word, n) values ({word}, 1)"  # noqa: S608

    @contextmanager
    def consumer(self, dsn: str) -> Iterator[Consumer]:
        with repeated(dsn, "select bench.squash()", vacuum="bench.squashed") as process:
            yield process

    def settled(self, connection: Connection) -> bool:
        return not one(connection, "select exists (select from bench.squashed where not is_sum)")[0]


class StatementTrigger(Total):
    """A table of events, and a statement trigger that upserts the totals."""

    name = "statement trigger"
    summary = "rows are inserted into a table, whose statement trigger upserts their sums, keys in order"
    tables = ("bench.event", "bench.total")

    def make(self, connection: Connection) -> None:
        connection.execute(sql_file("trigger"))

    def write(self, source: str) -> str:
        return f"insert into bench.event (word, n) select word, 1 {source};\n"

    def one(self, word: str) -> str:
        return f"insert into bench.event (word, n) values ({word}, 1)"  # noqa: S608


class SequenceWindow(StatementTrigger):
    """Rows have a sequence number and are kept. The consumer adds up the rows since its last transaction."""

    name = "sequence window"
    summary = (
        "rows have numbers of a sequence; a transaction waits for open writers by a lock, and upserts the sums of the "
        "rows since the last one"
    )

    def make(self, connection: Connection) -> None:
        connection.execute(sql_file("window"))

    @contextmanager
    def consumer(self, dsn: str) -> Iterator[Consumer]:
        with repeated(dsn, "select bench.roll_up()", pause=0.05) as process:
            yield process

    def settled(self, connection: Connection) -> bool:
        return bool(
            one(connection, "select last_id >= coalesce(pg_sequence_last_value(sequence), 0) from bench.rolled_up")[0]
        )


BASELINE = SortedUpsert.name
MANUAL: tuple[Contender, ...] = (
    SortedUpsert(),
    Slots(),
    Squash(),
    StatementTrigger(),
    SequenceWindow(),
    RandomUpsert(),
)
