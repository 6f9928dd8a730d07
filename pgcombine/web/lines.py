"""The charts of queues, from the points in :mod:`pgcombine.web.history`.

Charts of the lag and the backlog cover the time since the process started, but at least five minutes and at most an
hour. Charts of the throughput have points from ``pgcombine.minute_stat``, and a last point for the minute before now.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pgcombine.web.charts import SPARK, Chart, drawn
from pgcombine.web.history import EVERY, History

HOUR = 3600.0
SHORTEST = 300.0  # seconds: the least time that a chart covers
GAP = 3 * EVERY  # seconds without a point that interrupt the line of the lag or the backlog
LATE = 150.0  # seconds from the start of a minute until workers have normally written its sums
MINUTE_GAP = LATE + 90
LONGEST = 3 * HOUR  # seconds: the greatest time that a chart of throughput covers


class Sparks(NamedTuple):
    """The small charts of a queue."""

    lag: Chart
    updates: Chart


class Lines:
    """The charts of all queues."""

    def __init__(self, history: History, *, clock: Callable[[], float] = time.time) -> None:
        self._history = history
        self._clock = clock
        self._began = clock()
        self._lock = threading.Lock()
        self._sparks: dict[str, Sparks] = {}
        self._at = 0.0

    def sparks(self, rows: Iterable[Mapping[str, Any]]) -> Mapping[str, Sparks]:
        """Return the small charts by queue, drawn EVERY seconds ago at most. All readers share them.

        ``rows`` are the rows of ``pgcombine.queue_stat``. Raises the errors of :meth:`History.minutes`.
        """
        minutes = self._history.minutes()
        with self._lock:
            now = self._clock()
            rows = [*rows]
            if now - self._at >= EVERY or any(row["queue"] not in self._sparks for row in rows):
                begin = since((minute for one in minutes.values() for minute in one), now, HOUR)
                self._sparks = {
                    row["queue"]: self._pair(row, minutes.get(row["queue"], ()), begin, now) for row in rows
                }
                self._at = now
            return self._sparks

    def _pair(self, row: Mapping[str, Any], minutes: Sequence[Mapping[str, Any]], begin: float, now: float) -> Sparks:
        points = [(point.at, point.lag) for point in self._history.points(row["queue"])]
        points.append((now, row["lag_seconds"]))
        rates = per_second(minutes, "updates", row, now)
        return Sparks(
            drawn(points, now - self._known(now), now, gap=GAP, form=SPARK),
            drawn(rates, begin, now, gap=MINUTE_GAP, form=SPARK),
        )

    def charts(self, row: Mapping[str, Any], minutes: Sequence[Mapping[str, Any]]) -> dict[str, Chart]:
        """Return the charts of a queue: ``lag``, ``pending``, ``updates``, ``changes``.

        ``row`` and ``minutes`` are the queue's rows of ``pgcombine.queue_stat`` and ``pgcombine.minute_stat``.
        """
        now = self._clock()
        points = self._history.points(row["queue"])
        begin = now - self._known(now)
        first = since(minutes, now, LONGEST)
        return {
            "lag": drawn([*((one.at, one.lag) for one in points), (now, row["lag_seconds"])], begin, now, gap=GAP),
            "pending": drawn([*((one.at, one.pending) for one in points), (now, row["pending"])], begin, now, gap=GAP),
            **{
                name: drawn(per_second(minutes, name, row, now), first, now, gap=MINUTE_GAP)
                for name in ("updates", "changes")
            },
        }

    def _known(self, now: float) -> float:
        """Return how many seconds a chart of the lag or the backlog covers."""
        return max(SHORTEST, min(HOUR, now - self._began))


def since(minutes: Iterable[Mapping[str, Any]], now: float, longest: float) -> float:
    """Return when a chart of throughput begins: with the first of ``minutes``.

    But the chart covers at least SHORTEST and at most ``longest`` seconds before ``now``.
    """
    first = min((minute["minute"].timestamp() for minute in minutes), default=now)
    return now - max(SHORTEST, min(longest, now - first))


def per_second(
    minutes: Sequence[Mapping[str, Any]], name: str, row: Mapping[str, Any], now: float
) -> list[tuple[float, float]]:
    """Return points (time, rate per second) for ``name``, which is ``updates`` or ``changes``.

    ``minutes`` are a queue's rows of ``pgcombine.minute_stat``, and ``row`` is its row of ``pgcombine.queue_stat``.
    Each of ``minutes`` gives a point. A minute that is missing after the first had no passes with updates, so its point
    is 0. The minutes of the last LATE seconds get no such point, since workers may not have written their sums yet. The
    last point, at ``now``, is the rate in ``row``.
    """
    points: list[tuple[float, float]] = []
    for minute in minutes:
        at = minute["minute"].timestamp() + 30
        _fill(points, at)
        points.append((at, float(minute[name]) / 60))
    _fill(points, now - LATE)
    points.append((now, float(row[f"{name}_per_second_1m"])))
    return points


def _fill(points: list[tuple[float, float]], until: float) -> None:
    """Append a point 0 for each minute that is missing between the last point and ``until``."""
    while points and until - points[-1][0] > 90:
        points.append((points[-1][0] + 60, 0.0))
