"""``<queue>_enqueue``, the function that enqueues updates given as an array for each column."""

from __future__ import annotations

from collections import Counter
from typing import Any

import psycopg
import pytest
from support.queues import combine_all, enqueue_arrays, make_queue, one, rows, values
from support.states import raises_state

WORDS = [(f"w{i % 70}", i) for i in range(300)]


@pytest.mark.wc
def test_arrays_become_updates(conn: psycopg.Connection) -> None:
    assert enqueue_arrays(conn, []) == 0
    assert one(conn, "select pgcombine.wc_enqueue(null::text[])") == 0
    assert enqueue_arrays(conn, WORDS) == 300
    assert one(conn, "select pgcombine.backlog('wc')") == 300
    combine_all(conn)
    totals = sum((Counter({word: n}) for word, n in WORDS), Counter())
    assert values(conn) == {word: n for word, n in totals.items() if n}


@pytest.mark.parametrize(
    ("key", "finer"),
    [
        ("numeric(10,1)", "i * 0.1 + 0.04"),
        ("timestamptz(0)", "timestamptz '2000-01-01' + i * interval '1.01 s'"),
        ("varchar(4)", "i || '     '"),
    ],
)
def test_keys_are_rounded_to_the_type_of_the_column(tx: psycopg.Connection, key: str, finer: str) -> None:
    make_queue(tx, key=[f"k {key}"], delete_when=None)
    assert one(tx, f"select pgcombine.wc_enqueue(array_agg({finer})) from generate_series(1, 400) i") == 400  # noqa: S608
    combine_all(tx)
    assert one(tx, "select count(*) from pgcombine.wc_values") == 400


@pytest.mark.wc
@pytest.mark.parametrize("words", ["'[0:1]={a,b}'::text[]", "array[array['a'], array['b']]"])
def test_arrays_of_other_shapes_are_flattened(conn: psycopg.Connection, words: str) -> None:
    assert one(conn, f"select pgcombine.wc_enqueue({words}, array[1, 2])") == 2
    combine_all(conn)
    assert values(conn) == {"a": 1, "b": 2}


def test_missing_values_take_their_default(tx: psycopg.Connection) -> None:
    make_queue(tx, value=["n bigint count", "top int max"])
    assert one(tx, "select pgcombine.wc_enqueue(array_agg('w' || i % 2)) from generate_series(1, 100) i") == 100
    assert one(tx, "select pgcombine.wc_enqueue(word => array['w0'], top => array[7])") == 1
    combine_all(tx)
    assert rows(tx, "wc_values") == [("w0", 51, 7), ("w1", 50, None)]


@pytest.mark.wc
@pytest.mark.parametrize(
    ("words", "numbers", "sqlstate"),
    [
        (["a", "b"], [1], "PC004"),
        (["a", None] * 50, [1] * 100, "23502"),
        (["a", "x" * 2601] * 50, [1] * 100, "23514"),
    ],
    ids=["lengths", "a null key", "a long key"],
)
def test_bad_arrays_are_refused(conn: psycopg.Connection, words: list[Any], numbers: list[int], sqlstate: str) -> None:
    with raises_state(sqlstate), conn.transaction():
        conn.execute("select pgcombine.wc_enqueue(%s, %s::bigint[])", (words, numbers))
    assert one(conn, "select pgcombine.backlog('wc')") == 0


def test_row_security_checks_each_update(tx: psycopg.Connection, role: str) -> None:
    make_queue(tx)
    tx.execute(f"grant insert on pgcombine.wc_updates to {role}")
    tx.execute("alter table pgcombine.wc_updates enable row level security")
    tx.execute(f"create policy mine on pgcombine.wc_updates for insert to {role} with check (word like 'w%')")
    tx.execute(f"set role {role}")
    assert enqueue_arrays(tx, WORDS) == 300
    with pytest.raises(psycopg.errors.InsufficientPrivilege):
        enqueue_arrays(tx, [*WORDS, ("x", 1)])
