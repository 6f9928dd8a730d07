"""Heartbeats of a daemon's loops, for the supervisor of the process.

A loop beats in each round. A loop that hasn't beaten for ``limit`` seconds is stalled. A loop that tries to reach a
server keeps beating, since a restart of the process wouldn't help.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

STALLED_SECONDS = 900.0  # longer than ordinary steps of a loop, such as a pass


class Heartbeat:
    """The heartbeats of a daemon's loops. ``limit`` is the number of seconds that a round of a loop may take."""

    def __init__(self, limit: float = STALLED_SECONDS) -> None:
        self.limit = limit
        self._beats: dict[int, float] = {}  # the monotonic time of the last beat, by thread
        self._connected: set[int] = set()

    @contextmanager
    def loop(self) -> Iterator[None]:
        """Watch this thread until the end of the block."""
        thread = threading.get_ident()
        self._beats[thread] = time.monotonic()
        try:
            yield
        finally:
            del self._beats[thread]

    @contextmanager
    def connected(self) -> Iterator[None]:
        """Record that this thread's loop has its connections, until the end of the block."""
        thread = threading.get_ident()
        self._connected.add(thread)
        try:
            yield
        finally:
            self._connected.discard(thread)

    def beat(self) -> None:
        """Record a heartbeat of this thread. Outside :meth:`loop` this does nothing."""
        thread = threading.get_ident()
        if thread in self._beats:
            self._beats[thread] = time.monotonic()

    @property
    def stalled(self) -> float | None:
        """The seconds since the last beat of the loop that has stalled longest, or None if no loop has stalled."""
        beats = self._beats.copy().values()
        age = time.monotonic() - min(beats) if beats else None
        return None if age is None or age <= self.limit else age

    @property
    def waiting(self) -> int:
        """The number of loops that wait for a connection."""
        return len(set(self._beats.copy()) - self._connected.copy())

    @property
    def ready(self) -> bool:
        """Whether there are loops, and all have their connections."""
        return bool(self._beats) and not self.waiting
