"""The ways to enqueue in SQL: ``pgcombine.enqueue``, ``<queue>_enqueue``, INSERT and COPY."""

from __future__ import annotations

from decimal import Decimal

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb
from support.queues import add, bucket_of, combine_all, current, enqueue, make_queue, one, rows, values
from support.states import raises_state

from pgcombine import CombineQueue


@pytest.mark.wc
def test_enqueue_returns_the_number_of_updates(conn: psycopg.Connection) -> None:
    assert enqueue(conn, [{"word": "a", "n": 1}, {"word": "a", "n": 2}, {"word": "b", "n": 3}]) == 3
    assert enqueue(conn, {"word": "b", "n": 4}) == 1
    assert enqueue(conn, []) == 0
    assert rows(conn, "wc_pending") == [("a", 1), ("a", 2), ("b", 3), ("b", 4)]


@pytest.mark.wc
def test_enqueue_accepts_a_text_literal(conn: psycopg.Connection) -> None:
    assert one(conn, """select pgcombine.enqueue('wc', '[{"word":"fluo","n":1}]')""") == 1
    assert current(conn) == {"fluo": 1}


@pytest.mark.wc
def test_insert_copy_and_enqueue_have_the_same_effect(conn: psycopg.Connection) -> None:
    conn.execute("insert into pgcombine.wc_updates (word, n) values ('fluo', 1)")
    with conn.cursor() as cursor, cursor.copy("copy pgcombine.wc_updates (word, n) from stdin") as copy:
        copy.write_row(("fluo", 10))
    enqueue(conn, {"word": "fluo", "n": 100})
    combine_all(conn)
    assert values(conn) == {"fluo": 111}


def test_numbers_are_rounded_to_the_digits_of_their_column(tx: psycopg.Connection) -> None:
    """Each update is rounded before it is added."""
    make_queue(tx, value=["n numeric(10,2) sum"])
    fine, many = Decimal("1.2345"), 40
    tx.execute("insert into pgcombine.wc_updates values ('insert', %s)", (fine,))
    with tx.cursor() as cursor, cursor.copy("copy pgcombine.wc_updates (word, n) from stdin") as copy:
        copy.write_row(("copy", fine))
    enqueue(tx, [{"word": "json", "n": "1.2345"}])
    CombineQueue("wc", key=["word text"], value=["n numeric(10,2) sum"]).enqueue(tx, [("python", fine)] * 2)
    tx.execute("select pgcombine.wc_enqueue(%s, %s::numeric[])", (["arrays"] * many, [fine] * many))
    combine_all(tx)
    once = Decimal("1.23")
    assert values(tx) == dict.fromkeys(["insert", "copy", "json"], once) | {"python": 2 * once, "arrays": many * once}


@pytest.mark.parametrize("arrays", ["'{a,b}', '{1}'", "'{a}', null", "'{a}', '{1}', '{1,2}'", "null, '{1}'"])
def test_arrays_of_different_lengths_are_refused(conn: psycopg.Connection, arrays: str) -> None:
    make_queue(conn, key=["word text", "number int"])
    with raises_state("PC004"):
        conn.execute(f"select pgcombine.wc_enqueue({arrays})")


def test_a_missing_value_is_the_default_of_its_combiner(tx: psycopg.Connection) -> None:
    make_queue(tx, value=["s bigint sum", "c bigint count", "low int min", "high int max"], delete_when=None, buckets=1)
    enqueue(tx, [{"word": "a"}, {"word": "a", "c": 5}, {"word": "a", "s": 7, "low": 3, "high": 3}])
    tx.execute("insert into pgcombine.wc_updates (word) values ('a')")
    combine_all(tx)
    assert rows(tx, "wc_values") == [("a", 7, 8, 3, 3)]


@pytest.mark.wc
@pytest.mark.parametrize(
    "updates",
    [
        None,
        "word",
        [["a", 1]],
        [{"word": "a"}, None],
        [{"word": "a", "m": 1}],
        [{"word": "a"}, {"Word": "a"}],
        [{"n": 1}],
        [{"word": None, "n": 1}],
    ],
)
def test_invalid_updates_are_refused(conn: psycopg.Connection, updates: object) -> None:
    with raises_state("PC004"), conn.transaction():
        conn.execute("select pgcombine.enqueue('wc', %s)", (None if updates is None else Jsonb(updates),))
    assert rows(conn, "wc_pending") == []


def test_a_null_in_any_key_column_is_refused_with_its_name(tx: psycopg.Connection) -> None:
    make_queue(tx, key=["day date", '"The User" text'])
    with raises_state("PC004"), tx.transaction():
        enqueue(tx, [{"day": "2024-01-01", "The User": "a"}, {"day": "2024-01-01", "The User": None}])
    assert rows(tx, "wc_pending") == []


@pytest.mark.wc
def test_enqueue_starts_no_subtransaction(conn: psycopg.Connection) -> None:
    """Many subtransactions in a transaction would make the snapshots of all sessions slow."""
    with conn.transaction():
        conn.execute("insert into pgcombine.wc_updates (word) values ('a')")
        for _ in range(3):
            enqueue(conn, [{"word": "a"}])
    assert one(conn, "select count(distinct xmin::text) from pgcombine.wc_updates") == 1


@pytest.mark.wc
def test_enqueue_writes_all_updates_or_none(conn: psycopg.Connection) -> None:
    with raises_state("22P02"), conn.transaction():
        enqueue(conn, [{"word": "a", "n": 1}, {"word": "b", "n": "x"}])
    assert rows(conn, "wc_pending") == []


def test_unknown_queue_is_refused(tx: psycopg.Connection) -> None:
    with raises_state("PC001"):
        enqueue(tx, [])


def test_insert_refuses_a_null_key(tx: psycopg.Connection) -> None:
    make_queue(tx, key=["word text", "day date"])
    with pytest.raises(psycopg.errors.NotNullViolation):
        tx.execute("insert into pgcombine.wc_updates (word, n) values ('a', 1)")


LONGEST = {
    ("word text",): ("x" * 2600,),
    ("word text", "other text"): ("x" * 1300, "y" * 1300),
    ("word text", "other varchar"): ("ä" * 650, "ö" * 650),
    ("word bytea",): (b"\x00\xff" * 1300,),
    ("word text", "n2 bigint", "u uuid"): ("x" * 2600, 1, "00000000-0000-0000-0000-000000000000"),
}


@pytest.mark.parametrize("key", LONGEST, ids=str)
def test_the_longest_key_fits_and_a_longer_one_is_refused(tx: psycopg.Connection, key: tuple[str, ...]) -> None:
    make_queue(tx, key=key, buckets=1)
    longest = LONGEST[key]
    insert = sql.SQL("insert into pgcombine.wc_updates values ({}, 1)").format(
        sql.SQL(", ").join(sql.Placeholder() for _ in longest)
    )
    tx.execute(insert, longest)
    for _ in range(2):
        tx.execute(insert, longest)
    combine_all(tx)
    assert one(tx, "select n from pgcombine.wc_values") == 3
    longer = (longest[0] + (b"x" if isinstance(longest[0], bytes) else "x"), *longest[1:])
    with pytest.raises(psycopg.errors.CheckViolation):
        tx.execute(insert, longer)


@pytest.mark.wc(buckets=1)
def test_a_long_key_that_does_not_compress_can_be_combined(conn: psycopg.Connection) -> None:
    noise = one(conn, "select string_agg(md5(i::text), '') from generate_series(1, 81) i")
    add(conn, {noise: 1, noise + "x" * 8: 1})
    combine_all(conn)
    assert values(conn) == {noise: 1, noise + "x" * 8: 1}


def test_long_numeric_and_array_keys_are_refused_at_once(tx: psycopg.Connection) -> None:
    make_queue(tx, "num", key=["k numeric"], buckets=1)
    make_queue(tx, "arr", key=["k int[]"], buckets=1)
    tx.execute("insert into pgcombine.num_updates values (10::numeric ^ 4000 + 1, 1)")
    tx.execute("insert into pgcombine.arr_updates values (array_fill(1, array[600]), 1)")
    for queue in ("num", "arr"):
        combine_all(tx, queue)
        assert one(tx, "select pgcombine.backlog(%s)", queue) == 0
    for statement in (
        "insert into pgcombine.num_updates values (10::numeric ^ 8000 + 1, 1)",
        "insert into pgcombine.arr_updates values (array_fill(1, array[700]), 1)",
    ):
        with pytest.raises(psycopg.errors.CheckViolation), tx.transaction():
            tx.execute(statement)


def test_updates_and_values_of_a_key_are_in_the_same_bucket(tx: psycopg.Connection) -> None:
    make_queue(tx, key=["word text", "id bigint"], buckets=7)
    tx.execute("insert into pgcombine.wc_updates select 'w' || i, i, 1 from generate_series(1, 200) i")
    where = "select word, id, tableoid::regclass::text from pgcombine.{} order by 1, 2"
    placed = [
        (word, number, bucket_of(table)) for word, number, table in tx.execute(where.format("wc_updates")).fetchall()
    ]
    assert {bucket for *_, bucket in placed} == set(range(7))
    combine_all(tx)
    assert placed == [
        (word, number, bucket_of(table)) for word, number, table in tx.execute(where.format("wc_values")).fetchall()
    ]


def test_privilege_to_insert_suffices_to_enqueue(tx: psycopg.Connection, module_dsn: str, role: str) -> None:
    make_queue(tx)
    tx.execute(f"grant insert on pgcombine.wc_updates to {role}")
    with psycopg.connect(module_dsn, autocommit=True) as listener:
        for state in ("awake", "asleep"):
            if state == "asleep":
                make_queue(tx, "other")
                queue_id = one(tx, "select 'pgcombine.other_updates'::regclass::oid")
                assert one(listener, "select pgcombine_internal.take_idle_lock(%s)", queue_id) == "taken"
                tx.execute(f"grant insert on pgcombine.other_updates to {role}")
            tx.execute(f"set role {role}")
            queue = "wc" if state == "awake" else "other"
            assert enqueue(tx, {"word": state, "n": 1}, queue) == 1
            tx.execute(
                sql.SQL("insert into {} values ('x', 1)").format(sql.Identifier("pgcombine", f"{queue}_updates"))
            )
            with pytest.raises(psycopg.errors.InsufficientPrivilege), tx.transaction():
                rows(tx, f"{queue}_updates")
            tx.execute("reset role")
    combine_all(tx), combine_all(tx, "other")
    assert values(tx) == {"awake": 1, "x": 1}
    assert values(tx, "other") == {"asleep": 1, "x": 1}
