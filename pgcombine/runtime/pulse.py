"""Signs of life of a daemon's loops, for those who watch the process.

A loop beats as it goes round. One that hasn't for ``limit`` seconds is stalled: it hangs. A loop that connects again
and again to a server that is away goes on beating, since a restart of the process wouldn't help.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

STALLED_SECONDS = 900.0  # more than ordinary steps of a loop take, such as a pass


class Pulse:
    """The loops of a daemon. ``limit`` is the number of seconds that a loop may take for one round."""

    def __init__(self, limit: float = STALLED_SECONDS) -> None:
        self.limit = limit
        self._beats: dict[int, float] = {}  # by thread; monotonic time
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
        """Say that this thread's loop has its connections, until the end of the block."""
        thread = threading.get_ident()
        self._connected.add(thread)
        try:
            yield
        finally:
            self._connected.discard(thread)

    def beat(self) -> None:
        """Say that this thread goes on. A thread that isn't watched may say it, too."""
        thread = threading.get_ident()
        if thread in self._beats:
            self._beats[thread] = time.monotonic()

    @property
    def stalled(self) -> float | None:
        """Return the seconds since the last beat of a loop that is stalled; None: no loop is."""
        beats = self._beats.copy().values()
        age = time.monotonic() - min(beats) if beats else None
        return None if age is None or age <= self.limit else age

    @property
    def ready(self) -> bool:
        """Whether there are loops, and all have their connections."""
        loops = set(self._beats.copy())
        return bool(loops) and loops <= self._connected.copy()
