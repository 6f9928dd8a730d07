"""Freshness beside a load: threads add to new keys at random times, and read until each value is visible.

``beside`` raises PgCombineError if a value isn't visible after a minute.
"""

from __future__ import annotations

import random
import statistics
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing

from pgcombine.database.connect import connect
from pgcombine.errors import PgCombineError

from .load import Done
from .turn import Turn

_PROBES = 4  # threads
_PROBE_EVERY = 0.03  # the average pause between two probes of a thread, in seconds
_PROBE_TIMEOUT = 60.0  # seconds until the value of a probe must be visible


def beside(turn: Turn, load: Callable[[], Done]) -> tuple[list[float], Done]:
    """Measure freshness while a load runs. Returns the delays in milliseconds and the result of the load."""
    stop = threading.Event()
    with ThreadPoolExecutor(_PROBES + 1) as pool:
        loading = pool.submit(load)
        loading.add_done_callback(lambda _: stop.set())
        probes = [pool.submit(_probe, turn, number, stop) for number in range(_PROBES)]
        done = loading.result()
        seen = [one for probe in probes for one in probe.result()]
    for word, _ in seen:
        turn.ledger.enter_one(word)
    return [delay for _, delay in seen], done


def _probe(turn: Turn, number: int, stop: threading.Event) -> list[tuple[str, float]]:
    """Add to new keys, and read until each value is visible. Returns each key and its delay in milliseconds."""
    contender, seen = turn.contender, []
    with closing(connect(turn.dsn, name="peers probe")) as connection:
        connection.prepare_threshold = 0
        stop.wait(0.3 + number * _PROBE_EVERY / _PROBES)  # time for the load to start
        while not stop.is_set():
            word = f"probe{number}-{time.monotonic_ns()}"
            began = time.monotonic()
            contender.add(connection, word)
            gap = 0.0005
            while contender.read(connection, word) < 1:
                if time.monotonic() - began > _PROBE_TIMEOUT:
                    raise PgCombineError(f"{contender.name} doesn't show an update after {_PROBE_TIMEOUT:.0f} s")
                time.sleep(gap)
                gap = min(2 * gap, 0.004)
            delay = time.monotonic() - began
            seen.append((word, 1000 * delay))
            # with a fixed pause, probes could fall in step with a consumer's period
            stop.wait(random.uniform(0, 2 * _PROBE_EVERY))
    return seen


def percentiles(delays: list[float]) -> dict[str, float]:
    if len(delays) < 2:
        return {"p50": max(delays, default=float("nan")), "p99": max(delays, default=float("nan"))}
    cuts = statistics.quantiles(delays, n=100, method="inclusive")
    return {"p50": cuts[49], "p99": cuts[98]}
