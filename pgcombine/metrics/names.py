"""The definitions of the metrics.

A process counts its own passes. The figures of the database are gauges: a query of ``sql/queries`` returns a row for
each combination of labels, and a column of the row is the figure.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Metric:
    """The definition of a metric."""

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str


@dataclass(frozen=True)
class Gauge(Metric):
    """A figure of the database: the column ``column`` of the query ``query``."""

    query: str
    column: str


_LABELS: dict[str, tuple[str, ...]] = {  # by query
    "queue": ("queue",),
    "export": ("export", "queue"),
    "destination": ("kind", "destination"),
    "hint": ("destination",),
    "snapshot": (),
    "segment": ("queue",),
    "feed": ("feed", "queue"),
}


def _gauge(name: str, query: str, column: str, meaning: str) -> Gauge:
    return Gauge(f"pgcombine_{name}", "gauge", _LABELS[query], meaning, f"metrics_{query}", column)


BUILD_INFO = Metric("pgcombine_build_info", "gauge", ("version",), "Always 1. The label is the program's version.")
PASSES = Metric(
    "pgcombine_passes_total",
    "counter",
    ("queue", "outcome"),
    "Passes of this process: combined (they took updates), failed, or conflict (another commit made them run again).",
)
UPDATES = Metric(
    "pgcombine_updates_combined_total", "counter", ("queue",), "Updates that passes of this process combined."
)
CHANGES = Metric(
    "pgcombine_changes_total", "counter", ("queue",), "Changes of values that passes of this process made."
)
DURATION = Metric(
    "pgcombine_pass_duration_seconds", "histogram", ("queue",), "Durations of this process's passes that took updates."
)
WAITING = Metric(
    "pgcombine_loops_without_connection",
    "gauge",
    (),
    "Loops of this process that wait for a connection to the database.",
)
OF_A_PROCESS = (BUILD_INFO, PASSES, UPDATES, CHANGES, DURATION, WAITING)

# these are served only by the process that gives the figures of the database
FIGURES_READ = Metric(
    "pgcombine_figures_read",
    "gauge",
    ("query",),
    "1: the database has answered this query. 0: the server refused or cancelled the query; its figures are missing.",
)
OF_THE_DATABASE = (
    _gauge("queue_pending_updates", "queue", "pending", "About how many updates no pass has combined yet."),
    _gauge(
        "queue_lag_seconds",
        "queue",
        "lag_seconds",
        "Age of the oldest pending update, also in a paused queue; 0 if none is pending.",
    ),
    _gauge(
        "queue_paused", "queue", "paused", "1: no pass runs over the queue, since it is paused. 0: it isn't paused."
    ),
    _gauge("queue_quarantined_keys", "queue", "quarantined_keys", "Quarantined keys."),
    _gauge("export_pending_entries", "export", "pending", "About how many entries wait to be delivered."),
    _gauge(
        "export_lag_seconds",
        "export",
        "lag_seconds",
        "Age of the oldest waiting entry, also in a paused export; 0 if none waits.",
    ),
    _gauge(
        "feed_lag_seconds",
        "feed",
        "lag_seconds",
        "Age of the oldest kept change that a registered consumer of the feed hasn't read; 0 if all have read all.",
    ),
    _gauge(
        "destination_up",
        "destination",
        "up",
        "1: an export or a server takes deliveries, or a front's node answers. 0: suspect, down or paused.",
    ),
    _gauge("hints", "hint", "writes", "About how many writes wait here for another server."),
    _gauge("hint_age_seconds", "hint", "oldest_seconds", "Age of the oldest write that waits here for another server."),
    _gauge(
        "oldest_snapshot_seconds",
        "snapshot",
        "seconds",
        "Age of the oldest snapshot, or transaction that has written; 0: there is none.",
    ),
    _gauge(
        "segments_waiting",
        "segment",
        "waiting",
        "Segments of the log that wait to be reclaimed. In a quiet queue some may always wait.",
    ),
    _gauge(
        "segments_waiting_bytes", "segment", "waiting_bytes", "Size of the log's segments that wait to be reclaimed."
    ),
)
