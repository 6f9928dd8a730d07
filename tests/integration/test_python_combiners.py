"""Value columns that a function in Python combines: slower, with the same guarantees."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import psutil
import psycopg
import pytest
from psycopg.types.json import Jsonb
from support.queues import one, rows
from support.servers import embedded_only
from support.sessions import workers
from support.wait import eventually

from pgcombine.errors import AppNeeded, PassError
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.worker import quarantine
from pgcombine.worker.drain import drain

Connection = psycopg.Connection


def documents(**options: int) -> CombineQueue:
    """Documents that are merged key by key, beside a count; an empty one is deleted."""
    queue = CombineQueue("docs", key=["id bigint"], value=["n bigint count", "doc jsonb python"], **options)

    @queue.combiner("doc")
    def merge(key: int, values: Iterator[dict[str, int]]) -> dict[str, int] | None:
        merged: dict[str, int] = {}
        for value in values:
            for name, number in value.items():
                if number > 10**9:
                    raise OverflowError(f"{name} of {key}")
                merged[name] = merged.get(name, 0) + number
        return {name: number for name, number in merged.items() if number} or None

    return queue


def put(conn: Connection, *updates: tuple[int, dict[str, int] | None]) -> None:
    conn.cursor().executemany(
        "insert into pgcombine.docs_updates (id, doc) values (%s, %s)",
        [(key, None if doc is None else Jsonb(doc)) for key, doc in updates],
    )


def found(conn: Connection) -> dict[int, Any]:
    return {key: (n, doc) for key, n, doc in rows(conn, "docs_values")}


def test_values_are_combined_with_the_old_one(conn: Connection, dsn: str) -> None:
    queue = documents(buckets=2)
    queue.create(conn)
    conn.execute("create table told (id bigint, old_doc jsonb, new_doc jsonb)")
    conn.execute(
        "select pgcombine.add_observer('docs', 'told', 'insert into told select id, old_doc, new_doc from changes')"
    )
    put(conn, (1, {"a": 1}), (1, {"a": 1, "b": 1}), (2, {"a": 1}), (2, {"a": -1}), (3, None))
    done = drain(dsn, queue)
    assert (done.updates, done.keys, done.changes) == (5, 3, 1)
    assert found(conn) == {1: (2, {"a": 2, "b": 1})}
    put(conn, (1, {"a": 2}), (1, {"b": -1}), (1, None))
    drain(dsn, queue)
    assert found(conn) == {1: (5, {"a": 4})}  # what holds no document counts, too
    put(conn, (1, {"a": -4}))
    drain(dsn, queue)
    assert found(conn) == {}
    assert [row[1:] for row in conn.execute("select * from told").fetchall()] == [
        (None, {"a": 2, "b": 1}),
        ({"a": 2, "b": 1}, {"a": 4}),
        ({"a": 4}, None),
    ]


def test_nothing_but_a_worker_with_the_function_combines(conn: Connection, dsn: str) -> None:
    queue = documents(buckets=1)
    queue.create(conn)
    put(conn, (1, {"a": 1}))
    with pytest.raises(psycopg.Error) as caught:
        conn.execute("select * from pgcombine.combine('docs')")
    assert caught.value.sqlstate == "PC008"
    with pytest.raises(AppNeeded, match='combiner of column "doc"'):
        drain(dsn, "docs")
    with pytest.raises(AppNeeded):  # rather no value than a wrong one
        queue.get(conn, [1])
    drain(dsn, queue)
    assert queue.get(conn, [1]) == {1: (1, {"a": 1})}
    put(conn, (2, {"a": 1}))
    assert queue.get(conn, [1]) == {1: (1, {"a": 1})}


def test_every_update_once_with_several_workers(conn: Connection, dsn: str) -> None:
    queue = documents(buckets=3)
    queue.create(conn)
    with workers(dsn, app=[queue], count=3, poll=0.05):
        for i in range(200):
            put(conn, (i % 7, {"a": 1, f"x{i % 2}": 1}), (i % 5, {"b": 1}))
        eventually(lambda: one(conn, "select pgcombine.backlog('docs')") == 0, what="drained")
    result = found(conn)
    assert sum(n for n, _ in result.values()) == 400
    assert sum(doc.get("a", 0) for _, doc in result.values()) == 200
    assert sum(doc.get("b", 0) for _, doc in result.values()) == 200


def test_a_large_backlog_is_taken_by_whole_keys(conn: Connection, dsn: str) -> None:
    queue = documents(buckets=1)
    queue.create(conn)
    conn.execute("update pgcombine.queue set pass_limit = 100")
    told: list[Any] = []
    queue.on_change(lambda tx, changes: told.extend(changes), name="tell")
    updates = [(i % 50, {"a": 1}) for i in range(1000)] + [(7, {"a": 1})] * 500
    put(conn, *updates)
    done = drain(dsn, queue)
    assert done.passes > 3
    assert done.updates == 1500
    assert found(conn) == {key: (20 + 500 * (key == 7), {"a": 20 + 500 * (key == 7)}) for key in range(50)}
    assert [change.old for change in told] == [None] * 50  # each key was reported once, complete


def test_a_key_that_it_raises_for_is_quarantined(conn: Connection, dsn: str) -> None:
    queue = documents(buckets=1, quarantine_after=1)
    queue.create(conn)
    put(conn, *((key, {"a": 1}) for key in range(100)), (5, {"a": 10**10}), (6, {"a": 1}))
    drain(dsn, queue)
    (entry,) = quarantine.ls(conn)
    assert (entry["key"], entry["updates"]) == ({"id": 5}, 2)
    assert "OverflowError: a of 5" in entry["error"]
    assert found(conn) == {key: (1 + (key == 6), {"a": 1 + (key == 6)}) for key in range(100) if key != 5}


def test_a_result_that_the_column_doesnt_take_loses_nothing(conn: Connection, dsn: str) -> None:
    queue = CombineQueue("typed", key=["k text"], value=["v int python"], buckets=1)
    queue.combiner("v")(lambda key, values: "many" if sum(values) > 5 else 1)
    queue.create(conn)
    conn.execute("insert into pgcombine.typed_updates values ('a', 3), ('a', 4)")
    with pytest.raises(PassError, match="invalid input syntax for type integer"):
        drain(dsn, queue)
    assert rows(conn, "typed_pending") == [("a", 3), ("a", 4)]


def test_several_columns_and_types(conn: Connection, dsn: str) -> None:
    queue = CombineQueue(
        "typed",
        key=["k numeric", '"The %" text'],
        value=["tags text[] python", "b bytea python", "f double precision max", "low numeric python"],
        buckets=2,
    )
    queue.combiner("tags")(lambda key, values: sorted({tag for tags in values for tag in tags}))
    queue.combiner("b")(lambda key, values: max(values))
    queue.combiner("low")(lambda key, values: min(values))
    queue.create(conn)
    insert = "insert into pgcombine.typed_updates values (%s, 'x', %s, %s, %s, %s)"
    conn.execute(insert, ("1.0", ["b", "a\tc"], b"\x00\x01", 0.1, "2.50"))
    conn.execute(insert, ("1", ["b", "é\\"], b"\xff", 0.3, "1.10"))
    drain(dsn, queue)
    conn.execute(insert, ("1.00", ["z"], None, None, "7"))
    drain(dsn, queue)
    ((k, text, tags, b, f, low),) = rows(conn, "typed_values")
    assert (k, text, tags, b, f, str(low)) == (1, "x", ["a\tc", "b", "z", "é\\"], b"\xff", 0.3, "1.10")


@pytest.mark.slow
@embedded_only
def test_updates_take_little_memory(conn: Connection, dsn: str) -> None:
    """All updates of one key: they are never in memory as a whole."""
    queue = CombineQueue("one", key=["k text"], value=["v text python"], buckets=1)
    most = 0
    me = psutil.Process(os.getpid())

    @queue.combiner("v")
    def longest(key: str, values: Iterator[str]) -> str:
        nonlocal most
        before = me.memory_info().rss
        best = ""
        for number, value in enumerate(values):
            best = max(best, value)
            if number % 1000 == 0:
                most = max(most, me.memory_info().rss - before)
        return best

    queue.create(conn)
    conn.execute(
        "insert into pgcombine.one_updates select 'k', repeat('x', 400) || i from generate_series(1, 150000) as i"
    )
    assert drain(dsn, queue).updates == 150000
    assert most < 20 << 20  # of some 70 MB
    assert one(conn, "select right(v, 5) from pgcombine.one_values") == "99999"
