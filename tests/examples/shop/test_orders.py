"""Tests of the shop, and of the fixtures of ``pgcombine.testing``."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from alembic import command
from alembic.config import Config
from orders import SOLD, place
from sqlalchemy import Engine, create_engine, pool, text
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.asyncio import async_sessionmaker, create_async_engine
from sqlalchemy.orm import Session
from web import Shop

from pgcombine import Change, ChangeStream, CombineQueue
from pgcombine.testing import drain


@pytest.fixture
def url(pgcombine_dsn: str) -> str:
    """The URL of a new database with the shop's tables."""
    url = pgcombine_dsn.replace("postgresql://", "postgresql+psycopg://", 1)
    config = Config(Path(__file__).with_name("alembic.ini"))
    config.set_main_option("sqlalchemy.url", url.replace("%", "%%"))
    command.upgrade(config, "head")
    return url


@pytest.fixture
def engine(url: str) -> Iterator[Engine]:
    engine = create_engine(url, poolclass=pool.NullPool)
    yield engine
    engine.dispose()


def test_orders_are_counted(engine: Engine, url: str) -> None:
    with Session(engine) as session:
        place(session, "ann", "tea", 2)
        place(session, "bob", "tea", 3)
        session.commit()
        assert SOLD.get(session, ["tea"]) == {"tea": (5, 2)}
    assert drain(url, "sold", timeout=60).updates == 2
    with Session(engine) as session:
        assert session.execute(text("select product, units, orders from pgcombine.sold_values")).all() == [
            ("tea", 5, 2)
        ]


def test_order_that_fails_is_not_counted(engine: Engine) -> None:
    with Session(engine) as session:
        with pytest.raises(IntegrityError):
            place(session, "ann", "tea", 0)
        session.rollback()
        place(session, "ann", "tea", 1)
        session.rollback()
        assert SOLD.backlog(session) == 0
        assert session.execute(text("select count(*) from orders")).scalar() == 0


async def ask(shop: Shop, method: str, path: str, body: Any = None) -> tuple[int, Any]:
    """Send one request to the application as a web server does; return the status and the body."""
    sent: list[Any] = []

    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": json.dumps(body).encode()}

    async def send(event: Any) -> None:
        sent.append(event)

    await shop({"type": "http", "method": method, "path": path}, receive, send)
    return sent[0]["status"], json.loads(sent[1]["body"])


def test_web_orders_are_counted(url: str) -> None:
    async def main() -> None:
        engine = create_async_engine(url)
        shop = Shop(async_sessionmaker(engine))
        order = {"customer": "ann", "product": "tea", "units": 2}
        answers = await asyncio.gather(*(ask(shop, "POST", "/", order) for _ in range(5)))
        assert answers == [(201, order)] * 5
        assert await ask(shop, "POST", "/", {**order, "units": -1}) == (422, {"error": "units must be positive"})
        assert await ask(shop, "GET", "/tea") == (200, {"product": "tea", "units": 10, "orders": 5})
        await asyncio.to_thread(drain, url, "sold", timeout=60)
        assert await ask(shop, "GET", "/tea") == (200, {"product": "tea", "units": 10, "orders": 5})
        await engine.dispose()

    asyncio.run(main())


def test_fixture_makes_a_queue(combine_queue: Any) -> None:
    wc = combine_queue("wc", key=["word text"], value=["n bigint sum"], delete_when="n = 0", buckets=2)
    wc.enqueue(wc.connection, [("fluo", 1), ("fluo", 1)])
    assert wc.drain().updates == 2
    assert wc.get(wc.connection, ["fluo"]) == {"fluo": 2}


def test_fixture_runs_the_observers_of_a_queue(combine_queue: Any) -> None:
    queue = CombineQueue("wc", key=["word text"], value=["n bigint sum"], buckets=1)
    seen: list[Change] = []

    @queue.on_change
    def remember(connection: Any, changes: ChangeStream) -> None:
        seen.extend(changes)

    wc = combine_queue(queue)
    wc.enqueue(wc.connection, [("fluo", 1), ("fluo", 1)])
    wc.drain()
    assert seen == [("fluo", None, 2)]
