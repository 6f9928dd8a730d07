"""The figure of export: the rate at which one worker delivers waiting entries into a table of another database.

A wrong count or sum in the table raises PgCombineError.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from pgcombine.bench.scratch import QUEUE, Scratch, throwaway_database
from pgcombine.bench.settings import Result, Settings, result
from pgcombine.database.connect import Connection, connect
from pgcombine.errors import PgCombineError
from pgcombine.export.postgres import Statements, statements
from pgcombine.export.queue import ExportQueue
from pgcombine.export.worker import ExportWorker

_EXPORT = "delivered"
_LOOPS = 2  # one loop reads while the other waits for the destination
_READY = "select count(*) from pgcombine.delivered_exports"
_ROWS = "copy (select word, new_n, seq, false from pgcombine.delivered_exports) to stdout"
_TABLE = "create table bare (word text, n bigint, seq bigint, deleted boolean)"
_INTO = {"bare": "copy bare from stdin", "keyed": "copy delivered from stdin"}


def export(scratch: Scratch, settings: Settings) -> Iterator[Result]:
    """Measure a worker that delivers one entry for each key.

    The baselines COPY the same rows into a table without an index, and into a table like the export's.
    """
    rates: dict[str, list[float]] = {"export": [], "bare": [], "keyed": []}
    with throwaway_database(scratch.dsn) as target:
        for _ in range(settings.rounds):
            scratch.fresh()
            there = ExportQueue(_EXPORT, queue=QUEUE, exporter="postgres", target="dbname=given")
            there.create(scratch.connection)
            try:
                for kind, rate in _round(scratch, settings, target):
                    rates[kind].append(rate)
            finally:
                there.drop(scratch.connection, force=True)
    yield result(
        "export to PostgreSQL, two loops", "entries/s", rates["export"], "COPY into a bare table", rates["bare"]
    )
    yield result(
        "export to PostgreSQL, two loops", "entries/s", rates["export"], "COPY into the same table", rates["keyed"]
    )


def _round(scratch: Scratch, settings: Settings, target: str) -> Iterator[tuple[str, float]]:
    source = scratch.connection
    source.execute(
        "insert into pgcombine.bench_updates (word, n) select 'word' || i, i from generate_series(1, %s) i",
        (settings.keys,),
    )
    while source.execute("select updates from pgcombine.combine(%s)", (QUEUE,)).fetchone() is not None:
        pass
    source.execute("vacuum analyze pgcombine.delivered_exports")
    count = scratch.one(_READY)
    statements_ = statements(source, _EXPORT)
    with closing(connect(target)) as there:
        with source.cursor().copy(_ROWS) as copy:
            rows = b"".join(bytes(chunk) for chunk in copy)
        for kind, into in _INTO.items():
            _empty(there, statements_)
            started = time.perf_counter()
            with there.cursor().copy(into) as copy:
                copy.write(rows)
            yield kind, count / (time.perf_counter() - started)
        _empty(there, statements_)
        worker = ExportWorker(scratch.dsn, _EXPORT, target=target, concurrency=_LOOPS, poll=0.01)
        started = time.perf_counter()
        delivered = _run(worker, count)
        yield "export", count / (time.perf_counter() - started)
        found = there.execute("select count(*), sum(n)::bigint from delivered").fetchone()
    if delivered != count or found != (settings.keys, settings.keys * (settings.keys + 1) // 2):
        raise PgCombineError(f"the benchmark exported {delivered:,} of {count:,} entries, the table holds {found}")


def _run(worker: ExportWorker, count: int) -> int:
    """Let the worker deliver ``count`` entries. Returns the number that it delivered."""
    stop = threading.Event()
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(worker.run, stop)
        while worker.delivered < count and not running.done():
            time.sleep(0.005)
        stop.set()
        return running.result()


def _empty(there: Connection, wanted: Statements) -> None:
    there.execute("drop table if exists delivered, bare")
    there.execute(wanted.create_table.encode())
    there.execute(_TABLE)
    there.execute("checkpoint")
