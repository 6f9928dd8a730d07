"""``initialize`` runs in the caller's transaction, on synchronous and asynchronous connections of all drivers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

import psycopg
import pytest
from support.callers import ASYNC, SYNC, asyncpg_connection, caller_of, done, run
from support.queues import current, rows, values
from support.servers import embedded_only
from support.tiers import each_nth

from pgcombine.errors import InvalidUpdateError, QueueNotEmptyError
from pgcombine.queue.combine_queue import CombineQueue

WC = CombineQueue("wc")
EACH = [*SYNC, *ASYNC]
SOME = pytest.mark.parametrize("opened", EACH[::5])


@pytest.mark.wc
@pytest.mark.parametrize("opened", each_nth(5, EACH))
def test_initialize_joins_the_transaction(dsn: str, conn: psycopg.Connection, opened: Any) -> None:
    async def main() -> None:
        async with caller_of(opened, dsn) as caller:
            await done(WC.initialize(caller, [("a", 1)]))
            await done(caller.rollback())
            assert values(conn) == {}
            loaded = await done(WC.initialize(caller, [("a", 1), {"n": 2, "word": "b"}, ("gone", 0)]))
            assert loaded == 2
            assert await done(WC.get(caller, ["a", "b", "gone"])) == {"a": 1, "b": 2}
            assert values(conn) == {}, "another session sees what isn't committed"
            await done(caller.commit())
            assert values(conn) == {"a": 1, "b": 2}
            with pytest.raises(QueueNotEmptyError):
                await done(WC.initialize(caller, [("c", 1)]))
            assert await done(WC.initialize(caller, [("c", 3)], force=True)) == 1
            await done(caller.commit())

    run(main)
    assert values(conn) == {"a": 1, "b": 2, "c": 3}
    assert rows(conn, "wc_pending") == []


def broken() -> Iterator[tuple[str, int]]:
    yield "a", 1
    raise ZeroDivisionError("no more rows")


WRONG: dict[str, tuple[Callable[[], Any], type[Exception], str]] = {
    "twice": (
        lambda: [("a", 1), ("b", 1), ("a", 2)],
        InvalidUpdateError,
    ),
    "null": (lambda: [("a", 1), (None, 1)], InvalidUpdateError),
    "too long": (lambda: [("".join(map(str, range(5000))), 1)], InvalidUpdateError),
    "too large": (lambda: [("a", 2**70)], InvalidUpdateError),
    "other columns": (lambda: [("a", 1), {"word": "b", "m": 1}], InvalidUpdateError),
    "raises": (broken, ZeroDivisionError),
}


@pytest.mark.wc
@embedded_only
@SOME
@pytest.mark.parametrize("case", WRONG)
def test_wrong_rows_load_nothing_and_keep_the_transaction(
    dsn: str, conn: psycopg.Connection, opened: Any, case: str
) -> None:
    """If initialize fails at a row, it loads no other row either. The caller can commit its other statements."""
    made, error = WRONG[case]

    async def main() -> None:
        async with caller_of(opened, dsn) as caller:
            await done(WC.enqueue(caller, [("kept", 1)]))
            with pytest.raises(error):
                await done(WC.initialize(caller, chain([{"n": 1, "word": "first"}], made()), force=True))
            await done(caller.commit())

    run(main)
    assert (values(conn), current(conn)) == ({}, {"kept": 1})


@pytest.mark.wc
def test_initialize_in_autocommit_is_one_transaction(dsn: str, conn: psycopg.Connection) -> None:
    async def main() -> None:
        async with await psycopg.AsyncConnection.connect(dsn, autocommit=True) as caller:
            with pytest.raises(ZeroDivisionError):
                await WC.initialize(caller, broken())
            assert values(conn) == {}
            assert await WC.initialize(caller, [("a", 1)]) == 1
            assert values(conn) == {"a": 1}

    run(main)


@pytest.mark.wc
def test_initialize_splits_many_rows(dsn: str, conn: psycopg.Connection) -> None:
    async def main() -> None:
        async with asyncpg_connection(dsn) as caller:
            assert await WC.initialize(caller, ((f"w{i}", 1) for i in range(2500))) == 2500
            with pytest.raises(InvalidUpdateError):
                await WC.initialize(caller, [(f"v{i}", 1) for i in range(2500)] + [("w7", 1)], force=True)
            await caller.commit()

    run(main)
    assert len(values(conn)) == 2500
