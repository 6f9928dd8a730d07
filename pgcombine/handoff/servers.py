"""The servers that a caller names: for each a pool of connections, the server's identity, and its recent failures.

A server that failed is avoided for a while. The time doubles with each failure, from a tenth of a second to thirty
seconds, and is multiplied by a random factor from 0.5 to 1.5. Meanwhile callers try it last as a coordinator, and send
it writes or ask it for values only if a level needs the server. An answer ends the avoidance for all callers in the
process that use the same connection string.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakValueDictionary

import psycopg

from pgcombine.config import libpq_dsn
from pgcombine.database.deadline import DeadlineConnection
from pgcombine.errors import ConfigError, WrongServerError, pip_install
from pgcombine.handoff.connections import Peer, handshake, options

if TYPE_CHECKING:
    from psycopg_pool import ConnectionPool

FIRST_PAUSE = 0.1  # seconds for which a server is avoided after its first failure, before the random factor
LONGEST_PAUSE = 30.0
PROBE_SECONDS = 0.1  # seconds; the longest pause of a sender before an attempt at an avoided server


class NotConnected(psycopg.OperationalError):
    """No write was sent, since no connection could be opened, or the server didn't answer before the write."""


class _Health:
    """The recent failures of a server. Callers in the process with the same connection string share an instance."""

    _of: ClassVar[WeakValueDictionary[str, _Health]] = WeakValueDictionary()
    _lock = threading.Lock()

    def __init__(self) -> None:
        self.failures = 0
        self.not_before = 0.0

    @classmethod
    def of(cls, dsn: str) -> _Health:
        with cls._lock:
            return cls._of.setdefault(dsn, cls())

    def failed(self) -> None:
        with self._lock:
            pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** min(self.failures, 10)) * random.uniform(0.5, 1.5)
            self.failures += 1
            self.not_before = time.monotonic() + pause

    def answered(self) -> None:
        self.failures, self.not_before = 0, 0.0


class Server:
    """One server: its pool of connections, and its recent failures.

    ``timeout``, in seconds, is for connecting, and for a delivery by a Sender. The pool has at most ``connections``.
    """

    def __init__(self, name: str, dsn: str, *, timeout: float, connections: int) -> None:
        try:
            from psycopg_pool import ConnectionPool, PoolTimeout
        except ImportError as error:
            raise ConfigError(f"a ReplicatedQueue needs psycopg_pool: {pip_install('replicas')}") from error
        self._pool_timeout = PoolTimeout
        self.name = name
        self.dsn = dsn
        self.timeout = timeout
        self._pool: ConnectionPool[DeadlineConnection] = ConnectionPool(
            libpq_dsn(dsn),
            connection_class=DeadlineConnection,
            kwargs=options(timeout),
            min_size=0,
            max_size=connections,
            timeout=timeout,
            reconnect_timeout=timeout,
            open=True,
            name=f"pgcombine {name}",
        )
        self._peers: dict[int, Peer] = {}
        self._health = _Health.of(dsn)

    @contextmanager
    def peer(self, seconds: float) -> Iterator[Peer]:
        """Yield a connection and the server's identity. ``seconds`` is for opening the connection and for the block.

        Raises NotConnected if no connection could be opened or the server didn't tell its identity, and
        WrongServerError if another server answers or the server can't take writes. Errors of the block are raised
        unchanged.
        """
        deadline = time.monotonic() + seconds
        try:
            connection = self._pool.getconn(timeout=max(0.001, seconds))
        except self._pool_timeout as error:
            raise NotConnected(f"no connection within {seconds:.1f} s") from error
        try:
            with connection.within(deadline - time.monotonic()):
                peer = self._peers.get(id(connection))
                if peer is None or peer.connection is not connection:
                    try:
                        peer = handshake(self.name, connection)
                    except psycopg.OperationalError as error:
                        raise NotConnected(str(error)) from error
                    self._peers = {k: p for k, p in self._peers.items() if not p.connection.closed}
                    self._peers[id(connection)] = peer
                try:
                    yield peer
                except WrongServerError:
                    connection.close()  # a rebuild may have changed the id; a new connection asks for it again
                    raise
        finally:
            if not connection.closed and connection.info.transaction_status != psycopg.pq.TransactionStatus.IDLE:
                connection.close()  # its transaction is still open, so the pool can't reuse it
            self._pool.putconn(connection)

    @property
    def avoided(self) -> bool:
        """Whether the server failed recently, so that another attempt isn't worthwhile yet."""
        return time.monotonic() < self._health.not_before

    def failed(self) -> None:
        """Record a failure."""
        self._health.failed()

    def answered(self) -> None:
        """Record an answer, so that the server isn't avoided any more."""
        self._health.answered()

    def close(self) -> None:
        """Close the connections."""
        self._pool.close(timeout=self.timeout)
