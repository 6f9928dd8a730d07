"""The charts of queues, from the points in :mod:`pgcombine.web.history`.

The lag and the backlog are known since the start of the page, for an hour at most. The throughput is by the minute, as
summed up by workers. Its last point is the minute in progress.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from pgcombine.web.charts import SPARK, Chart, drawn
from pgcombine.web.history import EVERY, History

HOUR = 3600.0
SHORTEST = 300.0  # seconds that a chart covers at least
GAP = 3 * EVERY
LATE = 150.0  # seconds after which workers have summed up a minute
MINUTE_GAP = LATE + 90
LONGEST = 3 * HOUR  # of throughput


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
        """Return the small charts by queue, a few seconds old at most: one drawing serves all readers.

        ``rows`` are those of ``pgcombine.queue_stat``. Raises as :meth:`History.minutes`.
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

        ``minutes`` are its rows of ``pgcombine.minute_stat``.
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
        """Return the seconds that a chart of what is known since the start covers."""
        return max(SHORTEST, min(HOUR, now - self._began))


def since(minutes: Iterable[Mapping[str, Any]], now: float, longest: float) -> float:
    """Return the time at which a chart of throughput begins: the first minute, but at most ``longest`` seconds ago."""
    first = min((minute["minute"].timestamp() for minute in minutes), default=now)
    return now - max(SHORTEST, min(longest, now - first))


def per_second(
    minutes: Sequence[Mapping[str, Any]], name: str, row: Mapping[str, Any], now: float
) -> list[tuple[float, float]]:
    """Return what passes took a second, by the minute.

    ``minutes`` are rows of ``pgcombine.minute_stat``, ``row`` is that of ``pgcombine.queue_stat``. A minute without
    passes between others is 0.
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
    """Append a zero for each minute until the next point."""
    while points and until - points[-1][0] > 90:
        points.append((points[-1][0] + 60, 0.0))
