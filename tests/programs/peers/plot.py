"""The plot: a panel for each shown metric, with the ratio of each contender to sorted upserts.

Better is to the right: more a second, or fewer bytes, microseconds and milliseconds. The axes are logarithmic. A line
in a bar goes from the least to the greatest of the rounds' ratios. A contender has the same colour in all panels. The
bars of a contender with wrong totals are hatched and marked. A contender without values of a metric has no bar in its
panel. The text below the plot names the contenders that couldn't run, those too slow for a visible bar, and those with
wrong totals.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from . import report
from .manual import BASELINE
from .measures import FIGURES, Metric
from .report import Line, Stored

_COLUMNS = 4
_SLOWEST = 0.02  # a contender with a lower ratio of a rate is named below the plot, and has no bars
_OURS = ("#08519c", "#3182bd", "#6baed6", "#9ecae1")  # shades of one colour
_OTHERS = ("#e6550d", "#31a354", "#756bb1", "#d6a400", "#c51b8a", "#8c6d31", "#17a2a2", "#7f7f7f", "#a63603", "#54278f")
_BASELINE = "#444444"
_SHORT = {
    "rate": "rate",
    "log": "log an update",
    "processor": "processor an update",
    "server": "processor an update",
    "p50": "delay p50",
    "p99": "delay p99",
    "growth": "growth an update",
}


def draw(run: Stored, file: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    panels = list(_panels(run))
    off = _off_scale(run)
    contenders = [name for name in run["contenders"] if name not in off and any(name in found for _, found in panels)]
    colours = _colours(contenders)
    rows = max(1, math.ceil(len(panels) / _COLUMNS))
    height = 0.9 + 0.19 * len(contenders)
    figure, axes = pyplot.subplots(
        rows, _COLUMNS, figsize=(17, rows * height + 1.6), squeeze=False, sharey=True, layout="constrained"
    )
    flat = list(axes.flat)
    for axis, (title, found) in zip(flat, panels, strict=False):
        _panel(axis, title, found, contenders, colours, run)
    for axis in flat[len(panels) :]:
        axis.set_visible(False)
    about = run["run"]
    server = str(about["version"]).split(" on ")[0]
    figure.suptitle(
        f"How many times better than {BASELINE}? Right of 1 is better, left is worse.\n"
        f"{server}, {about['cores']} cores; medians of {about['lengths']['rounds']} rounds, lines: least to greatest",
        fontsize=13,
    )
    below = [f"off the scale: {name} ({rate})" for name, rate in off.items()]
    below += [f"not measured: {name} ({reason})" for name, reason in run["skipped"].items()]
    below += [f"✗ {name}: wrong totals" for name in contenders if report.wrong(run, name)]
    if below:
        figure.supxlabel("\n".join(below), fontsize=9)
    figure.savefig(file, dpi=110)
    pyplot.close(figure)


def _panels(run: Stored) -> Iterator[tuple[str, dict[str, Line]]]:
    """Yield the title and the contenders' lines of each panel. Ratios are inverted where less is better."""
    for figure in FIGURES.values():
        for metric in figure.metrics:
            found = {line.contender: turned(line, metric) for line in report.lines(run, figure.name, metric)}
            if metric.shown and any(line.ratio for line in found.values()):
                yield f"{figure.short}\n{_SHORT[metric.name]}", found


def _off_scale(run: Stored) -> dict[str, str]:
    """Return the contenders that are too slow for a bar, each with a text.

    The text says how slow the contender was, and in which of :data:`FIGURES`.
    """
    found = {}
    for figure in FIGURES.values():
        for metric in figure.metrics:
            for line in report.lines(run, figure.name, metric):
                if metric.name == "rate" and line.ratio is not None and line.ratio < _SLOWEST:
                    found[line.contender] = f"{report.ratio(line.ratio)} times the baseline's rate, {figure.short}"
    return found


def turned(line: Line, metric: Metric) -> Line:
    if metric.more or not (line.ratio and line.least and line.greatest):
        return line
    return Line(line.contender, line.value, 1 / line.ratio, 1 / line.greatest, 1 / line.least, line.rounds)


def _panel(
    axis: Any, title: str, found: dict[str, Line], contenders: list[str], colours: dict[str, str], run: Stored
) -> None:
    from matplotlib.ticker import LogLocator

    axis.set_title(title, fontsize=10, fontweight="bold")
    axis.set_xscale("log")
    there = [found[name] for name in contenders if name in found]
    # a logarithmic axis shows only positive ratios
    ratios = [one for line in there for one in (line.least, line.greatest) if one is not None and one > 0]
    greatest, least = max(2.0, *ratios), min(0.5, *ratios)
    axis.set_xlim(least / 1.5, greatest * (greatest / least) ** 0.18)
    for place, name in enumerate(contenders):
        line = found.get(name)
        if line is None or not line.ratio or line.least is None or line.greatest is None:
            continue
        bad = report.wrong(run, name)
        axis.barh(place, line.ratio - 1, left=1, height=0.78, color=colours[name], hatch="////" if bad else None)
        axis.plot([line.least, line.greatest], [place, place], color="black", linewidth=1)
        text = f"{report.ratio(line.ratio)}{' ✗ wrong' if bad else ''}"
        axis.text(max(line.greatest, 1) * 1.06, place, text, va="center", fontsize=8)
    axis.axvline(1, color="black", linewidth=1)
    axis.set_ylim(len(contenders) - 0.4, -0.6)
    axis.set_yticks(range(len(contenders)), contenders, fontsize=8.5)
    for label, name in zip(axis.get_yticklabels(), contenders, strict=False):
        label.set_color(colours[name])
    axis.xaxis.set_major_locator(LogLocator(subs=(1, 3) if greatest / least > 100 else (1, 2, 5)))
    axis.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    axis.xaxis.set_minor_formatter(lambda value, _: "")
    axis.tick_params(axis="x", labelsize=8)
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="x", alpha=0.3)
    for side in ("top", "right", "left"):
        axis.spines[side].set_visible(False)


def _colours(contenders: list[str]) -> dict[str, str]:
    ours, others = iter(_OURS), iter(_OTHERS * 3)
    return {
        name: _BASELINE if name == BASELINE else next(ours) if name.startswith("pgcombine") else next(others)
        for name in contenders
    }
