"""CombineQueue's methods on connections of psycopg, SQLAlchemy and asyncpg."""

from __future__ import annotations

import datetime
import decimal
import uuid
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy import event, orm
from support.callers import (
    ASYNC,
    SYNC,
    AsyncOpened,
    Opened,
    alchemy_connection,
    alchemy_session,
    async_alchemy_connection,
    async_alchemy_session,
    asyncpg_connection,
    caller_of,
    done,
    run,
    url,
)
from support.queues import current, make_queue, rows, values

from pgcombine.errors import ConfigError, InvalidUpdateError, QueueExistsError, QueueNotFoundError
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.worker.drain import drain

WC = CombineQueue("wc")
FLUO = [{"word": "fluo", "n": 1}, ("spark", 2), {"word": "fluo", "n": 3}]


@pytest.mark.wc
@pytest.mark.parametrize("opened", SYNC)
def test_exception_rolls_back_the_updates(dsn: str, conn: psycopg.Connection, opened: Opened) -> None:
    class BrokenError(Exception):
        pass

    with pytest.raises(BrokenError), opened(dsn) as caller:  # noqa: PT012
        WC.enqueue(caller, FLUO)
        raise BrokenError
    assert current(conn) == {}


@pytest.mark.wc
def test_session_enqueues_with_the_rows_that_it_inserts(dsn: str, conn: psycopg.Connection) -> None:
    conn.execute("create table word (word text primary key)")
    word = sa.table("word", sa.column("word"))
    with alchemy_session(dsn) as session:
        with session.begin():
            session.execute(sa.insert(word), [{"word": "fluo"}])
            WC.enqueue(session, [("fluo", 1)])
        with pytest.raises(sa.exc.IntegrityError), session.begin():  # noqa: PT012
            WC.enqueue(session, [("fluo", 1)])
            session.execute(sa.insert(word), [{"word": "fluo"}])
    assert current(conn) == {"fluo": 1}


@pytest.mark.wc
def test_enqueue_commits_on_an_autocommit_engine(dsn: str, conn: psycopg.Connection) -> None:
    with alchemy_connection(dsn, isolation_level="AUTOCOMMIT") as connection:
        WC.enqueue(connection, FLUO)
        assert current(conn) == {"fluo": 4, "spark": 2}


def test_enqueue_in_autocommit_is_one_transaction(conn: psycopg.Connection) -> None:
    make_queue(conn, value=["n bigint sum", "c bigint count"], delete_when=None)
    # updates with different columns need two COPY statements
    with pytest.raises(InvalidUpdateError):
        WC.enqueue(conn, [{"word": "fluo", "n": 1}, {"word": "spark", "n": 2, "c": "many"}])
    assert rows(conn, "wc_pending") == []
    assert WC.enqueue(conn, [{"word": "fluo", "n": 1}, {"word": "spark", "n": 2, "c": 3}, ("fluo", 3, 1)]) == 3
    assert WC.get(conn, ["fluo", "spark"]) == {"fluo": (4, 2), "spark": (2, 3)}


@pytest.mark.wc
def test_rows_that_raise_leave_nothing(conn: psycopg.Connection) -> None:
    def broken() -> Iterator[tuple[str, int]]:
        yield "fluo", 1
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        WC.enqueue(conn, broken())
    assert current(conn) == {}


@pytest.mark.wc
def test_pipeline_mode_is_refused(dsn: str, conn: psycopg.Connection) -> None:
    with pytest.raises(ConfigError, match="pipeline"), conn.pipeline():
        WC.enqueue(conn, FLUO)
    with pytest.raises(ConfigError, match="pipeline"), conn.pipeline():
        WC.get(conn, ["fluo"])

    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(dsn) as connection, connection.pipeline():
            with pytest.raises(ConfigError, match="pipeline"):
                await WC.get(connection, ["fluo"])

    run(main)


def test_unknown_connections_are_refused() -> None:
    with pytest.raises(ConfigError, match="str"):
        WC.enqueue("postgresql:///", [])  # type: ignore[call-overload]
    engine = sa.create_engine("sqlite://")
    with engine.connect() as connection, pytest.raises(ConfigError):
        WC.enqueue(connection, [])
    engine.dispose()


@asynccontextmanager
async def savepoint(caller: Any) -> AsyncIterator[None]:
    """A savepoint of any kind of connection."""
    opened = (caller.begin_nested if hasattr(caller, "begin_nested") else caller.transaction)()
    if hasattr(opened, "__aenter__"):
        async with opened:
            yield
    else:
        with opened:
            yield


@pytest.mark.wc
@pytest.mark.parametrize("opened", [*SYNC, *ASYNC])
def test_enqueue_joins_the_transaction(dsn: str, conn: psycopg.Connection, opened: Any) -> None:
    async def main() -> None:
        async with caller_of(opened, dsn) as caller:
            assert await done(WC.enqueue(caller, FLUO)) == 3
            assert await done(WC.get(caller, ["fluo", "spark", "absent"])) == {"fluo": 4, "spark": 2}
            assert await done(WC.backlog(caller)) == 3
            assert current(conn) == {}, "another session sees what isn't committed"
            await done(caller.commit())
            assert current(conn) == {"fluo": 4, "spark": 2}
            await done(WC.enqueue(caller, FLUO))
            await done(caller.rollback())
            assert current(conn) == {"fluo": 4, "spark": 2}
            await done(WC.enqueue(caller, [("kept", 1)]))
            with pytest.raises(ZeroDivisionError):  # noqa: PT012
                async with savepoint(caller):
                    await done(WC.enqueue(caller, [("lost", 1)]))
                    raise ZeroDivisionError
            async with savepoint(caller):
                await done(WC.enqueue(caller, [("kept", 10)]))
            await done(caller.commit())

    run(main)
    assert current(conn) == {"fluo": 4, "spark": 2, "kept": 11}


@pytest.mark.wc
@pytest.mark.parametrize("opened", [*SYNC, *ASYNC])
def test_source_is_replaced(dsn: str, conn: psycopg.Connection, opened: Any) -> None:
    async def main() -> None:
        async with caller_of(opened, dsn) as caller:
            for rows, updates in ((FLUO, 2), (FLUO[:1], 2), (iter(FLUO[1:]), 2)):
                assert await done(WC.contribute(caller, "s", rows)) == updates
            await done(caller.commit())
            assert await done(WC.contribute(caller, "s", [])) == 2
            await done(caller.rollback())
            with pytest.raises(InvalidUpdateError):
                await done(WC.contribute(caller, "", FLUO))

    run(main)
    assert current(conn) == {"fluo": 3, "spark": 2}


@pytest.mark.wc
@pytest.mark.parametrize("opened", [*SYNC, *ASYNC])
def test_token_counts_once(dsn: str, conn: psycopg.Connection, opened: Any) -> None:
    """pgcombine refuses a row with other columns in Python, so the token stays free and the transaction usable."""

    async def main() -> None:
        async with caller_of(opened, dsn) as caller:
            with pytest.raises(InvalidUpdateError):
                await done(WC.enqueue(caller, [("fluo", 1), {"wrod": "fluo"}], token="1"))
            assert [await done(WC.enqueue(caller, FLUO, token=token)) for token in ("1", "1", "2")] == [3, 0, 3]
            await done(caller.rollback())
            assert [await done(WC.enqueue(caller, iter(FLUO), token=token)) for token in ("1", "1")] == [3, 0]
            await done(caller.commit())
            assert await done(WC.enqueue(caller, FLUO, token="1")) == 0
            for token in ("", "x" * 1025):
                with pytest.raises(InvalidUpdateError):
                    await done(WC.enqueue(caller, FLUO, token=token))
                await done(caller.rollback())

    run(main)
    assert current(conn) == {"fluo": 4, "spark": 2}


@pytest.mark.wc
@pytest.mark.parametrize("opened", [*SYNC, *ASYNC])
def test_errors_have_pgcombines_classes(dsn: str, opened: Any) -> None:
    wrong: list[Any] = [{"wrod": "fluo"}, {}, ("fluo",), (None, 1), ("fluo", "many"), ("x" * 3000, 1)]
    wrong += [("fluo", {"n": 1}), ("a\0", 1), ("\ud800", 1)]

    async def main() -> None:
        async with caller_of(opened, dsn) as caller:
            for bad in wrong:
                with pytest.raises(InvalidUpdateError) as caught:
                    await done(WC.enqueue(caller, [bad]))
                assert caught.value.queue == "wc"
                await done(caller.rollback())
            for call in (lambda queue: queue.enqueue(caller, [("a", 1)]), lambda queue: queue.pause(caller)):
                with pytest.raises(QueueNotFoundError):
                    await done(call(CombineQueue("none")))
                await done(caller.rollback())

    run(main)


@pytest.mark.parametrize("opened", ASYNC)
def test_asynchronous_caller_creates_and_drops_a_queue(dsn: str, conn: psycopg.Connection, opened: AsyncOpened) -> None:
    queue = CombineQueue("life", key=["word text"], value=["n bigint sum"], delete_when="n = 0", buckets=2)

    async def main() -> None:
        async with opened(dsn) as caller:
            await queue.create(caller)
            await queue.pause(caller)
            await queue.resume(caller)
            await caller.commit()
            with pytest.raises(QueueExistsError):
                await queue.create(caller)
            await caller.rollback()
            await queue.enqueue(caller, [("fluo", 1)])
            await queue.drop(caller, force=True)
            await caller.commit()

    run(main)
    assert rows(conn, "queue") == []


@pytest.mark.wc
def test_enqueue_accepts_the_session_behind_an_asynchronous_one(dsn: str, conn: psycopg.Connection) -> None:
    """``run_sync`` and ORM events give a function the synchronous session behind an asynchronous one."""

    async def main() -> None:
        async with async_alchemy_session(dsn) as session:

            @event.listens_for(session.sync_session, "before_commit")
            def count(behind: orm.Session) -> None:
                WC.enqueue(behind, [("commits", 1)])

            assert await session.run_sync(lambda behind: WC.enqueue(behind, FLUO)) == 3
            await session.commit()
            await session.run_sync(lambda behind: WC.enqueue(behind, FLUO))
            await session.rollback()

    run(main)
    assert current(conn) == {"fluo": 4, "spark": 2, "commits": 1}


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_drivers_keep_values_of_all_types(dsn: str, conn: psycopg.Connection, driver: str) -> None:
    """enqueue sends updates by COPY with psycopg, as JSON with other drivers. Both ways keep values of these types."""
    queue = CombineQueue(
        "kinds",
        key=["u uuid", "d date", "b bytea", "ok boolean"],
        value=["t timestamptz max", "x numeric sum", "f double precision max", "l bigint sum"],
        buckets=2,
    )
    key = (uuid.UUID(int=7), datetime.date(2024, 2, 29), b"\x00\xff\\x'", True)
    value = (
        datetime.datetime(2024, 2, 29, 12, 30, 1, 250, tzinfo=datetime.UTC),
        decimal.Decimal("12345678901234567890.0000001"),
        float("inf"),
        2**62,
    )

    async def main() -> None:
        async with async_alchemy_connection(dsn, driver) as caller:
            await queue.create(caller)
            assert await queue.enqueue(caller, (key + value for _ in range(1))) == 1
            found = await queue.get(caller, [key])
            assert {tuple(map(plain, k)): v for k, v in found.items()} == {key: value}
            await caller.commit()

    def plain(part: Any) -> Any:
        return uuid.UUID(str(part)) if "UUID" in type(part).__name__ else part

    run(main)
    assert queue.get(conn, [key]) == {key: value}


@pytest.mark.parametrize("driver", ["psycopg", "asyncpg"])
def test_column_names_may_contain_percent_and_colon(dsn: str, conn: psycopg.Connection, driver: str) -> None:
    queue = CombineQueue("odd", key=['"a%s:b" text', '"Käse %" bigint'], value=['":n" numeric sum'], buckets=2)

    async def main() -> None:
        async with async_alchemy_connection(dsn, driver) as caller:
            await queue.create(caller)
            await queue.enqueue(caller, [{"a%s:b": "x:y%", "Käse %": 1, ":n": decimal.Decimal("0.5")}])
            assert await queue.get(caller, [("x:y%", 1)]) == {("x:y%", 1): decimal.Decimal("0.5")}
            await caller.commit()

            assert await queue.contribute(caller, "s", [{"a%s:b": "x:y%", "Käse %": 2, ":n": 1}]) == 1
            await caller.commit()

    run(main)
    assert queue.get(conn, [("x:y%", 1), ("x:y%", 2)]) == {("x:y%", 1): decimal.Decimal("0.5"), ("x:y%", 2): 1}


@pytest.mark.wc
def test_enqueue_splits_many_updates(dsn: str, conn: psycopg.Connection) -> None:
    async def main() -> None:
        async with asyncpg_connection(dsn) as caller:
            assert await WC.enqueue(caller, ((f"w{i % 7}", 1) for i in range(2500))) == 2500
            await caller.commit()

    run(main)
    assert sum(current(conn).values()) == 2500
    drain(url(dsn), "wc", timeout=60)  # drain also accepts a URL of SQLAlchemy
    assert sum(values(conn).values()) == 2500
