"""Repairing servers from each other: each server gets the writes that it lacks, if another server has their payloads.

If a coordinator is lost, its hints are lost. But a server that got a write from it may still retain the write's
updates, the *payload* (:mod:`pgcombine.handoff.retained`), and can forward the write. The repair compares each pair of
servers by the tokens of their writes, and applies missing writes as hints are applied. Writers go on.

A server may have refused updates of a write. The repair tries again to append those that no coordinator has in its
quarantine or its hints. For others, run ``pgcombine replicas quarantine retry`` at the coordinator.

At the end the repair marks servers that lack whole writes, which no server can forward (``needs_repair``). If all
servers were compared, it removes the marks of servers that lack no write. A mark that needs a rebuild stays, and so
does a mark that was made after the repair began.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any
from uuid import UUID, uuid4

import psycopg

from pgcombine import schema
from pgcombine.database.connect import Connection
from pgcombine.database.sqlfiles import query
from pgcombine.errors import PgCombineError, ReplicaError, first_line, translated
from pgcombine.handoff.connections import Peer, addresses, known_servers, open_peer
from pgcombine.handoff.delivery import Hint, apply_each, payloads
from pgcombine.handoff.verifying import differing, present

log = logging.getLogger("pgcombine.handoff")

TIMEOUT_SECONDS = 3600.0
_CONNECT_SECONDS = 10.0
_PAGE_WRITES = 200


@dataclass
class Repaired:
    """The result of a repair.

    ``servers`` are the compared servers. ``delivered`` has the number of writes that each of them got. ``lacking`` has
    for each server the writes that it still lacks, in whole or in part, or has with other updates than another server,
    with the reasons. ``unreached`` has the servers that weren't compared, with the reasons. ``marked`` are the servers
    that still need repair.
    """

    servers: tuple[str, ...]
    delivered: dict[str, int] = field(default_factory=dict)
    lacking: dict[str, dict[UUID, str]] = field(default_factory=dict)
    unreached: dict[str, str] = field(default_factory=dict)
    marked: list[str] = field(default_factory=list)


def repair(coordinator: Connection, coordinator_dsn: str, timeout: float = TIMEOUT_SECONDS) -> Repaired:
    """Compare the coordinator and the servers registered there, and forward to each the writes that it lacks.

    ``timeout``, in seconds, is for the comparison and the deliveries. Raises ReplicaError if this server has no name or
    knows no other server, SchemaError, and psycopg.OperationalError if a server is lost meanwhile or the time is up. In
    the last two cases, run the repair again.
    """
    own, dsns = known_servers(coordinator, coordinator_dsn)
    if len(dsns) == 1:
        raise ReplicaError(f'"{own}" knows no other server to compare with: run this at another server (--dsn)')
    with ExitStack() as stack, translated():
        peers: dict[str, Peer] = {}
        unreached: dict[str, str] = {}
        for name, dsn in dsns.items():
            try:
                peer = open_peer(name, dsn, _CONNECT_SECONDS)
            except (psycopg.Error, PgCombineError) as error:
                unreached[name] = first_line(error)
            else:
                stack.callback(peer.connection.close)
                stack.enter_context(peer.connection.within(timeout))
                schema.check_connection(peer.connection)
                peers[name] = peer
        for name, peer in peers.items():
            for other in addresses(peer.connection)[1].keys() - dsns.keys():
                unreached[other] = f'it is registered at "{name}", but not here'
        return _Repair(peers, unreached).run()


class _Repair:
    def __init__(self, peers: dict[str, Peer], unreached: dict[str, str]) -> None:
        self._peers = peers
        self._done = Repaired(
            tuple(peers), dict.fromkeys(peers, 0), lacking={name: {} for name in peers}, unreached=unreached
        )

    def run(self) -> Repaired:
        done, comparison = self._done, uuid4()
        conflicts: dict[str, dict[UUID, str]] = {name: {} for name in self._peers}
        for peer in self._peers.values():
            peer.connection.execute("select pgcombine_internal.handoff_compare_begin(%s)", (comparison,))
        for one, other in combinations(self._peers.values(), 2):
            ours, theirs = differing(one.connection, one.name, other.connection, other.name)
            self._forward(one, other, ours.keys() - theirs.keys())
            self._forward(other, one, theirs.keys() - ours.keys())
            for token in ours.keys() & theirs.keys():
                if ours[token] != theirs[token]:
                    conflicts[other.name][token] = f'its updates differ from those on "{one.name}"'
        incomplete: set[str] = set()  # of refused updates the quarantines tell readers
        for peer in self._peers.values():
            self._remove_arrived(peer)
            done.lacking[peer.name] |= conflicts[peer.name]
            if done.lacking[peer.name]:
                incomplete.add(peer.name)
            done.lacking[peer.name] |= self._refused(peer)
        done.lacking = {name: tokens for name, tokens in done.lacking.items() if tokens}
        complete = [] if done.unreached else [name for name in self._peers if name not in done.lacking]
        marked: set[str] = set()
        for peer in self._peers.values():
            end = "select pgcombine_internal.handoff_compare_end(%s, %s, %s)"
            marked |= {name for (name,) in peer.connection.execute(end, (comparison, complete, sorted(incomplete)))}
        done.marked = sorted(marked)
        log.info("handoff.repaired servers=%s delivered=%d", ",".join(done.servers), sum(done.delivered.values()))
        return done

    def _forward(self, source: Peer, target: Peer, tokens: Collection[UUID]) -> None:
        """Apply at the target the writes whose payloads the source has. Record those that the target still lacks."""
        lacking = self._done.lacking[target.name]
        lacking |= {token: "no server retains its payload" for token in tokens if token not in lacking}
        retained = source.connection.execute(query("handoff_having").encode(), {"tokens": list(tokens)}).fetchall()
        for start in range(0, len(retained), _PAGE_WRITES):
            page = retained[start : start + _PAGE_WRITES]
            groups: dict[tuple[object, ...], list[Hint]] = {}
            for queue in {queue for queue, _ in page}:
                for hint in payloads(source.connection, queue, [token for of, token in page if of == queue]):
                    key = (queue, hint.shape, hint.placed and tuple(hint.placed), hint.replicas)
                    groups.setdefault(key, []).append(hint)
            for hints in groups.values():
                for token, reason in apply_each(target, hints).items():
                    if reason is None:
                        lacking.pop(token, None)
                        self._done.delivered[target.name] += 1
                    else:
                        lacking[token] = reason

    def _refused(self, peer: Peer) -> dict[UUID, str]:
        """Append refused updates that no coordinator still has. Return writes that lack others, with the reasons."""
        refused: dict[UUID, str] = {}
        coordinators: set[tuple[UUID, int]] = set()
        for coordinator in self._peers.values():
            coordinators |= set(
                coordinator.connection.execute(query("handoff_retried").encode(), {"server": peer.name}).fetchall()
            )
        found = peer.connection.execute("select token, number, error from pgcombine.handoff_refused").fetchall()
        for token, number, error in found:
            if (token, number) in coordinators:
                refused[token] = (
                    f"the server refused updates (pgcombine replicas quarantine retry {peer.name} at the coordinator): "
                    f"{error}"
                )
                continue
            try:
                peer.connection.execute("select pgcombine_internal.handoff_retry_refused(%s, %s)", (token, number))
            except psycopg.Error as failed:
                if peer.connection.closed:
                    raise
                refused.setdefault(token, f"the server refuses updates: {first_line(failed)}")
        return refused

    def _remove_arrived(self, peer: Peer) -> None:
        """Remove from ``lacking`` the writes that the server has got meanwhile."""
        lacking = self._done.lacking[peer.name]
        for token in present(peer.connection, lacking):
            del lacking[token]


def as_dict(done: Repaired) -> dict[str, Any]:
    """Return the result as a dict, for printing."""
    lacking = {name: {str(token): reason for token, reason in found.items()} for name, found in done.lacking.items()}
    return {**vars(done), "servers": list(done.servers), "lacking": lacking}
