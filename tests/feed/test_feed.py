"""``Feed`` reads changes from an offset, and follows new ones, on synchronous and asynchronous connections."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from itertools import pairwise
from threading import Thread
from typing import Any

import psycopg
import pytest
import sqlalchemy
from support.queues import combine, make_queue, one
from support.roles import Roles
from support.wait import eventually

from pgcombine import Feed
from pgcombine.errors import (
    FeedNotFoundError,
    InvalidDefinitionError,
    NotGrantedError,
    OffsetTooOldError,
    QueueExistsError,
)
from pgcombine.worker.maintenance import upkeep

F = Feed("f")


@pytest.fixture
def fed(conn: psycopg.Connection) -> psycopg.Connection:
    make_queue(conn)
    Feed("f", queue="wc", retention=timedelta(minutes=1)).create(conn)
    return conn


def expire(conn: psycopg.Connection) -> None:
    """Make all present changes too old, and let a worker's upkeep remove them."""
    for _ in range(2):
        conn.execute(
            "update pgcombine.change_log set since = since - interval '1 h', "
            "closed = array(select c - interval '1 h' from unnest(closed) with ordinality x (c, n) order by n)"
        )
        upkeep(conn)


def words(batches: list[Any]) -> list[tuple[str, Any, Any]]:
    return [(row["word"], row["old_n"], row["new_n"]) for batch in batches for row in batch.rows]


def test_consumer_begins_with_a_snapshot_and_goes_on(fed: psycopg.Connection) -> None:
    combine(fed, {"a": 1, "b": 1})
    after, rows = F.snapshot(fed)
    assert sorted((row["word"], row["n"]) for row in rows) == [("a", 1), ("b", 1)]
    assert after == F.offset(fed)
    combine(fed, {"a": 1}, {"a": -2})
    batches = list(F.read(fed, after=after, most=1))
    assert words(batches) == [("a", 1, 2), ("a", 2, None)]
    assert set(batches[0].rows[0]) == {
        *("_bucket", "_sequence", "_change_type", "_commit_version", "_commit_timestamp", "word", "old_n", "new_n")
    }
    assert batches[-1].after == F.offset(fed)
    assert [batch.rows for batch in F.read(fed, after=batches[-1].after)] == []
    (compact,) = F.read(fed, after=after, compact=True)
    assert [(row["old_n"], row["_change_type"]) for row in compact.rows] == [(1, "delete")]


def test_asynchronous_connection_gets_the_same(fed: psycopg.Connection, dsn: str) -> None:
    combine(fed, {"a": 1, "b": 1})

    async def consume() -> list[Any]:
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as connection:
            after, rows = await F.snapshot(connection)
            assert sorted([row["word"] async for row in rows]) == ["a", "b"]
            await F.commit(connection, "c", after)
            assert await F.committed(connection, "c") == after
            await asyncio.to_thread(combine, fed, {"a": 1})
            assert words([batch async for batch in F.read(connection, after=after)]) == [("a", 1, 2)]
            following = F.read(connection, after=after, follow=True, poll=60)
            found = [await anext(following)]
            waiting = asyncio.ensure_future(anext(following))
            await asyncio.to_thread(eventually, lambda: listens(fed))
            await asyncio.to_thread(combine, fed, {"a": 1})
            found.append(await waiting)
            await following.aclose()
            return words(found)

    assert asyncio.run(consume()) == [("a", 1, 2), ("a", 2, 3)]
    assert not listens(fed)


def listens(conn: psycopg.Connection) -> bool:
    """Whether a session holds the idle lock of the feed's table."""
    return bool(
        one(
            conn,
            "select exists (select from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' "
            "and objid = 'pgcombine.wc_changes'::regclass::oid)",
        )
    )


def test_session_of_sqlalchemy_gets_the_same(fed: psycopg.Connection, dsn: str) -> None:
    combine(fed, {"a": 1})
    engine = sqlalchemy.create_engine(f"postgresql+psycopg://{dsn.split('://')[1]}")
    with engine.connect() as connection:
        assert words(list(F.read(connection, after={}))) == [("a", None, 1)]
        after, rows = F.snapshot(connection)
        assert [row["n"] for row in rows] == [1]
        with pytest.raises(InvalidDefinitionError):
            F.read(connection, after=after, follow=True)
    engine.dispose()


def test_role_needs_only_the_right_to_read(fed: psycopg.Connection, dsn: str) -> None:
    combine(fed, {"a": 1})
    with Roles(fed, dsn) as roles:
        reader = roles.login()
        for call in (
            lambda: F.snapshot(reader),
            lambda: list(F.read(reader, after={})),
            lambda: next(F.read(reader, follow=True)),
            lambda: F.commit(reader, "c", {}),
        ):
            with pytest.raises(NotGrantedError):
                call()
        fed.execute("select pgcombine.grant_right('read', %s, 'wc')", (reader.info.user,))
        after, rows = F.snapshot(reader)
        assert [row["n"] for row in rows] == [1]
        F.commit(reader, "c", after)
        assert F.committed(reader, "c") == after
        assert words(list(F.read(reader, after={}, compact=True))) == [("a", None, 1)]


def test_follower_is_woken_by_passes(fed: psycopg.Connection, dsn: str) -> None:
    with Roles(fed, dsn) as roles:
        connection = roles.login()
        fed.execute("select pgcombine.grant_right('read', %s, 'wc')", (connection.info.user,))
        following = F.read(connection, follow=True, poll=60)
        found: list[Any] = []
        thread = Thread(target=lambda: found.extend(next(following) for _ in range(3)))
        thread.start()
        for n in range(3):
            eventually(lambda: listens(fed) and len(found) == n)  # noqa: B023
            combine(fed, {"a": 1})
        thread.join(30)
        assert words(found) == [("a", None, 1), ("a", 1, 2), ("a", 2, 3)]
        following.close()
        assert all(before.after != after.after for before, after in pairwise(found))
    assert not listens(fed)


def test_offset_that_is_too_old_is_refused(fed: psycopg.Connection) -> None:
    after = F.offset(fed)
    combine(fed, {"a": 1})
    expire(fed)
    with pytest.raises(OffsetTooOldError):
        list(F.read(fed, after=after))
    with pytest.raises(OffsetTooOldError):
        F.commit(fed, "c", after)


def test_wrong_calls_raise_errors_of_pgcombine(fed: psycopg.Connection) -> None:
    with pytest.raises(FeedNotFoundError):
        list(Feed("g").read(fed, after={}))
    with pytest.raises(FeedNotFoundError):
        Feed("g").snapshot(fed)
    with pytest.raises(InvalidDefinitionError):
        list(F.read(fed, after={"7": 1}))
    with pytest.raises(QueueExistsError):
        Feed("f", queue="wc").create(fed)
    Feed("f", queue="wc", retention=timedelta(minutes=1)).create(fed, if_not_exists=True)
    with fed.transaction(), pytest.raises(InvalidDefinitionError):
        F.read(fed, follow=True)


def test_committed_offset_is_kept_until_it_is_forgotten(fed: psycopg.Connection) -> None:
    assert F.committed(fed, "c") is None
    F.commit(fed, "c", {})
    assert F.committed(fed, "c") == {}
    F.commit(fed, "c", None)
    assert F.committed(fed, "c") is None
    F.drop(fed)
    assert one(fed, "select count(*) from pgcombine.change_log") == 0
