"""Connections to servers, with a check of the server's identity and with time limits.

A server other than the expected one raises WrongServerError. A server that doesn't answer in time raises
psycopg.OperationalError.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgcombine.config import libpq_dsn
from pgcombine.database.address import guarded, refused
from pgcombine.database.connect import Connection, closed_on_error, normalized, one
from pgcombine.database.deadline import DeadlineConnection
from pgcombine.database.sqlfiles import query
from pgcombine.errors import ReplicaError, translated

NAME = "pgcombine handoff"


@dataclass
class Peer:
    """A connection to a server, and the server's identity."""

    name: str
    connection: DeadlineConnection
    id: UUID
    epoch: int
    replay_rate: int | None
    known_to: set[str] = field(default_factory=set)  # coordinators for which verify_identity has succeeded
    columns: dict[tuple[str, UUID], list[str]] = field(default_factory=dict)  # columns of queues, by queue and shape
    partial: bool | None = None  # whether the server has only a part of some writes; None: not known yet


def options(timeout: float) -> dict[str, Any]:
    """Return the parameters of a connection. ``timeout`` is for connecting, in seconds; two seconds are the minimum."""
    return {
        "application_name": NAME,
        "autocommit": True,
        "prepare_threshold": None,
        "connect_timeout": max(2, math.ceil(timeout)),
        "keepalives_idle": 30,
        "tcp_user_timeout": 30_000,  # milliseconds
    }


def open_peer(name: str, dsn: str, timeout: float) -> Peer:
    """Connect to a server and ask for its identity. ``timeout``, in seconds, is for each of the two steps.

    A server without a name may get one (:func:`handshake`). Raises WrongServerError if the server isn't ``name`` or
    can't take writes, and psycopg.OperationalError if it doesn't answer.
    """
    connection = DeadlineConnection.connect(libpq_dsn(dsn), **options(timeout))
    with closed_on_error(connection), connection.within(timeout):
        return handshake(name, connection)


def handshake(name: str, connection: DeadlineConnection) -> Peer:
    """Ask a server for its identity. A server without a name gets ``name``, if the role may do that.

    Raises WrongServerError if the server isn't ``name``, or can't take writes.
    """
    with translated():
        normalized(connection)
        hello = one(connection, "select id, epoch, replay_rate from pgcombine_internal.handoff_handshake(%s)", name)
    return Peer(name, connection, *hello)


def address(dsn: str) -> str:
    """Return the address of a server in the form that other servers register.

    The address has the host, port, database and user that ``dsn`` gives, and no password. A ``hostaddr`` without a host
    becomes the host. If ``dsn`` has neither, its service is kept, so that the other servers refuse the address: without
    a host they would connect to themselves.
    """
    parts = conninfo_to_dict(libpq_dsn(dsn))
    kept: dict[str, Any] = {name: parts[name] for name in ("host", "port", "dbname", "user") if name in parts}
    if "host" not in kept and "hostaddr" in parts:
        kept["host"] = parts["hostaddr"]
    elif "host" not in kept and "service" in parts:
        kept["service"] = parts["service"]
    return make_conninfo("", **kept)


def identity(connection: psycopg.Connection[Any]) -> UUID:
    """Return the id of the server at this connection. The server must have an id."""
    (id,) = one(connection, "select id from pgcombine.handoff_server")
    assert isinstance(id, UUID)
    return id


def addresses(connection: psycopg.Connection[Any]) -> tuple[str | None, dict[str, str]]:
    """Return a server's name, or None if it has none, and the registered addresses of the others by name."""
    rows = connection.execute(query("handoff_servers").encode()).fetchall()
    return rows[0][0], {name: dsn for _, name, dsn in rows if name is not None}


def known_servers(coordinator: Connection, coordinator_dsn: str) -> tuple[str, dict[str, str]]:
    """Return the name of the server at ``coordinator``, and connection strings by name: its own, and those of the
    others.

    The others are the servers that are registered there. Raises ReplicaError if the server at ``coordinator`` has no
    name, and the errors of :func:`registered`.
    """
    own, others = addresses(coordinator)
    if own is None:
        raise ReplicaError("this server hasn't been named yet: give a server that has taken replicated writes (--dsn)")
    return own, {own: coordinator_dsn, **{name: registered(name, dsn) for name, dsn in others.items()}}


def registered(name: str, dsn: str) -> str:
    """Return the connection string for the server that is registered as ``name`` (:mod:`pgcombine.database.address`).

    Raises ReplicaError if the address sets parameters that it must not set, and ConfigError if ``dsn`` isn't a
    connection string, or if libpq is too old.
    """
    if more := refused(dsn):
        raise ReplicaError(
            f'the address of server "{name}" must not set {", ".join(more)}: register it again '
            f"(pgcombine replicas add {name} DSN), with host, port, dbname and user only"
        )
    return guarded(dsn)
