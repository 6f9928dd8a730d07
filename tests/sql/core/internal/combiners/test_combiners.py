"""Built-in combiners give the same value for updates in any order, whether one pass combines them or several."""

from __future__ import annotations

import datetime
import functools
import json
import math
import operator
import uuid
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from support.needs import does_not_apply
from support.queues import combine_all, make_queue, one, rows, write_values
from support.states import raises_state
from support.tiers import each_nth

CHECK = settings(
    max_examples=10,
    deadline=None,
    database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


def of_all(function: Callable[[Any, Any], Any]) -> Callable[[list[Any]], Any]:
    """A function that reduces a list by ``function``, and returns None for an empty list."""
    return lambda updates: functools.reduce(function, updates) if updates else None


def merged(a: Any, b: Any) -> Any:
    """Merge two documents of objects and numbers as jsonb_merge does."""
    if isinstance(a, dict) and isinstance(b, dict):
        return {key: merged(a[key], b[key]) if key in a and key in b else {**a, **b}[key] for key in {**a, **b}}
    if isinstance(a, dict) or isinstance(b, dict):
        return a if isinstance(a, dict) else b
    return max(a, b)


def union(arrays: list[Any]) -> Any:
    if not arrays:
        return None
    elements = {element for array in arrays for element in array}
    return sorted(elements - {None}) + [None] * (None in elements)


@dataclass
class Case:
    value: str  # type and combiner
    updates: st.SearchStrategy[Any]
    expected: Callable[[list[Any]], Any]  # returns the value for a list of updates without nulls


SMALL = st.integers(-1000, 1000)
LARGE = st.integers(-(2**40), 2**40)
MOMENTS = st.datetimes(datetime.datetime(1900, 1, 1), datetime.datetime(2100, 1, 1), timezones=st.just(datetime.UTC))
TEXTS = st.text(st.characters(codec="ascii", exclude_characters="\0"), max_size=3)
NAMES = st.sampled_from("ab")
BITS = st.integers(0, 255).map(lambda n: f"{n:08b}")


def bits(function: Callable[[int, int], int]) -> Callable[[list[str]], str | None]:
    combined = of_all(function)
    return lambda updates: f"{combined([int(update, 2) for update in updates]):08b}" if updates else None


CASES = [
    Case("smallint sum", st.integers(-100, 100), lambda u: sum(u) if u else None),
    Case("bigint sum", LARGE, lambda u: sum(u) if u else None),
    Case("numeric sum", st.decimals(-1000, 1000, places=3), lambda u: sum(u) if u else None),
    Case("double precision sum", SMALL.map(lambda n: n / 8), lambda u: sum(u) if u else None),  # eighths add up exactly
    Case("interval sum", SMALL.map(lambda n: datetime.timedelta(minutes=n)), of_all(operator.add)),
    Case("integer count", st.integers(1, 5), lambda u: sum(u) if u else None),
    Case("integer min", SMALL, lambda u: min(u, default=None)),
    Case("numeric max", st.decimals(-1000, 1000, places=1), lambda u: max(u, default=None)),
    Case('text collate "C" min', TEXTS, lambda u: min(u, default=None)),
    Case('text collate "C" max', TEXTS, lambda u: max(u, default=None)),
    Case("timestamptz max", MOMENTS, lambda u: max(u, default=None)),
    Case("double precision max", st.floats(allow_nan=False), lambda u: max(u, default=None)),
    Case("uuid min", st.uuids(), lambda u: min(u, default=None)),
    Case("uuid max", st.uuids(), lambda u: max(u, default=None)),
    Case("bytea max", st.binary(max_size=3), lambda u: max(u, default=None)),
    Case("boolean min", st.booleans(), lambda u: min(u, default=None)),
    Case("integer[] max", st.lists(SMALL, max_size=3), lambda u: max(u, default=None)),
    Case("boolean bool_and", st.booleans(), lambda u: all(u) if u else None),
    Case("boolean bool_or", st.booleans(), lambda u: any(u) if u else None),
    Case("integer bit_and", SMALL, of_all(operator.and_)),
    Case("bigint bit_or", LARGE, of_all(operator.or_)),
    Case("smallint bit_xor", SMALL, of_all(operator.xor)),
    Case("bit(8) bit_and", BITS, bits(operator.and_)),
    Case("bit(8) bit_or", BITS, bits(operator.or_)),
    Case("bit(8) bit_xor", BITS, bits(operator.xor)),
    Case("text[] array_union", st.lists(st.sampled_from(["a", "b", "c", None]), max_size=3), union),
    Case("integer[] array_union", st.lists(st.integers(0, 5), max_size=3), union),
    Case(
        "jsonb jsonb_merge",
        SMALL | st.dictionaries(NAMES, SMALL | st.dictionaries(NAMES, SMALL, max_size=2), max_size=2),
        of_all(merged),
    ),
]

PORTIONS = st.sampled_from([False, False, True])  # whether a pass runs after the update


def portions(conn: psycopg.Connection, insert: str, updates: list[tuple[Any, bool]]) -> None:
    """Delete the values, enqueue the updates, run a pass after each update whose flag is true, and combine the rest."""
    write_values(conn, "delete from pgcombine.wc_values")
    for update, passes in updates:
        conn.execute(insert, update if isinstance(update, tuple) else (update,))
        if passes:
            conn.execute("select pgcombine.combine('wc', 0)")
    combine_all(conn)


def same(found: Any, expected: Any) -> bool:
    return bool(found == expected) and (found is None) == (expected is None)


@pytest.mark.parametrize("case", each_nth(2, CASES), ids=lambda case: case.value)
def test_combiner_gives_the_same_value_in_one_pass_and_in_several(tx: psycopg.Connection, case: Case) -> None:
    make_queue(tx, value=[f"v {case.value}"], delete_when=None, buckets=1)
    kind = one(tx, "select type from pgcombine.queue_column where queue = 'wc' and name = 'v'")
    insert = "insert into pgcombine.wc_updates values ('k', %s::KIND)".replace("KIND", kind)
    dump = json.dumps if kind == "jsonb" else lambda value: value

    @CHECK
    @given(st.lists(st.tuples(st.none() | case.updates, PORTIONS), max_size=8), st.randoms())
    def check(updates: list[tuple[Any, bool]], random: Any) -> None:
        expected = case.expected([value for value, _ in updates if value is not None])
        written = [((None if value is None else dump(value),), end) for value, end in updates]
        random.shuffle(written)
        portions(tx, insert, written)
        found = [value for _, value in rows(tx, "wc_values")]
        assert found == rows_of_current(tx)
        assert len(found) == bool(updates)
        assert not found or same(found[0], expected), (found, expected)

    check()


LEAVES = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a", "b"])
DOCUMENTS = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["a", "b", ""]), inner, max_size=3),
    max_leaves=12,
)


def test_documents_are_merged_at_every_depth(tx: psycopg.Connection) -> None:
    def pair(a: Any, b: Any) -> Any:
        if isinstance(a, dict) and isinstance(b, dict):
            return {key: pair(a[key], b[key]) if key in a and key in b else {**a, **b}[key] for key in {**a, **b}}
        if isinstance(a, dict) or isinstance(b, dict):
            return a if isinstance(a, dict) else b
        return one(tx, "select greatest(%s::jsonb, %s::jsonb)", json.dumps(a), json.dumps(b))

    make_queue(tx, value=["v jsonb jsonb_merge"], delete_when=None, buckets=1)

    @CHECK
    @given(st.lists(st.tuples(DOCUMENTS, PORTIONS), min_size=1, max_size=6), st.randoms())
    def check(updates: list[tuple[Any, bool]], random: Any) -> None:
        expected = functools.reduce(pair, [value for value, _ in updates])
        written = [((json.dumps(value),), end) for value, end in updates]
        random.shuffle(written)
        portions(tx, "insert into pgcombine.wc_updates values ('k', %s::jsonb)", written)
        found = one(tx, "select v from pgcombine.wc_values")
        assert json.dumps(found, sort_keys=True) == json.dumps(expected, sort_keys=True)

    check()


def test_array_union_compares_elements_by_the_collation(tx: psycopg.Connection) -> None:
    try:
        with tx.transaction():
            tx.execute(
                "create collation public.loose (provider = icu, locale = 'und-u-ks-level2', deterministic = false)"
            )
    except psycopg.errors.FeatureNotSupported:
        pytest.skip("the server is built without ICU")
    value = ['c text[] collate "C" array_union', "l text[] collate public.loose array_union"]
    make_queue(tx, value=value, delete_when=None, buckets=1)
    for _ in range(2):
        tx.execute("insert into pgcombine.wc_updates values ('k', '{b,B}', '{b,a}'), ('k', '{a,null}', '{B,c,A}')")
        ((_, *shown),) = rows(tx, "wc_current")
        combine_all(tx)
        ((_, *combined),) = rows(tx, "wc_values")
        for binary, loose in (shown, combined):
            assert binary == ["B", "a", "b", None]
            assert [element.lower() for element in loose] == ["a", "b", "c"]


@pytest.mark.parametrize(
    ("value", "update", "expected"),
    [
        ("jsonb jsonb_merge", "jsonb_build_object('a' || i, i, 'b', jsonb_build_object('c' || i, i), 'd', i)", 2002),
        ("int[] array_union", "array[i, -i, 0]", 4001),
    ],
)
def test_pass_combines_many_updates_of_a_key_with_few_calls(
    tx: psycopg.Connection, value: str, update: str, expected: int
) -> None:
    """One call for each update would take quadratic time."""
    tx.execute("set track_functions = 'all'")
    make_queue(tx, value=[f"v {value}"], delete_when=None, buckets=1)
    calls = (
        "select coalesce(sum(calls), 0) from pg_stat_xact_user_functions"
        " where funcname in ('jsonb_merge', 'array_union')"
    )
    for _ in range(2):
        tx.execute(f"insert into pgcombine.wc_updates select 'k', {update} from generate_series(1, 2000) i")  # noqa: S608
        with tx.transaction():
            before = one(tx, calls)
            tx.execute("select pgcombine.combine('wc', 0)")
            assert one(tx, calls) - before < 10
    size = "(select count(*) from jsonb_object_keys(v))" if "jsonb" in value else "cardinality(v)"
    assert one(tx, f"select {size} from pgcombine.wc_values") == expected  # noqa: S608


def rows_of_current(conn: psycopg.Connection) -> list[Any]:
    return [value for _, value in rows(conn, "wc_current")]


@pytest.mark.parametrize("which", ["last", "first"])
def test_last_and_first_ignore_the_order_of_updates(tx: psycopg.Connection, which: str) -> None:
    keeper = {"last": "max", "first": "min"}[which]
    make_queue(
        tx,
        value=[
            f'status text collate "C" {which}(at)',
            f"at timestamptz {keeper}",
            f"place int {which}(at)",
            "n int count",
        ],
        delete_when=None,
        buckets=1,
    )
    moments = st.sampled_from([None, *(datetime.datetime(2024, 1, day, tzinfo=datetime.UTC) for day in (1, 2, 3))])
    update = st.tuples(st.sampled_from([None, "a", "b", "c"]), moments, st.sampled_from([None, 1, 2]))

    def rank(update: tuple[Any, ...]) -> tuple[Any, ...]:
        """The sort key of an update. The update with the greatest sort key wins."""
        status, at, place = update
        sign = 1 if which == "last" else -1
        return (
            -math.inf if at is None else sign * at.timestamp(),
            -math.inf if status is None else sign * ord(status),
            -math.inf if place is None else sign * place,
        )

    @CHECK
    @given(st.lists(st.tuples(update, PORTIONS), min_size=1, max_size=8), st.randoms())
    def check(updates: list[tuple[Any, bool]], random: Any) -> None:
        status, at, place = max((update for update, _ in updates), key=rank)
        random.shuffle(updates)
        portions(tx, "insert into pgcombine.wc_updates values ('k', %s, %s, %s)", updates)
        expected = [("k", status, at, place, len(updates))]
        assert rows(tx, "wc_values") == expected
        assert rows(tx, "wc_current") == expected

    check()


def test_last_keeps_the_latest_of_many_updates(tx: psycopg.Connection) -> None:
    make_queue(tx, value=["v text last(at)", "at int max"], delete_when=None, buckets=1, pass_limit=500)
    numbers = "(select i from generate_series(1, 5000) i order by md5(i::text)) as shuffled"
    tx.execute(f"insert into pgcombine.wc_updates select 'k', 'v' || i, i from {numbers}")  # noqa: S608
    assert rows(tx, "wc_current") == [("k", "v5000", 5000)]
    combine_all(tx)
    assert rows(tx, "wc_values") == [("k", "v5000", 5000)]


@pytest.mark.parametrize(("kind", "values"), [("json", ['{"b": 1}', '{"a": 2}']), ("point", ["(1,2)", "(0,1)"])])
def test_last_accepts_types_without_order_or_equality(tx: psycopg.Connection, kind: str, values: list[str]) -> None:
    make_queue(tx, value=[f"v {kind} last(at)", "at int max"], delete_when=None, buckets=1)
    insert = "insert into pgcombine.wc_updates values ('k', %s::text::KIND, %s)".replace("KIND", kind)
    found = "select v::text, at from pgcombine.wc_values"
    tx.execute(insert, (values[1], 1))
    assert tx.execute("select changes from pgcombine.combine('wc', 0)").fetchall() == [(1,)]
    tx.execute(insert, (values[1], 1))
    assert tx.execute("select changes from pgcombine.combine('wc', 0)").fetchall() == [(0,)]
    tx.execute(insert, (values[0], 1))  # the times are equal, so the greater text wins
    tx.execute("select pgcombine.combine('wc', 0)")
    assert tx.execute(found).fetchall() == [(max(values), 1)]
    tx.execute(insert, (min(values), 2))
    tx.execute("select pgcombine.combine('wc', 0)")
    assert tx.execute(found).fetchall() == [(min(values), 2)]


def test_a_tombstone_withstands_late_updates(tx: psycopg.Connection) -> None:
    """A deleted key keeps the time of its deletion, so an older update doesn't bring it back."""
    make_queue(
        tx,
        key=["id int"],
        value=["status text last(at)", "deleted boolean last(at)", "at timestamptz max"],
        delete_when=None,
        buckets=1,
    )
    tx.execute("create view alive as select id, status from pgcombine.wc_current where not coalesce(deleted, false)")
    insert = "insert into pgcombine.wc_updates (id, status, deleted, at) values (%s, %s, %s, %s)"
    for update in [(1, "new", False, "2024-01-01"), (1, None, True, "2024-01-03"), (1, "late", False, "2024-01-02")]:
        tx.execute(insert, update)
        combine_all(tx)
    assert tx.execute("select * from alive").fetchall() == []
    tx.execute(insert, (1, "again", False, "2024-01-04"))
    assert tx.execute("select * from alive").fetchall() == [(1, "again")]


def test_late_update_restores_a_deleted_key_and_create_queue_warns(tx: psycopg.Connection) -> None:
    notices: list[str] = []
    tx.add_notice_handler(lambda notice: notices.append(f"{notice.severity} {notice.message_primary}"))
    value = ["deleted boolean last(at)", "at int max"]
    make_queue(tx, key=["id int"], value=value, delete_when="deleted", buckets=1)
    assert [notice.split(" holds ")[0] for notice in notices] == ["WARNING delete_when 'deleted' of queue \"wc\""]
    for update in [(1, False, 1), (1, True, 3), (1, False, 2)]:
        tx.execute("insert into pgcombine.wc_updates values (%s, %s, %s)", update)
        combine_all(tx)
    assert rows(tx, "wc_values") == [(1, False, 2)]


@pytest.mark.parametrize(
    "value",
    [
        ["v text last"],
        ["v text last(at)"],
        ["v text last(word)"],
        ["v text last(at)", "at int min"],
        ["v text first(at)", "at int max"],
        ["v text last(v)"],
        ["v int sum(at)", "at int max"],
        ["v text sum"],
        ["v text bool_or"],
        ["v int array_union"],
        ["v json[] array_union"],
        ["v json jsonb_merge"],
        ["v varbit bit_or"],
        ["v point max"],
    ],
)
def test_wrong_combiners_are_refused(auto: psycopg.Connection, value: list[str]) -> None:
    with raises_state("PC003"):
        make_queue(auto, value=value, delete_when=None)


@pytest.mark.parametrize(
    ("value", "delete_when", "warned"),
    [
        (["n bigint sum"], "n = 0", False),
        (["n bigint sum"], "n is null", False),
        (["n bigint sum"], "n <= 0", True),
        (["n bigint sum"], "n = 1", True),
        (["n bigint sum", "m int sum"], "n = 0 and m = 0", False),
        (["n bigint sum", "m int sum"], "n = 0", True),
        (["n bigint sum", "at date max"], "n = 0", True),
        (["n bigint sum"], "case when n = 0 then false else 10 / n < 0 end", True),
        (["n bigint sum"], "10 / n < 0", False),  # the condition raises an error for n = 0
        (["b boolean bool_or"], "not b", False),
        (["b boolean bool_and"], "not b", True),
        (["t text[] array_union"], "t = '{}'", False),
        (["n int max"], "n = 0", True),
    ],
)
def test_create_queue_warns_of_delete_when_that_loses_values(
    tx: psycopg.Connection, value: list[str], delete_when: str, warned: bool
) -> None:
    notices: list[str] = []
    tx.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    make_queue(tx, value=value, delete_when=delete_when, buckets=1)
    assert [notice[:11] for notice in notices] == ["delete_when"] * warned, notices


def test_create_queue_warns_of_sums_of_floating_point_numbers(tx: psycopg.Connection) -> None:
    notices: list[str] = []
    tx.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    make_queue(tx, value=["a real sum", "b float8 sum", "c numeric sum", "d float8 max"], delete_when=None, buckets=1)
    assert [notice.split(" depend ")[0] for notice in notices] == [
        'sums of real in column "a"',
        'sums of float8 in column "b"',
    ]


@pytest.mark.parametrize("extension", ["hll", "tdigest"])
def test_sketches_are_combined_if_the_extension_exists(tx: psycopg.Connection, extension: str) -> None:
    if not one(tx, "select count(*) from pg_available_extensions where name = %s", extension):
        does_not_apply(f"the server has no extension {extension}")
    tx.execute(f"create schema ext; create extension {extension} schema ext")
    tx.execute("set search_path = ext")
    make_queue(tx, value=[f"v {extension} {extension}"], delete_when=None, buckets=1)
    tx.execute("set search_path = ''")  # a pass needs no search path to find the extension
    part = {
        "hll": "(select ext.hll_add_agg(ext.hll_hash_integer(i)) from generate_series(%s::int, %s) i)",
        "tdigest": "(select ext.tdigest(i, 100) from generate_series(%s::int, %s) i)",
    }[extension]
    insert = "insert into pgcombine.wc_updates values ('k', PART)".replace("PART", part)
    portions(
        tx, insert, [((1, 400), True), ((301, 700), False), ((601, 1000), True), ((1, 10), False), ((990, 1000), False)]
    )
    tx.execute("insert into pgcombine.wc_updates values ('k', null)")
    assert tx.execute("select changes from pgcombine.combine('wc', 0)").fetchall() == [(0,)]
    tx.execute("set search_path = ext")
    if extension == "hll":
        assert one(
            tx,
            "select v = (select hll_add_agg(hll_hash_integer(i)) from generate_series(1, 1000) i)"
            " from pgcombine.wc_values",
        )
    else:
        assert one(tx, "select tdigest_count(v) from pgcombine.wc_values") == 400 + 400 + 400 + 10 + 11
        middle = one(tx, "select (tdigest_percentile(v, 0.5))::float8 from pgcombine.wc_values group by word")
        assert 450 < middle < 550


def test_condition_on_the_key_prunes_partitions_of_current(tx: psycopg.Connection) -> None:
    make_queue(tx, value=["v text last(at)", "at int max"], delete_when=None, buckets=8)
    plan = "\n".join(line for (line,) in tx.execute("explain select * from pgcombine.wc_current where word = 'a'"))
    assert plan.count("wc_updates_b") == 4, plan  # one partition in each of the four segments
    assert plan.count("wc_values_b") in (1, 2), plan  # the line of an index scan has it twice


def test_combiners_accept_domains(tx: psycopg.Connection) -> None:
    tx.execute("create domain public.amount as numeric(10, 2) check (value > -100)")
    tx.execute("create domain public.more as public.amount")
    make_queue(tx, value=["a more sum", "b more max"], delete_when=None, buckets=1)
    tx.execute("insert into pgcombine.wc_updates values ('k', 1.25, 3), ('k', 2.5, 4)")
    combine_all(tx)
    assert rows(tx, "wc_values") == [("k", Decimal("3.75"), Decimal(4))]


def test_overflow_within_a_pass_raises_and_keeps_updates(conn: psycopg.Connection) -> None:
    make_queue(conn, value=["n smallint sum"], buckets=1)
    conn.execute("insert into pgcombine.wc_updates values ('a', 30000), ('a', 30000), ('b', 1)")
    with pytest.raises(psycopg.errors.NumericValueOutOfRange):
        conn.execute("select pgcombine.combine('wc', 0)")
    assert one(conn, "select sum(n) from pgcombine.wc_pending") == 60001
    assert rows(conn, "wc_values") == []


def test_max_of_uuid_follows_the_order_of_the_type(tx: psycopg.Connection) -> None:
    """Some versions of PostgreSQL have no max(uuid)."""
    make_queue(tx, value=["v uuid max"], delete_when=None, buckets=1)
    ids = [uuid.UUID(int=n) for n in (1, 2**127, 2**127 - 1)]
    tx.cursor().executemany("insert into pgcombine.wc_updates values ('k', %s)", [(i,) for i in ids])
    combine_all(tx)
    assert rows(tx, "wc_values") == [("k", ids[1])]
