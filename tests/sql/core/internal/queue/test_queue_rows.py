"""CombineQueue checks updates and keys before it sends them, and raises pgcombine's exceptions."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from support.queues import add, combine_all, rows

from pgcombine.errors import (
    InvalidDefinitionError,
    InvalidUpdateError,
    QueueExistsError,
    QueueNotEmptyError,
    QueueNotFoundError,
)
from pgcombine.queue.combine_queue import CombineQueue

WC = CombineQueue("wc", key=["word text"], value=["n bigint sum", "c int count"], delete_when="n = 0", buckets=2)


def test_updates_may_be_mappings_or_sequences(tx: psycopg.Connection) -> None:
    WC.create(tx)
    updates: list[Any] = [
        {"word": "a", "n": 1},
        {"n": 2, "word": "a"},
        {"word": "a", "n": 3, "c": 10},
        ("a", 4, 100),
        ["b", 1, None],
        {"word": "b"},
    ]
    assert WC.enqueue(tx, iter(updates)) == 6
    assert WC.backlog(tx) == 6
    assert WC.get(tx, ["a", "b", "absent"]) == {"a": (10, 112), "b": (1, 1)}
    combine_all(tx)
    assert rows(tx, "wc_values") == [("a", 10, 112), ("b", 1, 1)]
    assert WC.enqueue(tx, []) == 0


@pytest.mark.parametrize(
    "row",
    [
        {"word": "a", "m": 1},
        ("a", 1),
        "abc",
        b"abc",
        5,
    ],
)
def test_update_that_does_not_fit_is_refused(tx: psycopg.Connection, row: Any) -> None:
    WC.create(tx)
    with pytest.raises(InvalidUpdateError) as refused, tx.transaction():
        WC.enqueue(tx, [("good", 1, 1), row])
    assert refused.value.queue == "wc"
    assert rows(tx, "wc_pending") == []


def test_keys_of_several_columns_are_tuples(tx: psycopg.Connection) -> None:
    pairs = CombineQueue("pairs", key=["a text", "b int"], value=["n bigint sum"])
    pairs.create(tx)
    pairs.enqueue(tx, [("x", 1, 5), ("x", 2, 6), ("y", 1, 7)])
    assert pairs.get(tx, [("x", 1), ("y", 1), ("y", 2)]) == {("x", 1): 5, ("y", 1): 7}
    assert pairs.get(tx, []) == {}
    with pytest.raises(InvalidUpdateError):
        pairs.get(tx, [("x",)])


@pytest.mark.wc
def test_errors_have_their_exception_classes(conn: psycopg.Connection) -> None:
    add(conn, {"a": 1})
    cases: list[tuple[type[Exception], Any]] = [
        (QueueExistsError, lambda: WC.create(conn)),
        (QueueNotEmptyError, lambda: WC.drop(conn)),
        (QueueNotFoundError, lambda: CombineQueue("cw").drop(conn)),
        (QueueNotFoundError, lambda: CombineQueue("cw").enqueue(conn, [("a",)])),
        (QueueNotFoundError, lambda: CombineQueue("cw").get(conn, ["a"])),
        (QueueNotFoundError, lambda: CombineQueue("cw").backlog(conn)),
        (InvalidDefinitionError, lambda: CombineQueue("cw").create(conn)),
    ]
    for kind, call in cases:
        with pytest.raises(kind), conn.transaction():
            call()
