"""Settings of a benchmark run, and its results."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Settings:
    """The load: Zipf-distributed text keys, pgbench clients, and how long each measurement takes."""

    keys: int
    skew: float
    clients: int
    seconds: float
    rounds: int
    buckets: int  # two a processor core are plenty; more cost log and passes
    rows: int  # of the figures that load by COPY
    hold_seconds: float  # how long the figure "snapshot" holds one


@dataclass(frozen=True)
class Result:
    """One line of the report: a figure of the queue, the baseline's, and their ratio (medians over rounds)."""

    figure: str
    unit: str
    queue: float
    baseline_name: str
    baseline: float | None
    ratio: float | None
    rounds: int

    def as_dict(self) -> dict[str, object]:
        """The fields by name."""
        return dict(vars(self))


def result(
    figure: str, unit: str, queue: Sequence[float], baseline_name: str = "", baseline: Sequence[float] = ()
) -> Result:
    """Medians of the rounds; the ratio is the median of the rounds' own ratios (queue / baseline)."""
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
