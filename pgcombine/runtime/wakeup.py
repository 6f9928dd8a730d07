"""The sleep of an idle worker, and the notifications that end it.

Enqueues make work for workers, and passes make work for deliveries. A transaction that makes work notifies only while a
session holds the *idle lock* of the table into which the work is inserted. Before a worker polls a last time and
sleeps, it takes the lock, unless another session has it. A worker with little work in one queue keeps the idle locks of
the other queues. So writers to the other queues notify while the worker runs passes. The trigger function ``wake``
explains why no commit goes unnoticed.

The poll interval bounds the delay if a notification is lost. Through a pooler in transaction mode LISTEN doesn't work,
and the listener polls. The connection must be in autocommit. Errors of the connection are psycopg's.
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

# in seconds; while open transactions of writers share the idle lock, a listener only naps. Through a pooler it always
# naps, for the longest time
_SHORTEST_NAP = 0.005
_LONGEST_NAP = 0.1
_ALL = 1.0  # seconds at most between two polls of all queues by a busy worker
STOP_CHECK = 0.2  # seconds at most until a listener, or a loop of a worker, sees that its stop event is set
_SUCCESSION = 1.0  # seconds at most until a listener tries again to take an idle lock that another session holds


class Waker:
    """Wakes a listener from another thread, by a byte on a socket that the listener polls."""

    def __init__(self) -> None:
        self._reader, self._writer = socket.socketpair()
        self._reader.setblocking(False)
        self._writer.setblocking(False)

    def wake(self) -> None:
        """Wake the listener. If it doesn't sleep now, its next sleep ends at once."""
        with suppress(BlockingIOError):  # the socket's buffer is full of earlier calls, so the listener wakes anyway
            self._writer.send(b"!")

    def drain(self) -> bool:
        """Clear earlier calls of :meth:`wake`. Returns whether there were any."""
        with suppress(BlockingIOError):
            return bool(self._reader.recv(4096))
        return False

    def fileno(self) -> int:
        return self._reader.fileno()

    def close(self) -> None:
        self._reader.close()
        self._writer.close()


class Source(NamedTuple):
    """A source of work: its idle lock, the channels of its notifications, and whether it may have work now.

    ``idle_lock`` is the OID of the table into which the work is inserted.
    """

    idle_lock: int
    channels: Collection[str]
    active: bool = True


class Listener(ABC):
    """The sleep of one loop, on the loop's own connection.

    A sleep ends after ``poll`` seconds at the latest, at a notification, when ``waker`` wakes the listener, or when the
    stop event is set. In the last three cases the listener also releases its idle locks (a :class:`QueueListener` keeps
    them). After a sleep that lasted its whole time, the listener keeps them.
    """

    def __init__(self, connection: Connection, *, poll: float, waker: Waker | None = None) -> None:
        self._connection = connection
        self._poll = poll
        self._waker = waker
        self._channels: set[str] = set()
        self._locked: set[int] = set()  # the idle locks that this listener holds
        self._nap = _SHORTEST_NAP
        self.listens = not pooled(connection)

    @abstractmethod
    def sources(self) -> Iterable[Source]:
        """Return the sources to listen on. Include inactive ones: a source that becomes active notifies."""

    def sleep(self, stop: threading.Event, may_work: Callable[[], bool]) -> None:
        """Return when there may be work, after ``poll`` seconds at the latest, or when ``stop`` is set.

        ``may_work`` polls, and returns whether it found work. The listener calls it while writers share an idle lock,
        and after it has taken an idle lock: transactions that committed before that didn't notify.
        """
        if not self.listens:
            self._pause(min(self._poll, _LONGEST_NAP), stop)
            return
        states = self._take({source.idle_lock for source in self._listen() if source.active})
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
        """React to the end of a sleep."""
        if heard is not None:
            self._release(self._locked)

    def rest(self, stop: threading.Event, seconds: float) -> None:
        """Return after ``seconds``, after ``poll`` seconds at the latest, or when ``stop`` is set.

        Use it when there is work that can't be done yet. The listener holds no idle lock meanwhile. A notification,
        for example that of a resumed destination, or the waker ends the rest.
        """
        if not self.listens:
            self._pause(min(self._poll, seconds), stop)
            return
        self._listen()
        self._release(self._locked)
        self._wait(min(self._poll, seconds), stop)

    def found_work(self) -> None:
        """Record that there is work. All idle locks are released, and the next nap is short."""
        self._release(self._locked)
        self._nap = _SHORTEST_NAP

    def _listen(self) -> list[Source]:
        """LISTEN on the channels that this listener doesn't listen on yet. Returns all sources."""
        found = list(self.sources())
        new = {channel for source in found for channel in source.channels} - self._channels
        for channel in new:
            self._connection.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
        self._channels |= new
        # A notification on a new channel may have been sent before LISTEN. So the idle locks of its sources are
        # released: the listener polls again after it has taken an idle lock.
        self._release({source.idle_lock for source in found if not new.isdisjoint(source.channels)} & self._locked)
        return found

    def _take(self, idle_locks: set[int]) -> set[str]:
        """Try to take the idle locks that this listener doesn't hold. Returns the results of ``take_idle_lock``."""
        missing = sorted(idle_locks - self._locked)
        if not missing:
            return set()
        found = self._connection.execute(sqlfiles.query("take_idle_locks"), (missing,)).fetchall()
        self._locked.update(int(idle_lock) for idle_lock, state in found if state == "taken")
        return {str(state) for _, state in found}

    def _release(self, idle_locks: set[int]) -> None:
        if idle_locks:
            self._connection.execute(sqlfiles.query("release_idle_locks"), ([*idle_locks],))
            self._locked -= idle_locks

    def _wait(self, seconds: float, stop: threading.Event) -> set[str] | None:
        """Wait ``seconds``, and return None. If something else ends the wait, return the channels that notified."""
        deadline = time.monotonic() + seconds
        poller = select.poll()
        poller.register(self._connection.fileno(), select.POLLIN)
        if self._waker is not None:
            poller.register(self._waker.fileno(), select.POLLIN)
        while not stop.is_set():
            woken = self._waker is not None and self._waker.drain()
            heard = self._notified()
            if woken or heard:
                return heard
            if (remaining := deadline - time.monotonic()) <= 0:
                return None
            poller.poll(1000 * min(remaining, STOP_CHECK))
        return set()

    def _notified(self) -> set[str]:
        """Return the channels of the notifications that have come since the last call."""
        return {notification.channel for notification in self._connection.notifies(timeout=0)}

    def _pause(self, seconds: float, stop: threading.Event) -> None:
        """Wait for ``seconds``, or until the waker (if there is none: ``stop``) ends the wait."""
        if self._waker is None:
            stop.wait(seconds)
            return
        poller = select.poll()
        poller.register(self._waker.fileno(), select.POLLIN)
        poller.poll(1000 * seconds)
        self._waker.drain()


class QueueListener(Listener):
    """The sleep of a worker's loop over ``queues`` (empty or None: all).

    The listener keeps the idle locks of queues without work, so writers to these queues notify. A poll then covers only
    the queues that notified and those whose idle locks the listener doesn't hold. With much work the worker releases
    all idle locks (:meth:`found_work`), and each poll covers all queues.
    """

    def __init__(
        self, connection: Connection, queues: Collection[str] | None, *, poll: float, waker: Waker | None = None
    ) -> None:
        super().__init__(connection, poll=poll, waker=waker)
        self._only = queues
        self._idle_locks: dict[str, int] = {}  # by queue
        # queues that may have new updates: a notification has named them, or this listener didn't hold their idle locks
        self._heard: set[str] = set()
        self._last_all = 0.0  # monotonic time of the last poll of all queues

    def queues(self, busy: bool = False) -> set[str] | None:
        """Return the queues that may have new work. None: all.

        While the listener holds no idle lock, any queue may have new work. The result is also None every ``poll``
        seconds, because buckets may be due for another reason. For a ``busy`` worker, which doesn't sleep, it is None
        at least every second.
        """
        now = time.monotonic()
        if not self._locked or now >= self._last_all + (min(self._poll, _ALL) if busy else self._poll):
            self._last_all = now
            return None
        self._heard |= self._queues_of(self._notified())
        return self._heard | self._unlocked()

    def found_work_in(self, queues: Collection[str]) -> None:
        """Record that these queues have a little work. Only their idle locks are released. The next nap is short."""
        self._release({self._idle_locks[queue] for queue in queues if queue in self._idle_locks} & self._locked)
        self._nap = _SHORTEST_NAP

    def sources(self) -> Iterable[Source]:
        """Return a source for each of the listener's queues that notifies. A paused queue is inactive."""
        self._idle_locks = {}
        for queue, buckets, paused, idle_lock in self._connection.execute(sqlfiles.query("queue_sources")).fetchall():
            if idle_lock is not None and (not self._only or queue in self._only):
                channels = [f"pgcombine.{queue}", *(f"pgcombine.{queue}.{bucket}" for bucket in range(int(buckets)))]
                if not paused:
                    self._idle_locks[queue] = int(idle_lock)
                yield Source(int(idle_lock), channels, not paused)

    def _take(self, idle_locks: set[int]) -> set[str]:
        self._release(self._locked - idle_locks)  # these queues are paused or dropped, or don't notify any more
        self._heard = self._unlocked()
        return super()._take(idle_locks)

    def _woken(self, heard: set[str] | None) -> None:
        self._heard = self._queues_of(heard or ())

    def _unlocked(self) -> set[str]:
        """Return the queues whose writers perhaps don't notify, since this listener doesn't hold the idle lock."""
        return {queue for queue, idle_lock in self._idle_locks.items() if idle_lock not in self._locked}

    @staticmethod
    def _queues_of(channels: Iterable[str]) -> set[str]:
        return {channel.split(".")[1] for channel in channels}


def pooled(connection: Connection) -> bool:
    """Whether the connection goes through a pooler: then the server process has another id than the connection got."""
    return one(connection, "select pg_backend_pid()") != (connection.info.backend_pid,)
