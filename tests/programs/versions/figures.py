"""The figures that the comparison of versions measures."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

from pgcombine.database.connect import connect
from pgcombine.errors import PgCombineError

from ..peers.load import Work
from ..peers.measures import CLIENTS, Figure, Lengths, Metric
from ..peers.measures import FIGURES as PEERS
from ..peers.probes import percentiles
from ..peers.turn import Turn
from .sessions import COMBINED, PASSES, passes, session_log, statement
from .version import create

OTHERS = 100  # number of the queues without updates in ``idle-100``
_REST = 3.0  # seconds between the updates and the measurement in ``idle-after``
_GAP = 0.02  # seconds between updates of an idle queue, on average
_TIMEOUT = 60.0  # seconds until the value of an update must be visible
Values = dict[str, float]
Measure = Callable[[Turn, Lengths, Values], Values]


def _figure(name: str, title: str, units: dict[str, str], measure: Measure) -> Figure:
    """Return a figure with a metric for each entry of ``units`` (metric → unit). Less is better."""
    metrics = tuple(Metric(metric, unit, False, compared="of" not in metric) for metric, unit in units.items())
    return Figure(name, title, "", metrics, measure, lambda lengths: lengths.window)


def _warm(measure: Measure) -> Measure:
    """Return a function that fills the tables and calls ``measure``, while a worker runs."""

    def measured(turn: Turn, lengths: Lengths, peaks: Values) -> Values:
        with turn.consumer():
            turn.warm()
            turn.next_window()
            found = measure(turn, lengths, peaks)
            turn.settle()
        return found

    return measured


def _of_peers(name: str) -> Figure:
    measure = PEERS[name].measure
    assert measure is not None
    return replace(PEERS[name], measure=_warm(measure))


def _delays(turn: Turn, lengths: Lengths, rest: float = 0.0) -> Values:
    """Rest, then measure the time from the start of an update to its visible value, one update at a time."""
    delays: list[float] = []
    source = random.Random(20)
    time.sleep(rest)
    with closing(connect(turn.dsn, name="versions probe")) as connection:
        connection.prepare_threshold = 0
        deadline = time.monotonic() + lengths.window
        while len(delays) < 5 or time.monotonic() < deadline:
            time.sleep(source.uniform(0, 2 * _GAP))
            word = f"probe{len(delays)}"
            began = time.monotonic()
            turn.contender.add(connection, word)
            turn.ledger.enter_one(word)
            while turn.contender.read(connection, word) < 1:
                if time.monotonic() > began + _TIMEOUT:
                    raise PgCombineError(f"{turn.contender.name} doesn't show an update after {_TIMEOUT:.0f} s")
                time.sleep(0.0005)
            delays.append(1000 * (time.monotonic() - began))
    return percentiles(delays[3:])  # the worker may still be starting during the first delays


def _idle(others: int) -> Measure:
    def measure(turn: Turn, lengths: Lengths, peaks: Values) -> Values:
        for number in range(others):
            create(turn.connection, f"other{number}", 1)
        with turn.consumer():
            return _delays(turn, lengths)

    return measure


def _share(updates: int) -> Figure:
    def window(turn: Turn, lengths: Lengths, settle: Callable[[], float]) -> float:
        turn.next_window()
        with turn.used() as used:
            done = turn.load(Work(updates), clients=CLIENTS, seconds=lengths.window)
            settle()
        if used.server is None:
            raise PgCombineError("the server's processor time can't be read: run this program on the server's machine")
        return 1e6 * used.server / updates / len(done.committed)

    def measure(turn: Turn, lengths: Lengths, peaks: Values) -> Values:
        with turn.consumer():
            turn.warm()
        alone = window(turn, lengths, lambda: 0.0)
        with turn.consumer():
            turn.settle()
            both = window(turn, lengths, turn.settle)
        return {"alone": alone, "with": both, "share": both / alone}

    units = {"alone": "µs an update, writers alone", "with": "µs, with a worker", "share": "the second / the first"}
    return _figure(f"share-{updates}", f"the server's time, {updates} a transaction", units, measure)


def _statement(updates: int) -> Figure:
    return _figure(
        f"statement-{updates}",
        f"a writer's statement above a bare insert, {updates} a transaction",
        {"above": "µs", "processor": "µs of processor", "whole": "µs, with the transaction", "of_bare": "µs, bare"},
        lambda turn, lengths, peaks: statement(turn, updates, lengths.window),
    )


def _passes(name: str, title: str, combined: int) -> Figure:
    units = {f"ms_{updates}": f"ms, {updates:,} updates" for updates in PASSES} | {"key": "µs a key"}
    units |= {f"processor_{updates}": f"ms of processor, {updates:,}" for updates in PASSES}
    return _figure(
        name,
        f"passes of one session, 1 bucket, {title}",
        units | {"of_log": "MB of log before"},
        lambda turn, lengths, peaks: passes(turn, combined),
    )


_DELAY = {"p50": "ms, p50", "p99": "ms, p99"}
FIGURES: dict[str, Figure] = {
    figure.name: figure
    for figure in (
        *(_of_peers(f"end-to-end-{updates}") for updates in (1, 10, 100)),
        *(_statement(updates) for updates in (1, 10, 100)),
        _passes("pass", "an empty log", 0),
        _passes("pass-beside", f"beside {COMBINED:,} combined rows", COMBINED),
        _figure("idle", "delay, a new queue", _DELAY, _idle(0)),
        _figure(f"idle-{OTHERS}", f"delay, beside {OTHERS} idle queues", _DELAY, _idle(OTHERS)),
        _figure(
            "idle-after",
            f"delay, {_REST:.0f} s after 100,000 updates",
            _DELAY,
            _warm(lambda turn, lengths, peaks: _delays(turn, lengths, _REST)),
        ),
        _of_peers("freshness"),
        *(_share(updates) for updates in (1, 10)),
        _figure(
            "session-log",
            "log that a writer's session writes, 100 a transaction",
            {"copy": "bytes an update, COPY", "insert": "bytes an update, INSERT"},
            lambda turn, lengths, peaks: session_log(turn),
        ),
    )
}
