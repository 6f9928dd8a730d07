"""The settings of a benchmark run, and its results."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """The settings of the load, and of the measurements. ``seconds`` is the length of most measurements."""

    keys: int
    skew: float
    clients: int
    seconds: float
    rounds: int
    buckets: int
    rows: int  # number of updates in the figures "copy" and "keys"
    hold_seconds: float  # how long the figure "snapshot" holds a snapshot, in seconds


@dataclass(frozen=True)
class Result:
    """One line of the report: the queue's value, the baseline's value, and their ratio, as medians over the rounds."""

    figure: str
    unit: str
    queue: float
    baseline_name: str
    baseline: float | None
    ratio: float | None
    rounds: int

    def as_dict(self) -> dict[str, object]:
        """Return the fields by name."""
        return dict(vars(self))


def result(
    figure: str, unit: str, queue: Sequence[float], baseline_name: str = "", baseline: Sequence[float] = ()
) -> Result:
    """Return the medians of the rounds. The ratio is the median of the rounds' ratios (queue / baseline)."""
    ratios = [q / b for q, b in zip(queue, baseline, strict=True)] if baseline else []
    return Result(
        figure,
        unit,
        statistics.median(queue),
        baseline_name,
        statistics.median(baseline) if baseline else None,
        statistics.median(ratios) if ratios else None,
        len(queue),
    )
