"""Computes the coordinates of charts, which the templates draw as SVG.

A series is a sequence of (time, value), ordered by time. A time is in seconds since 1970. If two successive drawn
points are more than ``gap`` seconds apart, and also more than 2.1 intervals of the time axis, the line is interrupted
between them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import NamedTuple

Series = Sequence[tuple[float, float]]

# Possible ends of the axis of values. The first is the least one, so that small values are drawn low.
NUMBERS = tuple(digit * 10.0**power for power in range(15) for digit in (1, 2, 5))[1:]
DURATIONS = (2.0, 4.0, 10.0, 20.0, 60.0, 120.0, 240.0, 600.0, 1200.0, *(3600.0 * h for h in (1, 2, 4, 12, 24)))
LEVELS = 5  # the highest level of a heat map's colours
STEPS = (60, 120, 300, 600, 900, 1800, 3600, 7200, 14400)  # possible distances of ticks on the time axis, in seconds
MOST_TIMES = 6


class Format(NamedTuple):
    """The size and the margins of a drawing. Its time axis has ``parts`` intervals, each with at most one point."""

    width: int
    height: int
    left: int
    right: int
    top: int
    bottom: int
    parts: int


SPARK = Format(96, 22, 1, 2, 2, 1, 48)
CHART = Format(640, 210, 88, 14, 12, 28, 160)


class Tick(NamedTuple):
    """A place on an axis, in the drawing's units, and the value there."""

    place: float
    value: float


@dataclass(frozen=True)
class Line:
    """A drawn series. ``line`` and ``area`` are the data of SVG paths, and empty if there is nothing to draw.

    ``last`` is the last value, ``peak`` the highest one, and ``peak_at`` the time of the highest one. These three are
    None if there is no value.
    """

    line: str
    area: str
    last: float | None
    peak: float | None
    peak_at: datetime | None


@dataclass(frozen=True)
class Chart:
    """A drawing of lines whose time axis begins at ``begin``.

    ``across`` are the ticks of the time axis, ``up`` those of the axis of values.
    """

    format: Format
    begin: datetime
    lines: Sequence[Line]
    across: Sequence[Tick]
    up: Sequence[Tick]


def drawn(
    *values: Series,
    begin: float,
    end: float,
    gap: float,
    form: Format = CHART,
    ends: Sequence[float] = NUMBERS,
) -> Chart:
    """Return the drawing of series from ``begin`` to ``end``, with the same axes for all.

    Of the points of a series in an interval, the highest is drawn. The axis of values ends at one of ``ends``.
    """
    floor = form.height - form.bottom
    part = (end - begin) / form.parts
    inside = [[point for point in series if begin <= point[0] <= end] for series in values]
    peaks = [_peaks(series, begin, part) for series in inside]
    full = rounded_up(max((value for series in peaks for _, value in series), default=0.0), ends)

    def across(at: float) -> float:
        return round(form.left + (at - begin) / (end - begin) * (form.width - form.left - form.right), 1)

    def up(value: float) -> float:
        return round(floor - value / full * (floor - form.top), 1)

    def line(series: Series, peaks: Series) -> Line:
        runs = _runs(peaks, max(gap, 2.1 * part))
        lines = [[f"{across(at):g} {up(value):g}" for at, value in run] for run in runs]
        highest = max(peaks, key=lambda point: point[1], default=None)
        return Line(
            # h0 draws a single point as a dot: a line without length, but with round ends
            "".join(f"M{'L'.join(line)}{'h0' if len(line) == 1 else ''}" for line in lines),
            "".join(
                f"M{across(run[0][0]):g} {floor}L{'L'.join(line)}L{across(run[-1][0]):g} {floor}Z"
                for run, line in zip(runs, lines, strict=True)
            ),
            series[-1][1] if series else None,
            highest[1] if highest else None,
            datetime.fromtimestamp(highest[0], UTC) if highest else None,
        )

    return Chart(
        form,
        datetime.fromtimestamp(begin, UTC),
        [line(*both) for both in zip(inside, peaks, strict=True)],
        _times(begin, end, across),
        [Tick(up(full * share), full * share) for share in (0.0, 0.5, 1.0)],
    )


def _peaks(series: Series, begin: float, part: float) -> Series:
    """Return the highest point of each interval that has points. An interval takes ``part`` seconds."""
    found: dict[int, tuple[float, float]] = {}
    for point in series:
        number = int((point[0] - begin) / part)
        if number not in found or point[1] >= found[number][1]:
            found[number] = point
    return [*found.values()]


def _runs(series: Series, gap: float) -> list[list[tuple[float, float]]]:
    """Return the series in pieces, split between points that are more than ``gap`` seconds apart."""
    runs: list[list[tuple[float, float]]] = []
    before = -math.inf
    for point in series:
        if point[0] - before > gap:
            runs.append([])
        runs[-1].append(point)
        before = point[0]
    return runs


def rounded_up(value: float, ends: Sequence[float] = NUMBERS) -> float:
    """Return the least of ``ends`` that isn't below the value. A value above all of them is its own end."""
    return next((end for end in ends if end >= value), value)


def _times(begin: float, end: float, across: Callable[[float], float]) -> list[Tick]:
    """Return ticks at round times. Near the ends of the axis there are none, since their texts would be cut."""
    step = next((one for one in STEPS if (end - begin) / one <= MOST_TIMES), 86400)
    first = math.ceil((begin + step / 3) / step) * step
    return [Tick(across(at), at) for at in range(first, int(end - step / 3) + 1, step)]


def level(value: float, highest: float) -> int:
    """Return the level of a cell's colour: 0 for the value 0, else 1 to LEVELS by its share of the highest value."""
    if value <= 0 or highest <= 0:
        return 0
    return max(1, min(LEVELS, math.ceil(value / highest * LEVELS)))
