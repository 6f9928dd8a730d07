"""Finding a coordinator for a write: a live server that takes it.

Servers are tried one after the other. Those that failed recently come last. Each gets an equal share of the remaining
time. If a server may have taken the write but didn't answer, later attempts there and at other servers use the same
token, so that the write isn't applied twice. An error of the write itself, for example of an update that doesn't fit,
ends the search. So does HintsFullError.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

import psycopg

from pgcombine.database.connect import one
from pgcombine.errors import (
    HintsFullError,
    IndeterminateError,
    InvalidUpdateError,
    PgCombineError,
    QueueMismatchError,
    QueueNotFoundError,
    ReplicaError,
    TokenConflictError,
    TokenExpiredError,
    UnavailableError,
    WrongServerError,
    class_of,
    first_line,
    translate,
)
from pgcombine.handoff.connections import address
from pgcombine.handoff.delivery import cause_of
from pgcombine.handoff.encoding import Definition, encode
from pgcombine.handoff.servers import NotConnected, Server
from pgcombine.queue.rows import Row

# The largest number of attempts at one coordinator. ``Coordinators._accept`` says after which errors it tries again.
_TRIES = 10


@dataclass(frozen=True)
class Accepted:
    """A write that is committed at its coordinator.

    ``id`` is the coordinator's id, ``shape`` the digest of the queue's definition, and ``digest`` that of the payload.
    ``hinted`` are the servers for which the coordinator has a hint of the write. ``replica_sets`` are the sets of
    servers that hold keys of the write.
    """

    coordinator: str
    id: UUID
    shape: UUID
    digest: UUID
    payload: str
    updates: int
    hinted: frozenset[str]
    replica_sets: list[frozenset[str]]


class _Lost(Exception):
    """The connection was lost after the write was sent, so the coordinator may have committed the write."""


class Coordinators:
    """Finds coordinators among ``servers`` for writes to ``queue``. Each key is on ``replicas`` of these servers."""

    def __init__(self, servers: Mapping[str, Server], queue: str, replicas: int) -> None:
        self._servers = servers
        self._queue = queue
        self._replicas = replicas
        self._definition: Definition | None = None

    def accept(self, token: UUID, rows: Sequence[Row], deadline: float) -> Accepted:
        """Send the write to servers until one has committed it. ``deadline`` is a time of ``time.monotonic``.

        If no server acknowledges the write, but one may have taken it, raises IndeterminateError. Otherwise raises the
        error of the write itself, HintsFullError, QueueNotFoundError if each server that was tried lacks the queue, or
        else UnavailableError.
        """
        reasons: dict[str, Exception] = {}
        doubtful: list[str] = []
        # the sort is stable, so the given order decides among servers that didn't fail recently
        candidates = sorted(self._servers.values(), key=lambda server: server.avoided)
        for number, server in enumerate(candidates):
            remaining = deadline - time.monotonic()
            if remaining <= 0:
                break
            try:
                return self._accept(server, token, rows, remaining / (len(candidates) - number), doubtful)
            except (InvalidUpdateError, TokenConflictError, TokenExpiredError, HintsFullError) as error:
                reasons[server.name] = error
                if not doubtful:
                    raise
                break
            except (psycopg.Error, PgCombineError, _Lost) as error:
                reasons[server.name] = error
        why = "; ".join(f"{name}: {first_line(error)}" for name, error in reasons.items()) or "no time was left"
        if doubtful:
            raise IndeterminateError(
                f"write {token} may have been taken by {', '.join(doubtful)}; no server has acknowledged it: {why} "
                "(retrying with its token is safe)",
                token=token,
                queue=self._queue,
            )
        if reasons and all(isinstance(error, QueueNotFoundError) for error in reasons.values()):
            raise next(iter(reasons.values()))
        raise UnavailableError(
            f'no server took the write to queue "{self._queue}", so nothing was written: {why}', queue=self._queue
        )

    def _accept(
        self, server: Server, token: UUID, rows: Sequence[Row], seconds: float, doubtful: list[str]
    ) -> Accepted:
        """Try one coordinator for ``seconds``.

        If the connection is lost after the write was sent, adds the coordinator's name to ``doubtful``. After
        ReplicaError the servers are registered at the coordinator, and it is tried again. It is also tried again after
        QueueMismatchError, after such a lost connection while time is left, and if the first attempt raises
        WrongServerError.
        """
        deadline = time.monotonic() + seconds
        for tries in range(1, _TRIES + 1):
            try:
                definition = self._definition or self._ask(server, max(0.001, deadline - time.monotonic()))
                payload, updates = encode(self._queue, definition, rows)
                accepted = self._send(
                    server, token, definition, payload, updates, max(0.001, deadline - time.monotonic())
                )
            except ReplicaError:
                if tries == _TRIES:
                    raise
                self._register(server, max(0.001, deadline - time.monotonic()))
            except WrongServerError:
                if tries > 1:
                    raise
                # A rebuild may have changed the server's id since the connection was opened. The next attempt uses a
                # new connection.
            except QueueMismatchError:
                self._definition = None
                if tries == _TRIES:
                    raise
            except _Lost:
                if server.name not in doubtful:
                    doubtful.append(server.name)
                if tries == _TRIES or time.monotonic() >= deadline:
                    server.failed()
                    raise
                # The server may have restarted since the connection was opened. Try again with the same token.
            except psycopg.Error:
                server.failed()
                raise
            else:
                server.answered()
                return accepted
        raise AssertionError("unreachable")

    def _send(
        self, server: Server, token: UUID, definition: Definition, payload: str, updates: int, seconds: float
    ) -> Accepted:
        with server.peer(seconds) as peer:
            try:
                digest, hinted, sets = one(
                    peer.connection,
                    "select digest, hinted, replica_sets "
                    "from pgcombine_internal.handoff_accept(%s, %s, %s, %s, %s, %s, %s)",
                    *(peer.id, token, self._queue, definition.shape, payload, sorted(self._servers), self._replicas),
                )
            except psycopg.Error as error:
                if peer.connection.closed:
                    raise _Lost(first_line(error)) from error
                if cause_of(error) == "data" and class_of(error) is not TokenExpiredError:
                    raise InvalidUpdateError(
                        f'an update doesn\'t fit queue "{self._queue}": {error.diag.message_primary}',
                        queue=self._queue,
                        sqlstate=error.sqlstate,
                    ) from error
                mapped = translate(error, queue=self._queue)
                if mapped is None:
                    raise
                raise mapped from error
        return Accepted(
            *(server.name, peer.id, definition.shape, digest, payload, updates, frozenset(hinted)),
            [frozenset(names) for names in sets],
        )

    def _register(self, coordinator: Server, seconds: float) -> None:
        """Register at a coordinator the servers that it doesn't know yet, if the role may do that."""
        with coordinator.peer(seconds) as peer:
            peer.connection.execute(
                "select pgcombine_internal.handoff_register_missing(%s, %s)",
                (list(self._servers), [address(server.dsn) for server in self._servers.values()]),
            )

    def define(self, deadline: float) -> Definition:
        """Return the queue's definition. If it isn't known yet, the servers are asked one after the other.

        Raises QueueNotFoundError if all servers answer that they lack the queue, and otherwise UnavailableError if none
        returns the definition.
        """
        if self._definition is not None:
            return self._definition
        reasons: dict[str, Exception] = {}
        for number, server in enumerate(self._servers.values()):
            try:
                remaining = (deadline - time.monotonic()) / (len(self._servers) - number)
                return self._ask(server, max(0.001, remaining))
            except (psycopg.Error, PgCombineError) as error:
                reasons[server.name] = error
        if all(isinstance(error, QueueNotFoundError) for error in reasons.values()):
            raise next(iter(reasons.values()))
        why = "; ".join(f"{name}: {first_line(error)}" for name, error in reasons.items())
        raise UnavailableError(f'no server returned the definition of queue "{self._queue}": {why}', queue=self._queue)

    def _ask(self, server: Server, seconds: float) -> Definition:
        try:
            with server.peer(seconds) as peer:
                row = peer.connection.execute(
                    "select shape, columns, keys, defaults from pgcombine_internal.handoff_definition(%s)",
                    (self._queue,),
                ).fetchone()
        except psycopg.OperationalError as error:
            raise NotConnected(first_line(error)) from error
        if row is None or row[0] is None:
            raise QueueNotFoundError(f'there is no queue "{self._queue}" on server "{server.name}"', queue=self._queue)
        self._definition = Definition(row[0], tuple(row[1]), row[2], row[3])
        return self._definition
