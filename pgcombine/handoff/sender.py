"""A thread that delivers a caller's writes to one server. Writes that wait at the same time may share a transaction.

The coordinator has a hint for each write, and its replayer delivers the hint if this thread can't. So the thread may
give up writes: those that don't fit into its bounded queue, and those whose delivery fails. If the server failed
recently, the thread first pauses for a tenth of a second at most. It then tries to deliver waiting writes only if a
caller still waits for one of them.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from uuid import UUID

import psycopg

from pgcombine.errors import PgCombineError
from pgcombine.handoff.connections import Peer, address, open_peer
from pgcombine.handoff.delivery import Hint, acknowledge, apply, cause_of, verify_identity
from pgcombine.handoff.servers import PROBE_SECONDS, Server

log = logging.getLogger("pgcombine.handoff")

PAGE_WRITES = 500
PAGE_UPDATES = 50_000
QUEUE_WRITES = 2_000
# the least delay in seconds of a write that no caller waits for, so that more writes share its transaction; the delay
# ends when a write comes that a caller waits for
GATHER_SECONDS = 0.01
PAGE_SECONDS = 0.05  # seconds between the beginnings of two pages, at least, if no caller waits


@dataclass(eq=False)
class Write:
    """A write, and the state of its deliveries.

    ``acked`` are the servers that acknowledged the write. ``given_up`` are the servers to which this caller doesn't
    deliver the write any more. ``awaited`` says whether a caller still waits for the level.
    """

    coordinator: str
    acked: set[str]
    awaited: bool = True
    given_up: set[str] = field(default_factory=set)
    changed: threading.Condition = field(default_factory=threading.Condition)

    def record(self, server: str, *, acked: bool) -> None:
        """Record whether ``server`` acknowledged the write."""
        with self.changed:
            (self.acked if acked else self.given_up).add(server)
            self.changed.notify_all()


class Sender:
    """Delivers writes to ``server``.

    ``coordinators`` are all servers of the queue, by name. A write's hint is at one of them.
    """

    def __init__(self, server: Server, coordinators: Mapping[str, Server]) -> None:
        self._server = server
        self._coordinators = coordinators
        self._addresses = {name: address(one.dsn) for name, one in coordinators.items()}
        self._writes: queue.Queue[tuple[Write, Hint] | None] = queue.Queue(QUEUE_WRITES)
        self._hurry = threading.Event()  # set if a caller waits for a write, or if the thread must end
        self._peer: Peer | None = None
        self._thread: threading.Thread | None = None
        self._lock = threading.Lock()

    def submit(self, write: Write, hint: Hint) -> None:
        """Put the write into the thread's queue.

        The write is given up at once if the queue is full, or if the server failed recently and no caller waits.
        """
        with self._lock:
            if self._thread is None:
                self._thread = threading.Thread(
                    target=self._run, name=f"pgcombine-sender-{self._server.name}", daemon=True
                )
                self._thread.start()
        try:
            if self._server.avoided and not write.awaited:
                raise queue.Full
            self._writes.put_nowait((write, hint))
            if write.awaited:
                self._hurry.set()
        except queue.Full:
            write.record(self._server.name, acked=False)

    def close(self) -> None:
        """Let the thread deliver the waiting writes and end. Waits for it for three timeouts at most.

        If the thread's queue stays full for a timeout, the thread doesn't end. Replayers deliver the writes that
        remain, from their hints.
        """
        if self._thread is not None:
            try:
                self._writes.put(None, timeout=self._server.timeout)
            except queue.Full:
                return
            self._hurry.set()
            self._thread.join(2 * self._server.timeout)

    def _run(self) -> None:
        end = False
        began = 0.0
        while not end:
            first = self._writes.get()
            page = [] if first is None else [first]
            end = first is None
            if first is not None and not first[0].awaited:
                self._hurry.wait(max(GATHER_SECONDS, began + PAGE_SECONDS - time.monotonic()))
            self._hurry.clear()
            began = time.monotonic()
            updates = 0
            while not end and len(page) < PAGE_WRITES and updates < PAGE_UPDATES:
                try:
                    more = self._writes.get_nowait()
                except queue.Empty:
                    break
                if more is None:
                    end = True
                else:
                    page.append(more)
                    updates += more[1].updates
            groups: dict[tuple[str, str, object], list[tuple[Write, Hint]]] = {}
            for write, hint in page:
                groups.setdefault((write.coordinator, hint.queue, hint.shape), []).append((write, hint))
            for (coordinator, _, _), group in groups.items():
                self._deliver(self._coordinators[coordinator], group)
        if self._peer is not None:
            self._peer.connection.close()

    def _deliver(self, coordinator: Server, group: list[tuple[Write, Hint]]) -> None:
        """Deliver writes of one coordinator to the server, and delete the hints of those that it has acknowledged."""
        statuses: dict[UUID, str] = {}
        avoided = self._server.avoided
        try:
            if self._worth_a_try(group):
                statuses = self._apply(coordinator, [hint for _, hint in group])
        except (psycopg.Error, PgCombineError, OSError) as error:
            cause = cause_of(error)
            if cause == "data" and len(group) > 1:
                for one in group:  # one bad write must not hold up the others
                    self._deliver(coordinator, [one])
                return
            level = logging.DEBUG if avoided else logging.WARNING  # warn of the first failure of an outage
            log.log(level, "handoff.undelivered server=%s cause=%s error=%s", self._server.name, cause, error)
            if cause != "data":
                self._lost()
        for write, hint in group:
            write.record(self._server.name, acked=statuses.get(hint.token) in ("applied", "duplicate"))
        # the hints of refused writes stay, and the replayer quarantines them
        delivered = {token: status for token, status in statuses.items() if status in ("applied", "duplicate")}
        if delivered:
            try:
                with coordinator.peer(self._server.timeout) as at_coordinator:
                    acknowledge(at_coordinator.connection, self._server.name, delivered)
            except (psycopg.Error, PgCombineError) as error:  # the replayer will deliver the hint again, as a duplicate
                log.warning(
                    "handoff.unacknowledged coordinator=%s server=%s error=%s",
                    coordinator.name,
                    self._server.name,
                    error,
                )

    def _worth_a_try(self, group: list[tuple[Write, Hint]]) -> bool:
        """Return whether the server isn't avoided, or a caller still waits after a short pause."""
        if not self._server.avoided:
            return True
        # meanwhile, answers of other servers may be enough for the level
        time.sleep(min(PROBE_SECONDS, self._server.timeout / 10))
        return any(write.awaited for write, _ in group)

    def _apply(self, coordinator: Server, hints: list[Hint]) -> dict[UUID, str]:
        if self._peer is None or self._peer.connection.closed:
            self._peer = open_peer(self._server.name, self._server.dsn, self._server.timeout)
        with self._peer.connection.within(self._server.timeout):
            if coordinator.name not in self._peer.known_to:
                with coordinator.peer(self._server.timeout) as at_coordinator:
                    verify_identity(at_coordinator.connection, coordinator.name, self._peer, self._addresses)
            statuses = apply(self._peer, hints, coordinator.name)
        self._server.answered()
        return statuses

    def _lost(self) -> None:
        self._server.failed()
        if self._peer is not None:
            self._peer.connection.close()
            self._peer = None
