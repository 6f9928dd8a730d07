"""``ReplicatedQueue``: writes to and reads from a queue that several servers hold.

:mod:`pgcombine.handoff` has the guarantees and the meaning of the errors. A write isn't part of a transaction of the
caller. The write is committed when :meth:`ReplicatedQueue.enqueue` returns. If ``enqueue`` raises IndeterminateError,
the write may be committed.
"""

from __future__ import annotations

import secrets
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from types import TracebackType
from typing import Any
from uuid import UUID

from pgcombine.errors import ConfigError, IndeterminateError
from pgcombine.handoff.coordinators import Accepted, Coordinators
from pgcombine.handoff.delivery import Hint
from pgcombine.handoff.levels import Level, check_level, reached
from pgcombine.handoff.reading import Reading, read
from pgcombine.handoff.sender import Sender, Write
from pgcombine.handoff.servers import Server
from pgcombine.queue.rows import Row


@dataclass(frozen=True)
class Receipt:
    """A write that reached its level.

    ``acked`` are the servers that acknowledged the write. ``hinted`` are the servers for which the coordinator stored a
    hint and that hadn't acknowledged the write yet.
    """

    token: UUID
    acked: tuple[str, ...]
    hinted: tuple[str, ...]


class ReplicatedQueue:
    """The queue ``queue`` on ``servers`` (name: connection string), with each key on ``replicas`` of them (None: all).

    ``level`` is ONE, QUORUM, ALL or a number: how many of the servers that hold a key must acknowledge a write or
    answer a read. ``timeout``, in seconds, is for each call. ``connections`` is the largest number of pooled
    connections to a server. Servers are tried as coordinators in the given order, and servers that failed recently
    last. If ``replicas`` is smaller than the number of servers, all callers must name the same servers. Otherwise a
    server that other callers name gets hints of the writes, too. Several threads may use the queue. Close it at the
    end, or use it as a context manager. Raises ConfigError for an impossible level, number of replicas or timeout,
    without servers, and without the package psycopg_pool.
    """

    def __init__(
        self,
        servers: Mapping[str, str],
        queue: str,
        replicas: int | None = None,
        level: Level = "QUORUM",
        timeout: float = 2.0,
        connections: int = 8,
    ) -> None:
        if not servers:
            raise ConfigError("a replicated queue needs servers: {name: DSN}")
        self.queue = queue
        self.replicas = len(servers) if replicas is None else replicas
        if not 1 <= self.replicas <= len(servers):
            raise ConfigError(f"replicas must be 1 to {len(servers)}, the number of servers, not {replicas}")
        if timeout <= 0:
            raise ConfigError(f"the timeout must be positive, not {timeout}")
        self.level = check_level(level, self.replicas)
        self.timeout = timeout
        self._servers = {
            name: Server(name, dsn, timeout=timeout, connections=connections) for name, dsn in servers.items()
        }
        self._senders = {name: Sender(server, self._servers) for name, server in self._servers.items()}
        self._coordinators = Coordinators(self._servers, queue, self.replicas)

    def __enter__(self) -> ReplicatedQueue:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Deliver the waiting writes, as far as a few timeouts for each server allow, and close the connections."""
        for sender in self._senders.values():
            sender.close()
        for server in self._servers.values():
            server.close()

    def enqueue(self, rows: Iterable[Row], token: UUID | str | None = None, *, level: Level | None = None) -> Receipt:
        """Append updates as one write. Rows are as for :meth:`CombineQueue.enqueue <pgcombine.CombineQueue.enqueue>`.

        To retry a write, give its ``token`` and the same rows. Without rows, no server is asked, and the receipt names
        none. After UnavailableError or HintsFullError, nothing was written. IndeterminateError means that the level
        wasn't reached in ``timeout`` seconds: the write was made, or may have been made. Raises InvalidUpdateError for
        rows that don't fit, QueueNotFoundError, TokenConflictError, TokenExpiredError, and ConfigError for a bad token
        or level.
        """
        wanted = self.level if level is None else check_level(level, self.replicas)
        token = as_token(token)
        deadline = time.monotonic() + self.timeout
        rows = list(rows)
        if not rows:
            return Receipt(token, (), ())
        accepted = self._coordinators.accept(token, rows, deadline)
        # other writers may have named more servers; hints deliver the write to them
        holders = frozenset(accepted.hinted).union(*accepted.replica_sets)
        acked_by_coordinator = {accepted.coordinator} & holders
        write = Write(
            accepted.coordinator,
            acked_by_coordinator,
            awaited=not reached(wanted, accepted.replica_sets, acked_by_coordinator),
        )
        for name in accepted.hinted & self._servers.keys():
            hint = Hint(
                *(token, self.queue, accepted.shape, accepted.digest),
                sorted(holders) if self.replicas < len(self._servers) else None,
                *(accepted.updates, accepted.payload, *self._placed(holders)),
                accepted.id if holders - {name, accepted.coordinator} else None,
            )
            self._senders[name].submit(write, hint)
        self._await(write, accepted, wanted, deadline)
        with write.changed:
            acked = tuple(sorted(write.acked))
        hinted = tuple(sorted(accepted.hinted - set(acked)))
        if not reached(wanted, accepted.replica_sets, set(acked)):
            raise IndeterminateError(
                f"level {wanted} was missed: {', '.join(acked) or 'no server'} acknowledged write {token}; "
                f"hints deliver it to {', '.join(hinted) or 'no server'} (the write isn't rolled back; "
                "retrying with its token is safe)",
                token=token,
                acked=acked,
                hinted=hinted,
                queue=self.queue,
            )
        return Receipt(token, acked, hinted)

    def get(self, keys: Iterable[Any], *, level: Level | None = None) -> Reading:
        """Return the current values of the keys that have one, and how far each server lags.

        The level says how many of the servers that hold a key must answer. Raises UnavailableError if fewer answer in
        ``timeout`` seconds, InvalidUpdateError for a key that doesn't fit the key columns, QueueNotFoundError, and
        ConfigError for a bad level.
        """
        wanted = self.level if level is None else check_level(level, self.replicas)
        deadline = time.monotonic() + self.timeout
        return read(
            self._servers, self.queue, self._coordinators.define(deadline), keys, self.replicas, wanted, deadline
        )

    def _placed(self, holders: frozenset[str]) -> tuple[list[str], int]:
        """Return the servers of the queue, and how many of them hold a key."""
        if self.replicas < len(self._servers):
            return sorted(self._servers), self.replicas
        servers = sorted(holders | self._servers.keys())
        return servers, len(servers)

    def _await(self, write: Write, accepted: Accepted, level: Level, deadline: float) -> None:
        """Wait until the level is reached, the result of each delivery is known, or ``deadline`` has passed."""
        with write.changed:
            while (
                not reached(level, accepted.replica_sets, write.acked)
                and (accepted.hinted & self._servers.keys()) - write.acked - write.given_up
            ):
                remaining = deadline - time.monotonic()
                if remaining <= 0:
                    break
                write.changed.wait(remaining)
            write.awaited = False


def new_token() -> UUID:
    """Return a new token: a UUID of version 7 (RFC 9562), with the time in milliseconds and 74 random bits."""
    number = int(time.time() * 1000) << 80 | secrets.randbits(80)
    number = number & ~(0xF << 76) | 0x7 << 76
    return UUID(int=number & ~(0x3 << 62) | 0x2 << 62)


def as_token(given: UUID | str | None) -> UUID:
    """Return the given token, or a new one for None. Raises ConfigError if it isn't a UUID of version 7."""
    if given is None:
        return new_token()
    try:
        token = given if isinstance(given, UUID) else UUID(given)
    except ValueError as error:
        raise ConfigError(f"{given!r} is no token; give a UUID of version 7, or leave the token out") from error
    if token.version != 7:
        raise ConfigError(
            f"{token} is no token: it is a UUID of version {token.version}; give one of version 7, or leave it out"
        )
    return token
