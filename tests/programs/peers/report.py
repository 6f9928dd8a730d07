"""The result of a run: its form as JSON, and the printed table, which is made from that form."""

from __future__ import annotations

import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .manual import BASELINE
from .measurement import Measurement
from .measures import FIGURES, Figure, Metric

Stored = Mapping[str, Any]


@dataclass(frozen=True)
class Line:
    """A contender's values of a metric in ``rounds`` rounds, summarized.

    ``value`` is the median. ``ratio``, ``least`` and ``greatest`` are the median, the least and the greatest of the
    rounds' ratios to the baseline.
    """

    contender: str
    value: float
    ratio: float | None
    least: float | None
    greatest: float | None
    rounds: int


def stored(
    described: Mapping[str, object],
    summaries: Mapping[str, str],
    skipped: Mapping[str, str],
    measurements: Sequence[Measurement],
    figures: Mapping[str, Figure] = FIGURES,
    baseline: str = BASELINE,
) -> dict[str, object]:
    """Return a run in the form that is stored as JSON."""
    found: dict[str, object] = {
        "run": dict(described),
        "baseline": baseline,
        "contenders": dict(summaries),
        "skipped": dict(skipped),
        "measurements": [one.as_dict() for one in measurements],
    }
    found["summary"] = [
        {"figure": figure, "metric": metric.name, "unit": metric.unit, **vars(line)}
        for figure in figures
        for metric in figures[figure].metrics
        for line in lines(found, figure, metric)
    ]
    return found


def lines(run: Stored, figure: str, metric: Metric) -> Iterator[Line]:
    """Yield the line of each contender that has values of a metric, in the order of the run."""
    base = _values(run, figure, metric, run["baseline"])
    for contender in run["contenders"]:
        values = _values(run, figure, metric, contender)
        if not values:
            continue
        ratios = [value / base[number] for number, value in values.items() if base.get(number)]
        yield Line(
            contender,
            statistics.median(values.values()),
            statistics.median(ratios) if ratios else None,
            min(ratios, default=None),
            max(ratios, default=None),
            len(values),
        )


def _values(run: Stored, figure: str, metric: Metric, contender: str) -> dict[int, float]:
    return {
        one["round"]: one["values"][metric.name]
        for one in turns(run, figure, contender)
        if metric.name in one["values"]
    }


def turns(run: Stored, figure: str, contender: str) -> list[dict[str, Any]]:
    return [one for one in run["measurements"] if one["figure"] == figure and one["contender"] == contender]


def wrong(run: Stored, contender: str, figure: str | None = None) -> bool:
    """Whether the contender's totals were wrong in any turn of the figure, or of any figure if ``figure`` is None."""
    return any(
        one["wrong"] for one in run["measurements"] if one["contender"] == contender and figure in (None, one["figure"])
    )


def table(run: Stored, figures: Mapping[str, Figure] = FIGURES) -> str:
    """Return the run as Markdown: lines about the run, a table for each measured figure, and a list of faults."""
    return "\n".join([*_heading(run), *_figures(run, figures), *_faults(run)])


def _heading(run: Stored) -> Iterator[str]:
    about = run["run"]
    yield f"{about['version']}"
    yield f"commit {about['commit']}, {about['cores']} cores, load average at the start {about['load_average']}"
    yield ", ".join(f"{name} {value}" for name, value in about["settings"].items())
    yield ", ".join(f"{name} {value}" for name, value in about["lengths"].items())
    yield f"A cell: median (ratio to {run['baseline']} in the same round; least to greatest). ✗: wrong totals."
    if about.get("stopped"):
        yield "The run was stopped before its end."
    for name, reason in run["skipped"].items():
        yield f"not measured: {name}: {reason}"


def _figures(run: Stored, figures: Mapping[str, Figure]) -> Iterator[str]:
    for figure in figures.values():
        columns = {
            metric: {line.contender: line for line in lines(run, figure.name, metric)} for metric in figure.metrics
        }
        taking_part = [name for name in run["contenders"] if turns(run, figure.name, name)]
        if not taking_part:
            continue
        rows = [["", *(metric.unit for metric in figure.metrics), "failed", "deadlocks"]]
        for contender in taking_part:
            cells = [
                _cell(found.get(contender), metric.compared and contender != run["baseline"])
                for metric, found in columns.items()
            ]
            faults = [sum(one[kind] for one in turns(run, figure.name, contender)) for kind in ("failed", "deadlocks")]
            mark = " ✗" if wrong(run, contender, figure.name) else ""
            rows.append([contender + mark, *cells, *(f"{count:,}" if count else "" for count in faults)])
        yield f"\n### {figure.title}\n"
        yield from _aligned(rows)


def _cell(line: Line | None, compared: bool) -> str:
    if line is None:
        return "-"
    if not compared or line.ratio is None or line.least is None or line.greatest is None:
        return number(line.value)
    return f"{number(line.value)} ({ratio(line.ratio)}; {ratio(line.least)}-{ratio(line.greatest)})"


def apart(run: Stored, other: Stored) -> list[str]:
    """Return lines about two runs: how many ratios were compared, and the ratios whose spreads don't overlap."""
    compared, found = 0, []
    for figure in FIGURES.values():
        for metric in figure.metrics:
            those = {line.contender: line for line in lines(other, figure.name, metric)} if metric.compared else {}
            for one in lines(run, figure.name, metric):
                two = those.get(one.contender)
                if one.contender == BASELINE or two is None or None in (one.ratio, two.ratio):
                    continue
                compared += 1
                if max(one.least or 0, two.least or 0) > min(one.greatest or 0, two.greatest or 0):
                    spreads = " and ".join(_cell(line, True) for line in (one, two))
                    found.append(f"{figure.title}, {metric.unit}: {one.contender}: {spreads}")
    return [f"{compared} ratios compared, the spreads of {len(found)} don't overlap", *found]


def number(value: float) -> str:
    """Return a value with two decimals; from 10 on with one decimal, from 100 on as a whole number."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}"


def ratio(value: float) -> str:
    """Return a ratio with about three digits: from 100 on as a whole number, below 0.1 with two significant digits."""
    return (
        f"{value:,.0f}"
        if value >= 100
        else f"{value:.1f}"
        if value >= 10
        else f"{value:.2g}"
        if value < 0.1
        else f"{value:.2f}"
    )


def _aligned(rows: list[list[str]]) -> Iterator[str]:
    widths = [max(len(row[column]) for row in rows) for column in range(len(rows[0]))]
    for index, row in enumerate(rows):
        yield "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |"
        if index == 0:
            yield "|" + "|".join("-" * (width + 2) for width in widths) + "|"


def _faults(run: Stored) -> Iterator[str]:
    seen = set()
    for one in run["measurements"]:
        where = f"{one['contender']}, {one['figure']}, round {one['round'] + 1}"
        for what in ("wrong", "error"):
            if one[what] and (one["contender"], one["figure"], what) not in seen:
                seen.add((one["contender"], one["figure"], what))
                yield f"\n{what}: {where}: {one[what]}"
        if one["checkpoint"]:
            yield f"\ncheckpoint in a measured window: {where}"
