"""The shop in plain ASGI. POST / with JSON places an order. GET /<product> returns its numbers of units and orders."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any
from urllib.parse import unquote

from orders import SOLD, place_async
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import AsyncSession, async_sessionmaker

Event = MutableMapping[str, Any]


class Shop:
    """The ASGI application."""

    def __init__(self, sessions: async_sessionmaker[AsyncSession]) -> None:
        self.sessions = sessions

    async def __call__(
        self, scope: Event, receive: Callable[[], Awaitable[Event]], send: Callable[[Event], Awaitable[None]]
    ) -> None:
        if scope["method"] == "POST":
            status, answer = await self._order(json.loads((await receive())["body"]))
        else:
            status, answer = await self._sold(unquote(scope["path"].removeprefix("/")))
        await send(
            {"type": "http.response.start", "status": status, "headers": [(b"content-type", b"application/json")]}
        )
        await send({"type": "http.response.body", "body": json.dumps(answer).encode()})

    async def _order(self, order: dict[str, Any]) -> tuple[int, Any]:
        try:
            async with self.sessions() as session, session.begin():
                await place_async(session, order["customer"], order["product"], order["units"])
        except IntegrityError:
            return 422, {"error": "units must be positive"}
        return 201, order

    async def _sold(self, product: str) -> tuple[int, Any]:
        async with self.sessions() as session:
            found = await SOLD.get(session, [product])
        units, orders = found.get(product, (0, 0))
        return 200, {"product": product, "units": units, "orders": orders}
