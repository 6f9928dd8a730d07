"""The figures of the benchmark: the end-to-end rate, freshness, the rate of combining, and Spark's writers."""

from __future__ import annotations

import random
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, nullcontext
from dataclasses import dataclass
from statistics import median, quantiles

from pgcombine.bench import pgbench
from pgcombine.bench.scratch import QUEUE, SAMPLE, UPDATES, Scratch, Settings, throwaway_database, worker
from pgcombine.bench.spark import PLAIN, writers
from pgcombine.database.connect import connect
from pgcombine.errors import ConfigError, PgCombineError
from pgcombine.worker.passes import open_connection, run_pass

KEYS = "from bench.zipf where i >= :i and i < :i + :k::int"  # the keys of a transaction of ``:k`` updates
_MERGE = (
    "merge into bench.total t using (select word, sum(n)::bigint as n from bench.bare group by word) s "
    "on t.word = s.word when matched then update set n = t.n + s.n when not matched then insert values (s.word, s.n)"
)


@dataclass(frozen=True)
class Result:
    """One line of the report: the queue's value, the baseline's value, and their ratio, as medians over the rounds."""

    figure: str
    unit: str
    queue: float
    baseline_name: str = ""
    baseline: float | None = None
    ratio: float | None = None


class Rounds(defaultdict[str, list[float]]):
    """The values of the rounds, by what was measured."""

    def __init__(self) -> None:
        super().__init__(list)

    def ratio(self, figure: str, unit: str, queue: str, baseline: str, name: str) -> Result:
        """Return the line that compares two of the measured. ``name`` describes the baseline."""
        ratios = [one / other for one, other in zip(self[queue], self[baseline], strict=True)]
        return Result(figure, unit, median(self[queue]), name, median(self[baseline]), median(ratios))


def enqueue(source: str) -> str:
    """Return the statement that appends a row to the queue for each update. ``source`` is a ``from`` with ``word``."""
    return f"insert into {UPDATES} (word, n) select word, 1 {source};\n"


def upsert(source: str, order: str) -> str:
    """Return the statement that upserts a total for each key, in the order of the expression ``order``."""
    return (
        f"insert into bench.total as t (word, n) select word, count(*) {source} group by word order by {order} "
        "on conflict (word) do update set n = t.n + excluded.n;\n"
    )


def end_to_end(scratch: Scratch) -> Iterator[Result]:
    """Measure enqueues beside a worker until all updates are combined: rate, and write-ahead log.

    The baseline is upserts in sorted key order, without a worker.
    """
    scripts = {"upsert": upsert(KEYS, "word"), "queue": enqueue(KEYS)}
    for updates in (1, 10, 100):
        found = Rounds()
        for _ in range(scratch.settings.rounds):
            for name, script in scripts.items():
                scratch.fresh()
                with worker(scratch.dsn) if name == "queue" else nullcontext() as process:
                    began, started = scratch.wal_position(), time.monotonic()
                    done = pgbench.finish(_start(scratch, script, updates, scratch.settings.seconds))
                    seconds, count = done.seconds, updates * done.transactions
                    if process:
                        scratch.wait_idle(process)
                        # the time beyond pgbench's planned duration counts, too, such as that of the last passes
                        seconds += max(0.0, time.monotonic() - started - max(1, round(scratch.settings.seconds)))
                        scratch.check(count)
                    found[name].append(count / seconds)
                    found[f"{name} log"].append((scratch.wal_position() - began) / count)
        figure = f"end to end, {updates} a transaction"
        yield found.ratio(figure, "updates/s", "queue", "upsert", "sorted upsert")
        yield found.ratio(f"{figure}: log", "bytes/update", "queue log", "upsert log", "sorted upsert")


def freshness(scratch: Scratch) -> Iterator[Result]:
    """Measure the time from the commit of an update until a client hears of its value: idle, and at half of the peak.

    A probe enqueues one update of a new key. An observer notifies the client of the key when the pass commits.
    """
    found, seconds, updates, script = Rounds(), scratch.settings.seconds, 20, enqueue(KEYS)
    for _ in range(scratch.settings.rounds):
        scratch.fresh()
        observe = "$$select pg_notify('bench_seen', word) from changes where word like 'probe%%'$$"
        scratch.connection.execute(f"select pgcombine.add_observer(%s, 'seen', {observe})".encode(), (QUEUE,))
        with worker(scratch.dsn) as process:
            _probe(scratch, found, "idle")
            started = time.monotonic()
            done = pgbench.finish(_start(scratch, script, updates, seconds))
            scratch.wait_idle(process)
            peak = done.transactions / (time.monotonic() - started)
            load = _start(scratch, script, updates, seconds + 2, "-R", f"{peak / 2:.3f}")
            time.sleep(1)  # until the load is steady
            _probe(scratch, found, "at half of peak load")
            pgbench.finish(load)
    yield from (Result(name, "ms", median(values)) for name, values in found.items())


def combine(scratch: Scratch) -> Iterator[Result]:
    """Measure COPY into the queue, and then the passes of one session.

    The baselines are COPY into a bare table, and GROUP BY + MERGE.
    """
    found, count, rows = Rounds(), scratch.settings.rows, scratch.rows(scratch.settings.rows)
    steps: dict[str, Callable[[], object]] = {
        "bare": lambda: scratch.copy("bench.bare", rows),
        "copy": lambda: scratch.copy(UPDATES, rows),
        "merge": lambda: scratch.connection.execute(_MERGE),
        "combine": lambda: _combine(scratch.dsn),
    }
    for _ in range(scratch.settings.rounds):
        scratch.fresh()
        for name, step in steps.items():
            started = time.monotonic()
            step()
            found[name].append(count / (time.monotonic() - started))
        scratch.check(count)
    yield found.ratio("COPY", "updates/s", "copy", "bare", "COPY into a bare table")
    yield found.ratio("combine, one session", "updates/s", "combine", "merge", "GROUP BY + MERGE")


def spark(scratch: Scratch) -> Iterator[Result]:
    """Measure Spark's writers into the queue: rate, and write-ahead log. The baseline is Spark's plain JDBC writer.

    A first round isn't counted.
    """
    found, count = Rounds(), scratch.settings.rows
    with writers(scratch.dsn, scratch.settings) as writing:
        for number in range(scratch.settings.rounds + 1):
            for name, write in writing.items():
                scratch.fresh()
                began, started = scratch.wal_position(), time.monotonic()
                write()
                seconds = time.monotonic() - started
                if number:
                    found[name].append(count / seconds)
                    found[f"{name}: log"].append((scratch.wal_position() - began) / count)
                scratch.check(count, "pending")
    for name in writing:
        yield found.ratio(name, "rows/s", name, PLAIN, PLAIN)
        yield found.ratio(f"{name}: log", "bytes/row", f"{name}: log", f"{PLAIN}: log", PLAIN)


FIGURES = {"end-to-end": end_to_end, "freshness": freshness, "combine": combine, "spark": spark}


def run(dsn: str, settings: Settings, names: Sequence[str] = ()) -> Iterator[Result]:
    """Measure the figures ``names`` (default: all but "spark"). Raises ConfigError for an unknown figure."""
    for name in names:
        if name not in FIGURES:
            raise ConfigError(f'there is no figure "{name}"; figures: {", ".join(FIGURES)}')
    with throwaway_database(dsn) as database, closing(connect(database, name="pgcombine bench")) as connection:
        scratch = Scratch(database, connection, settings)
        for name in names or [name for name in FIGURES if name != "spark"]:
            yield from FIGURES[name](scratch)


def _start(scratch: Scratch, script: str, updates: int, seconds: float, *options: str) -> subprocess.Popen[str]:
    script = f"\\set i random(0, {SAMPLE} - :k)\n{script}"
    return pgbench.start(scratch.dsn, script, *options, clients=scratch.settings.clients, seconds=seconds, k=updates)


def _probe(scratch: Scratch, found: Rounds, name: str) -> None:
    """Send at least two probes, for about ``seconds``. Add percentiles of their freshness in milliseconds."""
    delays: list[float] = []
    deadline = time.monotonic() + scratch.settings.seconds
    with connect(scratch.dsn) as writer, connect(scratch.dsn) as listener:
        listener.execute("listen bench_seen")
        while len(delays) < 2 or time.monotonic() < deadline:
            time.sleep(random.uniform(0, 0.04))
            key = f"probe{random.getrandbits(60)}"
            writer.execute(f"insert into {UPDATES} (word, n) values (%s, 1)".encode(), (key,))  # noqa: S608
            committed = time.monotonic()
            if not any(notification.payload == key for notification in listener.notifies(timeout=60)):
                raise PgCombineError(f"the value of {key} was not committed within 60 s")
            delays.append(1000 * (time.monotonic() - committed))
    for percent in (50, 99):
        found[f"freshness, {name}, p{percent}"].append(quantiles(delays, n=100)[percent - 1])


def _combine(dsn: str) -> None:
    """Combine all pending updates, and reclaim the log."""
    with open_connection(dsn) as connection:
        while buckets := connection.execute("select bucket from pgcombine_internal.busy(%s)", (QUEUE,)).fetchall():
            for (bucket,) in buckets:
                run_pass(connection, QUEUE, bucket)
        connection.execute("call pgcombine.reclaim(%s)", (QUEUE,))
