"""Figures of throughput: enqueues and passes, compared with upserts, COPY, and GROUP BY + MERGE."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

from pgcombine.bench import pgbench, scripts
from pgcombine.bench.scratch import QUEUE, Scratch
from pgcombine.bench.settings import Result, Settings, result
from pgcombine.worker.passes import open_connection, run_pass

UPDATES = (1, 10, 100)  # updates in a transaction
_COPY_BUCKETS = 16
# numbers of buckets, by the suffix of the figure's name; None is the number in the settings
_BULK_BUCKETS = {"": None, ", 1 bucket": 1}


def copy_and_combine(scratch: Scratch, settings: Settings) -> Iterator[Result]:
    """Measure COPY into the queue, and then the passes of one session.

    The baselines are COPY into a bare table and GROUP BY + MERGE.
    """
    rows = scratch.rows(settings.rows)
    times: dict[str, list[float]] = {}

    def took(what: str, seconds: float) -> None:
        times.setdefault(what, []).append(seconds)

    for _ in range(settings.rounds):
        scratch.fresh(_COPY_BUCKETS)
        took("copy 16", _copy(scratch, "pgcombine.bench_updates", rows))
        for name, buckets in _BULK_BUCKETS.items():
            scratch.fresh(buckets)
            took(f"bare copy{name}", _copy(scratch, "bench.bare", rows))
            took(f"copy{name}", _copy(scratch, "pgcombine.bench_updates", rows))
            took(f"merge{name}", _timed_execute(scratch, scripts.MERGE_BARE))
            took(f"combine{name}", _combine(scratch))
            scratch.check(settings.rows)

    def rates(*what: str) -> list[float]:
        return [settings.rows / sum(one) for one in zip(*(times[name] for name in what), strict=True)]

    yield result(
        *(f"COPY, {_COPY_BUCKETS} buckets", "updates/s", rates("copy 16")),
        *("COPY into a bare table", rates("bare copy")),
    )
    for name in _BULK_BUCKETS:
        combine, merge = rates(f"combine{name}"), rates(f"merge{name}")
        yield result(f"combine, one worker{name}", "updates/s", combine, "GROUP BY + MERGE", merge)
        both, bare = rates(f"copy{name}", f"combine{name}"), rates(f"bare copy{name}", f"merge{name}")
        yield result(f"bulk: COPY and combine{name}", "updates/s", both, "bare COPY and GROUP BY + MERGE", bare)


def many_keys(scratch: Scratch, settings: Settings) -> Iterator[Result]:
    """Measure one session's passes over many updates with different keys: first new keys, then the same keys again.

    The baseline is GROUP BY + MERGE.
    """
    rows = scratch.different_rows(settings.rows)
    rate: dict[str, list[float]] = {}
    for _ in range(settings.rounds):
        scratch.fresh()
        for number, what in enumerate(("new", "existing"), start=1):
            scratch.connection.execute("truncate bench.bare")
            _copy(scratch, "bench.bare", rows)
            _copy(scratch, "pgcombine.bench_updates", rows)
            scratch.connection.execute("checkpoint")
            seconds = {"merge": _timed_execute(scratch, scripts.MERGE_BARE)}
            scratch.connection.execute("checkpoint")
            seconds["combine"] = _combine(scratch)
            scratch.check(number * settings.rows)
            for name, one in seconds.items():
                rate.setdefault(f"{name} {what}", []).append(settings.rows / one)
            scratch.connection.execute("vacuum analyze bench.total, pgcombine.bench_values")
    for what in ("new", "existing"):
        yield result(
            f"combine, each key once, {what}",
            "updates/s",
            rate[f"combine {what}"],
            "GROUP BY + MERGE",
            rate[f"merge {what}"],
        )


def enqueue(scratch: Scratch, settings: Settings) -> Iterator[Result]:
    """Measure enqueues while no worker combines. The baseline is upserts in sorted key order."""
    for updates in UPDATES:
        upsert: list[float] = []
        queue: list[float] = []
        for _ in range(settings.rounds):
            scratch.fresh()
            upsert.append(_load(scratch, scripts.SORTED_UPSERT, settings, updates).rate)
            scratch.fresh()
            queue.append(_load(scratch, scripts.ENQUEUE, settings, updates).rate)
        yield result(f"enqueue only, {updates} a transaction", "tx/s", queue, "sorted upsert", upsert)


def hot_key(scratch: Scratch, settings: Settings) -> Iterator[Result]:
    """Measure 32 clients whose transactions all change one key, and then do 5 ms of other work."""
    many = replace(settings, clients=32)
    queue, upsert = [], []
    for _ in range(settings.rounds):
        scratch.fresh()
        upsert.append(_load(scratch, scripts.HOT_UPSERT, many, 1).rate)
        queue.append(_load(scratch, scripts.HOT_ENQUEUE, many, 1).rate)
    yield result("one hot key, 5 ms of work, 32 clients", "tx/s", queue, "upsert", upsert)


def end_to_end(scratch: Scratch, settings: Settings) -> Iterator[Result]:
    """Measure enqueues with a running worker, until all updates are combined: their rate, and the write-ahead log.

    The baseline is upserts in sorted key order.
    """
    for updates in UPDATES:
        rates: dict[str, list[float]] = {name: [] for name in ("upsert", "queue")}
        logs: dict[str, list[float]] = {name: [] for name in rates}
        for _ in range(settings.rounds):
            scratch.fresh()
            began = scratch.wal_position()
            done = _load(scratch, scripts.SORTED_UPSERT, settings, updates)
            rates["upsert"].append(updates * done.rate)
            logs["upsert"].append((scratch.wal_position() - began) / (updates * done.transactions))
            scratch.fresh()
            rate, log = _to_the_end(scratch, scripts.ENQUEUE, settings, updates)
            rates["queue"].append(rate)
            logs["queue"].append(log)
        figure = f"end to end, {updates} a transaction"
        yield result(figure, "updates/s", rates["queue"], "sorted upsert", rates["upsert"])
        yield result(f"{figure}: log", "bytes/update", logs["queue"], "sorted upsert", logs["upsert"])


def upserts(scratch: Scratch, settings: Settings) -> Iterator[Result]:
    """Measure other solutions for hot rows: a counter in 16 slots, and upserts in random key order (with deadlocks).

    The baseline is upserts in sorted key order.
    """
    for updates in UPDATES[1:]:
        rates: dict[str, list[float]] = {"sorted": [], "random": [], "slots": []}
        deadlocks = []
        for _ in range(settings.rounds):
            scratch.fresh()
            rates["sorted"].append(_load(scratch, scripts.SORTED_UPSERT, settings, updates).rate)
            rates["slots"].append(_load(scratch, scripts.SLOTTED_UPSERT, settings, updates).rate)
            scratch.fresh()
            done = _load(scratch, scripts.RANDOM_UPSERT, settings, updates)
            rates["random"].append(max(done.rate, 0.01))
            deadlocks.append(float(done.failed))
        yield result(
            f"random-order upsert, {updates} a transaction", "tx/s", rates["random"], "sorted upsert", rates["sorted"]
        )
        yield result(f"random-order upsert, {updates} a transaction: deadlocks", "failed", deadlocks)
        yield result(
            f"slotted counter, {updates} a transaction", "tx/s", rates["slots"], "sorted upsert", rates["sorted"]
        )


def scale(scratch: Scratch, settings: Settings) -> Iterator[Result]:
    """Measure the cost of an update, for COPY and combine together, at 1e5, 1e6 and 1e7 updates.

    The baseline is the cost at 1e5.
    """
    costs: dict[int, list[float]] = {}
    for count in (100_000, 1_000_000, 10_000_000):
        rows = scratch.rows(count)
        for _ in range(settings.rounds):
            scratch.fresh()
            seconds = _copy(scratch, "pgcombine.bench_updates", rows) + _combine(scratch)
            scratch.check(count)
            costs.setdefault(count, []).append(1e6 * seconds / count)
    first = costs[100_000]
    for count, cost in costs.items():
        yield result(f"cost of an update at {count:,}", "µs", cost, "at 100,000", first)


def _to_the_end(scratch: Scratch, script: str, settings: Settings, updates: int) -> tuple[float, float]:
    """Return the updates per second until all are combined, and the bytes of write-ahead log for each update."""
    with scratch.worker():
        began, started = scratch.wal_position(), time.monotonic()
        done = _load(scratch, script, settings, updates)
        count = updates * done.transactions
        scratch.wait_combined(count)
        # the time beyond pgbench's planned duration counts, too, such as that of the last passes
        seconds = done.seconds + max(0.0, time.monotonic() - started - max(1, round(settings.seconds)))
        return count / seconds, (scratch.wal_position() - began) / count


def _load(scratch: Scratch, script: str, settings: Settings, updates: int) -> pgbench.Load:
    return pgbench.finish(
        pgbench.start(
            scratch.dsn,
            script,
            clients=settings.clients,
            seconds=settings.seconds,
            variables={"k": updates},
        )
    )


def _copy(scratch: Scratch, table: str, rows: bytes) -> float:
    started = time.monotonic()
    with scratch.connection.cursor().copy(f"copy {table} (word, n) from stdin") as copy:
        copy.write(rows)
    return time.monotonic() - started


def _timed_execute(scratch: Scratch, statement: str) -> float:
    started = time.monotonic()
    scratch.connection.execute(statement)
    return time.monotonic() - started


def _combine(scratch: Scratch) -> float:
    """Return the seconds in which one connection combines all pending updates and reclaims the log."""
    with open_connection(scratch.dsn) as connection:
        started = time.monotonic()
        while buckets := connection.execute("select bucket from pgcombine_internal.busy(%s)", (QUEUE,)).fetchall():
            for (bucket,) in buckets:
                run_pass(connection, QUEUE, bucket)
        connection.execute("call pgcombine.reclaim(%s)", (QUEUE,))
        return time.monotonic() - started
