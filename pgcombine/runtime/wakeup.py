"""How an idle worker sleeps and is woken.

Whoever makes work for it, an enqueue or a pass that is exported, notifies only while somebody sleeps behind the closed
gate (``pgcombine.close_gate`` tells why and how no commit slips through). Where LISTEN isn't possible (a pooler in
transaction mode), or a notification is lost, the poll interval bounds the delay. The connection must be in autocommit;
its errors are psycopg's.
"""

from __future__ import annotations

import select
import socket
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from typing import NamedTuple

from psycopg import sql

from pgcombine.database.connect import Connection

_SHORTEST_NAP = 0.005  # seconds; while writers keep the gate open
_LONGEST_NAP = 0.1
STOP_CHECK = 0.2  # seconds until a sleeper sees that it shall stop
_SUCCESSION = 1.0  # seconds until a sleeper sees that the one that had closed the gate is gone


class Bell:
    """Wakes a sleeper from another thread."""

    def __init__(self) -> None:
        self._ear, self._rope = socket.socketpair()
        self._ear.setblocking(False)
        self._rope.setblocking(False)

    def ring(self) -> None:
        """Wake the sleeper; if nobody sleeps, the next sleep ends at once."""
        with suppress(BlockingIOError):  # it has been rung often enough
            self._rope.send(b"!")

    def silence(self) -> bool:
        """Forget that it was rung; whether it was."""
        with suppress(BlockingIOError):
            return bool(self._ear.recv(4096))
        return False

    def fileno(self) -> int:
        """What to wait on."""
        return self._ear.fileno()

    def close(self) -> None:
        """Free the sockets."""
        self._ear.close()
        self._rope.close()


class Source(NamedTuple):
    """Where work comes from: the name of its gate, the channels it is told on, and whether there may be any now."""

    gate: str
    channels: Collection[str]
    open: bool = True


class Sleeper(ABC):
    """The sleep of one loop on its own connection; ``poll`` in seconds bounds a sleep, and ``bell`` ends it.

    Gates stay closed when a sleep ends with its time, until :meth:`found_work` or :meth:`rest` is called.
    """

    def __init__(self, connection: Connection, *, poll: float, bell: Bell | None = None) -> None:
        self._connection = connection
        self._poll = poll
        self._bell = bell
        self._channels: set[str] = set()
        self._closed: set[str] = set()  # gates
        self._nap = _SHORTEST_NAP
        self.listens = not pooled(connection)

    @abstractmethod
    def sources(self) -> Iterable[Source]:
        """What to listen on; one that isn't open is listened on all the same: whoever opens it wakes sleepers."""

    def sleep(self, stop: threading.Event, may_work: Callable[[], bool]) -> None:
        """Return when there may be work, after ``poll`` seconds at the latest, or when ``stop`` is set.

        ``may_work`` is the last look, taken when gates were closed that were open at the look before.
        """
        if not self.listens:
            self._pause(min(self._poll, _LONGEST_NAP), stop)
            return
        states = self._close_gates({source.gate for source in self._listen() if source.open})
        if states & {"closed", "writers"} and may_work():
            return
        seconds = self._poll
        if "writers" in states:
            seconds = self._nap
            self._nap = min(2 * self._nap, _LONGEST_NAP)
        elif "sleeper" in states:
            seconds = min(self._poll, _SUCCESSION)
        if self._wait(seconds, stop):
            self._open_gates()

    def rest(self, stop: threading.Event, seconds: float) -> None:
        """Return after so many seconds, ``poll`` at most, or when ``stop`` is set: work that is there has to wait.

        Gates are open, so new work doesn't end it; what is notified all the same does, as a resumed destination is.
        """
        if not self.listens:
            self._pause(min(self._poll, seconds), stop)
            return
        self._listen()
        self._open_gates()
        self._wait(min(self._poll, seconds), stop)

    def found_work(self) -> None:
        """Tell that the last sleep ended in work: gates are opened, the next nap is short again."""
        self._open_gates()
        self._nap = _SHORTEST_NAP

    def _listen(self) -> list[Source]:
        """LISTEN on the channels that are new; returns all sources."""
        found = list(self.sources())
        for channel in (channel for source in found for channel in source.channels):
            if channel not in self._channels:
                self._connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
                self._channels.add(channel)
        return found

    def _close_gates(self, gates: set[str]) -> set[str]:
        """Close those that aren't; what ``pgcombine.close_gate`` returned for these."""
        missing = sorted(gates - self._closed)
        if not missing:
            return set()
        found = self._connection.execute(
            "select gate, pgcombine.close_gate(gate) from unnest(%s::text[]) gate", (missing,)
        ).fetchall()
        self._closed.update(str(gate) for gate, state in found if state == "closed")
        return {str(state) for _, state in found}

    def _open_gates(self) -> None:
        if self._closed:
            self._connection.execute(
                "select pgcombine.open_gate(gate) from unnest(%s::text[]) gate", ([*self._closed],)
            )
            self._closed.clear()

    def _wait(self, seconds: float, stop: threading.Event) -> bool:
        """Whether a notification, or the bell, came within so many seconds."""
        deadline = time.monotonic() + seconds
        poller = select.poll()
        poller.register(self._connection.fileno(), select.POLLIN)
        if self._bell is not None:
            poller.register(self._bell.fileno(), select.POLLIN)
        while not stop.is_set():
            if self._bell is not None and self._bell.silence():
                return True
            if any(True for _ in self._connection.notifies(timeout=0, stop_after=1)):
                return True
            if (remaining := deadline - time.monotonic()) <= 0:
                return False
            poller.poll(1000 * min(remaining, STOP_CHECK))
        return True

    def _pause(self, seconds: float, stop: threading.Event) -> None:
        """Wait where nobody notifies."""
        if self._bell is None:
            stop.wait(seconds)
            return
        poller = select.poll()
        poller.register(self._bell.fileno(), select.POLLIN)
        poller.poll(1000 * seconds)
        self._bell.silence()


class Wakeup(Sleeper):
    """The sleep of a worker's loop, over ``queues`` (none named: all)."""

    def __init__(
        self, connection: Connection, queues: Collection[str] | None, *, poll: float, bell: Bell | None = None
    ) -> None:
        super().__init__(connection, poll=poll, bell=bell)
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
