"""Figures of freshness: the time from the commit of an update to the commit of its value, as a client measures it.

A probe enqueues one update for a new key in a separate transaction. An observer of the pass sends a notification with
the key. The client gets the notification after the pass has committed. Freshness is the time from the probe's commit
until the client gets the notification.
"""

from __future__ import annotations

import random
import statistics
import subprocess
import time
from collections.abc import Iterator

from pgcombine.bench import pgbench, scripts
from pgcombine.bench.processor import ServerTime
from pgcombine.bench.scratch import QUEUE, Scratch
from pgcombine.bench.settings import Result, Settings, result
from pgcombine.database.connect import Connection, connect
from pgcombine.errors import PgCombineError

_GAP = 0.02  # seconds between probes, on average
_UPDATES = 20  # updates in each transaction of the load
_OFFERED = 800.0  # the highest load that held_snapshot offers, in transactions per second


def freshness(scratch: Scratch, settings: Settings) -> Iterator[Result]:
    """Measure freshness on an idle queue, and under a load of half the peak."""
    idle, busy = [], []
    for _ in range(settings.rounds):
        scratch.fresh()
        _observe(scratch)
        with scratch.worker():
            idle.append(_probe(scratch, settings.seconds))
            peak = _peak(scratch, settings)
            load = _start(scratch, settings, peak / 2, settings.seconds + 2)
            time.sleep(1)  # until the load is steady
            busy.append(_probe(scratch, settings.seconds))
            pgbench.finish(load)
    yield from _percentiles("freshness, idle", idle)
    yield from _percentiles("freshness at half of peak load", busy)


def held_snapshot(scratch: Scratch, settings: Settings) -> Iterator[Result]:
    """Measure throughput, freshness and processor time while a session holds a snapshot, and without that.

    Also counts, in each round, the dead rows at the end of the load with a snapshot. The processor time is left out if
    the server's processes can't be read.
    """
    seconds = settings.hold_seconds
    rates: dict[bool, list[float]] = {False: [], True: []}
    delays: dict[bool, list[list[float]]] = {False: [], True: []}
    times: dict[bool, list[float]] = {False: [], True: []}
    for _ in range(settings.rounds):
        scratch.fresh()
        _observe(scratch)
        with scratch.worker(), connect(scratch.dsn, name="pgcombine bench") as observer:
            offered = min(_peak(scratch, settings) / 4, _OFFERED)
            for held in (False, True):
                holder = _hold(scratch) if held else None
                with ServerTime(observer) as server:
                    load = _start(scratch, settings, offered, seconds)
                    time.sleep(max(1.0, seconds - settings.seconds - 2))
                    delays[held].append(_probe(scratch, settings.seconds))
                done = pgbench.finish(load)
                rates[held].append(done.rate)
                times[held].append(1e6 * server.seconds / (_UPDATES * done.transactions))
                dead = _dead_rows(scratch)
                if holder is not None:
                    holder.close()
        for table, count in dead:
            yield result(f"dead rows of {table} after {seconds:.0f} s with a snapshot held", "rows", [float(count)])
    yield result(f"throughput with a snapshot held {seconds:.0f} s", "tx/s", rates[True], "without", rates[False])
    if min(times[False]) > 0:
        name = f"server's processor time with a snapshot held {seconds:.0f} s"
        yield result(name, "µs/update", times[True], "without", times[False])
    for percent in (50, 99):
        with_it = [_percentile(one, percent) for one in delays[True]]
        without = [_percentile(one, percent) for one in delays[False]]
        yield result(f"freshness p{percent} with a snapshot held {seconds:.0f} s", "ms", with_it, "without", without)


def _observe(scratch: Scratch) -> None:
    scratch.connection.execute(
        "select pgcombine.add_observer(%s, 'seen', "
        "$$select pg_notify('bench_seen', word) from changes where word like 'probe%%'$$)",
        (QUEUE,),
    )


def _probe(scratch: Scratch, seconds: float) -> list[float]:
    """Send probes for about ``seconds``, at least two probes. Returns the freshness of each in milliseconds."""
    delays: list[float] = []
    deadline = time.monotonic() + seconds
    with connect(scratch.dsn, name="pgcombine probe") as writer, connect(scratch.dsn) as listener:
        listener.execute("listen bench_seen")
        while len(delays) < 2 or time.monotonic() < deadline:
            time.sleep(random.uniform(0, 2 * _GAP))
            key = f"probe{random.getrandbits(60)}"
            writer.execute("insert into pgcombine.bench_updates (word, n) values (%s, 1)", (key,))
            committed = time.monotonic()
            for notification in listener.notifies(timeout=60):
                if notification.payload == key:
                    break
            else:
                raise PgCombineError(f"the value of {key} was not committed within 60 s")
            delays.append(1000 * (time.monotonic() - committed))
    return delays


def _peak(scratch: Scratch, settings: Settings) -> float:
    """Return the transactions per second under full load. The measured time ends when all updates are combined."""
    before = scratch.one("select coalesce(sum(n), 0) from pgcombine.bench_values")
    started = time.monotonic()
    pgbench.finish(_start(scratch, settings, None, settings.seconds))
    scratch.wait_idle()
    after = scratch.one("select coalesce(sum(n), 0) from pgcombine.bench_values")
    return (after - before) / _UPDATES / (time.monotonic() - started)


def _start(scratch: Scratch, settings: Settings, rate: float | None, seconds: float) -> subprocess.Popen[str]:
    return pgbench.start(
        scratch.dsn,
        scripts.ENQUEUE,
        clients=settings.clients,
        seconds=seconds,
        variables={"k": _UPDATES},
        rate=rate,
    )


def _hold(scratch: Scratch) -> Connection:
    holder = connect(scratch.dsn, name="pgcombine holder")
    holder.execute("begin isolation level repeatable read")
    holder.execute("select count(*) from bench.zipf")
    return holder


def _dead_rows(scratch: Scratch) -> list[tuple[str, int]]:
    found = scratch.connection.execute(
        "select case when relname like 'bench\\_updates%' then 'updates' "
        "            when relname like 'bench\\_values%' then 'values' else relname end as kind, "
        "       sum(n_dead_tup)::bigint "
        "from pg_stat_user_tables where schemaname = 'pgcombine' group by kind having sum(n_dead_tup) > 0 order by 1"
    )
    return [(str(name), int(count)) for name, count in found.fetchall()]


def _percentile(delays: list[float], percent: int) -> float:
    return statistics.quantiles(delays, n=100)[percent - 1]


def _percentiles(name: str, rounds: list[list[float]]) -> Iterator[Result]:
    for percent in (50, 99):
        yield result(f"{name}, p{percent}", "ms", [_percentile(one, percent) for one in rounds])
