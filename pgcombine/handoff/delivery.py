"""Delivering hints to a server, and deleting them at their coordinator once the server has acknowledged them.

A failure has one of four causes:

- *data*: the server refuses an update for its data, or a token for its time or its UUID version;
- *schema*: the server lacks the queue or another object, or defines it differently than the coordinator;
- *identity*: the server isn't the expected one, or can't take writes;
- *health*: any other cause. A later delivery may succeed.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Literal
from uuid import UUID

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from pgcombine.database.connect import one
from pgcombine.errors import (
    InvalidUpdateError,
    PgCombineError,
    QueueMismatchError,
    QueueNotFoundError,
    ReplicationError,
    TokenConflictError,
    TokenExpiredError,
    WrongServerError,
    class_of,
    first_line,
    sqlstate_of,
    translated,
)
from pgcombine.handoff.connections import Peer, identity
from pgcombine.handoff.encoding import lines
from pgcombine.runtime.destinations import Destination

log = logging.getLogger("pgcombine.handoff")

Cause = Literal["data", "schema", "identity", "health"]

# SQLSTATEs: no such function, column, table or schema; a wrong type
_SCHEMA = {"42883", "42703", "42P01", "42804", "3F000"}

_APPLY = (
    "select token, status from pgcombine_internal.handoff_apply(%s, %s, %s, %s, %s, %s::jsonb[], %s::text[], "
    "%s, %s::text[], %s, %s::uuid[], %s::jsonb[])"
)

# From about this number of updates on, COPY is faster than one function call, although it takes more round trips.
COPY_UPDATES = 1000

FORGOT = "it has forgotten a write that it had acknowledged, perhaps by a restore from an older backup"


@dataclass(frozen=True)
class Hint:
    """A write that another server must get.

    ``servers`` are the names of the servers that hold updates of the write (None: all). ``placed`` are the names of all
    servers of the queue, and each key is on ``replicas`` of them (both None: unknown). ``coordinator`` is the id of the
    write's coordinator if the destination must retain the payload, because a third server may lack the write; else
    None. ``details`` is described at ``handoff_apply``.
    """

    token: UUID
    queue: str
    shape: UUID
    digest: UUID
    servers: Sequence[str] | None
    updates: int
    payload: str
    placed: Sequence[str] | None
    replicas: int | None
    coordinator: UUID | None
    details: Mapping[str, Any] | None = None


class ForgottenError(ReplicationError):
    """The server has lost commits that it had acknowledged."""


def verify_identity(
    coordinator: psycopg.Connection[Any], coordinator_name: str, peer: Peer, others: Mapping[str, str] | None = None
) -> None:
    """Check that the coordinator knows this peer, and that neither of them has lost commits.

    Does nothing if the check has succeeded for this coordinator and this connection before. If the coordinator doesn't
    know the peer's id yet, or knows an earlier epoch, it stores the id and the epoch, provided that the role may do
    that.

    Raises WrongServerError if the peer isn't the server that the coordinator knows by this name, and ReplicaError if no
    server of this name is registered at the coordinator. If the peer has lost a write that it had acknowledged, raises
    ForgottenError, and the coordinator pauses the peer and marks it as in need of repair. If the coordinator has lost a
    write, the peer does the same with the coordinator, but no error is raised, because the coordinator's hints must
    still be delivered.

    For a role without the right to replay, the check finds no lost write.

    ``others`` has addresses of servers by name. Those that the peer doesn't know are registered there, if the role may
    do that.
    """
    if coordinator_name in peer.known_to:
        return
    with translated():
        if _forgot(
            peer.connection,
            *one(
                coordinator,
                "select pgcombine_internal.handoff_verify_identity(%s, %s, %s)",
                peer.name,
                peer.id,
                peer.epoch,
            ),
        ):
            _record_forgotten(coordinator, peer.name, peer.id)
            raise ForgottenError(f'server "{peer.name}" is incomplete: {FORGOT} (rebuild it, then resume it)')
        if others:
            peer.connection.execute(
                "select pgcombine_internal.handoff_register_missing(%s, %s)", (list(others), list(others.values()))
            )
        coordinator_id = identity(coordinator)
        if _forgot(coordinator, *one(peer.connection, "select pgcombine_internal.handoff_last(%s)", coordinator_name)):
            _record_forgotten(peer.connection, coordinator_name, coordinator_id)
            log.error("handoff.forgotten server=%s known_to=%s error=%s", coordinator_name, peer.name, FORGOT)
    peer.known_to.add(coordinator_name)


def _forgot(server: psycopg.Connection[Any], token: UUID | None) -> bool:
    return token is not None and one(server, "select pgcombine_internal.handoff_remembers(%s)", token) != (True,)


def _record_forgotten(at: psycopg.Connection[Any], name: str, id: UUID) -> None:
    # a role without the right to replay can't record the loss
    with suppress(psycopg.errors.InsufficientPrivilege), at.transaction():
        if still_known(at, name, id):
            at.execute("select pgcombine_internal.handoff_require_repair(%s, %s)", (name, FORGOT))
            Destination(at, "server", name).pause(FORGOT)


def still_known(at: psycopg.Connection[Any], name: str, id: UUID) -> bool:
    """Return whether the server at ``at`` knows the server ``name`` by this id, or by no id yet.

    If so, the id can't change until the transaction ends. If not, for example after a rebuild, the caller must not
    record an error of a delivery to this id.
    """
    known = "select from pgcombine.handoff_replica where name = %s and coalesce(id = %s, true) for no key update"
    return at.execute(known, (name, id)).fetchone() is not None


def apply(peer: Peer, hints: Sequence[Hint], coordinator: str | None = None) -> dict[UUID, str]:
    """Apply writes of one queue in one transaction. Returns the status of each token (see ``handoff_apply``).

    ``coordinator`` is the name of the server that has the hints. The updates are sent by COPY after the tokens
    if there are at least ``COPY_UPDATES``, the peer stores all of them and retains no payload, no hint has ``details``,
    and no value is in quotes. Errors that pgcombine's SQL functions raise become classes of :mod:`pgcombine.errors`.
    Other errors are psycopg's.
    """
    # If a caller retries a write while its first delivery waits, ``hints`` has the token twice.
    hints = list({hint.token: hint for hint in hints}.values())
    queue = hints[0].queue
    with translated(queue=queue):
        plain = all(hint.servers is None and hint.coordinator is None and hint.details is None for hint in hints)
        if not plain or sum(hint.updates for hint in hints) < COPY_UPDATES or _partial(peer):
            return _take(peer, hints, [hint.payload for hint in hints], coordinator)
        blocks = [lines(hint.payload) for hint in hints]
        if None in blocks:
            return _take(peer, hints, [hint.payload for hint in hints], coordinator)
        with peer.connection.transaction(), peer.connection.cursor() as cursor:
            statuses = _take(peer, hints, [None] * len(hints), coordinator)
            into = sql.SQL("copy {} ({}) from stdin").format(
                sql.Identifier("pgcombine", f"{queue}_updates"),
                sql.SQL(", ").join(map(sql.Identifier, _columns(peer, queue, hints[0].shape))),
            )
            with cursor.copy(into) as copy:
                for hint, block in zip(hints, blocks, strict=True):
                    if block and statuses[hint.token] == "applied":
                        copy.write(block)
        return statuses


def _take(
    peer: Peer, hints: Sequence[Hint], payloads: Sequence[str | None], coordinator: str | None
) -> dict[UUID, str]:
    rows = peer.connection.execute(
        _APPLY,
        (
            peer.id,
            hints[0].queue,
            hints[0].shape,
            [hint.token for hint in hints],
            [hint.digest for hint in hints],
            [None if hint.servers is None else Jsonb(list(hint.servers)) for hint in hints],
            list(payloads),
            coordinator,
            None if hints[0].placed is None else list(hints[0].placed),
            hints[0].replicas,
            [hint.coordinator for hint in hints],
            [None if hint.details is None else Jsonb(dict(hint.details)) for hint in hints],
        ),
    ).fetchall()
    return dict(rows)


def _partial(peer: Peer) -> bool:
    """Return whether the server has only a part of some writes.

    The result is cached for the connection: only a rebuild can make it true, and after a rebuild the server refuses
    deliveries to its former id.
    """
    if peer.partial is None:
        (peer.partial,) = one(peer.connection, "select exists (select slots from pgcombine.handoff_partial)")
    return bool(peer.partial)


def _columns(peer: Peer, queue: str, shape: UUID) -> list[str]:
    if (queue, shape) not in peer.columns:
        (columns,) = one(peer.connection, "select columns from pgcombine_internal.handoff_definition(%s)", queue)
        peer.columns[queue, shape] = columns
    return peer.columns[queue, shape]


def payloads(source: psycopg.Connection[Any], queue: str, tokens: Sequence[UUID]) -> list[Hint]:
    """Return the writes with these tokens whose payloads ``source`` has, in hints or retained."""
    found = "select * from pgcombine_internal.handoff_payloads(%s, %s)"
    rows = source.execute(found, (queue, list(tokens))).fetchall()
    return [Hint(token, queue, *row) for token, *row in rows]


def apply_each(target: Peer, hints: list[Hint]) -> dict[UUID, str | None]:
    """Apply writes of one queue. Returns for each token why the target refuses the write, or None if it has the write
    now.

    Raises errors whose cause is neither *data* nor *schema*.
    """
    try:
        statuses = apply(target, hints)
    except (psycopg.Error, PgCombineError) as error:
        cause = cause_of(error)
        if target.connection.closed or cause not in ("data", "schema"):
            raise
        if len(hints) == 1 or cause == "schema":
            return dict.fromkeys((hint.token for hint in hints), first_line(error))
        return {token: reason for hint in hints for token, reason in apply_each(target, [hint]).items()}
    return {
        token: None if status in ("applied", "duplicate") else f"the server says: {status}"
        for token, status in statuses.items()
    }


def acknowledge(coordinator: psycopg.Connection[Any], destination: str, statuses: dict[UUID, str]) -> None:
    """Delete delivered hints at their coordinator, and quarantine the writes whose tokens the destination refused.

    ``statuses`` is the result of :func:`apply`. If a token was too old, the destination is marked as in need of repair.
    """
    for status, kind, reason in (
        ("conflict", TokenConflictError, "the token was used for other updates there"),
        ("expired", TokenExpiredError, "the token is older than what the server remembers"),
    ):
        for token in [token for token, found in statuses.items() if found == status]:
            coordinator.execute(
                "select pgcombine_internal.handoff_quarantine_updates(%s, %s, '{0}', %s, %s)",
                (destination, token, [sqlstate_of(kind)], [reason]),
            )
            log.error("handoff.quarantined server=%s token=%s error=%s", destination, token, reason)
            if status == "expired":
                coordinator.execute(
                    "select pgcombine_internal.handoff_require_repair(%s, %s)",
                    (destination, "hints were refused as too old"),
                )
    delivered = [token for token, status in statuses.items() if status in ("applied", "duplicate")]
    duplicates = sum(status == "duplicate" for status in statuses.values())
    coordinator.execute(
        "select pgcombine_internal.handoff_acknowledge(%s, %s, %s)", (destination, delivered, duplicates)
    )


def cause_of(error: Exception) -> Cause:
    """Return the cause of a failed delivery: one of the four that the module's docstring describes."""
    state, kind = getattr(error, "sqlstate", None) or "", class_of(error)
    if kind is WrongServerError:
        return "identity"
    if state in _SCHEMA or kind in (QueueNotFoundError, QueueMismatchError):
        return "schema"
    if state[:2] in ("22", "23", "54") or state == "P0001" or kind in (InvalidUpdateError, TokenExpiredError):
        return "data"
    return "health"
