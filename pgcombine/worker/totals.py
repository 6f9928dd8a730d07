"""What one pass did, and sums over passes."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field


@dataclass(frozen=True)
class Pass:
    """What one pass over a bucket did: it took ``updates`` of ``keys`` keys and changed ``changes`` values.

    ``conflicts`` counts how often it was run again because a rival had committed since its snapshot.
    """

    queue: str
    bucket: int
    updates: int
    keys: int
    changes: int
    more: bool
    conflicts: int = field(default=0, compare=False)


@dataclass
class Totals:
    """Sums over passes."""

    passes: int = 0
    updates: int = 0
    keys: int = 0
    changes: int = 0
    conflicts: int = 0

    def add(self, done: Pass) -> None:
        """Count one pass."""
        self.passes += 1
        self.updates += done.updates
        self.keys += done.keys
        self.changes += done.changes
        self.conflicts += done.conflicts

    def merge(self, other: Totals) -> None:
        """Count another's passes, too."""
        self.passes += other.passes
        self.updates += other.updates
        self.keys += other.keys
        self.changes += other.changes
        self.conflicts += other.conflicts

    def as_dict(self) -> dict[str, int]:
        """The figures by name."""
        return asdict(self)
