"""Plain values that the modules exchange."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import NamedTuple


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


class Plan(NamedTuple):
    """What a pass is to do: what Python needs of a ``pgcombine.plan``, and all of it as ``text`` for the server."""

    queue: str
    bucket: int
    text: str
    mask: int | None
    slice: int | None
    pending: int
    more: bool
    held: bool
    observe: list[str]


@dataclass(frozen=True)
class Isolation:
    """What a search for the keys at fault did: ``tries`` passes, ``taken`` together, and so many keys quarantined.

    ``settled``: no key is left that fails or wasn't tried.
    """

    taken: Pass
    tries: int
    quarantined: int
    settled: bool


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
