"""Charts as coordinates: the templates draw them as SVG.

A series is a sequence of (time, value), times in seconds since 1970, ascending. Times without a value are gaps, longer
than ``gap`` seconds, and no line crosses them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime

Series = Sequence[tuple[float, float]]

WIDTH, HEIGHT = 640, 160
LEFT, RIGHT, TOP, BOTTOM = 56, 8, 10, 22
SPARK_WIDTH, SPARK_HEIGHT = 96, 22
SPARK_POINTS = 48


@dataclass(frozen=True)
class Tick:
    """A place on an axis, in the drawing's units, and the value there."""

    place: float
    value: float


@dataclass(frozen=True)
class Chart:
    """A drawing. ``line`` and ``area`` are the data of SVG paths, empty if there is nothing to draw.

    ``last`` and ``peak`` are values, ``peak_at`` is the time of the highest one; None: there is none.
    """

    width: int
    height: int
    line: str
    area: str
    last: float | None
    peak: float | None
    peak_at: datetime | None
    across: Sequence[Tick] = ()
    up: Sequence[Tick] = ()
    left: int = 0
    right: int = 0


def spark(series: Series, begin: float, end: float, *, gap: float) -> Chart:
    """Return a small drawing without axes. Each of its points is the highest value of a part of the time."""
    return _drawn(_peaks(series, begin, end, SPARK_POINTS), begin, end, gap, SPARK_WIDTH, SPARK_HEIGHT, (1, 1, 2, 1))


def chart(series: Series, begin: float, end: float, *, gap: float) -> Chart:
    """Return a drawing with axes. Each of its points is the highest value of a part of the time."""
    return _drawn(
        _peaks(series, begin, end, 240), begin, end, gap, WIDTH, HEIGHT, (LEFT, RIGHT, TOP, BOTTOM), axes=True
    )


def _peaks(series: Series, begin: float, end: float, count: int) -> Series:
    """Return the highest point of each of ``count`` parts of the time."""
    found: dict[int, tuple[float, float]] = {}
    for at, value in series:
        if begin <= at <= end:
            part = min(count - 1, int((at - begin) / (end - begin) * count))
            if part not in found or value > found[part][1]:
                found[part] = (at, value)
    return [found[part] for part in sorted(found)]


def _drawn(
    series: Series,
    begin: float,
    end: float,
    gap: float,
    width: int,
    height: int,
    margins: tuple[int, int, int, int],
    *,
    axes: bool = False,
) -> Chart:
    left, right, top, bottom = margins
    highest = max(series, key=lambda point: point[1], default=None)
    full = _round_up(highest[1] if highest else 0.0)
    floor = height - bottom

    def place(point: tuple[float, float]) -> tuple[float, float]:
        at, value = point
        x = left + (at - begin) / (end - begin) * (width - left - right)
        return round(x, 1), round(floor - value / full * (floor - top), 1)

    runs: list[list[tuple[float, float]]] = []
    before = -math.inf
    for point in series:
        if point[0] - before > gap:
            runs.append([])
        runs[-1].append(place(point))
        before = point[0]
    runs = [run if len(run) > 1 else [run[0], (run[0][0] + 1, run[0][1])] for run in runs]
    line = "".join("M" + "L".join(f"{x:g} {y:g}" for x, y in run) for run in runs)
    area = "".join(
        f"M{run[0][0]:g} {floor}L" + "L".join(f"{x:g} {y:g}" for x, y in run) + f"L{run[-1][0]:g} {floor}Z"
        for run in runs
    )
    return Chart(
        width,
        height,
        line,
        area,
        series[-1][1] if series else None,
        highest[1] if highest else None,
        datetime.fromtimestamp(highest[0], UTC) if highest else None,
        _times(begin, end, lambda at: place((at, 0.0))[0]) if axes else (),
        [Tick(place((begin, full * part))[1], full * part) for part in (0.0, 0.5, 1.0)] if axes else (),
        left,
        width - right,
    )


def _round_up(value: float) -> float:
    """Return 1, 2, 5 or 10 times a power of ten that isn't below the value; at least 1."""
    if value <= 1:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(power * digit for digit in (1, 2, 5, 10) if power * digit >= value)


def _times(begin: float, end: float, place: Callable[[float], float]) -> list[Tick]:
    """Return round times between the ends, six at most."""
    steps = (60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)
    step = next((one for one in steps if (end - begin) / one <= 6), 86400)
    first = math.ceil(begin / step) * step
    return [Tick(place(at), at) for at in range(first, int(end) + 1, step)]


def level(value: float, highest: float, levels: int = 5) -> int:
    """Return how dark a cell of a heat map is: 0 for nothing, else 1 to ``levels`` on a logarithmic scale."""
    if value <= 0:
        return 0
    if highest <= 1:
        return 1
    return max(1, min(levels, math.ceil(math.log1p(value) / math.log1p(highest) * levels)))
