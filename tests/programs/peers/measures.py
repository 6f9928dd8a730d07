"""The figures (kinds of measurements): their metrics with units, and the functions that measure them in a turn."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from .load import Work
from .probes import beside, percentiles
from .turn import Turn

CLIENTS = 8
SNAPSHOT = "snapshot"
OVERHEAD = 2.0  # about how many seconds a turn, or a window of a held snapshot, takes besides the measured time


@dataclass(frozen=True)
class Lengths:
    """How long to measure, and in how many rounds.

    ``rounds`` is for the end-to-end figures, ``other_rounds`` for the other figures. ``window``, ``hot``,
    ``open_writer`` and ``aging_window`` are the seconds of a measured window, of the hot key, of an open transaction,
    and of an uncounted window of a held snapshot.
    """

    rounds: int = 5
    other_rounds: int = 5
    window: int = 3
    hot: int = 2
    open_writer: int = 5
    new_transactions: int = 125  # transactions of each client, each with 1,000 new keys
    aging: int = 2  # the number of uncounted windows of a held snapshot, before the counted ones
    aging_window: int = 12

    def rounds_of(self, figure: str) -> int:
        return self.rounds if figure.startswith("end-to-end") else self.other_rounds


FULL = Lengths()
QUICK = Lengths(rounds=2, other_rounds=1, window=1, hot=2, open_writer=3, new_transactions=25, aging=1, aging_window=4)


Measure = Callable[[Turn, Lengths, dict[str, float]], dict[str, float]]


@dataclass(frozen=True)
class Metric:
    """One number of a figure. ``more`` tells whether more is better.

    ``shown`` tells whether the plot shows the metric, ``compared`` whether its ratios are meaningful.
    """

    name: str
    unit: str
    more: bool
    shown: bool = True
    compared: bool = True


@dataclass(frozen=True)
class Figure:
    """``measure`` returns the values of a turn by metric; None: :mod:`.snapshot` measures the figure.

    A turn measures for about ``seconds``. Besides, the figure takes about ``once`` seconds for each contender.
    """

    name: str
    title: str
    short: str  # the title in the plot
    metrics: tuple[Metric, ...]
    measure: Measure | None
    seconds: Callable[[Lengths], float]
    once: Callable[[Lengths], float] = lambda lengths: 0.0
    source: bool = False  # whether contenders keep the sums of a table whose rows change, see :mod:`.source`


def end_to_end(updates: int, *, source: bool = False) -> Figure:
    """Return the figure for transactions of ``updates`` updates. With ``source`` these are rows of a table."""

    def measure(turn: Turn, lengths: Lengths, peaks: dict[str, float]) -> dict[str, float]:
        with turn.used() as used:
            done = turn.load(Work(updates), clients=CLIENTS, seconds=lengths.window)
            seconds = done.seconds + turn.settle()
        count = updates * len(done.committed)
        if not count:
            return {"rate": 0.0}
        if updates == 10:
            peaks[turn.contender.name + " source" * source] = len(done.committed) / seconds
        found = {
            "rate": count / seconds,
            "log": used.log / count,
            "consumer": 1e6 * used.consumer / count,
            "clients": 1e6 * done.processor / count,
        }
        if used.server is not None:
            found["server"] = 1e6 * used.server / count
            found["processor"] = found["server"] + found["consumer"] + found["clients"]
        return found

    what, s = "row" if source else "update", "s" if updates > 1 else ""
    title = "sums of a table" if source else "end to end"
    return Figure(
        f"source-{updates}" if source else f"end-to-end-{updates}",
        f"{title}, {updates} {what}{s} a transaction",
        f"{title}, {updates} a transaction",
        (
            Metric("rate", f"{what}s/s", True),
            Metric("log", f"bytes of log a{'n' * (not source)} {what}", False, shown=updates == 10),
            Metric("processor", f"µs of processor a{'n' * (not source)} {what}", False, shown=updates == 10),
            Metric("server", "µs each, server", False, shown=False),
            Metric("consumer", "µs each, consumer's process", False, shown=False),
            Metric("clients", "µs each, clients", False, shown=False),
        ),
        measure,
        lambda lengths: lengths.window + 0.5,
        source=source,
    )


def hot_key(clients: int, *, source: bool = False) -> Figure:
    """Return the figure for one key that all transactions change, each with 5 ms of other work."""

    def measure(turn: Turn, lengths: Lengths, peaks: dict[str, float]) -> dict[str, float]:
        done = turn.load(Work(1, "hot", 0.005), clients=clients, seconds=lengths.hot)
        return {"rate": len(done.committed) / (done.seconds + turn.settle())}

    return Figure(
        f"source-hot-{clients}" if source else f"hot-{clients}",
        f"{'sum of a table, ' * source}one hot key, 5 ms of other work, {clients} clients",
        f"{'sum, ' * source}hot key, {clients} clients",
        (Metric("rate", "transactions/s", True),),
        measure,
        lambda lengths: lengths.hot + 0.3,
        source=source,
    )


def _fresh_at_half(source: bool = False) -> Measure:
    def measure(turn: Turn, lengths: Lengths, peaks: dict[str, float]) -> dict[str, float]:
        key = turn.contender.name + " source" * source
        if key not in peaks:
            done = turn.load(Work(10), clients=CLIENTS, seconds=lengths.window)
            peaks[key] = len(done.committed) / (done.seconds + turn.settle())
            turn.next_window()
        delays, _ = beside(
            turn, lambda: turn.load(Work(10), clients=CLIENTS, seconds=lengths.window, rate=peaks[key] / 2)
        )
        turn.settle()
        return percentiles(delays) | {"offered": 10 * peaks[key] / 2}

    return measure


def _open_writers(turn: Turn, lengths: Lengths, peaks: dict[str, float]) -> dict[str, float]:
    """Nine clients write while a tenth keeps its transaction open."""
    work = Work(10)
    held = Work(10, open_seconds=lengths.open_writer)
    with ThreadPoolExecutor(1) as pool:
        open_one = pool.submit(turn.load, held, clients=1, transactions=1, first=100)
        time.sleep(0.2)
        delays, done = beside(
            turn, lambda: turn.load(work, clients=CLIENTS + 1, seconds=max(1, lengths.open_writer - 1))
        )
        open_one.result()
    return {"rate": 10 * len(done.committed) / done.seconds} | percentiles(delays) | {"drain": turn.settle()}


def _new_keys(turn: Turn, lengths: Lengths, peaks: dict[str, float]) -> dict[str, float]:
    work = Work(1000, "new")
    with turn.used() as used:
        done = turn.load(work, clients=CLIENTS, transactions=lengths.new_transactions)
        seconds = done.seconds + turn.settle()
    count = 1000 * len(done.committed)
    return {"rate": count / seconds, "log": used.log / count}


_FRESHNESS = (Metric("p50", "ms, p50", False, shown=False), Metric("p99", "ms, p99", False, shown=False))

_AT_HALF = (
    Metric("p50", "ms, p50", False, shown=False),
    Metric("p99", "ms, p99", False),
    Metric("offered", "updates/s offered", True, shown=False, compared=False),
)

FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        end_to_end(1),
        end_to_end(10),
        end_to_end(100),
        hot_key(8),
        hot_key(32),
        Figure(
            "freshness",
            "freshness at half of its own peak, 10 updates a transaction",
            "at half of its peak",
            _AT_HALF,
            _fresh_at_half(),
            lambda lengths: lengths.window + 0.5,
        ),
        Figure(
            "open-writers",
            "one of ten writers keeps its transaction open",
            "1 of 10 writers open",
            (
                Metric("rate", "updates/s of the others", True),
                *_FRESHNESS,
                Metric("drain", "s to settle", False, shown=False, compared=False),
            ),
            _open_writers,
            lambda lengths: lengths.open_writer + 0.5,
        ),
        Figure(
            "new-keys",
            "new keys, 1,000 a transaction",
            "new keys",
            (Metric("rate", "updates/s", True), Metric("log", "bytes of log an update", False, shown=False)),
            _new_keys,
            lambda lengths: lengths.new_transactions / 20,
        ),
        Figure(
            SNAPSHOT,
            "a snapshot is held, 30,000 updates a second are offered",
            "snapshot held",
            (
                Metric("rate", "updates/s", True),
                *_FRESHNESS,
                Metric("server", "µs an update, server", False, shown=False),
                Metric("growth", "bytes of growth an update", False),
                Metric("before", "updates/s before the snapshot", True, shown=False, compared=False),
                Metric("p50_before", "ms, p50 before", False, shown=False, compared=False),
                Metric("server_before", "µs an update, server, before", False, shown=False, compared=False),
                Metric("held", "s held", True, shown=False, compared=False),
            ),
            None,
            lambda lengths: lengths.window,
            lambda lengths: OVERHEAD + lengths.window + OVERHEAD + lengths.aging * (lengths.aging_window + OVERHEAD),
        ),
        *(end_to_end(rows, source=True) for rows in (1, 10, 100)),
        hot_key(8, source=True),
        Figure(
            "source-freshness",
            "sums of a table, freshness at half of its own peak, 10 rows a transaction",
            "sums, at half of its peak",
            _AT_HALF,
            _fresh_at_half(source=True),
            lambda lengths: lengths.window + 0.5,
            source=True,
        ),
    )
}
