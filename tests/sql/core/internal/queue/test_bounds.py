"""Large values: large updates are refused, passes take a limited size, and keys that grow too large are quarantined."""

from __future__ import annotations

from contextlib import suppress

import psycopg
import pytest
from psycopg import sql
from support.queues import combine_all, make_queue, one, rows

MEGABYTE = 1 << 20
LARGE = {  # a value column, and an expression whose result has about n bytes
    "v text max": "repeat('x', n)",
    "v varchar max": "repeat('x', n)",
    "v bytea min": "convert_to(repeat('x', n), 'UTF8')",
    "v jsonb jsonb_merge": "jsonb_build_object('a', repeat('x', n))",
    "v json last(at)": "json_build_object('a', repeat('x', n))",
    "v int[] array_union": "array_fill(1, array[n / 4])",
    "v text[] array_union": "array[repeat('x', n)]",
    "v public.words public.longer": "repeat('x', n)::public.words",
}
BOUND = "update_has_at_most_1_megabyte"  # the constraint


def make(tx: psycopg.Connection, value: str, **options: object) -> None:
    tx.execute("create domain words as text")
    tx.execute(
        "create function longer(a words, b words) returns words immutable strict language sql"
        " return case when (length(a), a) > (length(b), b) then a else b end"
    )
    values = [value, "at int max"] if "(at)" in value else [value]
    make_queue(tx, value=values, delete_when=None, **options)  # type: ignore[arg-type]


def put(tx: psycopg.Connection, expression: str, size: int, word: str = "a") -> None:
    tx.execute(
        sql.SQL("insert into pgcombine.wc_updates (word, v) select {}, {} from (select {} as n) s").format(
            word, sql.SQL(expression), size
        )
    )


@pytest.mark.parametrize("value", LARGE)
def test_an_update_of_more_than_a_megabyte_is_refused(tx: psycopg.Connection, value: str) -> None:
    """The uncompressed size counts, even if a compressed value is copied from another table."""
    make(tx, value)
    put(tx, LARGE[value], MEGABYTE - 100)
    with pytest.raises(psycopg.errors.CheckViolation, match=BOUND):
        put(tx, LARGE[value], MEGABYTE + 100)
    source = f"create table source as select {LARGE[value]} as v from (select {MEGABYTE} + 100 as n) s"  # noqa: S608
    tx.execute(source.encode())
    assert one(tx, "select pg_column_size(v) from source") < MEGABYTE / 10
    with pytest.raises(psycopg.errors.CheckViolation, match=BOUND):
        tx.execute("insert into pgcombine.wc_updates (word, v) select 'a', v from source")
    combine_all(tx)
    assert one(tx, "select count(*) from pgcombine.wc_values") == 1


@pytest.mark.parametrize("value", ["n numeric sum", "n bigint sum", "n varchar(100) max", "n bit(8) bit_or"])
def test_types_of_bounded_size_have_no_check(tx: psycopg.Connection, value: str) -> None:
    make_queue(tx, value=[value], delete_when=None)
    assert one(tx, "select count(*) from pg_constraint where conname ~ 'megabyte'") == 0


def nested(levels: int) -> str:
    return '{"a": ' * (levels - 2) + '{"b": [1]}' + "}" * (levels - 2)


def test_a_document_of_many_levels_is_refused(tx: psycopg.Connection) -> None:
    make_queue(tx, value=["v jsonb jsonb_merge"], delete_when=None)
    for enqueue in (
        "insert into pgcombine.wc_updates (word, v) values ('a', %s)",
        "select pgcombine.wc_enqueue(array['a', 'b'], array[%s::jsonb, '{}'])",
    ):
        tx.execute(enqueue, (nested(64),))
        with pytest.raises(psycopg.errors.CheckViolation):
            tx.execute(enqueue, (nested(65),))
        with pytest.raises(psycopg.errors.CheckViolation):
            tx.execute(enqueue, ("[" * 900 + "]" * 900,))
    combine_all(tx)
    assert one(tx, "select v::text from pgcombine.wc_values where word = 'a'") == nested(64)


def test_upgrade_keeps_rows_beyond_the_bound(tx: psycopg.Connection) -> None:
    """An upgrade calls ``regenerate``, which adds the bound to queues without it."""
    make_queue(tx, value=["v text max"], delete_when=None, buckets=1)
    for table in ("updates", "values"):
        tx.execute(f"alter table pgcombine.wc_{table} rename to it")
        tx.execute(
            "do $$ begin execute (select format('alter table pgcombine.it drop constraint %I', conname)"
            " from pg_constraint where conrelid = 'pgcombine.it'::regclass and conname ~ 'megabyte'); end $$"
        )
        tx.execute(f"alter table pgcombine.it rename to wc_{table}")
    put(tx, "repeat('x', n)", 17 * MEGABYTE)
    combine_all(tx)
    put(tx, "repeat('x', n)", 2 * MEGABYTE, word="b")
    tx.execute("select pgcombine_internal.regenerate('wc')")
    with pytest.raises(psycopg.errors.CheckViolation, match=BOUND):
        put(tx, "repeat('x', n)", 2 * MEGABYTE)
    put(tx, "'a'", 0)
    combine_all(tx)
    assert [len(v) for _, v in rows(tx, "wc_values")] == [17 * MEGABYTE, 2 * MEGABYTE]
    assert tx.execute("select problem from pgcombine.verify('wc')").fetchall() == []


def test_key_with_a_value_beyond_16_megabytes_is_quarantined(tx: psycopg.Connection) -> None:
    make_queue(tx, value=["v jsonb jsonb_merge"], delete_when=None, buckets=1)
    document = "jsonb_build_object(n::text, repeat('x', 1000000))"
    for part in range(16):
        put(tx, document, part)
    combine_all(tx)
    put(tx, document, 17)
    put(tx, document, 17, word="b")
    with pytest.raises(psycopg.errors.CheckViolation):
        combine_all(tx)
    assert one(tx, "select quarantined from pgcombine_internal.bisect('wc', 0, 5)") == 1
    combine_all(tx)
    held = tx.execute("select key, updates, error from pgcombine.quarantine").fetchall()
    assert [(key, updates) for key, updates, _ in held] == [({"word": "a"}, 1)]
    assert "value_has_at_most_16_megabytes_and_64_levels" in held[0][2]
    lengths = tx.execute("select word, length(v::text) / 1000000 from pgcombine.wc_values order by 1").fetchall()
    assert lengths == [("a", 16), ("b", 1)]


def test_a_pass_takes_about_64_megabytes(tx: psycopg.Connection) -> None:
    """If more is pending, a pass takes a part of the keys, and all updates of these keys."""
    make_queue(tx, value=["v jsonb jsonb_merge"], delete_when=None, buckets=1)
    tx.execute(
        "insert into pgcombine.wc_updates (word, v)"
        " select 'w' || i % 60, jsonb_build_object(i, repeat('x', 700000)) from generate_series(1, 180) i"
    )
    done = combine_all(tx)
    taken = [updates for _, updates, *_ in done if updates]
    assert sum(taken) == 180
    assert len(taken) > 2
    assert max(taken) * 700_000 < 1.1 * 64 * MEGABYTE
    wrong = "select count(*) from pgcombine.wc_values where (select count(*) from jsonb_object_keys(v)) <> 3"
    assert (one(tx, "select count(*) from pgcombine.wc_values"), one(tx, wrong)) == (60, 0)
    add_small = "insert into pgcombine.wc_updates (word, v) select 'w' || i, '{\"a\": 1}' from generate_series(1, 80) i"
    tx.execute(add_small)
    assert sum(updates for _, updates, *_ in combine_all(tx)) == 80


@pytest.mark.parametrize("value", ["v jsonb jsonb_merge", "v text[] array_union"])
def test_a_key_with_too_many_bytes_is_quarantined(tx: psycopg.Connection, value: str) -> None:
    make_queue(tx, value=[value], delete_when=None, buckets=1)
    document = "jsonb_build_object('a', repeat('x', 1000000))" if "jsonb" in value else "array[repeat('x', 1000000)]"
    insert = "insert into pgcombine.wc_updates select {}, {} from generate_series(1, {}) i"
    for word, count in (("'a'", 280), ("'w' || i", 3)):
        tx.execute(sql.SQL(insert).format(sql.SQL(word), sql.SQL(document), count))
    with pytest.raises(psycopg.errors.ProgramLimitExceeded):
        combine_all(tx)
    while not one(tx, "select quarantined from pgcombine_internal.bisect('wc', 0, 5)"):
        with suppress(psycopg.errors.ProgramLimitExceeded):
            combine_all(tx)  # the search has tried other keys
    combine_all(tx)
    held = tx.execute("select key, updates, sqlstate from pgcombine.quarantine").fetchall()
    assert held == [({"word": "a"}, 280, "54000")]
    assert [word for word, _ in rows(tx, "wc_values")] == ["w1", "w2", "w3"]


def test_rebucket_keeps_the_bounds(tx: psycopg.Connection) -> None:
    make(tx, "v jsonb jsonb_merge", buckets=4)
    call = f"select pgcombine.wc_enqueue(array_agg('w' || i), array_agg({LARGE['v jsonb jsonb_merge']}))"
    call += " from generate_series(1, 3) i, (select {} as n) s"
    for buckets in (1, 2, 1):
        one(tx, call.format(7))
        tx.execute("select pgcombine.rebucket('wc', %s)", (buckets,))
        assert one(tx, call.format(7)) == 3
        with pytest.raises(psycopg.errors.CheckViolation, match=BOUND):
            put(tx, LARGE["v jsonb jsonb_merge"], MEGABYTE)
        with pytest.raises(psycopg.errors.CheckViolation, match=BOUND):
            one(tx, call.format(MEGABYTE))
        assert one(tx, call.format(MEGABYTE // 2)) == 3
        combine_all(tx)
        assert tx.execute("select problem from pgcombine.verify('wc')").fetchall() == []
    bounds = "select conrelid::regclass::text from pg_constraint where conname ~ 'megabyte' and coninhcount = 0"
    found = {name for (name,) in tx.execute(bounds)}
    assert found == {"pgcombine.wc_updates", "pgcombine.wc_values"}
