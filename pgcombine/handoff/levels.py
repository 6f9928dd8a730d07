"""Levels: how many of the servers that hold a key must acknowledge a write, or answer a read."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from pgcombine.errors import ConfigError

Level = Literal["ONE", "QUORUM", "ALL"] | int


def check_level(level: Level, replicas: int) -> Level:
    """Return the level, in upper case if it is a name. Raises ConfigError if ``replicas`` servers can't reach it."""
    if isinstance(level, str):
        if level.upper() in ("ONE", "QUORUM", "ALL"):
            return level.upper()  # type: ignore[return-value]
    elif 1 <= level <= replicas:
        return level
    raise ConfigError(f"level {level!r} can't be reached; give ONE, QUORUM, ALL or a number from 1 to {replicas}")


def needed(level: Level, replicas: int) -> int:
    """Return how many of ``replicas`` servers the level needs: 1, more than half, all, or the number (at most all)."""
    if level == "ONE":
        return 1
    if level == "QUORUM":
        return replicas // 2 + 1
    return replicas if isinstance(level, str) else min(level, replicas)


def reached(level: Level, replica_sets: Iterable[frozenset[str]], acked: set[str]) -> bool:
    """Return whether the servers ``acked``, which acknowledged the write, reach the level for each of the write's keys.

    ``replica_sets`` are the sets of servers that hold keys of the write.
    """
    return all(len(acked & replicas) >= needed(level, len(replicas)) for replicas in replica_sets)
