"""Limits for connections that don't send a complete request, so that they can't block other clients.

uvicorn itself waits without limit for the rest of a request. With this protocol, a request must arrive within
:data:`REQUEST_SECONDS`, and its answer must be sent within :data:`ANSWER_SECONDS` after that.

At most :data:`MOST` connections may wait for a complete request, and at most :data:`MOST_OF_CLIENT` of one client. The
server checks this :data:`ROOM_SECONDS` after a connection has begun to wait. If the connection's client has too many,
the server closes the one of this client that has waited longest. Otherwise, if all clients together have too many, the
server closes the one that has waited longest of all.
"""

from __future__ import annotations

import asyncio
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

REQUEST_SECONDS = 10.0  # counted from the connection's start, or from the end of the former answer
ANSWER_SECONDS = 120.0
MOST_OF_CLIENT = 50
MOST = 200
# If many clients connect at once, the server usually reads their requests within this time, so no connection is closed.
ROOM_SECONDS = 0.1


def protocol() -> type[H11Protocol]:
    """Return a protocol class for one server."""
    # maps each connection that waits for a request to its client's address; the one that has waited longest is first
    waiting: dict[H11Protocol, str] = {}

    def make_room(client: str) -> None:
        mine = [one for one, its in waiting.items() if its == client]
        if len(mine) > MOST_OF_CLIENT:
            end(mine[0])
        elif len(waiting) > MOST:
            end(next(iter(waiting)))

    def end(one: H11Protocol) -> None:
        waiting.pop(one, None)
        one.transport.abort()

    class Connection(H11Protocol):
        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: Any) -> None:
            super().connection_made(transport)
            self._client = self.client[0] if self.client else ""
            self._wait()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self in waiting and self._is_asked():
                del waiting[self]
                self._until(ANSWER_SECONDS)

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self._is_asked():  # the next request had arrived already
                self._until(ANSWER_SECONDS)
            elif self not in waiting:
                self._wait()

        def connection_lost(self, exc: Exception | None) -> None:
            waiting.pop(self, None)
            if self._deadline is not None:
                self._deadline.cancel()
            super().connection_lost(exc)

        def _is_asked(self) -> bool:
            """Whether the connection has a complete request that isn't answered yet."""
            return self.cycle is not None and not self.cycle.response_complete and not self.cycle.more_body

        def _wait(self) -> None:
            if self.transport.is_closing():
                return
            waiting[self] = self._client
            self._until(REQUEST_SECONDS)
            self.loop.call_later(ROOM_SECONDS, make_room, self._client)

        def _until(self, seconds: float) -> None:
            if self._deadline is not None:
                self._deadline.cancel()
            self._deadline = self.loop.call_later(seconds, end, self)

    return Connection
