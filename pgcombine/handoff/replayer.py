"""The replayer of a coordinator: it delivers the hints that callers could not deliver.

The replayer runs one loop for each server that is due, and a second one if many hints wait for a server without a
``replay_rate`` (``Pages.rest``). A loop delivers pages of hints (:mod:`pgcombine.handoff.pages`). One more loop drops
retained payloads that aren't needed any more, and forwards writes of lost coordinators
(:mod:`pgcombine.handoff.retained`). Failures are recorded at the coordinator for all replayers. After a failure that
another attempt wouldn't mend, for example if the server lacks the queue, deliveries to the server are paused. After
other failures they are tried again, at growing intervals.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import Counter
from collections.abc import Callable, Collection, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from functools import partial

import psycopg

from pgcombine import schema
from pgcombine.config import libpq_dsn
from pgcombine.database.connect import READY_SECONDS, Connection, Database, closed_on_error, connect, normalized
from pgcombine.database.deadline import DeadlineConnection
from pgcombine.database.sqlfiles import query
from pgcombine.errors import ConfigError, ConnectError, PgCombineError, first_line, operational
from pgcombine.handoff import operations
from pgcombine.handoff.connections import NAME, Peer, addresses, open_peer, options, registered
from pgcombine.handoff.delivery import ForgottenError, cause_of, still_known, verify_identity
from pgcombine.handoff.pages import Pages
from pgcombine.handoff.retained import drop_retained
from pgcombine.runtime.background import Background
from pgcombine.runtime.destinations import Destination
from pgcombine.runtime.heartbeat import STALLED_SECONDS, Heartbeat
from pgcombine.runtime.reconnect import retry, unreachable, when_ready

log = logging.getLogger("pgcombine.handoff")

POLL_SECONDS = 1.0
MIN_AGE_SECONDS = 5.0  # the caller of a younger write is probably still delivering it
TIMEOUT_SECONDS = 10.0
_CLEAN_UP_SECONDS = 60.0
_DROP_SECONDS = 5.0
# the key of the loop that drops payloads; the other keys of the dict of loops are names of servers, which have no "/"
_RETAINED = "/retained"


@dataclass
class Replayed:
    """The counts of a replayer.

    ``delivered`` counts writes that were new to the servers, and ``deduplicated`` counts writes that the servers had
    already. ``quarantined`` counts updates.
    """

    delivered: int = 0
    deduplicated: int = 0
    quarantined: int = 0

    def as_dict(self) -> dict[str, int]:
        """Return the counts by name."""
        return asdict(self)


class Replayer(Background):
    """Delivers the hints of the coordinator at ``dsn`` to ``servers`` (empty: to all).

    ``dsn`` is a connection string, or a function that returns a new psycopg connection each time it is called.
    :meth:`run` returns when the replayer has ended. :meth:`start` and :meth:`stop`, or a ``with`` block, run the
    replayer in the background.

    ``poll``, ``min_age`` and ``timeout`` are in seconds. The replayer looks for hints every ``poll`` seconds. Hints
    younger than ``min_age`` are left to the callers that made them. ``timeout`` is for connecting, and for one page of
    hints at the server. Several replayers may run at once. ``heartbeat`` records that the main loop makes progress.
    Raises ConfigError for a number that is too small.
    """

    def __init__(
        self,
        dsn: Database,
        servers: Sequence[str] = (),
        *,
        poll: float = POLL_SECONDS,
        min_age: float = MIN_AGE_SECONDS,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        super().__init__()
        if poll <= 0 or timeout <= 0 or min_age < 0:
            raise ConfigError(f"poll {poll} and timeout {timeout} must be positive, min_age {min_age} not negative")
        self.dsn = libpq_dsn(dsn) if isinstance(dsn, str) else dsn
        self.servers = tuple(servers)
        self.poll = poll
        self.min_age = min_age
        self.timeout = timeout
        self.totals = Replayed()
        self.heartbeat = Heartbeat(max(STALLED_SECONDS, poll + 3 * timeout))
        self._lock = threading.Lock()

    def run(self, stop: threading.Event | None = None) -> Replayed:
        """Deliver until ``stop`` is set; without ``stop``, until :meth:`stop` is called. Returns ``totals``.

        ``totals`` has the counts since this object was made. At the start, the replayer waits for a coordinator that
        isn't ready yet, for example because it recovers. If the connection to the coordinator is lost later, the
        replayer connects again with back-off. Raises SchemaError, ReplicaError for a server that isn't registered, and
        ConnectError if the coordinator can't be connected to at the start.
        """
        with self.heartbeat.loop():
            return self._run(self._until_stopped() if stop is None else stop)

    def _run(self, stop: threading.Event) -> Replayed:
        if not when_ready(partial(self._check, timeout=0), stop):
            return self.totals
        log.info("handoff.start servers=%s", ",".join(self.servers) or "*")
        loops: dict[str, threading.Thread] = {}
        try:
            while not stop.is_set():
                self._serve(loops, stop)
        except (ConnectError, psycopg.OperationalError):
            if not stop.is_set():
                raise
        finally:
            for loop in loops.values():
                loop.join()
        log.info("handoff.stop delivered=%d deduplicated=%d", self.totals.delivered, self.totals.deduplicated)
        return self.totals

    @operational()
    def replay(self, *, force: bool = False, stop: threading.Event | None = None) -> Replayed:
        """Deliver the waiting hints once, server by server. Returns ``totals``, as :meth:`run` does.

        Hints for paused servers, and hints younger than ``min_age``, are left out. With ``force``, also deliver to
        servers whose next attempt isn't due. Hints that can't be delivered now stay. Raises the errors of :meth:`run`,
        and OperationalError if the coordinator is lost.
        """
        self._check()
        with closing(self._coordinator()) as coordinator:
            due = self._due(coordinator, force=force)
        for name in due:
            self._deliver_all(name, stop or threading.Event(), force=force)
        return self.totals

    def _serve(self, loops: dict[str, threading.Thread], stop: threading.Event) -> None:
        """Start a loop for each server that is due, and upkeep, until ``stop`` is set or the coordinator is lost."""
        clean_up_at, drop_at = time.monotonic() + _CLEAN_UP_SECONDS, 0.0
        with (
            closing(retry(self._checked_coordinator, stop, unlimited=unreachable)) as coordinator,
            self.heartbeat.connected(),
        ):
            watch = schema.VersionWatch()
            try:
                while not stop.is_set():
                    self.heartbeat.beat()
                    with coordinator.within(self.timeout):
                        watch.check(coordinator)
                        due: dict[str, Callable[[str, threading.Event], None]] = dict.fromkeys(
                            self._due(coordinator), self._deliver_all
                        )
                        if time.monotonic() > drop_at:
                            due[_RETAINED] = self._drop_retained
                            drop_at = time.monotonic() + _DROP_SECONDS
                        for name, deliver in due.items():
                            if name not in loops or not loops[name].is_alive():
                                loops[name] = threading.Thread(
                                    target=self._guard, args=(deliver, name, stop), name=f"pgcombine-replay-{name}"
                                )
                                loops[name].start()
                        if time.monotonic() > clean_up_at:
                            coordinator.execute("select pgcombine_internal.handoff_clean_up()")
                            clean_up_at = time.monotonic() + _CLEAN_UP_SECONDS
                    stop.wait(self.poll)
            except psycopg.OperationalError as error:
                log.warning("handoff.disconnected reason=%s", first_line(error))
                stop.wait(random.uniform(0.5, 1.5) * self.poll)

    def _check(self, *, timeout: float = READY_SECONDS) -> None:
        self.heartbeat.beat()
        with closing(connect(self.dsn, name=NAME, timeout=timeout)) as connection:
            self._accept(connection)

    def _checked_coordinator(self) -> DeadlineConnection:
        self.heartbeat.beat()
        coordinator = self._coordinator()
        with closed_on_error(coordinator), coordinator.within(self.timeout):
            self._accept(coordinator)
        return coordinator

    def _accept(self, connection: Connection) -> None:
        schema.check_connection(connection)
        for name in self.servers:
            operations.status(connection, name)

    def _coordinator(self) -> DeadlineConnection:
        if isinstance(self.dsn, str):
            coordinator = normalized(DeadlineConnection.connect(self.dsn, **options(self.timeout)))
        else:
            coordinator = connect(self.dsn, name=NAME, timeout=0)
        # Without this timeout, a replayer that hangs or vanishes could keep hints locked.
        coordinator.execute(
            "select set_config('idle_in_transaction_session_timeout', %s, false)", (f"{6 * self.timeout:.0f}s",)
        )
        return coordinator

    def _due(self, coordinator: DeadlineConnection, *, force: bool = False) -> list[str]:
        rows = coordinator.execute(query("handoff_due").encode(), (force, self.min_age)).fetchall()
        return [name for (name,) in rows if not self.servers or name in self.servers]

    def _drop_retained(self, _name: str, _stop: threading.Event) -> None:
        with closing(self._coordinator()) as coordinator:
            drop_retained(coordinator, self.timeout)

    def _guard(self, deliver: Callable[[str, threading.Event], None], name: str, stop: threading.Event) -> None:
        """Call ``deliver``, and log its error if there is one."""
        try:
            deliver(name, stop)
        except (psycopg.Error, PgCombineError) as error:
            log.warning("handoff.disconnected server=%s reason=%s", name, first_line(error))

    def _deliver_all(self, name: str, stop: threading.Event, *, force: bool = False) -> None:
        """Go through the hints for a server once, and deliver them. A failure is recorded and ends the call.

        If a page is full, and the server has no ``replay_rate``, a second thread delivers as well: while one thread
        waits for a commit, the other can send.
        """
        alone = partial(self._loop, help_out=lambda: None, force=True)
        helper = threading.Thread(target=self._guard, args=(alone, name, stop), name=f"pgcombine-replay-{name}-2")

        def help_out() -> None:
            if helper.ident is None:
                helper.start()

        try:
            self._loop(name, stop, help_out, force=force)
        finally:
            if helper.ident is not None:
                helper.join()

    def _loop(self, name: str, stop: threading.Event, help_out: Callable[[], None], *, force: bool) -> None:
        with closing(self._coordinator()) as coordinator:
            coordinator_name, others = addresses(coordinator)
            if coordinator_name is None or name not in others:
                return
            destination = Destination(coordinator, "server", name)
            ticket = None if force else destination.attempt(probe=6 * self.timeout)
            if ticket is None and not force:
                return  # the server must not be tried now
            peer = None
            try:
                peer = open_peer(name, registered(name, others[name]), self.timeout)
                with closing(peer.connection):
                    with peer.connection.within(self.timeout):
                        verify_identity(coordinator, coordinator_name, peer)
                    pages = Pages(coordinator, coordinator_name, peer, self.min_age, self.timeout, self._count)
                    while not stop.is_set() and pages.deliver():
                        if pages.full and not peer.replay_rate:
                            help_out()
                        destination.delivered(ticket)
                        stop.wait(pages.rest())
            except ForgottenError as error:  # verify_identity has recorded it
                log.error("handoff.forgotten server=%s error=%s", name, error)
            except (psycopg.Error, PgCombineError) as error:
                if coordinator.closed:
                    raise
                _record(error, coordinator, peer, destination, ticket)

    def _count(self, statuses: Collection[str], quarantined: int) -> None:
        found = Counter(statuses)
        with self._lock:
            self.totals.delivered += found["applied"]
            self.totals.deduplicated += found["duplicate"]
            self.totals.quarantined += quarantined


def _record(
    error: Exception, coordinator: Connection, peer: Peer | None, destination: Destination, ticket: int | None
) -> None:
    """Record at the coordinator, for all replayers, that a delivery or the connection for it failed."""
    cause = cause_of(error)
    if cause in ("schema", "data"):  # another attempt wouldn't help
        with coordinator.transaction():
            if peer is None or still_known(coordinator, peer.name, peer.id):
                destination.pause(first_line(error))
    else:
        destination.failed(first_line(error), ticket)
    log.warning("handoff.failed server=%s cause=%s error=%s", destination.name, cause, first_line(error))
