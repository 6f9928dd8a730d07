"""The charts of queues, from the points in :mod:`pgcombine.web.history`.

Charts of the lag and the backlog cover the time since the process started, but at least two minutes and at most an
hour. Charts of rates have points of ``pgcombine.minute_stat`` for the time before that.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property, partial
from typing import Any, NamedTuple

from pgcombine.web.charts import CHART, DURATIONS, SPARK, Chart, Format, drawn
from pgcombine.web.history import EVERY, History, Point

HOUR = 3600.0
SHORTEST = 120.0  # seconds: the least time that a chart covers
GAP = 3 * EVERY  # seconds without a point that interrupt the line of the lag or the backlog
LATE = 150.0  # seconds from the start of a minute until workers have normally written its sums
MINUTE_GAP = LATE + 90
WINDOW = 61.0  # seconds: the rate of arriving updates is the average of this time, as other rates are of a minute
SHORTEST_WINDOW = 2 * EVERY * 0.9


class Charts:
    """The charts of a queue at a time ``now``, each drawn when it is first needed.

    ``row`` is the queue's row of ``web_queues``, and ``minutes`` are its rows of ``pgcombine.minute_stat``. Charts of
    the lag and the backlog begin at ``began``, and charts of rates at ``first``.
    """

    def __init__(
        self,
        row: Mapping[str, Any],
        points: Sequence[Point],
        minutes: Sequence[Mapping[str, Any]],
        *,
        began: float,
        first: float,
        now: float,
        form: Format,
    ) -> None:
        self._row, self._points, self._minutes, self._now = row, points, minutes, now
        self._known = partial(drawn, begin=began, end=now, gap=GAP, form=form)
        self._rated = partial(drawn, begin=first, end=now, gap=MINUTE_GAP, form=form)

    @cached_property
    def lag(self) -> Chart:
        points = [(point.at, point.lag) for point in self._points]
        return self._known([*points, (self._now, self._row["lag_seconds"])], ends=DURATIONS)

    @cached_property
    def pending(self) -> Chart:
        return self._known([*((point.at, point.pending) for point in self._points), (self._now, self._row["pending"])])

    @cached_property
    def rates(self) -> Chart:
        """Two lines: the updates combined and the updates arriving, both per second."""
        return self._rated(self._per_second("updates"), arriving(self._points))

    @cached_property
    def changes(self) -> Chart:
        return self._rated(self._per_second("changes"))

    def _per_second(self, name: str) -> list[tuple[float, float]]:
        return per_second(self._minutes, self._points, name, self._row, self._now)


class _Axes(NamedTuple):
    """When charts of a format were drawn, and when those of the lag and those of rates begin, in seconds since 1970."""

    at: float
    began: float
    first: float


class Lines:
    """The charts of all queues. All readers share charts for EVERY seconds, and small ones for an interval of the axis.

    A small chart shows no present value, so drawing it more often would change it little.
    """

    def __init__(self, history: History, *, clock: Callable[[], float] = time.time) -> None:
        self._history = history
        self._clock = clock
        self._lock = threading.Lock()
        self._charts: dict[Format, tuple[_Axes, dict[str, Charts]]] = {}

    def charts(self, row: Mapping[str, Any], form: Format = CHART) -> Charts:
        """Return the charts of a queue from its row of ``web_queues``. Raises the errors of :meth:`History.minutes`."""
        minutes = self._history.minutes()
        queue = row["queue"]
        with self._lock:
            now = self._clock()
            axes, charts = self._charts.get(form, (_Axes(0, 0, 0), {}))
            if now - axes.at >= (max(EVERY, (axes.at - axes.began) / form.parts) if form == SPARK else EVERY):
                began = self._history.began
                first = since((minute for one in minutes.values() for minute in one), now, began)
                axes, charts = _Axes(now, now - max(SHORTEST, min(HOUR, now - began)), first), {}
                self._charts[form] = axes, charts
            if queue not in charts:
                charts[queue] = Charts(
                    row,
                    self._history.points(queue),
                    minutes.get(queue, ()),
                    began=axes.began,
                    first=axes.first,
                    now=axes.at,  # also of charts that are drawn later, so that all have the same axes of time
                    form=form,
                )
            return charts[queue]

    def incoming(self, queue: str) -> float | None:
        """Return the last point of :func:`arriving`, or None. Raises the errors of :meth:`History.points`."""
        found = arriving(self._history.points(queue)[-round(WINDOW / EVERY) - 2 :])
        return found[-1][1] if found else None


def since(minutes: Iterable[Mapping[str, Any]], now: float, began: float) -> float:
    """Return when a chart of rates begins: with the first of ``minutes``, or with the process, which ``began`` then.

    But the chart covers at least SHORTEST and at most HOUR seconds before ``now``.
    """
    first = min((minute["minute"].timestamp() for minute in minutes), default=now)
    return now - max(SHORTEST, min(HOUR, now - min(first, began)))


def per_second(
    minutes: Sequence[Mapping[str, Any]], points: Sequence[Point], name: str, row: Mapping[str, Any], now: float
) -> list[tuple[float, float]]:
    """Return points (time, rate per second) for ``name``, which is ``updates`` or ``changes``.

    A point's rate is the average of the minute before. ``minutes`` are a queue's rows of ``pgcombine.minute_stat``, and
    ``row`` is its row of ``web_queues``. Those of ``minutes`` that ended before the first of ``points`` give a point. A
    minute that is missing after the first had no passes with updates, so its point is 0. The minutes of the last LATE
    seconds get no such point, since workers may not have written their sums yet.
    """
    known = [(point.at, getattr(point, name)) for point in points] + [(now, float(row[f"{name}_per_second_1m"]))]
    found: list[tuple[float, float]] = []
    for minute in minutes:
        at = minute["minute"].timestamp() + 60
        if at < known[0][0]:
            _fill(found, at)
            found.append((at, float(minute[name]) / 60))
    _fill(found, min(known[0][0], now - LATE))
    return found + known


def _fill(points: list[tuple[float, float]], until: float) -> None:
    """Append a point 0 for each minute that is missing between the last point and ``until``."""
    while points and until - points[-1][0] > 60:
        points.append((points[-1][0] + 60, 0.0))


def arriving(points: Sequence[Point]) -> list[tuple[float, float]]:
    """Return points (time, rate per second) of the rows that were inserted into a queue's log.

    A point's rate is the average of up to WINDOW seconds before. A time without a known number, as on a standby, and a
    time in which the server's statistics were reset, have no point.
    """
    found: list[tuple[float, float]] = []
    first = 0
    for last, point in enumerate(points):
        if point.inserted is None:
            first = last + 1
            continue
        if point.inserted < (points[max(first, last - 1)].inserted or 0):
            first = last
        while point.at - points[first].at > WINDOW:
            first += 1
        span = point.at - points[first].at
        if span >= SHORTEST_WINDOW:
            found.append((point.at, (point.inserted - (points[first].inserted or 0)) / span))
    return found
