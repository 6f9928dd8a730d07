"""How an idle worker sleeps and is woken.

Enqueues notify only while somebody sleeps behind the closed gate (``pgcombine.close_gate`` tells why and how
no commit slips through). Where LISTEN isn't possible (a pooler in transaction mode), or a notification is
lost, the poll interval bounds the delay. The connection must be in autocommit; its errors are psycopg's.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection

from psycopg import sql

from pgcombine.database import Connection

_SHORTEST_NAP = 0.005  # seconds; while writers keep the gate open
_LONGEST_NAP = 0.1
_STOP_CHECK = 0.2  # seconds until a sleeper sees that it shall stop


class Wakeup:
    """The sleep of one worker loop on its own connection; ``poll`` in seconds bounds a sleep."""

    def __init__(self, connection: Connection, queues: Collection[str] | None, *, poll: float) -> None:
        self._connection = connection
        self._only = queues
        self._poll = poll
        self._channels: set[str] = set()
        self._nap = _SHORTEST_NAP
        self.listens = not pooled(connection)

    def sleep(self, stop: threading.Event, may_work: Callable[[], bool]) -> None:
        """Return when there may be work, after ``poll`` seconds at the latest, or when ``stop`` is set.

        ``may_work`` is the last look, taken when the gates are closed.
        """
        if not self.listens:
            stop.wait(min(self._poll, _LONGEST_NAP))
            return
        queues = self._listen()
        gates = {queue: self._close_gate(queue) for queue in queues}
        try:
            if may_work():
                return
            if "writers" in gates.values():
                self._wait(self._nap, stop)
                self._nap = min(2 * self._nap, _LONGEST_NAP)
            else:
                self._wait(self._poll if "sleeper" not in gates.values() else min(self._poll, _STOP_CHECK), stop)
        finally:
            if not self._connection.broken:
                for queue, state in gates.items():
                    if state == "closed":
                        self._connection.execute("select pgcombine.open_gate(%s)", (queue,))

    def found_work(self) -> None:
        """Tell that the last sleep ended in work: the next nap is short again."""
        self._nap = _SHORTEST_NAP

    def _listen(self) -> list[str]:
        """LISTEN on the channels of queues that are new; returns all queues that may have work.

        Paused ones don't, but they are listened on: whoever resumes one wakes sleepers.
        """
        queues: list[str] = []
        found = self._connection.execute("select queue, buckets, paused from pgcombine.queue where notify")
        for queue, buckets, paused in found.fetchall():
            if self._only and queue not in self._only:
                continue
            if not paused:
                queues.append(str(queue))
            for channel in [f"pgcombine.{queue}", *(f"pgcombine.{queue}.{b}" for b in range(int(buckets)))]:
                if channel not in self._channels:
                    self._connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
                    self._channels.add(channel)
        return queues

    def _close_gate(self, queue: str) -> str:
        row = self._connection.execute("select pgcombine.close_gate(%s)", (queue,)).fetchone()
        assert row is not None
        return str(row[0])

    def _wait(self, seconds: float, stop: threading.Event) -> None:
        deadline = time.monotonic() + seconds
        while not stop.is_set() and (remaining := deadline - time.monotonic()) > 0:
            if any(True for _ in self._connection.notifies(timeout=min(remaining, _STOP_CHECK), stop_after=1)):
                return


def pooled(connection: Connection) -> bool:
    """Whether a pooler is in between: then the server process isn't the one that the connection was told."""
    row = connection.execute("select pg_backend_pid()").fetchone()
    return row is None or row[0] != connection.info.backend_pid
