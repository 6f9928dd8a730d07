"""``get`` finds the wanted keys and no similar ones. The error for an unknown queue suggests a similar name."""

from __future__ import annotations

import datetime
import re
import uuid
from decimal import Decimal
from typing import Any

import psycopg
import pytest

from pgcombine.errors import InvalidUpdateError, QueueNotFoundError
from pgcombine.queue.combine_queue import CombineQueue

MANY = 10_000


@pytest.mark.slow
@pytest.mark.timeout(120)
@pytest.mark.parametrize("key", [["a bigint"], ["a bigint", "b text"]])
def test_get_finds_many_keys_fast(conn: psycopg.Connection, key: list[str]) -> None:
    """get joins the wanted keys by hash: a comparison of each wanted key with each existing key would be too slow."""
    queue = CombineQueue("many", key=key, value=["n bigint sum"], buckets=4)
    queue.create(conn)

    def key_of(i: int) -> Any:
        return i if len(key) == 1 else (i, f"b{i % 7}")

    def rows(start: int) -> list[tuple[Any, ...]]:
        return [((i,) if len(key) == 1 else key_of(i)) + (1,) for i in range(start, start + MANY)]

    queue.enqueue(conn, rows(0))
    conn.execute("select pgcombine.combine('many', b) from generate_series(0, 3) b")
    queue.enqueue(conn, rows(MANY // 2))
    wanted = [key_of(i) for i in range(MANY // 4, MANY // 4 + MANY)]
    if len(key) == 2:  # keys that don't exist, although each of their columns equals that of an existing key
        wanted += [(i, f"b{(i + 1) % 7}") for i in range(100)]
    found = queue.get(conn, [*wanted, *wanted[:10]])
    assert found == {key_of(i): 2 if MANY // 2 <= i < MANY else 1 for i in range(MANY // 4, MANY // 4 + MANY)}


SIMILAR: dict[str, tuple[Any, list[Any]]] = {  # by type: a key that exists, and keys that don't
    "varchar(5)": ("12345", ["123456", "1234", "12345 "]),
    "char(3)": ("abc", ["abcd", "ab"]),
    "numeric(10,2)": (Decimal("1.01"), [Decimal("1.014"), Decimal("1.006"), Decimal(10) ** 20]),
    "timestamptz(0)": (
        datetime.datetime(2024, 1, 1, tzinfo=datetime.UTC),
        [datetime.datetime(2024, 1, 1, 0, 0, 0, 100, tzinfo=datetime.UTC)],
    ),
    "positive": (1, [-1, 0]),
    "color": ("red", ["green"]),
    "uuid": (uuid.UUID(int=1), [uuid.UUID(int=2)]),
    "bytea": (b"\x00", [b"", b"\x00\x00"]),
    "boolean": (True, [False]),
    "date": (datetime.date(2024, 2, 29), [datetime.date(2024, 2, 28)]),
    "double precision": (0.1, [0.1 + 2**-50, float("inf")]),
}


@pytest.mark.parametrize("columns", [1, pytest.param(2, marks=pytest.mark.slow)])
@pytest.mark.parametrize("type_", SIMILAR)
def test_get_neither_cuts_nor_rounds_keys(conn: psycopg.Connection, type_: str, columns: int) -> None:
    conn.execute("create domain positive as integer check (value > 0)")
    conn.execute("create type color as enum ('red', 'green', 'blue')")
    key = [f"k {type_}", "other text"][:columns]
    queue = CombineQueue("nearly", key=key, value=["n bigint sum"], buckets=2)
    queue.create(conn)
    there, others = SIMILAR[type_]

    def full(part: Any) -> Any:
        return part if columns == 1 else (part, "x")

    queue.enqueue(conn, [(there, "x", 1) if columns == 2 else (there, 1)])
    for _ in range(2):  # the key first has a pending update, then a value
        assert queue.get(conn, [full(there), *map(full, others)]) == {full(there): 1}
        assert queue.get(conn, [full(other) for other in others]) == {}
        for other in others:
            assert queue.get(conn, [full(other)]) == {}
        conn.execute("select pgcombine.combine('nearly', b) from generate_series(0, 1) b")


def test_get_needs_a_list_of_keys(conn: psycopg.Connection) -> None:
    words = CombineQueue("words", key=["word text"], value=["n bigint sum"])
    words.create(conn)
    for key in ("fluo", 1):
        with pytest.raises(InvalidUpdateError):
            words.get(conn, key)
    for key in (("fluo",), ["fluo"], ("fluo", 1), ()):
        with pytest.raises(InvalidUpdateError):
            words.get(conn, ["spark", key])
    for key in ({}, object(), "\0", "\ud800"):
        with pytest.raises(InvalidUpdateError):
            words.get(conn, [key])
    numbers = CombineQueue("numbers", key=["a int"], value=["n bigint sum"])
    numbers.create(conn)
    for key in ("x", 1.5, 2**40, True):
        with pytest.raises(InvalidUpdateError):
            numbers.get(conn, [1, key])
    pairs = CombineQueue("pairs", key=["a int", "b text"], value=["n bigint sum"])
    pairs.create(conn)
    for key in (5, "ab", None, (1,)):
        with pytest.raises(InvalidUpdateError):
            pairs.get(conn, [key])
    assert pairs.get(conn, [[1, "b"]]) == {}


@pytest.mark.parametrize(
    ("wanted", "near"),
    [("post_view", "post_views"), ("postviews", "post_views"), ("wrods", "words"), ("post", "posters"), ("x", None)],
)
def test_error_suggests_a_similar_queue_name(conn: psycopg.Connection, wanted: str, near: str | None) -> None:
    for name in ("words", "post_views", "posters", "p"):
        CombineQueue(name, key=["word text"], value=["n bigint sum"]).create(conn)
    hint = f'did you mean "{near}"?' if near else "select queue from pgcombine.queue lists them"
    with pytest.raises(psycopg.Error, match=f'there is no queue "{wanted}"') as refused:
        conn.execute("select pgcombine.pause(%s)", (wanted,))
    assert refused.value.diag.message_hint == hint
    for call in (CombineQueue(wanted).backlog, lambda conn: CombineQueue(wanted).get(conn, ["a"])):
        with pytest.raises(QueueNotFoundError, match=re.escape(f'there is no queue "{wanted}" ({hint})')):
            call(conn)


@pytest.mark.parametrize(
    ("type_", "key", "others", "shown"),
    [
        ("int[]", [1, 2], [[2, 1]], (1, 2)),
        ("int[]", (1, 2), [(2, 1)], (1, 2)),
        ("int[]", [[1], [2]], [[[1, 2]]], ((1,), (2,))),
        ("jsonb", '{"a": [1, null]}', ['{"a": []}'], '{"a": [1, null]}'),
        ("jsonb", '["ö"]', ['"ö"'], '["ö"]'),
    ],
)
@pytest.mark.parametrize("columns", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_get_returns_unhashable_keys_in_a_hashable_form(
    conn: psycopg.Connection, type_: str, key: Any, others: list[Any], shown: Any, columns: int
) -> None:
    queue = CombineQueue("q", key=[f"a {type_}", "b int"][:columns], value=["n bigint sum"])
    queue.create(conn)
    insert = "insert into pgcombine.q_updates (a, n) values (%s, 1)"
    if columns == 2:
        insert = "insert into pgcombine.q_updates (a, b, n) values (%s, 7, 1)"
    conn.execute(insert, ([*key] if isinstance(key, tuple) else key,))
    wanted = [one if columns == 1 else (one, 7) for one in [key, *others]]
    assert queue.get(conn, wanted) == {shown if columns == 1 else (shown, 7): 1}
    assert queue.get(conn, queue.get(conn, wanted)) == queue.get(conn, wanted[:1])


def test_get_accepts_a_composite_key_column(conn: psycopg.Connection) -> None:
    conn.execute("create type place as (x int, y text)")
    queue = CombineQueue("places", key=["at place", "day int"], value=["n bigint sum"])
    queue.create(conn)
    queue.enqueue(conn, [("(1,a)", 1, 5), ("(1,a)", 2, 6), ("(2,b)", 1, 7)])
    assert queue.get(conn, [("(1,a)", 2), ("(2,b)", 1), ("(2,b)", 2)]) == {("(1,a)", 2): 6, ("(2,b)", 1): 7}
