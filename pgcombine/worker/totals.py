"""The result of one pass, and sums of results."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Pass:
    """Result of a pass over a bucket: it took ``updates`` updates, combined ``keys`` keys, changed ``changes`` values.

    The updates of quarantined keys count, too: the pass moves them to quarantine. ``more`` says whether pending
    updates were left for another pass. ``expired`` is the number of expired keys that the pass removed.
    ``unfinished`` says whether the next pass goes on with the scan for expired keys. ``conflicts`` is the number of
    times that the pass was run again because of a conflict with another transaction. ``seconds`` is the duration of
    all runs together.
    """

    queue: str
    bucket: int
    updates: int
    keys: int
    changes: int
    more: bool
    expired: int = field(default=0, compare=False)
    unfinished: bool = field(default=False, compare=False)
    conflicts: int = field(default=0, compare=False)
    seconds: float = field(default=0.0, compare=False)


@dataclass
class Totals:
    """Sums of the results of passes."""

    passes: int = 0
    updates: int = 0
    keys: int = 0
    changes: int = 0
    conflicts: int = 0

    def add(self, done: Pass) -> None:
        """Add the result of one pass."""
        self.passes += 1
        self.updates += done.updates
        self.keys += done.keys
        self.changes += done.changes
        self.conflicts += done.conflicts

    def merge(self, other: Totals) -> None:
        """Add the sums of ``other``."""
        self.passes += other.passes
        self.updates += other.updates
        self.keys += other.keys
        self.changes += other.changes
        self.conflicts += other.conflicts

    def as_dict(self) -> dict[str, int]:
        """Return the sums by name."""
        return asdict(self)
