"""Users' functions and aggregates as combiners.

create_queue finds the function by name, checks it on sample values, and makes an aggregate that folds updates with it.
Queues with the same combiner share the aggregate. drop_queue drops it with the last of these queues.
"""

from __future__ import annotations

import psycopg
import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.types.multirange import Int4Multirange
from psycopg.types.range import Int4Range
from support.queues import combine_all, make_queue, one, rows
from support.states import raises_state

from pgcombine import schema

from .test_combiners import CHECK, PORTIONS, portions

OWN = """
    create schema my;
    -- saturating addition; it isn't strict, so a fold that passed nulls to it would lose the sum
    create function my.add(a int, b int) returns int language sql immutable as 'select least(a + b, 100)';
    create function my.add0(a int, b int) returns int language sql as 'select coalesce(a, 1000) + coalesce(b, 1000)';
    create function my.minus(a int, b int) returns int language sql as 'select a - b';
    create function my.left(a int, b int) returns int language sql as 'select a';
    create function my.mean(a float8, b float8) returns float8 language sql strict as 'select (a + b) / 2';
    create function my.as_text(a int, b int) returns text language sql as 'select a::text || b';
    create function my.three(a int, b int, c int) returns int language sql as 'select a + b + c';
    create function my.nothing(a int, b int) returns int language sql as 'select null::int';
    create function my.picky(a int, b int) returns int language plpgsql strict as
        $$begin if a < 0 or b < 0 then raise 'negative'; end if; return greatest(a, b); end$$;
    create function my.never(a int, b int) returns int language plpgsql strict as $$begin raise 'never'; end$$;
    create aggregate my.product(numeric) (sfunc = numeric_mul, stype = numeric);
    create aggregate my.plus_one(int) (sfunc = int4pl, stype = int, initcond = 1);
    create aggregate my.absolute(int) (sfunc = int4pl, stype = int, initcond = 0, finalfunc = int4abs);
    create function my."Odd %I name"(a text, b text) returns text language sql strict as 'select greatest(a, b)';
    create type my.pair as (a int, b int);
    create function my.sum_pairs(x my.pair, y my.pair) returns my.pair language sql strict immutable as
        'select row(x.a + y.a, x.b + y.b)::my.pair';
    create domain my.score as int;
    create function my.best(a my.score, b my.score) returns my.score language sql strict as 'select greatest(a, b)';
"""


@pytest.fixture
def my(tx: psycopg.Connection) -> psycopg.Connection:
    """``tx`` with functions and aggregates in the schema my, which isn't on the search path."""
    tx.execute(OWN)
    return tx


def combiners(conn: psycopg.Connection) -> list[str]:
    return [name for (name,) in conn.execute("select combiner from pgcombine.combiner where function is not null")]


def made(conn: psycopg.Connection) -> int:
    """The number of functions and aggregates that pgcombine made in order to fold updates."""
    return one(conn, "select count(*) from pg_proc where proname ~ '^fold_.*_[0-9a-f]{8}$'")


@pytest.mark.parametrize(
    ("value", "updates", "combined", "name"),
    [
        ("int my.add", ["70", "40", None], "100", "my.add(integer, integer)"),
        ("int my.add0", ["1", "2", None], "3", "my.add0(integer, integer)"),
        ("numeric my.product", ["3", None, "1.5"], "4.5", "my.product(numeric)"),
        ('text my."Odd %I name"', ["a", "b"], "b", 'my."Odd %I name"(text, text)'),
        ('varchar(3) my."Odd %I name"', ["a", "b"], "b", 'my."Odd %I name"(text, text)'),
        ("my.pair my.sum_pairs", ["(1,2)", "(3,4)", None], "(4,6)", "my.sum_pairs(my.pair, my.pair)"),
        ("my.score my.best", ["1", "2"], "2", "my.best(my.score, my.score)"),
        ("my.score my.add", ["1", "2"], "3", "my.add(integer, integer)"),
        ("bigint gcd", ["12", "18", None], "6", "pg_catalog.gcd(bigint, bigint)"),
        ("bigint pg_catalog.lcm", ["4", "6"], "12", "pg_catalog.lcm(bigint, bigint)"),
        ("bigint PG_Catalog.MAX", ["4", "6"], "6", "pg_catalog.max(bigint)"),
        ("int4multirange range_agg", ["{[1,3)}", "{[2,5)}"], "{[1,5)}", "pg_catalog.range_agg(int4multirange)"),
        ("int4range range_merge", ["[1,2)", "[5,6)"], "[1,6)", "pg_catalog.range_merge(int4range, int4range)"),
        ("my.pair last(at)", ["(1,2)"], "(1,2)", None),
    ],
)
def test_functions_and_aggregates_work_as_combiners(
    my: psycopg.Connection, value: str, updates: list[str | None], combined: str, name: str | None
) -> None:
    make_queue(my, value=[f"v {value}", "at int max"], delete_when=None, buckets=1)
    assert combiners(my) == ([name] if name else [])
    kind = one(my, "select type from pgcombine.queue_column where queue = 'wc' and name = 'v'")
    my.cursor().executemany(
        "insert into pgcombine.wc_updates values ('k', %s::text::KIND)".replace("KIND", kind), [(u,) for u in updates]
    )
    current = one(my, "select v::text from pgcombine.wc_current")
    combine_all(my)
    assert one(my, "select v::text from pgcombine.wc_values") == current == combined
    my.execute("insert into pgcombine.wc_updates values ('k', null)")
    assert my.execute("select changes from pgcombine.combine('wc', 0)").fetchall() == [(0,)]


@pytest.mark.parametrize(
    ("value", "reason"),
    [
        ("int my.minus", "not commutative"),
        ("text textcat", "not commutative"),
        ("int my.left", "not commutative"),
        ("float8 my.mean", "not associative"),
        ("numeric(6,1) my.product", "not associative"),  # rounds each product
        ("numeric avg", "not associative"),
        ("int my.nothing", "null"),
        ("int my.plus_one", "'0'"),
        ("int my.absolute", "not associative"),
        ("int my.as_text", "text"),
        ("int my.three", "my.three"),
        ("int my.no", "my.no"),
        ("int no.where", "no.where"),
        ("text my.add", "my.add"),
        ("int add", "add"),  # unqualified
        ("int my.add(at)", "my.add"),
        ("json my.add", "my.add"),
        ("int array_cat", "array_cat"),
    ],
)
def test_unsuitable_functions_are_refused(my: psycopg.Connection, value: str, reason: str) -> None:
    with raises_state("PC003", reason), my.transaction():
        make_queue(my, value=[f"v {value}", "at int max"], delete_when=None, buckets=1)
    assert combiners(my) == []
    assert made(my) == 0


def test_check_skips_samples_that_the_function_refuses(my: psycopg.Connection) -> None:
    notices: list[str] = []
    my.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
    make_queue(my, value=["v int my.picky"], delete_when=None, buckets=1)
    assert notices == []
    make_queue(my, "none", value=["v int my.never"], delete_when=None, buckets=1)
    assert notices == ['combiner "my.never(integer, integer)" of column "v" wasn\'t checked: never']


def test_function_gives_the_same_value_in_one_pass_and_in_several(my: psycopg.Connection) -> None:
    make_queue(my, value=["v int4multirange multirange_union"], delete_when=None, buckets=1)
    ranges = st.sets(st.integers(0, 20), max_size=5)

    @CHECK
    @given(st.lists(st.tuples(ranges, PORTIONS), min_size=1, max_size=8))
    def check(updates: list[tuple[set[int], bool]]) -> None:
        expected = Int4Multirange([Int4Range(n, n + 1) for n in set().union(*(numbers for numbers, _ in updates))])
        written = [((Int4Multirange([Int4Range(n, n + 1) for n in numbers]),), passes) for numbers, passes in updates]
        portions(my, "insert into pgcombine.wc_updates values ('k', %s)", written)
        assert one(my, "select v = %s::int4multirange from pgcombine.wc_values", expected)

    check()


def test_queue_keeps_the_function_that_create_queue_found(my: psycopg.Connection) -> None:
    my.execute("set search_path = my, public")
    make_queue(my, value=["v int add"], delete_when=None, buckets=1)
    my.execute("create schema other; create function other.add(a int, b int) returns int language sql as 'select 0'")
    my.execute("set search_path = other, public")
    my.execute("insert into pgcombine.wc_updates values ('k', 1), ('k', 2)")
    combine_all(my)
    my.execute("insert into pgcombine.wc_updates values ('k', 4)")
    combine_all(my)
    assert rows(my, "wc_values") == rows(my, "wc_current") == [("k", 7)]


def test_fold_functions_are_dropped_with_the_last_queue(my: psycopg.Connection) -> None:
    for queue in ("a", "b"):
        make_queue(
            my, queue, value=["v int my.add", "w bigint gcd", "p numeric my.product"], delete_when=None, buckets=1
        )
    assert len(combiners(my)) == 3
    assert made(my) == 3  # aggregates for add and gcd, and a strict wrapper of add
    my.execute("select pgcombine.drop_queue('a')")
    assert len(combiners(my)) == 3
    my.execute("insert into pgcombine.b_updates values ('k', 1, 2, 3)")
    combine_all(my, "b")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist), my.transaction():
        my.execute("drop function my.add")
    my.execute("select pgcombine.drop_queue('b')")
    assert combiners(my) == []
    assert made(my) == 0
    my.execute("drop function my.add")


def test_upgrade_recreates_fold_functions(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(OWN)
        make_queue(conn, value=["v int my.add", "r int4range range_merge"], delete_when=None, buckets=1)
        conn.execute("update pgcombine.combiner set fold = '' where function is not null")
    schema.upgrade(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn:
        assert made(conn) == 3
        conn.execute("insert into pgcombine.wc_updates values ('k', 1, '[1,2)'), ('k', 2, '[4,5)')")
        combine_all(conn)
        assert rows(conn, "wc_values") == [("k", 3, Int4Range(1, 5))]


def test_column_definition_recreates_the_same_queue(my: psycopg.Connection) -> None:
    value = [
        'v text collate "C" last(at)',
        "at integer max",
        'o text my."Odd %I name"',
        "n numeric(6,1) sum",
        "p numeric my.product",
    ]
    make_queue(my, value=value, delete_when=None, buckets=1)
    found = my.execute(
        "select pgcombine_internal.column_definition(c) from pgcombine.queue_column c where role = 'value' "
        "order by position"
    ).fetchall()
    assert [definition for (definition,) in found] == value
    make_queue(my, "again", value=[definition for (definition,) in found], delete_when=None, buckets=1)


def test_reader_may_run_fold_functions(conn: psycopg.Connection) -> None:
    if one(conn, "select count(*) from pg_roles where rolname = 'pgcombine_reader'"):
        conn.execute("drop role pgcombine_reader")
    conn.execute(OWN)
    make_queue(conn, value=["v int my.add"], delete_when=None, buckets=1)
    conn.execute("insert into pgcombine.wc_updates values ('k', 1), ('k', 2)")
    conn.execute("create role pgcombine_reader")
    try:
        conn.execute("grant select on pgcombine.wc_current to pgcombine_reader")
        conn.execute("grant usage on schema my to pgcombine_reader")
        conn.execute("set role pgcombine_reader")
        assert rows(conn, "wc_current") == [("k", 3)]
    finally:
        conn.execute("reset role")
        conn.execute("drop owned by pgcombine_reader")
        conn.execute("drop role pgcombine_reader")
