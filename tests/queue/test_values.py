"""``values`` reads all values of a queue in portions in the caller's transaction, on connections of all drivers."""

from __future__ import annotations

import asyncio
from typing import Any

import psycopg
import pytest
from psycopg.pq import TransactionStatus
from support.callers import ASYNC, SYNC, caller_of, done, engine
from support.queues import add, combine_all, make_queue, one
from support.servers import embedded_only
from support.tiers import each_nth

from pgcombine.database import caller
from pgcombine.errors import ConfigError
from pgcombine.queue.combine_queue import CombineQueue

WC = CombineQueue("wc")
EACH = [*SYNC, *ASYNC]
MANY = {f"w{i}": i for i in range(1, 101)}


@pytest.fixture
def wc(conn: psycopg.Connection, monkeypatch: pytest.MonkeyPatch) -> CombineQueue:
    monkeypatch.setattr(caller, "_PORTION", 7)
    make_queue(conn)
    WC.initialize(conn, MANY.items())
    add(conn, {"w1": 1000, "pending": 1})
    return WC


async def read(found: Any) -> list[tuple[Any, Any]]:
    return [pair async for pair in found] if hasattr(found, "__aiter__") else list(found)


@pytest.mark.parametrize("opened", each_nth(5, EACH))
def test_values_excludes_pending_updates(dsn: str, wc: CombineQueue, conn: psycopg.Connection, opened: Any) -> None:
    async def main() -> None:
        async with caller_of(opened, dsn) as caller:
            assert dict(await read(wc.values(caller))) == MANY
            await done(wc.enqueue(caller, [("b", 1)]))  # the transaction can run other statements
            assert dict(await read(wc.values(caller))) == MANY
            await done(caller.rollback())

    asyncio.run(main())
    assert one(conn, "select pgcombine.backlog('wc')") == 2


@pytest.mark.parametrize("opened", EACH[::5])
def test_each_iterator_has_its_snapshot(dsn: str, wc: CombineQueue, conn: psycopg.Connection, opened: Any) -> None:
    async def main() -> None:
        async with caller_of(opened, dsn) as caller:
            first = wc.values(caller)
            pairs = [await anext(first) if hasattr(first, "__anext__") else next(first)]
            combine_all(conn)  # the snapshot of the first iterator is older than this pass
            second = dict(await read(wc.values(caller)))
            pairs += await read(first)
            assert dict(pairs) == MANY
            assert second == {**MANY, "w1": 1001, "pending": 1}

    asyncio.run(main())


@pytest.mark.parametrize("opened", EACH[::5])
def test_read_after_the_end_of_the_transaction_raises(dsn: str, wc: CombineQueue, opened: Any) -> None:
    async def main() -> None:
        async with caller_of(opened, dsn) as caller:
            found = wc.values(caller)
            await anext(found) if hasattr(found, "__anext__") else next(found)
            await done(caller.commit())
            with pytest.raises(ConfigError):
                await read(found)

    asyncio.run(main())


@embedded_only
def test_autocommit_transaction_ends_with_the_read(dsn: str, wc: CombineQueue) -> None:
    """In autocommit, a transaction is open only while values are read."""
    with psycopg.connect(dsn, autocommit=True) as connection:
        assert dict(wc.values(connection)) == MANY
        assert connection.info.transaction_status == TransactionStatus.IDLE
        found = wc.values(connection)
        next(iter(found))
        assert connection.info.transaction_status == TransactionStatus.INTRANS
        found.close()  # type: ignore[attr-defined]
        assert connection.info.transaction_status == TransactionStatus.IDLE
    with engine(dsn, isolation_level="AUTOCOMMIT") as opened, opened.connect() as connection:
        assert dict(wc.values(connection)) == MANY

    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
            assert dict([pair async for pair in wc.values(connection)]) == MANY
            assert connection.info.transaction_status == TransactionStatus.IDLE

    asyncio.run(main())


@embedded_only
def test_values_equal_those_of_get(conn: psycopg.Connection, dsn: str) -> None:
    queue = CombineQueue(
        "q", key=['"%s: k" jsonb', "a int[]"], value=["n numeric sum", "tags text[] array_union"], buckets=2
    )
    queue.create(conn)
    queue.initialize(conn, [('{"x": [1]}', [1, 2], "1.50", ["a"]), ('"s"', [], None, None)])
    found = dict(queue.values(conn))
    assert set(found) == {('{"x": [1]}', (1, 2)), ('"s"', ())}
    assert queue.get(conn, found) == found
    with engine(dsn) as opened, opened.connect() as connection:
        assert dict(queue.values(connection)) == found
