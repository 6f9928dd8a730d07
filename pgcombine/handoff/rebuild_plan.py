"""The plan of a rebuild: which slots of each queue are copied from which source, and whether the sources are fit."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any
from uuid import UUID

import psycopg

from pgcombine import schema
from pgcombine.database.connect import Connection
from pgcombine.database.sqlfiles import query
from pgcombine.errors import PgCombineError, ReplicaError, ReplicationError, first_line
from pgcombine.handoff.connections import Peer, open_peer
from pgcombine.handoff.copying import Copy
from pgcombine.handoff.verifying import differing, present

_CONNECT_SECONDS = 10.0


class Plan:
    """The plan to rebuild the server ``name`` from ``sources``. An empty list stands for all other servers that answer.

    ``dsns`` has the connection strings of all servers by name. ``force`` is as for ``rebuild``. ``target`` is a
    connection to the server. ``coordinators`` has the servers that answer, the rebuilt one included. ``unreached`` has
    the reasons why other servers don't answer. ``placed`` says which servers hold each queue, and ``copies`` which
    slots are copied from each source. ``Plan.sources`` are the sources that have a slot to copy. ``stack`` closes the
    connections.
    """

    def __init__(self, stack: ExitStack, dsns: dict[str, str], name: str, sources: list[str], force: bool) -> None:
        self.dsns = dsns
        self.name = name
        self._force = force
        self._stack = stack
        self.target = self.open(name).connection
        schema.check_connection(self.target)
        self.coordinators, self.unreached = self._open_coordinators({name, *sources})
        wanted = sources or [coordinator for coordinator in self.coordinators if coordinator != name]
        self.placed = self._placements()
        self.copies = self._planned(wanted)
        used = {copy.source for copy in self.copies}
        self.sources = [source for source in wanted if source in used]

    def open(self, name: str) -> Peer:
        """Connect to a server. The plan's stack closes the connection."""
        peer = open_peer(name, self.dsns[name], _CONNECT_SECONDS)
        self._stack.callback(peer.connection.close)
        return peer

    def others(self) -> Iterator[tuple[str, Connection]]:
        """Return the other servers that answer, with connections. These servers may have hints for the rebuilt
        server."""
        return (
            (coordinator, peer.connection)
            for coordinator, peer in self.coordinators.items()
            if coordinator != self.name
        )

    def refuse_incomplete(self) -> dict[str, str]:
        """Return the coordinators that must mark the rebuilt server as in need of repair, with the reasons.

        The reason is that a source needs repair. Without ``force``, raises ReplicaError if a source needs repair.
        """
        marks: dict[str, str] = {}
        for coordinator, peer in self.coordinators.items():
            for source, reason in peer.connection.execute(
                query("handoff_incomplete").encode(), {"sources": self.sources}
            ):
                if not self._force:
                    raise ReplicaError(
                        f'server "{source}" needs repair itself, according to "{coordinator}": {reason} '
                        "(run pgcombine replicas repair or choose another source; with --force the copy needs repair, "
                        "too)"
                    )
                if coordinator != self.name:
                    marks[coordinator] = f'it was copied from "{source}", which needs repair: {reason}'
        return marks

    def refuse_loss(self) -> None:
        """Raise ReplicaError if the server has a write that no source has, unless a hint for a source has the write."""
        mine: set[UUID] = set()
        for source in self.sources:
            own, others = differing(self.target, self.name, self.coordinators[source].connection, source, surplus=True)
            mine |= own.keys() - others.keys()
        if mine := self.lost(mine, self.sources):
            raise ReplicaError(
                f'{len(mine)} writes of server "{self.name}" are on none of its sources ({", ".join(self.sources)}), '
                f"such as {min(mine)}: a rebuild would lose them "
                "(run pgcombine replicas repair to save them, or pass --force to lose them)"
            )

    def lost(self, tokens: set[UUID], servers: list[str]) -> set[UUID]:
        """Return those of the tokens that none of the servers has, and that no coordinator has in a hint for one."""
        # A hint is deleted after its write is delivered. So the hints are read before the servers are asked again. A
        # write that is delivered meanwhile is then found at a server.
        for peer in self.coordinators.values():
            hinted = "select token from pgcombine.handoff_hint where token = any(%s) and destination = any(%s)"
            tokens = tokens.difference(*peer.connection.execute(hinted, (list(tokens), servers)))
        for server in servers:
            tokens -= present(self.coordinators[server].connection, tokens)
        return tokens

    def _open_coordinators(self, required: set[str]) -> tuple[dict[str, Peer], dict[str, str]]:
        """Connect to all servers. Returns those that answer, and for the others the reasons why they don't.

        Raises an error if one of ``required`` doesn't answer. Without ``force`` all servers must answer: a server may
        have delivered to the rebuilt server a write that no source has.
        """
        coordinators, unreached = {}, {}
        for coordinator in self.dsns:
            try:
                coordinators[coordinator] = self.open(coordinator)
            except (psycopg.Error, PgCombineError) as error:
                if coordinator in required:
                    raise
                if not self._force:
                    raise ReplicationError(
                        f'server "{coordinator}" doesn\'t answer, so writes that it had delivered to '
                        f'"{self.name}" may be missing: bring it back, remove it first '
                        f"(pgcombine replicas rm {coordinator}), or pass --force: "
                        f"{first_line(error)}"
                    ) from error
                unreached[coordinator] = first_line(error)
        return coordinators, unreached

    def _placements(self) -> dict[str, tuple[Any, ...]]:
        """Return each queue's ``servers, replicas, placed, former``, if possible from one that knows its servers."""
        placed: dict[str, tuple[Any, ...]] = {}
        for _, coordinator in self.others():
            for queue, servers, *rest in coordinator.execute(query("handoff_placed").encode()):
                if queue not in placed or placed[queue][0] is None:
                    placed[queue] = (servers, *rest)
        return placed

    def _planned(self, wanted: list[str]) -> list[Copy]:
        """Return the slots of each queue to copy from each source. Raises ReplicaError for a slot without a source."""
        plan = []
        for queue, (_, replicas, placed, _) in sorted(self.placed.items()):
            rows = self.target.execute(
                query("handoff_sources").encode(),
                (self.name, placed, replicas, wanted),
            ).fetchall()
            for source, slots in rows:
                if source is None:
                    raise ReplicaError(
                        f'{len(slots)} of 256 slots of queue "{queue}" are on none of the servers '
                        f"{', '.join(wanted) or '(none answers)'}: name all servers that hold these slots",
                        queue=queue,
                    )
                plan.append(Copy(queue, source, slots))
        if not plan:
            raise ReplicaError(
                f"there is nothing to rebuild: none of the servers {', '.join(wanted) or '(none answers)'} has a "
                "replicated queue"
            )
        return plan
