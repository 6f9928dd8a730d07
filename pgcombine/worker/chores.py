"""What a worker does besides passes: each chore once in a while, however many loops ask for it.

Nothing raises but a lost connection: psycopg's OperationalError.
"""

from __future__ import annotations

import logging
import threading
import time
from abc import ABC, abstractmethod

import psycopg

from pgcombine.database.connect import Connection

log = logging.getLogger("pgcombine.worker")


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
        try:
            self.do(connection)
        except psycopg.Error as error:  # what somebody did to the database must not end a worker
            if connection.closed or isinstance(error, psycopg.OperationalError):
                raise
            log.warning("chore.failed chore=%s reason=%s", type(self).__name__, str(error).strip().splitlines()[0])

    @abstractmethod
    def do(self, connection: Connection) -> None:
        """Do it now."""
