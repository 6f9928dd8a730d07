"""``create_rollup``: definitions that it refuses, and rollups with columns of many kinds."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest
from support.needs import does_not_apply
from support.queues import one
from support.rollups import Rollup
from support.states import raises_state

LONG = "r" * 41


@pytest.mark.parametrize(
    ("given", "hint"),
    [
        ({"source": "seen"}, "join the others when you read"),
        ({"source": "brief"}, "a rollup of one table"),
        ({"source": "part"}, "make the rollup of whole"),
        ({"source": "heir"}, "make the rollup of src"),
        ({"key": []}, "customer"),
        ({"value": []}, "customer"),
        ({"key": ["sum(v) as x"]}, "name it in value"),
        ({"value": ["v"]}, r"max\(…\)"),
        ({"value": ["count(*) + 1"]}, r"name it: 'count\(\*\) \+ 1 as …'"),
        ({"key": ["k, v"]}, "one expression"),
        ({"key": ["(select min(v) from other) as x"]}, "join the other table"),
        ({"key": ["src.ctid::text as x"]}, "columns of the table"),
        ({"value": ["max(src::text) as x"]}, "columns of the table"),
        ({"value": ["sum("]}, "as in a select list"),
        ({"key": ["nope"]}, "as in a select list"),
        ({"key": ["date_trunc('day', at) as day"]}, "'UTC'"),
        ({"value": ["max(at::text) as x"]}, "as an index does"),
        ({"value": ["string_agg(at::text, ',') as x"]}, "as an index does"),
        ({"value": ["jsonb_agg(at order by at) as x"]}, "as an index does"),
        ({"value": ["jsonb_agg(v) as x"]}, "order by"),
        ({"value": ["any_value(v) as x"]}, "order by"),
        ({"value": ["count((id, v)) as x"]}, "one column"),
        ({"value": ["count(distinct current_user) as x"]}, "as an index does"),
        ({"filter": "at > now()"}, "as an index does"),
        ({"filter": "v + 1"}, "for example"),
        ({"filter": "count(*) > 1"}, "for example"),
        ({"keep": "at"}, "90 days"),
        ({"keep": "count(*) > 1"}, "90 days"),
        ({"keep": "at < clock_timestamp()"}, r"use now\(\)"),
        ({"keep": "nope < 1"}, "as in a select list"),
        ({"keep": "v in (select v from other)"}, "join the other table"),
        ({"slice_by": "nope"}, "name an indexed column"),
        ({"key": ["k", "v as k"]}, "name"),
        ({"value": ["count(*) as k"]}, "name"),
        ({"value": ["count(*) as pgcombine_x"]}, ""),
        ({"name": LONG}, ""),
        ({"name": "Big"}, ""),
    ],
)
def test_a_refused_definition_names_the_value_and_the_cure(
    src: psycopg.Connection, given: dict[str, Any], hint: str
) -> None:
    src.execute(
        "create view seen as select * from src; create temporary table brief (k int); create table other (v int)"
    )
    src.execute("create table whole (k int) partition by list (k); create table part partition of whole default")
    src.execute("create table heir () inherits (src)" if given.get("source") == "heir" else "select")
    with raises_state("PC003") as refused:
        Rollup.make(src, **given)
    assert re.search(hint, refused.value.diag.message_hint or ""), refused.value.diag.message_hint
    assert src.execute("table pgcombine.queue").fetchall() == []


def test_a_name_that_is_taken_is_refused(src: psycopg.Connection) -> None:
    src.execute("select pgcombine.create_queue('q', '{k text}', '{n bigint sum}'); create view pgcombine.x as select 1")
    Rollup.make(src)
    for name in ("q", "x", "r"):
        with raises_state("PC002"):
            Rollup.make(src, name=name)
    Rollup.make(src, if_not_exists=True)
    with raises_state("PC002") as refused:
        Rollup.make(src, filter="v > 1", if_not_exists=True)
    assert "count(*) as n by k of src" in str(refused.value.diag.message_hint)  # the definition that there is
    with raises_state("PC002"):
        Rollup.make(src, keep="at < now()", if_not_exists=True)


AMOUNTS = ["null", "1", "2.50", "-3", "1e-9", "'NaN'", "'Infinity'", "'-Infinity'"]
STEPS = [
    "insert into src select n, 'a', n, n / 4.0 from generate_series(1, 6) n",
    *[f"insert into src values (10, 'b', 3, {amount})" for amount in AMOUNTS],  # noqa: S608
    "insert into src values (11, null, 1, 1), (12, 'c', null, null), (13, 'c', 30000, 5)",
    "update src set w = w + 1, v = v * 2 where id < 4",
    "update src set k = 'c' where k = 'a' and v % 3 = 0",
    "update src set k = null where id = 5",
    "delete from src where w = 'NaN'",
    "delete from src where w in ('Infinity', '-Infinity')",
    "delete from src where (k, v) in (select k, max(v) from src group by k)",
    "update src set v = null, w = null where k = 'b'",
    "delete from src where k = 'b'",
    "truncate src",
]


@pytest.mark.parametrize("pending", [True, False])
def test_columns_of_every_kind_equal_the_query_at_each_step(src: psycopg.Connection, pending: bool) -> None:
    src.execute("create aggregate product (numeric) (sfunc = numeric_mul, stype = numeric, initcond = 1)")
    src.execute("insert into src values (0, 'b', 7, 'NaN', 1), (0, 'd', 7, 2, 1)")
    additive = {
        "n": "count(*)",
        "c": "count(v)",
        **{f"{function}_v": f"{function}(v)" for function in ADDITIVE},
        **{f"{function}_w": f"{function}(w)" for function in ADDITIVE},
        "lo": "min(w)",
        "hi": "max(v)",
        "word": 'max(k collate "C")',
    }
    computed = {
        "words": "count(distinct v)",
        "p": "percentile_cont(0.5) within group (order by v)",
        "list": "array_agg(v order by v)",
        "text": "string_agg(v::text, ', ' order by v)",
        "every": "bool_and(v > 2)",
        "times": "public.product(v)",
        "float": "sum(f)",
        "width": "max(v) - min(v)",
    }
    value = [f"{call} as {name}" for name, call in (additive | computed).items()]
    value += [f"{call} filter (where id <> 2) as {name}_some" for name, call in additive.items()]
    digits = {part.rpartition(" as ")[2] for part in value if part.startswith(("avg", "var", "stddev"))}
    rollup = Rollup.make(src, value, rounded={name: f"round({name}, 8)" for name in digits})
    needs = one(src, "select array(select jsonb_array_elements_text(computed -> 'columns')) from pgcombine.queue")
    assert set(computed) <= set(needs)
    assert not {name for name in additive if not name.startswith(("lo", "hi", "word"))} & set(needs)
    rollup.call(src, "backfill")
    for step in STEPS:
        src.execute(step)
        assert rollup.differing(src) == [], step
        if not pending:
            rollup.call(src, "drain")
            assert rollup.differing(src) == [], step
    assert rollup.verify(src) == []
    rollup.call(src, "drain")
    assert src.execute("table pgcombine.r_values").fetchall() == []  # no key is left


@pytest.mark.parametrize(
    ("damage", "told"),
    [
        ("update pgcombine.r_values set d = d + 1 where k = 'a'", ["key (a): d is 4, not 3"]),
        ("update pgcombine.r_values set hi = 1, lo = 99 where k = 'b'", ["key (b): hi is 1, not 7, lo is 99, not 1"]),
        ("update pgcombine.r_values set hi = 99 where k = 'b'", ["key (b): hi is 99, not 7"]),
        ("update pgcombine.r_values set v = v + 5, list = '{}' where k = 'c'", ["lacks -5", "list is {}, not {2,5,8}"]),
        ("delete from pgcombine.r_values where k = 'a'", ["key (a): n lacks 3, v lacks 18"]),
        ("update pgcombine.r_values set k = 'z' where k = 'a'", ["key (a): n lacks 3, v lacks 18", "key (z): n lacks"]),
    ],
)
def test_verify_mends_damaged_values_of_every_kind(src: psycopg.Connection, damage: str, told: list[str]) -> None:
    src.execute("insert into src select n, chr(96 + n % 3 + 1), n, n, n from generate_series(1, 8) n")
    src.execute("insert into src values (9, 'a', 9)")
    value = ["count(*) as n", "sum(v) as v", "max(v) as hi", "min(v) as lo", "count(distinct v) as d"]
    rollup = Rollup.make(src, [*value, "array_agg(v order by v) as list"])
    rollup.call(src, "backfill", "drain")
    src.execute("set session_replication_role = replica")  # disables the trigger that would refuse the write
    src.execute(damage.encode())
    src.execute("reset session_replication_role")
    for repair in False, True:
        problems = "; ".join(sorted(rollup.verify(src, repair=repair)))
        assert all(part in problems for part in told), problems
    for _ in "pending", "combined":
        assert (rollup.differing(src), rollup.verify(src)) == ([], [])
        rollup.call(src, "drain")


ADDITIVE = ["sum", "avg", "variance", "var_samp", "var_pop", "stddev", "stddev_samp", "stddev_pop"]


def test_values_are_as_the_query_prints_them(src: psycopg.Connection) -> None:
    rollup = Rollup.make(src, ["sum(w) as s", "avg(v) as a", "stddev(v) as d", "max(at) as m", "min(k) as x"])
    rollup.call(src, "backfill")
    src.execute("insert into src values (1, 'a', 1, 'Infinity', 1), (2, 'a', 2, '-Infinity', 1), (3, 'b', 5, 1.50, 1)")
    shown = "select k, s::text, trim_scale(round(a, 6))::text, trim_scale(round(d, 6))::text, m, x from pgcombine.r"
    assert sorted(src.execute(shown)) == [
        ("a", "NaN", "1.5", "0.707107", None, "a"),
        ("b", "1.50", "5", None, None, "b"),
    ]
    types = (
        "select attname, format_type(atttypid, atttypmod), attcollation from pg_attribute where attrelid = %s::regclass"
    )
    src.execute(f"create view as_query as {rollup.query}")
    assert src.execute(types, ("as_query",)).fetchall() == src.execute(types, ("pgcombine.r",)).fetchall()


def test_value_columns_may_have_names_of_internal_columns(src: psycopg.Connection) -> None:
    value = ["max(v) as m", "sum(w) as m_taken", "sum(v) as s", "avg(w) as row_count", "min(w) as s_nulls"]
    rollup = Rollup.make(src, [*value, "count(v) as s_rows", "count(distinct v) as s_sum"])
    rollup.call(src, "backfill")
    for step in STEPS:
        src.execute(step)
        assert rollup.differing(src) == [], step


def test_rows_of_a_table_that_begins_to_inherit_count_once(src: psycopg.Connection) -> None:
    src.execute("select pgcombine.create_rollup('r', 'src', array['k'], array['sum(v) as v'])")
    if not src.execute("select from pg_event_trigger where evtname = 'pgcombine_follow_ddl'").fetchall():
        does_not_apply("only a superuser makes event triggers")
    src.execute("create table heir (like src); create table grandchild () inherits (heir)")
    src.execute("insert into heir (k, v) values ('a', 1); insert into grandchild (k, v) values ('a', 10)")
    src.execute("alter table heir inherit src")
    assert src.execute("select k, v from pgcombine.r").fetchall() == [("a", 11)]
    src.execute("alter table heir no inherit src")
    assert src.execute("select k, v from pgcombine.r").fetchall() == []
