"""Deliveries to a store that checks sequences, modelled on tests of Apache Fluo Recipes."""

from __future__ import annotations

import random
import threading

import psycopg
from support.exports import make_exported, waiting
from support.queues import combine_all
from support.servers import embedded_only
from support.sessions import in_background, workers
from support.wait import eventually

from pgcombine import Entry, ExportWorker

pytestmark = embedded_only


class Guarded:
    """A store of each key's newest value. ``back`` gets the entries whose sequence isn't higher than the stored one."""

    def __init__(self) -> None:
        self.values: dict[str, tuple[int, int | None]] = {}
        self.back: list[Entry] = []
        self.lock = threading.Lock()

    def __call__(self, entries: list[Entry]) -> None:
        with self.lock:
            for entry in entries:
                if self.values.get(entry.key, (-1, None))[0] >= entry.seq:
                    self.back.append(entry)
                else:
                    self.values[entry.key] = (entry.seq, entry.new)

    def live(self) -> dict[str, int]:
        return {key: new for key, (_, new) in self.values.items() if new is not None}


def pages(conn: psycopg.Connection, links: dict[str, set[str]], page: str, to: set[str]) -> None:
    """Set the links of a page, and enqueue the gained and lost backlinks."""
    before = links.get(page, set())
    rows = [(f"{target}<{page}", 1) for target in to - before] + [(f"{target}<{page}", -1) for target in before - to]
    conn.cursor().executemany("insert into pgcombine.wc_updates (word, n) values (%s, %s)", rows)
    links[page] = to


def test_backlinks_follow_the_pages(conn: psycopg.Connection, dsn: str) -> None:
    """The store's live keys are the links of the pages, as ``target<page``."""
    make_exported(conn)
    store = Guarded()
    links: dict[str, set[str]] = {}
    for step in (
        {"a": {"b", "c"}, "b": {"c"}},
        {"a": {"c"}, "d": {"a"}},
        {"b": set(), "d": {"a", "b"}},
        {"a": {"b", "c"}},
    ):
        for page, to in step.items():
            pages(conn, links, page, to)
        combine_all(conn)
        ExportWorker(dsn, "search", store).drain()
        expected = {f"{target}<{page}": 1 for page, targets in links.items() for target in targets}
        assert store.live() == expected
    assert store.back == []


def test_sequence_guard_sees_no_old_value(conn: psycopg.Connection, dsn: str) -> None:
    """Four loads of 1000 updates to at most 300 keys run beside passes and deliveries. No key's sequence goes back."""
    make_exported(conn, batch=50)
    store = Guarded()
    stop = threading.Event()
    exporter = ExportWorker(dsn, "search", store, concurrency=3, poll=0.01)

    def load(seed: int) -> None:
        source = random.Random(seed)
        with psycopg.connect(dsn, autocommit=True) as own:
            for _ in range(20):
                words = [f"d{source.randrange(300)}" for _ in range(50)]
                own.execute("insert into pgcombine.wc_updates (word, n) select unnest(%s::text[]), 1", (words,))

    with in_background(lambda: exporter.run(stop)):
        with workers(dsn, "wc", count=2), in_background(*(lambda seed=seed: load(seed) for seed in range(4))):
            pass
        combine_all(conn)
        eventually(lambda: waiting(conn) == 0, timeout=60)
        stop.set()
    assert sum(store.live().values()) == 4 * 1000
    assert store.live() == dict(conn.execute("select word, n from pgcombine.wc_values").fetchall())
    assert store.back == []
