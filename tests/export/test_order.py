"""Random work beside an export: each key's entries come in order and lead to its value."""

from __future__ import annotations

import json
import random
from contextlib import closing
from typing import Any

import psycopg
import pytest
from psycopg import sql
from support.exports import make_export, waiting
from support.queues import combine_all, make_queue, one

from pgcombine import Entry
from pgcombine.database.connect import connect
from pgcombine.errors import DeliveryRejectedError
from pgcombine.export.delivery import Delivery, Nothing
from pgcombine.export.functions import CustomExporter

KEYS = [("a", 0), ("a", 1), ("b", 0), ("c", 1), *((f"w{n}", n % 3) for n in range(2))]


class Receiver:
    """Notes what breaks the order of a key's entries. Raises DeliveryRejectedError for keys in ``refused``."""

    def __init__(self) -> None:
        self.refused: set[Any] = set()
        self.values: dict[Any, int | None] = {}
        self.numbers: dict[Any, int] = {}
        self.seen: set[int] = set()
        self.wrong: list[str] = []

    def __call__(self, entries: list[Entry]) -> None:
        if bad := self.refused & {entry.key for entry in entries}:
            raise DeliveryRejectedError(f"no {bad}")
        for entry in entries:
            before, number = self.values.get(entry.key), self.numbers.get(entry.key, 0)
            if entry.seq <= number or entry.seq in self.seen:
                self.wrong.append(f"{entry} after {number}")
            if entry.old is not None and entry.old != before:
                self.wrong.append(f"{entry} after the value {before}")
            self.seen.add(entry.seq)
            self.values[entry.key], self.numbers[entry.key] = entry.new, entry.seq


class Work:
    """Random work on the queue ``wc``, whose columns have the names of aliases in pgcombine's statements."""

    def __init__(self, conn: psycopg.Connection, delivery: Delivery, receiver: Receiver, seed: int) -> None:
        self.conn, self.delivery, self.receiver, self.chance = conn, delivery, receiver, random.Random(seed)

    def change(self) -> None:
        for word, part in self.chance.sample(KEYS, 4):
            self._add(word, part, self.chance.choice([1, 1, 2, -1]))
        for row in self.conn.execute("select n, entry, -k from pgcombine.wc_values order by 1, 2").fetchall():
            if self.chance.random() < 0.2:
                self._add(*row)
        combine_all(self.conn)

    def _add(self, word: str, part: int, k: int) -> None:
        self.conn.execute("insert into pgcombine.wc_updates (n, entry, k) values (%s, %s, %s)", (word, part, k))

    def deliver(self) -> None:
        for _ in range(self.chance.randrange(4)):
            self.delivery.once()

    def refuse(self) -> None:
        self.receiver.refused = set(self.chance.sample(KEYS, self.chance.randrange(2)))

    def retry(self) -> None:
        found = "select (array_agg(seq order by random()))[1] from pgcombine.export_entry where error is not null"
        if (seq := one(self.conn, found)) is not None:
            self.conn.execute("select pgcombine_internal.export_release('search', %s, true)", (seq,))

    def rebucket(self) -> None:
        self.conn.execute("select pgcombine.rebucket('wc', %s)", (self.chance.choice([1, 2, 3, 6]),))

    def resync(self) -> None:
        self.conn.execute("select pgcombine_internal.export_resync('search')")

    def resync_keys(self) -> None:
        keys = json.dumps([{"n": word, "entry": part} for word, part in self.chance.sample(KEYS, 2)])
        self.conn.execute("select pgcombine_internal.export_resync('search', %s)", (keys,))

    def exhaust(self) -> None:
        self.conn.execute("update pgcombine.export_bucket set full_end = full_seq + 7 where full_after is not null")

    def restore(self) -> None:
        self.conn.execute("select pgcombine_internal.renumber_changes('wc')")

    def feed(self) -> None:
        there = one(self.conn, "select count(*) from pgcombine.change_log where feed is not null")
        self.conn.execute("select pgcombine.drop_feed('f')" if there else "select pgcombine.create_feed('f', 'wc')")

    def own(self) -> None:
        if self.chance.random() < 0.5:
            self.conn.execute("select pgcombine_internal.disown_export('search', 'b', epoch + 1) from pgcombine.export")
            self.rebucket()
            self.change()
        self.conn.execute("select pgcombine_internal.own_export('search', 'a')")

    def step(self) -> None:
        often = [self.change, self.deliver] * 6 + [self.refuse, self.retry] * 2
        seldom = [self.rebucket, self.resync, self.resync_keys, self.exhaust, self.restore, self.feed, self.own]
        self.chance.choice(often + seldom)()


@pytest.mark.parametrize("compact", [True, False])
@pytest.mark.parametrize("seed", range(2))
def test_each_keys_entries_come_in_order(conn: psycopg.Connection, dsn: str, seed: int, compact: bool) -> None:
    make_queue(conn, key=["n text", "entry int"], value=["k bigint sum"], delete_when="k = 0", buckets=2)
    make_export(conn, compact=compact)
    receiver = Receiver()
    with closing(connect(dsn)) as claims, closing(connect(dsn)) as control:
        delivery = Delivery(claims, control, "search", CustomExporter(receiver, None, "search"), 3)
        work = Work(conn, delivery, receiver, seed)
        for _ in range(150):
            work.step()
            assert receiver.wrong == []
        receiver.refused = set()
        while waiting(conn) or one(conn, "select quarantined from pgcombine.export_stat"):
            conn.execute("select pgcombine_internal.export_release('search', null, true)")
            assert not isinstance(delivery.once(), Nothing) or waiting(conn)
    assert receiver.wrong == []
    found = conn.execute(sql.SQL("select n, entry, k from pgcombine.wc_values")).fetchall()
    surplus = one(conn, "select sweep from pgcombine.export")  # the destination may have keys from before an epoch
    values = {key: value for key, value in receiver.values.items() if value is not None}
    expected = {(word, part): value for word, part, value in found}
    assert {key: value for key, value in values.items() if key in expected or not surplus} == expected
    assert conn.execute("select * from pgcombine.verify('wc')").fetchall() == []
