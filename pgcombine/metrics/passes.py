"""Counts the passes of a process with prometheus-client."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from pgcombine.errors import PassError
from pgcombine.metrics import names
from pgcombine.worker.totals import Pass

_OUTCOMES = ("combined", "failed", "conflict")
_BUCKETS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 300)  # seconds


class PassCounters:
    """Counts the passes of a process. Its methods are called from the threads of the workers."""

    def __init__(self, registry: CollectorRegistry) -> None:
        def counter(metric: names.Metric) -> Counter:
            return Counter(metric.name, metric.help, metric.labels, registry=registry)

        self._passes = counter(names.PASSES)
        self._updates = counter(names.UPDATES)
        self._changes = counter(names.CHANGES)
        self._duration = Histogram(
            names.DURATION.name, names.DURATION.help, names.DURATION.labels, buckets=_BUCKETS, registry=registry
        )
        self._queues: set[str] = set()

    def passed(self, done: Pass) -> None:
        self._know(done.queue)
        self._passes.labels(done.queue, "combined").inc()
        self._passes.labels(done.queue, "conflict").inc(done.conflicts)
        self._updates.labels(done.queue).inc(done.updates)
        self._changes.labels(done.queue).inc(done.changes)
        self._duration.labels(done.queue).observe(done.seconds)

    def failed(self, error: PassError) -> None:
        self._know(str(error.queue))
        self._passes.labels(error.queue, "failed").inc()

    def _know(self, queue: str) -> None:
        """Create all counters of a queue at its first pass. Prometheus sees no increase if a counter begins with 1."""
        if queue not in self._queues:
            self._queues.add(queue)
            for outcome in _OUTCOMES:
                self._passes.labels(queue, outcome)
            self._updates.labels(queue)
            self._changes.labels(queue)
