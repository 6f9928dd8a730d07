"""Connections that know which server is at their other end, and don't wait for it for ever."""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgcombine.config import libpq_dsn
from pgcombine.database import settled
from pgcombine.errors import translated
from pgcombine.punctual import Punctual


@dataclass
class Peer:
    """A server that has told who it is, and the connection to it."""

    name: str
    connection: Punctual
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
    connection = Punctual.connect(libpq_dsn(dsn), **options(timeout))
    try:
        with connection.within(timeout):
            return greet(name, connection)
    except BaseException:
        connection.close()
        raise


def greet(name: str, connection: Punctual) -> Peer:
    """Ask who the server is. Raises WrongServer if it isn't ``name``, or takes no writes for good."""
    with translated():
        settled(connection)
        row = connection.execute("select id, epoch, replay_rate from pgcombine.handoff_hello(%s)", (name,)).fetchone()
    assert row is not None
    return Peer(name, connection, *row)


def without_password(dsn: str) -> str:
    """The connection string without what is secret in it."""
    parts = conninfo_to_dict(libpq_dsn(dsn))
    return make_conninfo("", **{k: v for k, v in parts.items() if k not in ("password", "sslpassword")})
