"""Keys are equal if their column's type and collation say so, whatever the search path of the session that combines."""

from __future__ import annotations

import psycopg
import pytest
from support.needs import does_not_apply
from support.queues import combine_all, make_queue, one, rows
from support.states import raises_state

# A case-insensitive type with its own operators and an implicit cast to text. If the type's schema isn't on the search
# path, PostgreSQL finds the operators of text, which are case-sensitive.
CASELESS = """
    create schema ext;
    create type ext.caseless;
    create function ext.caseless_in(cstring) returns ext.caseless language internal immutable strict as 'textin';
    create function ext.caseless_out(ext.caseless) returns cstring language internal immutable strict as 'textout';
    create type ext.caseless (input = ext.caseless_in, output = ext.caseless_out, internallength = variable,
                              storage = extended, category = 'S', collatable = true);
    create cast (ext.caseless as text) without function as implicit;
    create cast (text as ext.caseless) without function as assignment;
"""
CASELESS_OPERATORS = """
    create function ext.caseless_{name}(a ext.caseless, b ext.caseless) returns boolean language sql immutable strict
        as 'select lower(a::text) {operator} lower(b::text)';
    create operator ext.{operator} (leftarg = ext.caseless, rightarg = ext.caseless, function = ext.caseless_{name});
"""
CASELESS_CLASSES = """
    create function ext.caseless_cmp(a ext.caseless, b ext.caseless) returns int language sql immutable strict
        as 'select bttextcmp(lower(a::text) collate "C", lower(b::text) collate "C")';
    create function ext.caseless_hash(a ext.caseless) returns int language sql immutable strict
        as 'select hashtext(lower(a::text))';
    create function ext.caseless_hash_extended(a ext.caseless, seed bigint) returns bigint language sql immutable strict
        as 'select hashtextextended(lower(a::text), seed)';
    create operator class ext.caseless_ops default for type ext.caseless using btree as
        operator 1 ext.<, operator 2 ext.<=, operator 3 ext.=, operator 4 ext.>=, operator 5 ext.>,
        function 1 ext.caseless_cmp(ext.caseless, ext.caseless);
    create operator class ext.caseless_hash_ops default for type ext.caseless using hash as
        operator 1 ext.=, function 1 ext.caseless_hash(ext.caseless),
        function 2 ext.caseless_hash_extended(ext.caseless, bigint);
"""


def make_caseless(conn: psycopg.Connection) -> None:
    conn.execute(CASELESS)
    for name, operator in {"lt": "<", "le": "<=", "eq": "=", "ge": ">=", "gt": ">"}.items():
        conn.execute(CASELESS_OPERATORS.format(name=name, operator=operator))
    conn.execute(CASELESS_CLASSES)


def check_caseless(conn: psycopg.Connection, kind: str) -> None:
    """Combine and read keys and values of a case-insensitive type with an empty search path."""
    make_queue(
        conn,
        key=[f"word {kind}"],
        value=["n bigint sum", f"best {kind} max", f"seen {kind} last(at)", "at int max"],
        buckets=3,
        delete_when=None,
    )
    conn.execute("set search_path = ''")
    insert = "insert into pgcombine.wc_updates values (%s, %s, %s, %s, %s)"
    conn.cursor().executemany(insert, [("Fluo", 1, "b", "x", 1), ("fluo", 2, "A", "y", 0), ("other", 1, "a", "z", 1)])
    combine_all(conn)
    conn.execute(insert, ("FLUO", 4, "C", "Y", 5))
    combine_all(conn)
    found = "select n, best::text, seen::text from pgcombine.wc_{} order by n"
    for relation in ("values", "current"):
        assert conn.execute(found.format(relation)).fetchall() == [(1, "a", "z"), (7, "C", "Y")]
    # By the type's operators the new values equal the old ones, so the passes change nothing.
    conn.execute(insert, ("fluo", 0, "c", "y", 5))
    assert one(conn, "select sum(changes) from generate_series(0, 2) b, pgcombine.combine('wc', b)") == 0


def test_keys_follow_the_equality_of_their_type(tx: psycopg.Connection) -> None:
    make_caseless(tx)
    check_caseless(tx, "ext.caseless")


def test_domain_follows_the_equality_of_its_base_type(tx: psycopg.Connection) -> None:
    make_caseless(tx)
    tx.execute("create domain public.label as ext.caseless check (length(value::text) < 20)")
    check_caseless(tx, "public.label")


def test_hash_ranges_follow_the_equality_of_the_type(tx: psycopg.Connection) -> None:
    make_caseless(tx)
    make_queue(tx, key=["word ext.caseless"], buckets=1, pass_limit=10)
    tx.execute("set search_path = ''")
    tx.execute(
        "insert into pgcombine.wc_updates"
        " select case i % 2 when 0 then 'K' else 'k' end || i / 2 % 20, 1 from generate_series(0, 399) i"
    )
    combine_all(tx)
    assert [n for _, n in rows(tx, "wc_values")] == [20] * 20


def test_equal_keys_of_several_columns_have_equal_hashes(tx: psycopg.Connection) -> None:
    """Equal keys that look different have the same hash, and keys that differ in one column have other hashes."""
    make_caseless(tx)
    make_queue(tx, key=["a text", "b ext.caseless", "c numeric", "d date"], buckets=1)
    keys = [("x", "k", "1", "2024-01-01"), ("x", "K", "1.0", "2024-01-01"), ("y", "k", "1", "2024-01-01")]
    keys += [("x", "l", "1", "2024-01-01"), ("x", "k", "2", "2024-01-01"), ("x", "k", "1", "2024-01-02")]
    tx.cursor().executemany("insert into pgcombine.wc_updates (a, b, c, d) values (%s, %s, %s, %s)", keys)
    hash_them = "select HASH from pgcombine.wc_updates".replace(
        "HASH", one(tx, "select pgcombine_internal.key_hash('wc')")
    )
    hashes = [found for (found,) in tx.execute(hash_them)]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 5


def test_citext_keys_ignore_case(tx: psycopg.Connection) -> None:
    if not one(tx, "select count(*) from pg_available_extensions where name = 'citext'"):
        does_not_apply("the server has no extension citext")
    tx.execute("create schema ext; create extension citext schema ext")
    check_caseless(tx, "ext.citext")


def test_keys_follow_a_nondeterministic_collation(tx: psycopg.Connection) -> None:
    if not one(tx, "select count(*) from pg_collation where collname = 'und-x-icu'"):
        does_not_apply("the server is built without ICU")
    tx.execute("create collation public.caseless (provider = icu, locale = 'und-u-ks-level2', deterministic = false)")
    make_queue(
        tx,
        key=["word text collate caseless"],
        value=["n bigint sum", "best text collate public.caseless max"],
        buckets=3,
        delete_when=None,
    )
    tx.execute("set search_path = ''")
    insert = "insert into pgcombine.wc_updates values (%s, %s, %s)"
    tx.cursor().executemany(insert, [("Fluo", 1, "b"), ("fluo", 2, "A")])
    combine_all(tx)
    tx.execute(insert, ("FLUO", 4, "B"))
    assert [row[1] for row in rows(tx, "wc_current")] == [7]
    combine_all(tx)
    assert [row[1] for row in rows(tx, "wc_values")] == [7]
    tx.execute(insert, ("FLUO", 0, "B"))
    assert one(tx, "select sum(changes) from generate_series(0, 2) b, pgcombine.combine('wc', b)") == 0


def test_collation_orders_values(tx: psycopg.Connection) -> None:
    make_queue(tx, value=['v text collate "C" max', "w text min"], delete_when=None, buckets=1)
    tx.execute("insert into pgcombine.wc_updates values ('k', 'a'), ('k', 'B')")
    combine_all(tx)
    assert one(tx, "select v from pgcombine.wc_values") == "a"
    collated = """
        select count(*) from pg_attribute a join pg_collation c on c.oid = a.attcollation
        where a.attname = 'v' and c.collname = 'C'
          and a.attrelid::regclass::text ~ 'wc_(values|updates|current|pending|quarantine)$'"""
    assert one(tx, collated) == 5


@pytest.mark.parametrize(
    "column",
    ['word text collate "nosuch"', 'word int collate "C"', 'word text collate "C" collate "C"', "word text collate"],
)
def test_invalid_collations_are_refused(auto: psycopg.Connection, column: str) -> None:
    with raises_state("PC003"):
        make_queue(auto, key=[column])


def test_domain_over_an_enum_is_refused_as_a_key(tx: psycopg.Connection) -> None:
    """PostgreSQL has no comparison for such a domain. The type of a value may be such a domain."""
    tx.execute("create type mood as enum ('sad', 'happy'); create domain mood_here as mood")
    with raises_state("PC003"), tx.transaction():
        make_queue(tx, key=["mood mood_here"])
    make_queue(tx, value=["mood mood_here last(at)", "at int max"], delete_when=None)
    for at, mood in ((1, "sad"), (2, "happy"), (3, "happy")):
        tx.execute("insert into pgcombine.wc_updates values ('k', %s, %s)", (mood, at))
        combine_all(tx)
    assert rows(tx, "wc_values") == [("k", "happy", 3)]


HOSTILE = """
    create schema hostile;
    create function hostile.never(a numeric, b numeric) returns boolean language sql as 'select false';
    create operator hostile.= (leftarg = numeric, rightarg = numeric, function = hostile.never);
    create function hostile.never(a date, b date) returns boolean language sql as 'select false';
    create operator hostile.= (leftarg = date, rightarg = date, function = hostile.never);
    create function hostile.wrong(a numeric, b numeric) returns numeric language sql as 'select -1.0';
    create operator hostile.+ (leftarg = numeric, rightarg = numeric, function = hostile.wrong);
    create aggregate hostile.sum(numeric) (sfunc = hostile.wrong, stype = numeric);
    create aggregate hostile.max(date) (sfunc = date_smaller, stype = date);
"""


def test_pass_ignores_operators_on_the_search_path(tx: psycopg.Connection) -> None:
    tx.execute(HOSTILE)
    make_queue(tx, key=["day date", "k numeric"], value=["n numeric sum", "last date max"], delete_when=None, buckets=1)
    tx.execute("set search_path = hostile, pg_catalog")
    insert = "insert into pgcombine.wc_updates values ('2024-02-29', %s, 2, %s)"
    for k, last in (("1", "2024-01-01"), ("1.0", "2024-01-03"), ("1.00", "2024-01-02")):
        tx.execute(insert, (k, last))
        tx.execute(insert, (k, last))
        combine_all(tx)
    tx.execute("set search_path = ''")
    assert tx.execute("select day::text, k = 1, n, last::text from pgcombine.wc_values").fetchall() == [
        ("2024-02-29", True, 12, "2024-01-03")
    ]
    tx.execute("insert into pgcombine.wc_updates values ('2024-02-29', 1, 0, null)")
    tx.execute("set search_path = hostile, pg_catalog")
    assert tx.execute("select changes from pgcombine.combine('wc', 0)").fetchall() == [(0,)]


def test_equality_operator_is_the_one_of_a_primary_key(tx: psycopg.Connection) -> None:
    tx.execute("create type public.mood as enum ('sad', 'happy'); create domain public.more as varchar(9)")
    found = tx.execute("""
        select t.oid::regtype::text
        from pg_type t join pg_namespace n on n.oid = t.typnamespace
        where n.nspname in ('pg_catalog', 'public') and t.typtype in ('b', 'd', 'e', 'r', 'm')
          and t.typname !~ '^(_?pg_|_?gtsvector)' and pgcombine_internal.type_operator(t.oid, 1) is not null
        order by 1""").fetchall()
    kinds = [kind for (kind,) in found]
    assert {"text", "bigint", "uuid", "bytea", "mood", "more", "mood[]", "int4range", "jsonb", "character"} <= set(
        kinds
    )
    assert {"json", "json[]", "point", "xml"}.isdisjoint(kinds)
    for number, kind in enumerate(kinds):
        tx.execute(f"create temporary table t{number} (k {kind} primary key)")
    wrong = tx.execute("""
        select a.atttypid::regtype, o.amopopr::regoperator
        from pg_index i
        join pg_attribute a on a.attrelid = i.indrelid and a.attnum = 1
        join pg_opclass c on c.oid = i.indclass[0]
        join pg_amop o on o.amopfamily = c.opcfamily and o.amopstrategy = 3
                      and o.amoplefttype = c.opcintype and o.amoprighttype = c.opcintype
        where i.indrelid::regclass::text ~ '^t\\d+$'
          and (pgcombine_internal.type_operator(a.atttypid, 3)).operator is distinct from o.amopopr""").fetchall()
    assert wrong == []
    assert one(tx, "select count(*) from pg_class where relname ~ '^t\\d+_pkey$'") == len(kinds)
