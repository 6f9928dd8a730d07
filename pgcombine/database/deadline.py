"""Connections that keep a deadline.

A server that hangs (stopped, or behind a network that drops packets) sends no error, so only a clock on the client's
side can end the wait. When the deadline of a :class:`DeadlineConnection` passes, the connection is closed and
``psycopg.OperationalError`` is raised. The caller then doesn't know whether the server executed the statement.
"""

from __future__ import annotations

import math
import select
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Self

import psycopg
from psycopg.waiting import Ready, Wait

LONGEST_WAIT = 0.1  # seconds after which Python gets the chance to handle a signal, such as Ctrl+C


class DeadlineConnection(psycopg.Connection[Any]):
    """A psycopg connection that waits for the server until ``deadline``, a time of ``time.monotonic``.

    For each single statement it waits at most ``limit`` seconds.
    """

    deadline: float = math.inf
    limit: float = math.inf
    _given: psycopg.Connection[Any] | None = None

    @classmethod
    def over(cls, given: psycopg.Connection[Any]) -> Self:
        """Return a connection that takes the place of ``given``, over the same socket."""
        connection = cls(given.pgconn)
        connection._given = given  # kept, since psycopg warns when an open connection object is deleted
        return connection

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        """Run one of psycopg's generators to its end.

        This is the method of the base class, with a deadline. When the deadline passes, the connection is closed and
        psycopg.OperationalError is raised. A wait with a timeout, such as a wait for notifications, isn't changed.
        """
        deadline = min(self.deadline, time.monotonic() + self.limit)
        if deadline == math.inf or kwargs.get("timeout") is not None:
            return super().wait(gen, *args, **kwargs)
        try:
            wanted = next(gen)
            poller = select.poll()
            fileno = self.pgconn.socket
            while True:
                poller.register(
                    fileno, (select.POLLIN if wanted & Wait.R else 0) | (select.POLLOUT if wanted & Wait.W else 0)
                )
                found = poller.poll(max(0.0, min(LONGEST_WAIT, deadline - time.monotonic())) * 1000)
                if not found:
                    if time.monotonic() >= deadline:
                        self.close()
                        raise psycopg.OperationalError("the server didn't answer in time: the connection is closed")
                    gen.send(Ready.NONE)
                    continue
                events = found[0][1]
                ready = 0
                if events & ~select.POLLOUT:  # after POLLERR or POLLHUP, a read finds the reason
                    ready |= Ready.R
                if events & select.POLLOUT:
                    ready |= Ready.W
                wanted = gen.send(ready)
        except StopIteration as done:
            return done.value

    @contextmanager
    def within(self, seconds: float) -> Iterator[None]:
        """Set the deadline of the block's statements, ``seconds`` from now."""
        before, self.deadline = self.deadline, time.monotonic() + seconds
        try:
            yield
        finally:
            self.deadline = before
