"""``pgcombine bench handoff``: the cost of several servers, measured on three embedded ones on this machine.

Each figure is a ratio of two values from one run. ``docs/several-servers.md`` explains levels, hints and replay. The
two values are:

- the rate of writes at level ONE, and the rate of plain enqueues of the same updates, one transaction an enqueue;
- for a write of 500 updates, the bytes that a server keeps until all servers have the write, and the bytes of its hint;
- the 99th percentile of a write's time at ONE while a server hangs (SIGSTOP), and while all servers are up;
- the rate at which hints are replayed, and the rate of one COPY of the same updates;
- the 99th percentile of a write's time at ONE during the replay, and while all servers are up.

Raises ConfigError if the embedded server isn't installed, and PgCombineError if not all writes were replayed.
"""

from __future__ import annotations

import multiprocessing
import os
import signal
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

from pgcombine import schema
from pgcombine.database.connect import one
from pgcombine.embedded.processes import left_over
from pgcombine.embedded.server import EmbeddedServer
from pgcombine.errors import PgCombineError
from pgcombine.handoff.replayer import Replayer
from pgcombine.handoff.replicated import ReplicatedQueue
from pgcombine.queue.combine_queue import CombineQueue

QUEUE = CombineQueue("wc", key=["word text"], value=["n bigint sum"])
_ROUNDS = 3
_WRITE = 500  # updates in each replayed write


@dataclass(frozen=True)
class Figure:
    """A measured value, the baseline's value, and their ratio."""

    figure: str
    value: float
    baseline: float
    unit: str

    @property
    def ratio(self) -> float:
        """The value divided by the baseline."""
        return self.value / self.baseline


def measure(*, seconds: float, updates: int, replayed: int) -> Iterator[Figure]:
    """Measure all figures.

    The measurements of writes take ``seconds`` each, except the one during the replay. Their writes have ``updates``
    updates each. For the figures of hints and replay, one server misses ``replayed`` updates, in writes of 500.
    """
    rows = [(f"w{i % 1000}", 1) for i in range(updates)]
    with _servers() as servers:
        dsns = {name: server.dsn() for name, server in servers.items()}
        with (
            ReplicatedQueue(dsns, "wc", level="ONE") as queue,
            psycopg.connect(dsns["a"], autocommit=True) as connection,
        ):
            plain: list[float] = []
            replicated: list[float] = []
            for _ in range(_ROUNDS):
                plain.append(_rate(_times(lambda: QUEUE.enqueue(connection, rows), seconds)))
                replicated.append(_rate(_times(lambda: queue.enqueue(rows), seconds)))
                _empty(dsns)
            pairs = sorted(zip(replicated, plain, strict=True), key=lambda pair: pair[0] / pair[1])
            yield Figure("enqueue at ONE / plain", *pairs[_ROUNDS // 2], "writes/s")
            well = _p99(_times(lambda: queue.enqueue(rows), seconds))
            with _frozen(servers["c"]):
                hanging = _p99(_times(lambda: queue.enqueue(rows), seconds))
            yield Figure("p99 at ONE, one hangs / all up", hanging, well, "ms")
            Replayer(dsns["a"], min_age=0).replay(force=True)
            _empty(dsns)

            page = [(f"w{i % 1000}", 1) for i in range(_WRITE)]
            servers["c"].stop()
            for _ in range(replayed // _WRITE):
                queue.enqueue(page)
            _wait(dsns["a"], "b")
            yield Figure(
                "kept / hint", _bytes(dsns["b"], "handoff_retained"), _bytes(dsns["a"], "handoff_hint"), "bytes/write"
            )
            servers["c"].start()
            meanwhile: list[float] = []
            done = threading.Event()
            caller = threading.Thread(target=lambda: meanwhile.extend(_times(lambda: queue.enqueue(rows), done)))
            caller.start()
            try:
                took = _replayed(dsns["a"], replayed // _WRITE)
            finally:
                done.set()
                caller.join()
            yield Figure("replay / COPY", replayed / took, replayed / _copied(dsns["c"], page, replayed), "updates/s")
            yield Figure("p99 at ONE while hints are replayed / all up", _p99(meanwhile), well, "ms")


def _times(call: Callable[[], Any], until: float | threading.Event) -> list[float]:
    """Repeat ``call`` for ``until`` seconds. Returns the durations of the calls.

    If ``until`` is an event, repeat ``call`` until it is set, but not longer than 600 seconds, with pauses of 5 ms.
    """
    end = time.perf_counter() + (until if isinstance(until, float) else 600)
    taken = []
    while (now := time.perf_counter()) < end and not (isinstance(until, threading.Event) and until.is_set()):
        call()
        taken.append(time.perf_counter() - now)
        if isinstance(until, threading.Event):
            time.sleep(0.005)  # leaves processor time to the replay
    return taken


def _rate(taken: list[float]) -> float:
    return len(taken) / sum(taken)


def _p99(taken: list[float]) -> float:
    return 1000 * statistics.quantiles(taken, n=100)[98]


def _replay(dsn: str, told: Any) -> None:
    began = time.perf_counter()
    done = Replayer(dsn, ["c"], min_age=0, timeout=60).replay(force=True)
    told.put((time.perf_counter() - began, done.delivered))


def _replayed(dsn: str, writes: int) -> float:
    """Run a replayer in a separate process. Returns the duration of the replay in seconds."""
    context = multiprocessing.get_context("spawn")
    told = context.SimpleQueue()
    process = context.Process(target=_replay, args=(dsn, told))
    process.start()
    seconds, delivered = told.get()
    process.join()
    if delivered < writes:
        raise PgCombineError(f"{delivered} of {writes} writes were replayed")
    return float(seconds)


def _copied(dsn: str, page: list[tuple[str, int]], updates: int) -> float:
    """Return how many seconds one COPY of ``updates`` updates into the queue takes."""
    block = "".join(f"{word}\t{n}\n" for word, n in page).encode()
    with psycopg.connect(dsn, autocommit=True) as connection, connection.cursor() as cursor:
        began = time.perf_counter()
        with cursor.copy("copy pgcombine.wc_updates (word, n) from stdin") as copy:
            for _ in range(updates // len(page)):
                copy.write(block)
        return time.perf_counter() - began


def _bytes(dsn: str, table: str) -> float:
    """Return the average size in bytes of a table's rows, including its indexes and the space of dead rows."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        relation = sql.Identifier("pgcombine", table)
        query = sql.SQL("select pg_total_relation_size({})::float / count(*) from {}")
        (average,) = one(connection, query.format(relation.as_string(), relation))
    return float(average)


def _wait(coordinator: str, destination: str) -> None:
    with psycopg.connect(coordinator, autocommit=True) as connection:
        while connection.execute("select from pgcombine.hint where destination = %s", (destination,)).fetchone():
            time.sleep(0.05)


def _empty(dsns: dict[str, str]) -> None:
    """Combine all pending updates on each server."""
    for dsn in dsns.values():
        with psycopg.connect(dsn, autocommit=True) as connection:
            while connection.execute("select from pgcombine.combine('wc')").fetchone():
                pass


@contextmanager
def _servers() -> Iterator[dict[str, EmbeddedServer]]:
    """Start three servers in a temporary directory, with the queue on each."""
    with tempfile.TemporaryDirectory(prefix="pgcombine-bench-") as directory:
        servers = {name: EmbeddedServer(Path(directory, name)) for name in "abc"}
        passwords = Path(directory, "pgpass")
        before = os.environ.get("PGPASSFILE")
        try:
            for server in servers.values():
                parts = urlsplit(server.start())
                schema.upgrade(server.dsn())
                with psycopg.connect(server.dsn(), autocommit=True) as connection:
                    QUEUE.create(connection)
                with passwords.open("a", encoding="utf-8") as file:
                    file.write(f"{parts.hostname}:{parts.port}:*:{parts.username}:{parts.password}\n")
            passwords.chmod(0o600)
            os.environ["PGPASSFILE"] = str(passwords)
            yield servers
        finally:
            if before is None:
                os.environ.pop("PGPASSFILE", None)
            else:
                os.environ["PGPASSFILE"] = before
            for server in servers.values():
                server.stop("immediate")


@contextmanager
def _frozen(server: EmbeddedServer) -> Iterator[None]:
    """Halt the server's processes by SIGSTOP during the block."""
    processes = list(left_over(server.home / "postgres" / "data"))
    for process in processes:
        os.kill(process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        for process in processes:
            os.kill(process.pid, signal.SIGCONT)
