"""Connections that keep a deadline, and know which server is at their other end.

A server that hangs (stopped, behind a black hole) doesn't say so; nothing but the caller's clock ends the wait. When
the deadline of a :class:`Punctual` connection passes, it is closed and ``psycopg.OperationalError`` is raised: what
was sent may have been done or not.
"""

from __future__ import annotations

import math
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.waiting import Ready, Wait

from pgcombine.config import libpq_dsn
from pgcombine.errors import translated

LONGEST_WAIT = 0.1  # seconds between two looks whether a signal came


class Punctual(psycopg.Connection[Any]):
    """A psycopg connection that waits for the server until ``deadline`` (``time.monotonic``) and no longer."""

    deadline: float = math.inf

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        """Run one of psycopg's generators to its end, as the class above does but for the deadline."""
        if self.deadline == math.inf:
            return super().wait(gen, *args, **kwargs)
        try:
            wanted = next(gen)
            poller = select.poll()
            fileno = self.pgconn.socket
            while True:
                poller.register(
                    fileno, (select.POLLIN if wanted & Wait.R else 0) | (select.POLLOUT if wanted & Wait.W else 0)
                )
                found = poller.poll(max(0.0, min(LONGEST_WAIT, self.deadline - time.monotonic())) * 1000)
                if not found:
                    if time.monotonic() >= self.deadline:
                        self.close()
                        raise psycopg.OperationalError("the server didn't answer in time")
                    gen.send(Ready.NONE)
                    continue
                events = found[0][1]
                ready = 0
                if events & ~select.POLLOUT:  # an error is read, too
                    ready |= Ready.R
                if events & select.POLLOUT:
                    ready |= Ready.W
                wanted = gen.send(ready)
        except StopIteration as done:
            return done.value

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Let what is done in the block take so many seconds."""
        before, self.deadline = self.deadline, time.monotonic() + seconds
        try:
            yield
        finally:
            self.deadline = before


@dataclass
class Peer:
    """A server that has told who it is, and the connection to it."""

    name: str
    connection: Punctual
    id: UUID
    epoch: int
    replay_rate: int | None
    known_to: set[str] = field(default_factory=set)  # homes that have checked it on this connection


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
        row = connection.execute("select id, epoch, replay_rate from pgcombine.handoff_hello(%s)", (name,)).fetchone()
    assert row is not None
    return Peer(name, connection, *row)


def without_password(dsn: str) -> str:
    """The connection string without what is secret in it."""
    parts = conninfo_to_dict(libpq_dsn(dsn))
    return make_conninfo("", **{k: v for k, v in parts.items() if k not in ("password", "sslpassword")})
