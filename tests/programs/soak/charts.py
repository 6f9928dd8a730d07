"""The charts of a run in one PNG file: backlog, delays, hints, old snapshot, memory and table sizes over time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any


def draw(report: Mapping[str, Any], file: Path) -> None:
    """Draw a report of a run. A grey area marks the time in which a snapshot was held."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    samples = report["samples"]
    figure, axes = pyplot.subplots(3, 2, figsize=(15, 11), layout="constrained", sharex=True)
    backlog, delay, hints, segments, memory, sizes = axes.flat
    _lines(backlog, samples, {"pending": "updates pending", "entries": "entries of the export"})
    backlog.set_title("backlog")
    fresh = [(at / 60, seconds) for at, seconds in report["fresh"]]
    delay.plot(
        [at for at, _ in fresh],
        [seconds for _, seconds in fresh],
        ".",
        markersize=2,
        label="from a commit to its value",
    )
    _lines(delay, samples, {"lag": "lag by queue_stat"})
    delay.set_yscale("log")
    delay.set_title("delay and lag, seconds")
    _lines(hints, samples, {"hints": "writes that wait for the other server"})
    hints.set_title("hints")
    _lines(segments, samples, {"segments": "segments that wait", "snapshot": "age of the oldest snapshot, s"})
    segments.set_title("old snapshot")
    _group(memory, samples, "memory")
    memory.set_title("memory of each process, MB")
    _group(sizes, samples, "sizes")
    sizes.set_title("size of the tables, MB")
    for axis in axes.flat:
        axis.grid(alpha=0.3)
        axis.set_ylim(bottom=None if axis is delay else 0)
        if axis.get_legend_handles_labels()[0]:
            axis.legend(fontsize=8)
        if report["held"]:
            axis.axvspan(*(at / 60 for at in report["held"]), color="0.85", zorder=0)
    for axis in axes[-1]:
        axis.set_xlabel("minutes")
    kills = ", ".join(f"{name} {times}" for name, times in report["kills"].items())
    figure.suptitle(
        f"{report['minutes']:g} minutes; killed: {kills or 'nothing'}; grey: a snapshot is held", fontsize=12
    )
    figure.savefig(file, dpi=100)
    pyplot.close(figure)


def _lines(axis: Any, samples: Sequence[Mapping[str, Any]], names: Mapping[str, str]) -> None:
    for name, label in names.items():
        found = [(one["at"] / 60, float(one[name])) for one in samples if one.get(name) is not None]
        axis.plot([at for at, _ in found], [value for _, value in found], label=label, linewidth=1)


def _group(axis: Any, samples: Sequence[Mapping[str, Any]], group: str) -> None:
    for name in sorted({name for one in samples for name in one.get(group, {})}):
        found = [(one["at"] / 60, one[group][name]) for one in samples if name in one.get(group, {})]
        axis.plot([at for at, _ in found], [value for _, value in found], label=name, linewidth=1)
