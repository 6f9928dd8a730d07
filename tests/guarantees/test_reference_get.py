"""wc_current and ``get`` combine values with pending updates, in 17 buckets, as in a test of Apache Fluo Recipes."""

from __future__ import annotations

import psycopg
import pytest
from support.queues import add, combine_all, current, got, make_queue, values
from support.sessions import workers
from support.wait import eventually

from pgcombine.queue.combine_queue import CombineQueue

ANIMALS = ["cat", "dog", "fish"]


@pytest.fixture(params=["view", "functions", "method"])
def get(request: pytest.FixtureRequest, conn: psycopg.Connection) -> object:
    def by_view() -> dict[str, int]:
        return {
            word: n
            for animal in ANIMALS
            for word, n in conn.execute(
                "select word, n from pgcombine.wc_current where word = %s", (animal,)
            ).fetchall()
        }

    return {
        "view": by_view,
        "functions": lambda: got(conn, ANIMALS),
        "method": lambda: CombineQueue("wc").get(conn, ANIMALS),
    }[request.param]


def test_get_combines_values_and_pending_updates(conn: psycopg.Connection, get) -> None:  # type: ignore[no-untyped-def]
    make_queue(conn, buckets=17)
    for updates in ({"cat": 2, "dog": 5}, {"cat": 1, "dog": 1}, {"cat": 1, "dog": 1, "fish": 2}):
        add(conn, updates)
    assert get() == current(conn) == {"cat": 4, "dog": 7, "fish": 2}
    assert values(conn) == {}
    combine_all(conn)
    assert get() == current(conn) == values(conn) == {"cat": 4, "dog": 7, "fish": 2}

    add(conn, {"cat": 1, "dog": -7})
    assert get() == current(conn) == {"cat": 5, "fish": 2}
    assert values(conn) == {"cat": 4, "dog": 7, "fish": 2}
    combine_all(conn)
    assert get() == current(conn) == values(conn) == {"cat": 5, "fish": 2}


def test_get_is_exact_while_workers_combine(conn: psycopg.Connection, dsn: str, get) -> None:  # type: ignore[no-untyped-def]
    make_queue(conn, buckets=17)
    expected = dict.fromkeys(ANIMALS, 0)
    with workers(dsn, "wc", count=3, poll=0.1):
        for i in range(60):
            updates = {"cat": i % 3 + 1, "dog": 1 - 2 * (i % 2), "catfish": 1}
            add(conn, updates)
            expected["cat"] += updates["cat"]
            expected["dog"] += updates["dog"]
            assert get() == {animal: n for animal, n in expected.items() if n}
        eventually(
            lambda: conn.execute("select pgcombine.backlog('wc')").fetchone() == (0,), what="no update is pending"
        )
        assert get() == {animal: n for animal, n in expected.items() if n}
