"""Dropping the retained payloads of writes that all their servers have, and forwarding writes of lost coordinators.

A server may retain the payload of a write that came from another server (``handoff_store_tokens``), so that the write
isn't lost with its coordinator. Every few seconds the replayer asks the other servers which of these writes they have.
A payload is dropped once all other servers that hold the write's keys have confirmed that they have the write. If all
servers answer and none has the id of the write's coordinator any more, the hints of the write may be lost. Then the
replayer delivers the write to those that lack it.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import ExitStack
from uuid import UUID

import psycopg

from pgcombine.database.connect import one
from pgcombine.database.deadline import DeadlineConnection
from pgcombine.database.sqlfiles import query
from pgcombine.errors import PgCombineError, first_line
from pgcombine.handoff.connections import Peer, identity, open_peer, registered
from pgcombine.handoff.delivery import apply_each, payloads

log = logging.getLogger("pgcombine.handoff")

PAGE_WRITES = 5_000


def drop_retained(coordinator: DeadlineConnection, timeout: float) -> int:
    """Drop the payloads at ``coordinator`` that no server needs, and forward the writes of lost coordinators.

    ``timeout``, in seconds, is for connecting to another server, and for each query and each delivery there. Returns
    the number of payloads dropped. Raises psycopg.OperationalError if the coordinator is lost.
    """
    dropped = 0
    after = UUID(int=0)
    with ExitStack() as opened:
        others: _Others | None = None
        while True:
            page = coordinator.execute(query("handoff_retained").encode(), (after, PAGE_WRITES)).fetchall()
            if not page:
                return dropped
            others = others or _Others(coordinator, opened, timeout)
            tokens_of: dict[tuple[str, str], list[UUID]] = {}
            for token, queue, _, holders in page:
                for name in holders if others.answer(holders) else ():
                    tokens_of.setdefault((name, queue), []).append(token)
            had = {(name, queue): others.known(name, queue, tokens) for (name, queue), tokens in tokens_of.items()}
            orphans = {token for token, _, origin, _ in page if others.gone(origin)}
            for (name, queue), tokens in tokens_of.items():
                others.forward(name, queue, orphans.intersection(tokens) - had[name, queue])
            done = [
                (token, queue)
                for token, queue, _, holders in page
                if all(token in had.get((name, queue), ()) for name in holders)
            ]
            for queue in {queue for _, queue in done}:
                dropping = [token for token, of in done if of == queue]
                (count,) = one(coordinator, "select pgcombine_internal.handoff_drop_retained(%s, %s)", queue, dropping)
                dropped += count
            if len(page) < PAGE_WRITES:
                return dropped
            after = page[-1][0]


class _Others:
    """Connections to the other servers that answer and aren't paused. A server that fails later is removed."""

    def __init__(self, coordinator: DeadlineConnection, opened: ExitStack, timeout: float) -> None:
        self._coordinator = coordinator
        self._timeout = timeout
        self._peers: dict[str, Peer] = {}
        self._ids = {identity(coordinator)}
        found = coordinator.execute(query("handoff_states").encode()).fetchall()
        for name, dsn, state in found:
            # A server whose last delivery failed is tried, too: if no hint waits for it, no replayer tries it.
            if state != "paused":
                try:
                    peer = open_peer(name, registered(name, dsn), timeout)
                except (psycopg.Error, PgCombineError) as error:
                    self._failed(name, error)
                else:
                    opened.callback(peer.connection.close)
                    self._peers[name] = peer
                    self._ids.add(peer.id)
        self._all = len(self._peers) == len(found)

    def answer(self, names: Collection[str]) -> bool:
        """Return whether all of these servers answer."""
        return all(name in self._peers for name in names)

    def gone(self, coordinator: UUID) -> bool:
        """Return whether all servers answer and none has this id. No server has the id 0 (``handoff_store_tokens``)."""
        return not coordinator.int or (self._all and coordinator not in self._ids)

    def known(self, name: str, queue: str, tokens: list[UUID]) -> set[UUID]:
        """Return those of the given tokens that a server has; none if the server fails."""
        if name not in self._peers:
            return set()
        connection = self._peers[name].connection
        try:
            with connection.within(self._timeout):
                rows = connection.execute("select pgcombine_internal.handoff_known(%s, %s)", (queue, tokens)).fetchall()
        except psycopg.Error as error:
            self._failed(name, error)
            return set()
        return {token for (token,) in rows}

    def forward(self, name: str, queue: str, tokens: Collection[UUID]) -> None:
        """Deliver the writes with these tokens to the server ``name``. The coordinator has their payloads."""
        for hint in payloads(self._coordinator, queue, sorted(tokens)) if tokens and name in self._peers else ():
            peer = self._peers[name]
            try:
                with peer.connection.within(self._timeout):
                    ((_, reason),) = apply_each(peer, [hint]).items()
            except (psycopg.Error, PgCombineError) as error:
                self._failed(name, error)
                return
            log.warning("handoff.forwarded server=%s token=%s error=%s", name, hint.token, reason)

    def _failed(self, name: str, error: Exception) -> None:
        self._peers.pop(name, None)
        self._all = False
        log.debug("handoff.uncompared server=%s error=%s", name, first_line(error))
