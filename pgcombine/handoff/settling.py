"""Dropping the texts of writes that all their servers have, and handing on those of a home that is gone.

A server keeps the text of a write that came from another one (``handoff_store_tokens``), so the write isn't lost with
its home. Now and then the replayer asks the other servers which of the tokens they have. A text goes once all servers
that hold the write have said so. A server that doesn't answer, or isn't registered, has said nothing. A write whose
home isn't among the servers any more, by its id, is delivered to those that lack it: its hints may be lost.
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
from pgcombine.handoff.delivery import apply_each, texts

log = logging.getLogger("pgcombine.handoff")

PAGE_WRITES = 5_000


def settle(home: DeadlineConnection, timeout: float) -> int:
    """Drop the texts at ``home`` that aren't needed any more, and return their number. Hand on those of lost homes.

    ``timeout``, in seconds, bounds each question and delivery. Raises psycopg.OperationalError if the home is lost.
    """
    dropped = 0
    after = UUID(int=0)
    with ExitStack() as opened:
        others: _Others | None = None
        while True:
            page = home.execute(query("handoff_settling").encode(), (after, PAGE_WRITES)).fetchall()
            if not page:
                return dropped
            others = others or _Others(home, opened, timeout)
            held: dict[tuple[str, str], list[UUID]] = {}
            for token, queue, _, holders in page:
                for name in holders if others.answer(holders) else ():
                    held.setdefault((name, queue), []).append(token)
            had = {(name, queue): others.known(name, queue, tokens) for (name, queue), tokens in held.items()}
            orphans = {token for token, _, origin, _ in page if others.gone(origin)}
            for (name, queue), tokens in held.items():
                others.hand_on(name, queue, orphans.intersection(tokens) - had[name, queue])
            done = [
                (token, queue)
                for token, queue, _, holders in page
                if all(token in had.get((name, queue), ()) for name in holders)
            ]
            for queue in {queue for _, queue in done}:
                settled = [token for token, of in done if of == queue]
                (count,) = one(home, "select pgcombine_internal.handoff_drop_retained(%s, %s)", queue, settled)
                dropped += count
            if len(page) < PAGE_WRITES:
                return dropped
            after = page[-1][0]


class _Others:
    """The other servers: connections to those that answer, until one of them fails."""

    def __init__(self, home: DeadlineConnection, opened: ExitStack, timeout: float) -> None:
        self._home = home
        self._timeout = timeout
        self._peers: dict[str, Peer] = {}
        self._ids = {identity(home)}
        found = home.execute(query("handoff_states").encode()).fetchall()
        for name, dsn, state in found:
            if state != "paused":  # one that failed is tried again: perhaps no hint is left that would do it
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

    def gone(self, home: UUID) -> bool:
        """Return whether no server has this id, which is certain only if all answered."""
        return self._all and home not in self._ids

    def known(self, name: str, queue: str, tokens: list[UUID]) -> set[UUID]:
        """Return the tokens that a server has: none if it fails."""
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

    def hand_on(self, name: str, queue: str, tokens: Collection[UUID]) -> None:
        """Deliver writes whose texts are here to a server, as far as it takes them."""
        for hint in texts(self._home, queue, sorted(tokens)) if tokens and name in self._peers else ():
            peer = self._peers[name]
            try:
                with peer.connection.within(self._timeout):
                    ((_, reason),) = apply_each(peer, [hint]).items()
            except (psycopg.Error, PgCombineError) as error:
                self._failed(name, error)
                return
            log.warning("handoff.handed_on server=%s token=%s error=%s", name, hint.token, reason)

    def _failed(self, name: str, error: Exception) -> None:
        self._peers.pop(name, None)
        self._all = False
        log.debug("handoff.unsettled server=%s error=%s", name, first_line(error))
