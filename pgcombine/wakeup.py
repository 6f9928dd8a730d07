"""How an idle worker sleeps and is woken.

Whoever makes work for it, an enqueue or a pass that is exported, notifies only while somebody sleeps behind the closed
gate (``pgcombine.close_gate`` tells why and how no commit slips through). Where LISTEN isn't possible (a pooler in
transaction mode), or a notification is lost, the poll interval bounds the delay. The connection must be in autocommit;
its errors are psycopg's.
"""

from __future__ import annotations

import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from psycopg import sql

from pgcombine.database import Connection

_SHORTEST_NAP = 0.005  # seconds; while writers keep the gate open
_LONGEST_NAP = 0.1
_STOP_CHECK = 0.2  # seconds until a sleeper sees that it shall stop


class Source(NamedTuple):
    """Where work comes from: the name of its gate, the channels it is told on, and whether there may be any now."""

    gate: str
    channels: Collection[str]
    open: bool = True


class Sleeper(ABC):
    """The sleep of one loop on its own connection; ``poll`` in seconds bounds a sleep."""

    def __init__(self, connection: Connection, *, poll: float) -> None:
        self._connection = connection
        self._poll = poll
        self._channels: set[str] = set()
        self._nap = _SHORTEST_NAP
        self.listens = not pooled(connection)

    @abstractmethod
    def sources(self) -> Iterable[Source]:
        """What to listen on; one that isn't open is listened on all the same: whoever opens it wakes sleepers."""

    def sleep(self, stop: threading.Event, may_work: Callable[[], bool]) -> None:
        """Return when there may be work, after ``poll`` seconds at the latest, or when ``stop`` is set.

        ``may_work`` is the last look, taken when the gates are closed.
        """
        if not self.listens:
            stop.wait(min(self._poll, _LONGEST_NAP))
            return
        gates = {source.gate: self._close_gate(source.gate) for source in self._listen() if source.open}
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
                for gate, state in gates.items():
                    if state == "closed":
                        self._connection.execute("select pgcombine.open_gate(%s)", (gate,))

    def rest(self, stop: threading.Event, seconds: float) -> None:
        """Return after so many seconds, ``poll`` at most, or when ``stop`` is set: work that is there has to wait.

        Gates stay open, so new work doesn't end it; what is notified all the same does, as a resumed destination is.
        """
        if not self.listens:
            stop.wait(min(self._poll, seconds))
            return
        self._listen()
        self._wait(min(self._poll, seconds), stop)

    def found_work(self) -> None:
        """Tell that the last sleep ended in work: the next nap is short again."""
        self._nap = _SHORTEST_NAP

    def _listen(self) -> list[Source]:
        """LISTEN on the channels that are new; returns all sources."""
        found = list(self.sources())
        for channel in (channel for source in found for channel in source.channels):
            if channel not in self._channels:
                self._connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
                self._channels.add(channel)
        return found

    def _close_gate(self, queue: str) -> str:
        row = self._connection.execute("select pgcombine.close_gate(%s)", (queue,)).fetchone()
        assert row is not None
        return str(row[0])

    def _wait(self, seconds: float, stop: threading.Event) -> None:
        deadline = time.monotonic() + seconds
        while not stop.is_set() and (remaining := deadline - time.monotonic()) > 0:
            if any(True for _ in self._connection.notifies(timeout=min(remaining, _STOP_CHECK), stop_after=1)):
                return


class Wakeup(Sleeper):
    """The sleep of a worker's loop, over ``queues`` (none named: all)."""

    def __init__(self, connection: Connection, queues: Collection[str] | None, *, poll: float) -> None:
        super().__init__(connection, poll=poll)
        self._only = queues

    def sources(self) -> Iterable[Source]:
        """The queues that notify; paused ones have no work."""
        found = self._connection.execute("select queue, buckets, paused from pgcombine.queue where notify")
        for queue, buckets, paused in found.fetchall():
            if not self._only or queue in self._only:
                channels = [f"pgcombine.{queue}", *(f"pgcombine.{queue}.{b}" for b in range(int(buckets)))]
                yield Source(str(queue), channels, not paused)


def pooled(connection: Connection) -> bool:
    """Whether a pooler is in between: then the server process isn't the one that the connection was told."""
    row = connection.execute("select pg_backend_pid()").fetchone()
    return row is None or row[0] != connection.info.backend_pid
