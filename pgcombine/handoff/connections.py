"""Connections that know which server is at their other end, and don't wait for it for ever."""

from __future__ import annotations

import ipaddress
import math
import os
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from psycopg import pq
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgcombine.config import libpq_dsn
from pgcombine.database.connect import settled
from pgcombine.database.deadline import DeadlineConnection
from pgcombine.errors import ConfigError, ReplicaError, translated

# what a registered address may say, as pgcombine.handoff_check_address has it
_ADDRESS = {
    *("host", "port", "dbname", "user", "application_name", "connect_timeout", "target_session_attrs"),
    *("keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count", "tcp_user_timeout"),
}
_LIBPQ = 160000  # knows require_auth


@dataclass
class Peer:
    """A server that has told who it is, and the connection to it."""

    name: str
    connection: DeadlineConnection
    id: UUID
    epoch: int
    replay_rate: int | None
    known_to: set[str] = field(default_factory=set)  # homes that have checked it on this connection
    columns: dict[tuple[str, UUID], list[str]] = field(default_factory=dict)  # of queues of this shape
    partial: bool | None = None  # whether it may have writes in part, from a rebuild


def options(timeout: float) -> dict[str, Any]:
    """How connections are opened. libpq waits two seconds at least."""
    return {
        "application_name": "pgcombine handoff",
        "autocommit": True,
        "prepare_threshold": None,
        "connect_timeout": max(2, math.ceil(timeout)),
        "keepalives_idle": 30,
        "tcp_user_timeout": 30_000,  # ms
    }


def open_peer(name: str, dsn: str, timeout: float) -> Peer:
    """Connect to a server and ask who it is, within ``timeout`` seconds each.

    Raises WrongServer if it isn't ``name``, psycopg.OperationalError if it doesn't answer.
    """
    connection = DeadlineConnection.connect(libpq_dsn(dsn), **options(timeout))
    try:
        with connection.within(timeout):
            return greet(name, connection)
    except BaseException:
        connection.close()
        raise


def greet(name: str, connection: DeadlineConnection) -> Peer:
    """Ask who the server is. Raises WrongServer if it isn't ``name``, or takes no writes for good."""
    with translated():
        settled(connection)
        row = connection.execute("select id, epoch, replay_rate from pgcombine.handoff_hello(%s)", (name,)).fetchone()
    assert row is not None
    return Peer(name, connection, *row)


def address(dsn: str) -> str:
    """Where a server is, of a connection string that a caller uses: what may be registered of it."""
    parts = conninfo_to_dict(libpq_dsn(dsn))
    kept = {name: parts[name] for name in ("host", "port", "dbname", "user", "service") if name in parts}
    if "host" not in kept and "hostaddr" in parts:
        kept["host"] = parts["hostaddr"]
    return make_conninfo("", **kept)


def registered(name: str, dsn: str) -> str:
    """How the server that is registered as ``name`` is connected to.

    Its address comes from a table, and a password from here goes where that says. So it may say where the server is
    and nothing else; the password isn't told to whoever answers, but proven by SCRAM; and over a network the server
    proves by its certificate that it is the host. ``PGREQUIREAUTH`` and ``PGSSLMODE`` in the environment say otherwise.
    Raises ReplicaError for an address that says more, ConfigError where libpq is too old for it.
    """
    parts: dict[str, Any] = dict(conninfo_to_dict(libpq_dsn(dsn)))
    if more := sorted(parts.keys() - _ADDRESS):
        raise ReplicaError(
            f'the address of server "{name}" sets {", ".join(more)}: register it anew '
            f"(pgcombine replicas add {name} DSN), with host, port, dbname and user"
        )
    hosts = str(parts.get("host") or os.environ.get("PGHOST") or "/").split(",")
    if "PGREQUIREAUTH" not in os.environ:
        if pq.version() < _LIBPQ:
            raise ConfigError(
                f"libpq {pq.version() // 10000} can't demand SCRAM of servers: install psycopg[binary], or set "
                "PGREQUIREAUTH, where whoever answers may have the password"
            )
        sockets = all(host.startswith(("/", "@")) for host in hosts)  # peer authentication asks for nothing
        parts["require_auth"] = "scram-sha-256,none" if sockets else "scram-sha-256"
    if "PGSSLMODE" not in os.environ and not all(map(_is_local, hosts)):
        parts["sslmode"] = "verify-full"
    return make_conninfo("", **parts)


def _is_local(host: str) -> bool:
    if host.startswith(("/", "@")) or host in ("", "localhost"):
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
