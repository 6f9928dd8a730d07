"""The sleep of an idle worker, and the notifications that end it.

Enqueues make work for workers, and passes make work for deliveries. A transaction that makes work notifies only while a
session holds the *idle lock* of the table into which the work is inserted. Before a worker polls a last time and
sleeps, it takes the lock, unless another session has it. A worker keeps the idle locks of queues without work. So
writers to these queues notify while the worker runs passes over others. The trigger function ``wake`` explains why no
commit goes unnoticed.

Through a pooler in transaction mode LISTEN doesn't work, and the listener polls. The connection must be in autocommit.
Errors of the connection are psycopg's.
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
_QUIET = 1.0  # a busy worker takes an idle lock again after so many seconds without work in the queue
_TURNS = 600  # calls of :meth:`Turns.next` at most until each name has had its turn
STOP_CHECK = 0.2  # seconds at most until a listener, or a loop of a worker, sees that its stop event is set
_CREATED = "pgcombine"  # the channel on which create_queue notifies
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


class Turns:
    """Names that take turns: a few at a time, so that many cost little."""

    def __init__(self) -> None:
        self._left: list[str] = []
        self._share = 1

    def next(self, names: Callable[[], Iterable[str]]) -> list[str]:
        """Return the names whose turn it is. ``names`` returns all names; it is called when all have had their turn."""
        if not self._left:
            self._left = sorted(names())
            self._share = 1 + len(self._left) // _TURNS
        found = self._left[-self._share :]
        del self._left[-self._share :]
        return found


class Listener(ABC):
    """The sleep of one loop, on the loop's own connection.

    A sleep ends after ``poll`` seconds at the latest, at a notification, when ``waker`` wakes the listener, or when the
    stop event is set. In the last three cases the listener also releases its idle locks (a :class:`QueueListener` keeps
    them). After a sleep that lasted its whole time, the listener keeps them.
    """

    channels: Collection[str] = ()  # further channels, whose notifications end the sleep

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
        states = set(self._take({source.idle_lock for source in self._listen() if source.active}).values())
        if states and may_work():
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
        new = {channel for source in found for channel in source.channels}.union(self.channels) - self._channels
        if new:
            self._connection.execute(sql.SQL(";").join(sql.SQL("listen {}").format(sql.Identifier(one)) for one in new))
        self._channels |= new
        # A notification on a new channel may have been sent before LISTEN. So the idle locks of its sources are
        # released: the listener polls again after it has taken an idle lock.
        self._release({source.idle_lock for source in found if not new.isdisjoint(source.channels)} & self._locked)
        return found

    def _take(self, idle_locks: set[int]) -> dict[int, str]:
        """Try to take the idle locks that this listener doesn't hold. Returns their results of ``take_idle_lock``."""
        missing = sorted(idle_locks - self._locked)
        if not missing:
            return {}
        states: dict[int, str] = dict(
            self._connection.execute(sqlfiles.query("take_idle_locks"), (missing,)).fetchall()
        )
        self._locked.update(idle_lock for idle_lock, state in states.items() if state == "taken")
        return states

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
        ready = True  # notifications may have come with an answer
        while not stop.is_set():
            if ready:
                woken = self._waker is not None and self._waker.drain()
                heard = self._notified()
                if woken or heard:
                    return heard
            if (remaining := deadline - time.monotonic()) <= 0:
                return None
            ready = bool(poller.poll(1000 * min(remaining, STOP_CHECK)))
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
    """The sleep of a worker over ``queues`` (empty or None: all).

    A queue is *guarded* while its writers notify: this listener or another session holds its idle lock, and the worker
    has polled the queue since. So a poll covers only the queues that notified, those that aren't guarded, and those
    whose definition has changed. In case an update came without the trigger, the listener also looks at the queues in
    turn, every ``poll`` seconds. It leaves the idle locks of queues that the worker ``refuses`` to other workers.
    """

    channels = (_CREATED,)

    def __init__(
        self,
        connection: Connection,
        queues: Collection[str] | None,
        refuses: Callable[[str], bool] = lambda _: False,
        *,
        poll: float,
        waker: Waker | None = None,
    ) -> None:
        super().__init__(connection, poll=poll, waker=waker)
        self._only = queues
        self._refuses = refuses
        self._sources: list[Source] = []
        self._state = ""  # of the definitions of all queues, when ``_sources`` was made
        # by queue that isn't paused: the state of its definition, and its idle lock (None: the queue doesn't notify)
        self._queues: dict[str, tuple[str, int | None]] = {}
        self._others: set[int] = set()  # idle locks that other sessions hold
        self._heard: set[str] = set()  # queues that the next poll covers
        self._worked: set[str] = set()  # queues with work in the last second
        self._refresh_at = self._turn_at = 0.0  # monotonic times
        self._turns = Turns()

    def queues(self, busy: bool = False) -> set[str] | None:
        """Return the queues that may have new work, for the poll that follows. None: all.

        A ``busy`` worker doesn't sleep. So for it this call takes the idle locks of queues that have become quiet.
        """
        if not self.listens or not (self._state or busy):  # the listener hasn't slept yet, or can't listen
            return None
        now = time.monotonic()
        heard = self._notified()
        if busy and (now >= self._refresh_at or _CREATED in heard):
            self._refresh_at = now + _QUIET
            self._listen()
            self._take({lock for queue, (_, lock) in self._queues.items() if lock and queue not in self._worked})
            self._worked.clear()
        if now >= self._turn_at:
            self._turn_at = now + self._poll
            self._heard.update(self._turns.next(lambda: self._queues))
        guarded = self._locked | self._others
        names = {queue for queue, (_, lock) in self._queues.items() if lock not in guarded}
        names |= self._heard | self._queues_of(heard)
        self._heard = set()
        return names

    def found_work_in(self, queues: Collection[str]) -> None:
        """Record that these queues have work. Only their idle locks are released. The next nap is short."""
        self._worked.update(queues)
        self._release({lock for queue in queues if (lock := self._queues.get(queue, ("", None))[1])} & self._locked)
        self._nap = _SHORTEST_NAP

    def sources(self) -> Iterable[Source]:
        """Return a source for each of the listener's queues that notifies. A paused queue is inactive."""
        state, found = one(self._connection, sqlfiles.query("queue_sources"), self._state)
        if found is None:
            return self._sources
        found = [row for row in found if not self._only or row[0] in self._only]
        queues = {queue: (definition, lock) for queue, definition, paused, lock in found if not paused}
        self._heard.update(dict(queues.items() - self._queues.items()))
        self._sources = [
            Source(lock, [f"pgcombine.{queue}"], not paused) for queue, _, paused, lock in found if lock is not None
        ]
        self._state, self._queues = state, queues
        return self._sources

    def _take(self, idle_locks: set[int]) -> dict[int, str]:
        idle_locks = idle_locks - {lock for queue, (_, lock) in self._queues.items() if lock and self._refuses(queue)}
        self._release(self._locked - idle_locks)  # other queues are paused or dropped, or don't notify any more
        states = super()._take(idle_locks)
        others = {idle_lock for idle_lock, state in states.items() if state == "other"}
        # transactions that committed before the lock was taken didn't notify
        new = {idle_lock for idle_lock, state in states.items() if state == "taken"} | (others - self._others)
        self._heard.update(queue for queue, (_, lock) in self._queues.items() if lock in new)
        self._others = others
        return states

    def _woken(self, heard: set[str] | None) -> None:
        self._heard |= self._queues_of(heard or ())
        if heard and _CREATED in heard:
            self._listen()  # so that the next poll covers the new queue

    @staticmethod
    def _queues_of(channels: Iterable[str]) -> set[str]:
        return {channel.removeprefix("pgcombine.") for channel in channels if channel != _CREATED}


def pooled(connection: Connection) -> bool:
    """Whether the connection goes through a pooler: then the server process has another id than the connection got."""
    return one(connection, "select pg_backend_pid()") != (connection.info.backend_pid,)
