"""Comparing two servers: the writes that one has and the other lacks.

Digests of tokens are compared first, one for each day and slice (the last six bits of a token). If the digests of a day
and slice differ, its tokens are read. Days that are partly older than the retention are left out.
"""

from __future__ import annotations

from collections.abc import Collection
from contextlib import closing
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg

from pgcombine.database.connect import Connection
from pgcombine.errors import ReplicaError, translated
from pgcombine.handoff.connections import addresses, open_peer, registered

TIMEOUT_SECONDS = 60.0


@dataclass(frozen=True)
class Difference:
    """The difference between a server and the coordinator, in tokens of writes.

    ``lacking`` are the writes that the server lacks, and ``surplus`` those that the coordinator lacks. Both leave out
    writes that wait as hints between the two. ``conflicting`` are writes whose updates differ between the two.
    ``refused`` are writes of which the server refused some updates, which it therefore lacks. ``hinted`` is the number
    of writes that the server lacks and for which the coordinator has hints.
    """

    server: str
    lacking: tuple[UUID, ...]
    surplus: tuple[UUID, ...]
    conflicting: tuple[UUID, ...]
    hinted: int
    refused: tuple[UUID, ...] = ()

    @property
    def equal(self) -> bool:
        """Whether the two servers don't differ, apart from writes that wait as hints."""
        return not (self.lacking or self.surplus or self.conflicting or self.refused)


def compare(coordinator: Connection, name: str, timeout: float = TIMEOUT_SECONDS) -> Difference:
    """Compare the coordinator with a server. ``timeout`` is in seconds.

    Raises ReplicaError if the server isn't registered or the coordinator has no name, WrongServerError if another
    server answers, and psycopg.OperationalError if none answers.
    """
    coordinator_name, others = addresses(coordinator)
    if name not in others:
        raise ReplicaError(f'server "{name}" is not registered here (pgcombine replicas ls lists the servers)')
    if coordinator_name is None:
        raise ReplicaError("this server hasn't been named yet: it has taken no replicated writes to compare")
    peer = open_peer(name, registered(name, others[name]), timeout)
    with closing(peer.connection), peer.connection.within(timeout), translated():
        own, other = differing(coordinator, coordinator_name, peer.connection, name)
        lacking, surplus = own.keys() - other.keys(), other.keys() - own.keys()
        conflicting = {token for token in own.keys() & other.keys() if own[token] != other[token]}
        hinted = _hinted(coordinator, name)
        coming = _hinted(peer.connection, coordinator_name)
        held = "select token from pgcombine.handoff_quarantine where destination = %s and number > 0"
        refused = {token for (token,) in coordinator.execute(held, (name,))}
        refused |= {token for (token,) in peer.connection.execute("select token from pgcombine.handoff_refused")}
    return Difference(
        name,
        tuple(sorted(lacking - hinted)),
        tuple(sorted(surplus - coming)),
        tuple(sorted(conflicting)),
        len(lacking & hinted),
        tuple(sorted(refused)),
    )


def differing(
    one: psycopg.Connection[Any], name: str, another: psycopg.Connection[Any], other: str, *, surplus: bool = False
) -> tuple[dict[UUID, UUID], dict[UUID, UUID]]:
    """Return for each of two servers its writes with their digests, for the days and slices that differ.

    Only writes that both servers must have are compared. With ``surplus``, days and slices in which the first server
    has no writes are left out.
    """
    here, there = _digests(one, other), _digests(another, name)
    own: dict[UUID, UUID] = {}
    others: dict[UUID, UUID] = {}
    for part in {part for part, _ in (here.items() - there.items() if surplus else here.items() ^ there.items())}:
        own |= _tokens(one, other, part)
        others |= _tokens(another, name, part)
    return own, others


def present(connection: psycopg.Connection[Any], tokens: Collection[UUID]) -> set[UUID]:
    """Return the members of ``tokens`` that a server has."""
    had = "select token from pgcombine.handoff_token where token = any(%s)"
    return {token for (token,) in connection.execute(had, (list(tokens),))}


def _digests(connection: psycopg.Connection[Any], other: str) -> dict[tuple[Any, int], tuple[int, str]]:
    rows = connection.execute(
        "select day, slice, tokens, digest from pgcombine_internal.handoff_digests(%s)", (other,)
    ).fetchall()
    return {(day, part): (tokens, digest) for day, part, tokens, digest in rows}


def _tokens(connection: psycopg.Connection[Any], other: str, part: tuple[Any, int]) -> dict[UUID, UUID]:
    rows = connection.execute(
        "select token, digest from pgcombine_internal.handoff_tokens(%s, %s, %s)", (other, *part)
    ).fetchall()
    return dict(rows)


def _hinted(coordinator: psycopg.Connection[Any], name: str) -> set[UUID]:
    return {
        t for (t,) in coordinator.execute("select token from pgcombine.handoff_hint where destination = %s", (name,))
    }
