"""Keys that are equal but look different, such as 1 and 1.0: the changes show a key in the form that is stored."""

from __future__ import annotations

import random

import psycopg
import pytest
from psycopg import sql
from support.audit import Change, follow
from support.exports import make_export
from support.needs import does_not_apply
from support.queues import combine_all, make_queue, one, rows
from support.queues import hold as quarantine
from support.tiers import each_nth

# A key type, the statement that creates it, and its keys. Each inner tuple has the texts of one key.
FORMS = [
    ("numeric", "", [("1", "1.0", "1.000"), ("-2.50", "-2.5"), ("0", "0.00")]),
    ("real", "", [("0", "-0"), ("1", "1")]),
    ("double precision", "", [("0", "-0"), ("1", "1")]),
    ("interval", "", [("1 day", "24 hours"), ("1 month", "30 days", "720:00:00"), ("0", "0 days")]),
    ("bpchar", "", [("a", "a  ", "a "), ("b", "b ")]),
    ("character(3)", "", [("a", "a  "), ("b", "b ")]),
    ("jsonb", "", [('{"a": 1}', '{"a": 1.0}'), ("[0]", "[0.0]"), ("2", "2.00")]),
    ("numeric[]", "", [("{1,2}", "{1.0,2}", "{1,2.00}"), ("{}", "{}")]),
    ("interval[]", "", [('{"1 day"}', '{"24:00:00"}')]),
    ("numrange", "", [("[1,2)", "[1.0,2)", "[1,2.00)"), ("empty", "(1,1)")]),
    ("nummultirange", "", [("{[1,2)}", "{[1.0,2)}")]),
    ("public.amount", "create domain public.amount as numeric check (value < 100)", [("1", "1.0"), ("2", "2.00")]),
    ("public.pair", "create type public.pair as (a numeric, b text)", [("(1,x)", "(1.0,x)"), ("(2,)", "(2.0,)")]),
    (
        "public.span",
        "create type public.span as range (subtype = interval)",
        [('["1 day","2 days")', '["24:00:00","48:00:00")')],
    ),
    ("ext.citext", "create schema ext; create extension citext schema ext", [("Fluo", "fluo", "FLUO"), ("a", "A")]),
    ("ext.citext[]", "create schema ext; create extension citext schema ext", [("{Fluo}", "{fluo}")]),
    (
        "text collate public.caseless",
        "create collation public.caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
        [("Fluo", "fluo", "FLUO"), ("a", "A")],
    ),
]


def prepare(tx: psycopg.Connection, setup: str) -> None:
    try:
        tx.execute(setup.encode() or b"select")
    except (psycopg.errors.FeatureNotSupported, psycopg.errors.UndefinedFile) as error:
        does_not_apply(f"the server can't make the type or collation: {error}")


def audit(tx: psycopg.Connection) -> None:
    tx.execute("create table public.audit (id bigserial, key text, old bigint, new bigint)")
    tx.execute(
        "select pgcombine.add_observer('wc', 'audit',"
        " 'insert into public.audit (key, old, new) select k::text, old_n, new_n from changes')"
    )


def audited(tx: psycopg.Connection) -> list[Change]:
    return [Change(*row) for row in tx.execute("select key, old, new from public.audit order by id").fetchall()]


def update(tx: psycopg.Connection, kind: str, form: str, n: int) -> None:
    insert = sql.SQL("insert into pgcombine.wc_updates (k, n) values (%s::{}, %s)")
    tx.execute(insert.format(sql.SQL(kind.partition(" collate ")[0])), (form, n))


@pytest.mark.parametrize(("kind", "setup", "keys"), FORMS, ids=[kind for kind, _, _ in FORMS])
@pytest.mark.parametrize("layout", each_nth(2, [{"buckets": 1}, {"buckets": 6, "buckets_per_partition": 3}]))
def test_changes_show_a_key_as_it_is_stored(
    tx: psycopg.Connection, kind: str, setup: str, keys: list[tuple[str, ...]], layout: dict[str, int]
) -> None:
    prepare(tx, setup)
    make_queue(tx, key=[f"k {kind}"], **layout)
    audit(tx)
    draw = random.Random(kind)
    totals = [0] * len(keys)
    for _ in range(8):
        for _ in range(draw.randrange(1, 6)):
            number = draw.randrange(len(keys))
            n = -totals[number] if draw.random() < 0.25 else draw.randrange(1, 9)
            update(tx, kind, draw.choice(keys[number]), n)
            totals[number] += n
        combine_all(tx)
        stored = dict(tx.execute("select k::text, n from pgcombine.wc_values").fetchall())
        assert follow(audited(tx)) == stored
        assert sorted(stored.values()) == sorted(n for n in totals if n)
    assert tx.execute("select problem from pgcombine.verify('wc')").fetchall() == []


def test_expiry_and_exports_show_the_stored_form(tx: psycopg.Connection) -> None:
    make_queue(tx, key=["k numeric"], buckets=1, delete_when=None)
    audit(tx)
    make_export(tx)
    update(tx, "numeric", "1.0", 1)
    combine_all(tx)
    update(tx, "numeric", "1", 1)
    combine_all(tx)
    tx.execute("select pgcombine_internal.export_resync('search', '[{\"k\": 1.00}, {\"k\": 2.00}]')")
    entries = "select k::text, old_n, new_n from pgcombine.search_exports order by seq"
    assert tx.execute(entries).fetchall() == [
        ("1.0", None, 1),
        ("1.0", 1, 2),
        ("1.0", None, 2),
        ("2.00", None, None),
    ]
    tx.execute("select pgcombine.set_expiry('wc', 'k = 1')")
    tx.execute("call pgcombine.expire('wc')")
    assert audited(tx) == [("1.0", None, 1), ("1.0", 1, 2), ("1.0", 2, None)]


def test_export_deletes_a_key_that_returns_in_another_form(tx: psycopg.Connection) -> None:
    """A destination may compare keys as text, so the deletion of 1.0 must come before the new key 1."""
    make_queue(tx, key=["k numeric"], buckets=1)
    make_export(tx)
    for form, n in (("1.0", 1), ("1", 2), ("1", -3), ("1", 4), ("1.00", 5)):
        update(tx, "numeric", form, n)
        combine_all(tx)
    taken = tx.execute(one(tx, "select pgcombine_internal.export_take('search', 0, 9)").encode()).fetchall()
    assert [(str(k), old, new) for k, old, new, *_ in taken] == [("1.0", None, None), ("1", None, 9)]


def test_quarantine_applies_to_all_forms_of_a_key(tx: psycopg.Connection) -> None:
    make_queue(tx, key=["k interval"], buckets=1)
    audit(tx)
    update(tx, "interval", "1 day", 1)
    combine_all(tx)
    quarantine(tx, k="24:00:00")
    update(tx, "interval", "1 day", 2)
    update(tx, "interval", "24:00:00", 3)
    combine_all(tx)
    assert one(tx, "select updates from pgcombine.quarantine") == 2
    assert [row[1] for row in rows(tx, "wc_current")] == [1]
    assert one(tx, "select pgcombine.retry_quarantined('wc', '{\"k\": \"1 day\"}')") == 2
    combine_all(tx)
    assert follow(audited(tx)) == {"1 day": 6}
