"""What a worker does besides passes: each chore once in a while, however many loops ask for it.

Nothing raises but a lost connection: psycopg's OperationalError.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod

from pgcombine.database import Connection


class Chore(ABC):
    """Something to do every ``every`` seconds, by whichever loop comes first."""

    def __init__(self, every: float) -> None:
        self.every = every
        self._next = 0.0
        self._lock = threading.Lock()

    def look(self, connection: Connection) -> None:
        """Do it if it is time. The connection is idle in autocommit."""
        now = time.monotonic()
        with self._lock:
            if now < self._next:
                return
            self._next = now + self.every
        self.do(connection)

    @abstractmethod
    def do(self, connection: Connection) -> None:
        """Do it now."""
