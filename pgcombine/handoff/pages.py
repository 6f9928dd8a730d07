"""Delivering the hints for one server in pages.

In one transaction at the coordinator, a page of hints is locked, applied at the server, and deleted. Other replayers
skip locked hints. If the replayer is killed before the commit, the hints stay and are delivered again, and the server
recognizes duplicates by their tokens. Updates that don't fit at the server are quarantined, and the rest of their write
is delivered. If the server refuses the hint itself, the whole hint is quarantined, so that it doesn't block the others.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from uuid import UUID

import psycopg

from pgcombine.database.connect import one
from pgcombine.database.deadline import DeadlineConnection
from pgcombine.database.sqlfiles import query
from pgcombine.errors import PgCombineError, first_line
from pgcombine.handoff.connections import Peer
from pgcombine.handoff.delivery import Hint, acknowledge, apply, cause_of

log = logging.getLogger("pgcombine.handoff")

PAGE_WRITES = 500
PAGE_UPDATES = 50_000
_FIRST_PAGE = 50
_BEGIN = UUID(int=0)


@dataclass
class Pages:
    """The hints of a coordinator for one server, in the order of their tokens.

    Hints younger than ``min_age`` seconds are left out. ``timeout``, in seconds, is for one call at the server.
    ``count`` is called with the statuses that ``apply`` returned and the number of quarantined updates. ``full`` says
    whether the last page was full, so that more hints probably wait.
    """

    coordinator: DeadlineConnection
    coordinator_name: str
    peer: Peer
    min_age: float
    timeout: float
    count: Callable[[Collection[str], int], None]
    full: bool = False
    _after: UUID = _BEGIN
    _writes: int = _FIRST_PAGE
    _updates: int = 0
    _began: float = 0.0

    def deliver(self) -> bool:
        """Deliver the next page. Returns whether there was a hint to deliver."""
        self._began = time.monotonic()
        page = self._deliver(self._writes)
        if page:
            self._updates = sum(hint.updates for hint in page)
            self.full = len(page) == self._writes or self._updates >= PAGE_UPDATES
            # The next page gets PAGE_WRITES hints at most. If its hints are as large as those of this page, it gets no
            # more than about PAGE_UPDATES updates.
            average = self._updates / len(page)
            self._writes = max(1, min(PAGE_WRITES, round(PAGE_UPDATES / max(1.0, average))))
            self._after = page[-1].token
        return bool(page)

    def rest(self) -> float:
        """Return the seconds to wait before the next page, so that the server gets ``replay_rate`` updates a second at
        most.
        """
        if not self.peer.replay_rate:
            return 0.0
        return max(0.0, self._updates / self.peer.replay_rate - (time.monotonic() - self._began))

    def _deliver(self, writes: int) -> list[Hint]:
        """Deliver a page of up to ``writes`` hints. If the page is refused for its data, deliver each hint alone.

        If the server refuses the page because of the queue's definition, and the coordinator has another definition now
        than when the hints were written, all hints of the page are quarantined, so that they don't block later ones.
        """
        page: list[Hint] = []
        try:
            with self.coordinator.transaction():
                page = self._take(writes)
                statuses = self._apply(page)
        except (psycopg.Error, PgCombineError) as error:
            if self.coordinator.closed or self.peer.connection.closed:
                raise
            if page and cause_of(error) == "schema" and not self._current(page[0]):
                for hint in page:
                    self._quarantine_whole(hint, error)
                return page
            if cause_of(error) != "data":
                raise
            for _ in page:
                if not (one_of_them := self._deliver_one()):
                    break
                self._after = one_of_them.token
            return page
        self.count(statuses.values(), _refused(page, statuses))
        return page

    def _deliver_one(self) -> Hint | None:
        """Deliver and return the next hint, if any. Quarantine its updates that don't fit, or all of a refused hint."""
        with self.coordinator.transaction():
            page = self._take(1)
            if not page:
                return None
        (hint,) = page
        try:
            with self.peer.connection.within(self.timeout):
                unfit = self.peer.connection.execute(
                    "select number, state, error from pgcombine_internal.handoff_unfit(%s, %s, %s::text[], %s)",
                    (hint.queue, hint.payload, hint.placed, hint.replicas),
                ).fetchall()
            if unfit:
                self._quarantine(hint, unfit)
            with self.coordinator.transaction():
                if [other.token for other in self._take(1)] != [hint.token]:
                    return hint  # another replayer has locked or delivered the hint
                statuses = self._apply([_without(hint, unfit)])
        except (psycopg.Error, PgCombineError) as error:
            if self.coordinator.closed or self.peer.connection.closed or cause_of(error) != "data":
                raise
            self._quarantine_whole(hint, error)
        else:
            self.count(statuses.values(), _refused([hint], statuses) or len(unfit))
        return hint

    def _take(self, writes: int) -> list[Hint]:
        """Lock and return the next hints, ``writes`` at most."""
        rows = self.coordinator.execute(
            query("handoff_page").encode(),
            (self.peer.name, self._after, self.min_age, writes, PAGE_UPDATES),
        ).fetchall()
        return [Hint(*row) for row in rows]

    def _apply(self, page: list[Hint]) -> dict[UUID, str]:
        """Apply the hints at the server, and delete or quarantine them at the coordinator."""
        if not page:
            return {}
        with self.peer.connection.within(self.timeout):
            statuses = apply(self.peer, page, self.coordinator_name)
        acknowledge(self.coordinator, self.peer.name, statuses)
        return statuses

    def _quarantine(self, hint: Hint, unfit: list[tuple[int, str | None, str]]) -> None:
        """Quarantine updates of a hint, given as number (0: the whole hint), SQLSTATE and error, at the coordinator."""
        name = self.peer.name
        self.coordinator.execute(
            "select pgcombine_internal.handoff_quarantine_updates(%s, %s, %s, %s, %s)",
            (name, hint.token, *(list(column) for column in zip(*unfit, strict=True))),
        )
        for number, _, error in unfit:
            log.error("handoff.quarantined server=%s token=%s update=%d error=%s", name, hint.token, number, error)

    def _current(self, hint: Hint) -> bool:
        """Return whether the queue is defined at the coordinator as it was when the hint was written."""
        return one(self.coordinator, "select pgcombine_internal.handoff_shape(%s)", hint.queue) == (hint.shape,)

    def _quarantine_whole(self, hint: Hint, error: Exception) -> None:
        """Quarantine a whole hint, and count its updates."""
        self._quarantine(hint, [(0, getattr(error, "sqlstate", None), first_line(error))])
        self.count((), hint.updates)


def _refused(page: list[Hint], statuses: Mapping[UUID, str]) -> int:
    """Return the number of updates in the hints that ``acknowledge`` quarantines."""
    return sum(hint.updates for hint in page if statuses.get(hint.token) in ("conflict", "expired"))


def _without(hint: Hint, unfit: list[tuple[int, str, str]]) -> Hint:
    """Return the hint with the unfit updates listed in its details, so that the server doesn't append them."""
    if not unfit:
        return hint
    refused = [{"number": number, "sqlstate": state, "error": error} for number, state, error in unfit]
    return replace(hint, details={**(hint.details or {}), "refused": refused})
