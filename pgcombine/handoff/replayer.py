"""The replayer of a home: it delivers the hints that callers could not deliver.

Each server with hints has one loop, or two where many hints wait. A loop locks a page of hints in a transaction at the
home (others skip them), applies it at the server, deletes it and commits. If the replayer is killed in between, the
hints are still there. The next replayer delivers them again, and the server's tokens find the duplicates. Failures are
recorded at the home for all replayers. A server that doesn't answer is left alone for a growing while. A server whose
queue is defined differently is paused. Updates that don't fit there are found by bisection and quarantined. The rest of
their write is delivered.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import UUID

import psycopg

from pgcombine import schema
from pgcombine.config import libpq_dsn
from pgcombine.database.connect import PATIENCE_SECONDS, Connection, connect, one, settled
from pgcombine.database.deadline import DeadlineConnection
from pgcombine.errors import ConfigError, ConnectError, PgCombineError, first_line
from pgcombine.handoff import operations
from pgcombine.handoff.connections import Peer, open_peer, options, registered
from pgcombine.handoff.delivery import Forgotten, Hint, apply, cause_of, introduce, retire
from pgcombine.handoff.encoding import array
from pgcombine.runtime.destinations import Destination
from pgcombine.runtime.reconnect import away, retry, when_ready

log = logging.getLogger("pgcombine.handoff")

PAGE_WRITES = 500
PAGE_UPDATES = 50_000
_FIRST_PAGE = 50
POLL_SECONDS = 1.0
MIN_AGE_SECONDS = 5.0  # a younger hint is on its way from the caller that wrote it
TIMEOUT_SECONDS = 10.0
_TIDY_SECONDS = 60.0
_BEGIN = UUID(int=0)


@dataclass
class Replayed:
    """The counts of a replayer: writes delivered, writes that the servers had already, updates quarantined."""

    delivered: int = 0
    deduplicated: int = 0
    quarantined: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False, compare=False)

    def add(self, *, delivered: int = 0, deduplicated: int = 0, quarantined: int = 0) -> None:
        """Add to the counts."""
        with self._lock:
            self.delivered += delivered
            self.deduplicated += deduplicated
            self.quarantined += quarantined

    def as_dict(self) -> dict[str, int]:
        """Return the figures by name."""
        return {"delivered": self.delivered, "deduplicated": self.deduplicated, "quarantined": self.quarantined}


class Replayer:
    """Delivers the hints of the home at ``dsn`` to ``servers`` (empty: to all).

    ``poll``, ``min_age`` and ``timeout`` are in seconds. Hints younger than ``min_age`` are left to their caller.
    ``timeout`` bounds one page. Any number of replayers may run at once. Raises ConfigError for a bad number.
    """

    def __init__(
        self,
        dsn: str,
        servers: Sequence[str] = (),
        *,
        poll: float = POLL_SECONDS,
        min_age: float = MIN_AGE_SECONDS,
        timeout: float = TIMEOUT_SECONDS,
    ) -> None:
        if poll <= 0 or timeout <= 0 or min_age < 0:
            raise ConfigError(f"poll {poll} and timeout {timeout} must be positive, min_age {min_age} not negative")
        self.dsn = libpq_dsn(dsn)
        self.servers = tuple(servers)
        self.poll = poll
        self.min_age = min_age
        self.timeout = timeout
        self.totals = Replayed()

    def run(self, stop: threading.Event) -> Replayed:
        """Deliver until ``stop`` is set. Returns the counts.

        The replayer waits for a home that isn't ready yet. A lost home is connected to again with back-off, for ever.
        Raises SchemaError, ReplicaError for a server that isn't registered, and ConnectError if the home doesn't answer
        at the start.
        """
        if not when_ready(partial(self._check, patience=0), stop):
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

    def replay(self, *, force: bool = False, stop: threading.Event | None = None) -> Replayed:
        """Deliver the hints that are there now, once through for each server. Returns the counts.

        With ``force``, also deliver to servers that failed lately. Hints that can't be delivered stay. Raises the
        errors of :meth:`run`, and psycopg.OperationalError if the home is lost.
        """
        self._check()
        with closing(self._home()) as home:
            due = self._due(home, force=force)
        for name in due:
            self._deliver_all(name, stop or threading.Event(), force=force)
        return self.totals

    def _serve(self, loops: dict[str, threading.Thread], stop: threading.Event) -> None:
        """Start a loop for each server that is due, as long as the connection to the home lasts."""
        tidy_at = time.monotonic() + _TIDY_SECONDS
        with closing(retry(self._checked_home, stop, for_ever=away)) as home:
            try:
                while not stop.is_set():
                    with home.within(self.timeout):
                        for name in self._due(home):
                            if name not in loops or not loops[name].is_alive():
                                loops[name] = threading.Thread(
                                    target=self._guard, args=(name, stop), name=f"pgcombine-replay-{name}"
                                )
                                loops[name].start()
                        if time.monotonic() > tidy_at:
                            home.execute("select pgcombine.handoff_tidy()")
                            tidy_at = time.monotonic() + _TIDY_SECONDS
                    stop.wait(self.poll)
            except psycopg.OperationalError as error:
                log.warning("handoff.disconnected reason=%s", first_line(error))
                stop.wait(random.uniform(0.5, 1.5) * self.poll)

    def _check(self, *, patience: float = PATIENCE_SECONDS) -> None:
        with closing(connect(self.dsn, name="pgcombine handoff", patience=patience)) as connection:
            self._accept(connection)

    def _checked_home(self) -> DeadlineConnection:
        home = self._home()
        try:
            with home.within(self.timeout):
                self._accept(home)
        except BaseException:
            home.close()
            raise
        return home

    def _accept(self, connection: Connection) -> None:
        schema.check_connection(connection)
        for name in self.servers:
            operations.status(connection, name)

    def _home(self) -> DeadlineConnection:
        home = settled(DeadlineConnection.connect(self.dsn, **options(self.timeout)))
        # a replayer that vanishes must not keep hints locked
        home.execute(
            "select set_config('idle_in_transaction_session_timeout', %s, false)", (f"{6 * self.timeout:.0f}s",)
        )
        return home

    def _due(self, home: DeadlineConnection, *, force: bool = False) -> list[str]:
        rows = home.execute(
            "select name from pgcombine.handoff_due(%s * interval '1 second', %s)", (self.min_age, force)
        ).fetchall()
        return [name for (name,) in rows if not self.servers or name in self.servers]

    def _guard(self, name: str, stop: threading.Event, *, alone: bool = False) -> None:
        try:
            if alone:
                self._loop(name, stop, lambda: None, force=True)
            else:
                self._deliver_all(name, stop)
        except (psycopg.Error, PgCombineError) as error:
            log.warning("handoff.disconnected server=%s reason=%s", name, first_line(error))

    def _deliver_all(self, name: str, stop: threading.Event, *, force: bool = False) -> None:
        """Deliver the hints for a server, once through. A failure ends it, and is recorded.

        If more than a page waits, a second loop helps: while one server commits, or sends, the other works.
        """
        helpers: list[threading.Thread] = []

        def help_out() -> None:
            if not helpers:
                helpers.append(
                    threading.Thread(
                        target=self._guard,
                        args=(name, stop),
                        kwargs={"alone": True},
                        name=f"pgcombine-replay-{name}-2",
                    )
                )
                helpers[0].start()

        try:
            self._loop(name, stop, help_out, force=force)
        finally:
            for helper in helpers:
                helper.join()

    def _loop(self, name: str, stop: threading.Event, help_out: Callable[[], None], *, force: bool) -> None:
        with closing(self._home()) as home:
            row = home.execute(
                "select s.name, r.dsn from pgcombine.handoff_server s, pgcombine.handoff_replica r where r.name = %s",
                (name,),
            ).fetchone()
            if row is None:
                return
            home_name, dsn = row
            destination = Destination(home, "server", name)
            ticket = None if force else destination.attempt(probe=6 * self.timeout)
            if ticket is None and not force:
                return  # another replayer has the next attempt
            peer: Peer | None = None
            try:
                peer = open_peer(name, registered(name, dsn), self.timeout)
                with peer.connection.within(self.timeout):
                    introduce(home, home_name, peer)
                after = _BEGIN
                writes = _FIRST_PAGE
                while not stop.is_set():
                    began = time.monotonic()
                    page = self._page(home, home_name, peer, after, writes)
                    if not page:
                        break
                    # lock no more hints than are likely to be delivered
                    updates = sum(hint.updates for hint in page)
                    average = updates / len(page)
                    if (len(page) == writes or updates >= PAGE_UPDATES) and not peer.replay_rate:
                        help_out()
                    writes = max(1, min(PAGE_WRITES, round(PAGE_UPDATES / max(1.0, average))))
                    after = page[-1].token
                    destination.delivered(ticket)
                    if peer.replay_rate:
                        stop.wait(max(0.0, updates / peer.replay_rate - (time.monotonic() - began)))
            except Forgotten as error:  # it is recorded already
                log.error("handoff.forgotten server=%s error=%s", name, error)
            except (psycopg.Error, PgCombineError) as error:
                if home.closed:
                    raise
                cause = cause_of(error)
                if cause in ("schema", "data"):  # time won't mend it
                    destination.pause(first_line(error))
                else:
                    destination.failed(first_line(error), ticket)
                log.warning("handoff.failed server=%s cause=%s error=%s", name, cause, first_line(error))
            finally:
                if peer is not None:
                    peer.connection.close()

    def _page(self, home: DeadlineConnection, home_name: str, peer: Peer, after: UUID, writes: int) -> list[Hint]:
        """Deliver one page. Returns its hints, an empty list at the end."""
        page: list[Hint] = []
        statuses: dict[UUID, str] = {}
        try:
            with home.transaction():
                page = self._take(home, peer.name, after, writes)
                if page:
                    with peer.connection.within(self.timeout):
                        statuses = apply(peer, page, home_name)
                    retire(home, peer.name, statuses)
        except (psycopg.Error, PgCombineError) as error:
            if home.closed or peer.connection.closed or cause_of(error) != "data":
                raise
            for _ in page:
                if not (one := self._single(home, home_name, peer, after)):
                    break
                after = one[-1].token
            return page
        self._count(statuses)
        return page

    def _single(self, home: DeadlineConnection, home_name: str, peer: Peer, after: UUID) -> list[Hint]:
        """Deliver the next hint alone, without the updates that don't fit."""
        with home.transaction():
            page = self._take(home, peer.name, after, 1)
            if not page:
                return []
            (hint,) = page
            with peer.connection.within(self.timeout):
                unfit = peer.connection.execute(
                    "select number, state, error from pgcombine.handoff_unfit(%s, %s)", (hint.queue, hint.payload)
                ).fetchall()
        if unfit:
            numbers, states, errors = (list(column) for column in zip(*unfit, strict=True))
            home.execute(
                "select pgcombine.handoff_hold(%s, %s, %s, %s, %s)", (peer.name, hint.token, numbers, states, errors)
            )
            for number, _, error in unfit:
                log.error(
                    "handoff.quarantined server=%s token=%s update=%d error=%s", peer.name, hint.token, number, error
                )
        with home.transaction():
            again = self._take(home, peer.name, after, 1)
            if [one.token for one in again] != [hint.token]:
                return page  # another replayer has it
            with peer.connection.within(self.timeout):
                fitting = self._fitting(peer, hint, {row[0] for row in unfit})
                statuses = apply(peer, [fitting], home_name)
            retire(home, peer.name, statuses)
        self._count(statuses, quarantined=len(unfit))
        return page

    def _fitting(self, peer: Peer, hint: Hint, unfit: set[int]) -> Hint:
        if not unfit:
            return hint
        (payload,) = one(peer.connection, "select pgcombine.handoff_without(%s, %s)", hint.payload, sorted(unfit))
        left = hint.updates - len(unfit)
        return Hint(hint.token, hint.queue, hint.shape, hint.digest, hint.servers, left, payload or array([]))

    def _take(self, home: DeadlineConnection, name: str, after: UUID, writes: int) -> list[Hint]:
        rows: list[tuple[Any, ...]] = home.execute(
            "select token, queue, shape, digest, servers, updates, payload "
            "from pgcombine.handoff_page(%s, %s, %s * interval '1 second', %s, %s)",
            (name, after, self.min_age, writes, PAGE_UPDATES),
        ).fetchall()
        return [Hint(*row) for row in rows]

    def _count(self, statuses: dict[UUID, str], *, quarantined: int = 0) -> None:
        found = list(statuses.values())
        self.totals.add(
            delivered=found.count("applied"), deduplicated=found.count("duplicate"), quarantined=quarantined
        )
