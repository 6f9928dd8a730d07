"""Measurements during a soak run, each in a separate loop.

About every five seconds, ``sample`` records memory, table sizes, backlogs, lags and the like. About every second,
``poll`` reads the views, and ``browse`` requests a web page. ``probe`` measures how long it takes until a committed
update is visible in its value.
"""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count, cycle
from pathlib import Path
from typing import Any

import httpx2
import psycopg
from psycopg import sql

from . import load
from .installation import Installation, connected

PROBE_GAP = 0.5  # seconds
_TIMEOUT = 60.0  # seconds that a probe waits for its value; also the timeout of a request
_SAMPLE_SECONDS = 5.0
_STAT = (Path(__file__).parents[3] / "sql").rglob("*_stat.sql")
VIEWS = ["destination", "oldest_snapshot", "pass_recent", "table_size", "worker", *sorted(path.stem for path in _STAT)]
PAGES = ("/", "/queues/plain", "/exports", "/servers")
_FIGURES = {
    "pending": "select sum(pending) from pgcombine.queue_stat",
    "lag": "select max(lag_seconds) from pgcombine.queue_stat",
    "entries": "select sum(pending) from pgcombine.export_stat",
    "export lag": "select max(lag_seconds) from pgcombine.export_stat",
    "hints": "select coalesce(sum(writes), 0) from pgcombine.hint_stat",
    "snapshot": "select coalesce(max(age_seconds), 0) from pgcombine.oldest_snapshot",
    "segments": "select sum(waiting) from pgcombine.segment_stat",
}
_SIZES = """
    select case when queue is null then 'pgcombine''s own' else "table" end, sum(bytes + index_bytes) / 1e6
    from pgcombine.table_size group by 1
"""


@dataclass
class Watch:
    """The measurements so far, in order of time.

    ``fresh`` has a pair for each probe whose value became visible: the seconds from the start of the run to the probe's
    commit, and from the commit to the visible value. ``polls`` and ``pages`` have the seconds of the successful reads.
    """

    installation: Installation
    began: float = field(default_factory=time.monotonic)
    samples: list[dict[str, Any]] = field(default_factory=list)
    fresh: list[tuple[float, float]] = field(default_factory=list)
    polls: list[float] = field(default_factory=list)
    pages: list[float] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)

    def sample(self, over: threading.Event) -> None:
        while not over.is_set():
            found: dict[str, Any] = {"at": time.monotonic() - self.began, "memory": self.installation.memory()}
            self._with_server(over, lambda connection, found=found: self._read(connection, found))
            self.samples.append(found)
            over.wait(_SAMPLE_SECONDS)

    @staticmethod
    def _read(connection: psycopg.Connection, found: dict[str, Any]) -> None:
        for name, query in _FIGURES.items():
            (found[name],) = connection.execute(query.encode()).fetchone() or (None,)
        found["sizes"] = {name: float(size) for name, size in connection.execute(_SIZES.encode())}

    def poll(self, over: threading.Event) -> None:
        while not over.wait(1.0):
            self._with_server(over, self._poll)

    def _poll(self, connection: psycopg.Connection) -> None:
        began = time.monotonic()
        for view in VIEWS:
            connection.execute(sql.SQL("select * from {}").format(sql.Identifier("pgcombine", view))).fetchall()
        self.polls.append(time.monotonic() - began)

    def browse(self, over: threading.Event) -> None:
        """Request a page each second, the pages of ``PAGES`` in turn."""
        with httpx2.Client(base_url=self.installation.page, trust_env=False, timeout=_TIMEOUT) as reader:
            for path in cycle(PAGES):
                if over.wait(1.0):
                    return
                began = time.monotonic()
                try:
                    reader.get(path).raise_for_status()
                except httpx2.HTTPError as error:
                    self.failures[f"page: {type(error).__name__}"] += 1
                else:
                    self.pages.append(time.monotonic() - began)

    def probe(self, over: threading.Event) -> None:
        """Write new keys, and measure how long it takes until their values are visible."""
        numbers = count(1)
        while not over.is_set():
            self._with_server(over, lambda connection: self._probe(connection, next(numbers), over))
            over.wait(PROBE_GAP)

    def _probe(self, connection: psycopg.Connection, number: int, over: threading.Event) -> None:
        load.write(connection, -number)
        committed = time.monotonic()
        while not connection.execute(
            "select n from pgcombine.plain_values where word = %s", load.words(-number)
        ).fetchone():
            if time.monotonic() > committed + _TIMEOUT:
                self.failures["a probe's value that took more than a minute"] += 1
                return
            if over.wait(0.005):
                return
        self.fresh.append((committed - self.began, time.monotonic() - committed))

    def _with_server(self, over: threading.Event, look: Callable[[psycopg.Connection], None]) -> None:
        try:
            with connected(self.installation.servers["a"], over) as connection:
                look(connection)
        except psycopg.Error as error:
            self.failures[type(error).__name__] += 1
