"""The sleep of an idle worker, and how it is woken.

Enqueues and passes make work. They notify only while a worker sleeps behind the closed gate.
The trigger function ``wake`` explains the gate, and why no commit slips through. The poll interval bounds the delay if
a notification is lost, or if LISTEN isn't possible (through a pooler in transaction mode). The connection must be in
autocommit. Its errors are psycopg's.
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

from pgcombine.database import sqlfiles
from pgcombine.database.connect import Connection, one

_SHORTEST_NAP = 0.005  # seconds; used while writers keep the gate open
_LONGEST_NAP = 0.1
_ALL = 1.0  # seconds between two looks of a busy worker at all queues
STOP_CHECK = 0.2  # seconds until a sleeper sees that an event is set
_SUCCESSION = 1.0  # seconds until a sleeper sees that the session which closed the gate is gone


class Bell:
    """Wakes a sleeper from another thread."""

    def __init__(self) -> None:
        self._ear, self._rope = socket.socketpair()
        self._ear.setblocking(False)
        self._rope.setblocking(False)

    def ring(self) -> None:
        """Wake the sleeper. If no thread sleeps, the next sleep ends at once."""
        with suppress(BlockingIOError):  # the socket is full: enough rings wait already
            self._rope.send(b"!")

    def silence(self) -> bool:
        """Forget earlier rings. Returns whether there were any."""
        with suppress(BlockingIOError):
            return bool(self._ear.recv(4096))
        return False

    def fileno(self) -> int:
        return self._ear.fileno()

    def close(self) -> None:
        self._ear.close()
        self._rope.close()


class Source(NamedTuple):
    """A source of work: its gate, the channels of its notifications, and whether it may have work now.

    The gate is the OID of the table into which the work is inserted.
    """

    gate: int
    channels: Collection[str]
    open: bool = True


class Sleeper(ABC):
    """The sleep of one loop, on the loop's own connection.

    A sleep ends after ``poll`` seconds, or when ``bell`` is rung. When a sleep ends by its time, closed gates stay
    closed until :meth:`found_work` or :meth:`rest` is called.
    """

    def __init__(self, connection: Connection, *, poll: float, bell: Bell | None = None) -> None:
        self._connection = connection
        self._poll = poll
        self._bell = bell
        self._channels: set[str] = set()
        self._closed: set[int] = set()  # the gates that this sleeper has closed
        self._nap = _SHORTEST_NAP
        self.listens = not pooled(connection)

    @abstractmethod
    def sources(self) -> Iterable[Source]:
        """Return the sources to listen on. Include those that aren't open: opening one sends a notification."""

    def sleep(self, stop: threading.Event, may_work: Callable[[], bool]) -> None:
        """Return when there may be work, after ``poll`` seconds at the latest, or when ``stop`` is set.

        ``may_work`` looks for work once more after gates were closed. Work may have come before that without a
        notification.
        """
        if not self.listens:
            self._pause(min(self._poll, _LONGEST_NAP), stop)
            return
        states = self._close_gates({source.gate for source in self._listen() if source.open})
        if states & {"taken", "writers"} and may_work():
            return
        seconds = self._poll
        if "writers" in states:
            seconds = self._nap
            self._nap = min(2 * self._nap, _LONGEST_NAP)
        elif "other" in states:
            seconds = min(self._poll, _SUCCESSION)
        self._woken(self._wait(seconds, stop))

    def _woken(self, heard: set[str] | None) -> None:
        """React to the end of a sleep: the channels that ended it, or None for its time."""
        if heard is not None:
            self._open_gates(self._closed)

    def rest(self, stop: threading.Event, seconds: float) -> None:
        """Return after ``seconds``, ``poll`` at most, or when ``stop`` is set. Known work waits so long.

        The gates are open meanwhile, so new work sends no notification. Other notifications end the rest, for example
        that of a resumed destination.
        """
        if not self.listens:
            self._pause(min(self._poll, seconds), stop)
            return
        self._listen()
        self._open_gates(self._closed)
        self._wait(min(self._poll, seconds), stop)

    def found_work(self) -> None:
        """Record that the last sleep ended with work. The gates are opened, and the next nap is short again."""
        self._open_gates(self._closed)
        self._nap = _SHORTEST_NAP

    def _listen(self) -> list[Source]:
        """LISTEN on the channels that are new. Returns all sources."""
        found = list(self.sources())
        new = {channel for source in found for channel in source.channels} - self._channels
        for channel in new:
            self._connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
        self._channels |= new
        # A closed gate's notification on a new channel may have gone unheard. It is closed again, before another look.
        self._open_gates({source.gate for source in found if not new.isdisjoint(source.channels)} & self._closed)
        return found

    def _close_gates(self, gates: set[int]) -> set[str]:
        """Close the gates that this sleeper hasn't closed yet. Returns the states from ``take_idle_lock``."""
        missing = sorted(gates - self._closed)
        if not missing:
            return set()
        found = self._connection.execute(sqlfiles.query("close_gates"), (missing,)).fetchall()
        self._closed.update(int(gate) for gate, state in found if state == "taken")
        return {str(state) for _, state in found}

    def _open_gates(self, gates: set[int]) -> None:
        if gates:
            self._connection.execute(sqlfiles.query("open_gates"), ([*gates],))
            self._closed -= gates

    def _wait(self, seconds: float, stop: threading.Event) -> set[str] | None:
        """Wait ``seconds``, and return None. As soon as notifications or rings come, return the channels."""
        deadline = time.monotonic() + seconds
        poller = select.poll()
        poller.register(self._connection.fileno(), select.POLLIN)
        if self._bell is not None:
            poller.register(self._bell.fileno(), select.POLLIN)
        while not stop.is_set():
            rung = self._bell is not None and self._bell.silence()
            heard = self._notes()
            if rung or heard:
                return heard
            if (remaining := deadline - time.monotonic()) <= 0:
                return None
            poller.poll(1000 * min(remaining, STOP_CHECK))
        return set()

    def _notes(self) -> set[str]:
        """Return the channels of the notifications that have come, once."""
        return {note.channel for note in self._connection.notifies(timeout=0)}

    def _pause(self, seconds: float, stop: threading.Event) -> None:
        """Wait for ``seconds`` or for the bell, where there are no notifications."""
        if self._bell is None:
            stop.wait(seconds)
            return
        poller = select.poll()
        poller.register(self._bell.fileno(), select.POLLIN)
        poller.poll(1000 * seconds)
        self._bell.silence()


class Wakeup(Sleeper):
    """The sleep of a worker's loop over ``queues`` (empty or None: all).

    A writer to a queue whose gate this sleeper keeps closed notifies. So a look after a notification costs nothing for
    the other queues. When work goes on, all gates are opened, and each look is at all queues.
    """

    def __init__(
        self, connection: Connection, queues: Collection[str] | None, *, poll: float, bell: Bell | None = None
    ) -> None:
        super().__init__(connection, poll=poll, bell=bell)
        self._only = queues
        self._gates: dict[str, int] = {}  # by queue
        self._heard: set[str] = set()  # the queues whose notifications ended the last sleep, or whose gates closed last
        self._last_all = 0.0  # monotonic time of the last look at all queues

    def queues(self, busy: bool = False) -> set[str] | None:
        """Return the queues that may have new work. None: all.

        These are all while no gate is closed, and once in ``poll`` seconds, or each second of a ``busy`` worker, which
        doesn't sleep: buckets may be due for another reason.
        """
        now = time.monotonic()
        if not self._closed or now >= self._last_all + (min(self._poll, _ALL) if busy else self._poll):
            self._last_all = now
            return None
        self._heard |= self._queues_of(self._notes())
        return self._heard | {queue for queue, gate in self._gates.items() if gate not in self._closed}

    def found_work_in(self, queues: Collection[str]) -> None:
        """Record that queues have a little work. Their gates are opened, and the next nap is short again."""
        self._open_gates({self._gates[queue] for queue in queues if queue in self._gates} & self._closed)
        self._nap = _SHORTEST_NAP

    def sources(self) -> Iterable[Source]:
        """Return the queues that notify. Paused queues have no work."""
        self._gates = {}
        for queue, buckets, paused, gate in self._connection.execute(sqlfiles.query("queue_sources")).fetchall():
            if gate is not None and (not self._only or queue in self._only):
                channels = [f"pgcombine.{queue}", *(f"pgcombine.{queue}.{bucket}" for bucket in range(int(buckets)))]
                if not paused:
                    self._gates[queue] = int(gate)
                yield Source(int(gate), channels, not paused)

    def _close_gates(self, gates: set[int]) -> set[str]:
        self._open_gates(self._closed - gates)  # of queues that are paused or gone
        self._heard = {queue for queue, gate in self._gates.items() if gate not in self._closed}
        return super()._close_gates(gates)

    def _woken(self, heard: set[str] | None) -> None:
        self._heard = self._queues_of(heard or ())

    @staticmethod
    def _queues_of(channels: Iterable[str]) -> set[str]:
        return {channel.split(".")[1] for channel in channels}


def pooled(connection: Connection) -> bool:
    """Whether a pooler is between: then the server process has another id than the connection was given."""
    return one(connection, "select pg_backend_pid()") != (connection.info.backend_pid,)
