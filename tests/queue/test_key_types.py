"""Methods and functions that read keys work for keys of each type, on each search path.

The types are those of the catalog that a queue takes as keys. Types of extensions are in a schema that isn't on the
search path.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import sql
from support.servers import with_contrib

from pgcombine.cli.greatest import greatest
from pgcombine.database.steps import run
from pgcombine.errors import PgCombineError
from pgcombine.queue import content
from pgcombine.queue.combine_queue import CombineQueue

PATHS = ("public", "elsewhere, public", "decoys, pg_catalog, elsewhere")
EXTENSIONS = ("citext", "hstore", "ltree", "cube", "seg")  # isn's types have no hash for partitions
OF_EXTENSIONS = {  # samples of types for which pgcombine_internal.samples has none, or has none that tells them apart
    "citext": ["Straße", "ABC", "abd"],
    "hstore": ["a=>1", "a=>2, b=>NULL"],
    "ltree": ["a.b", "a.c"],
    "cube": ["(1,2)", "(2,3)"],
    "seg": ["1 .. 2", "3"],
}
EXTREMES = {
    "interval": ["infinity", "-178000000 years", "178000000 years", "1 mon", "30 days 00:00:00.000001", "-1 us"],
    "real": ["3.4028235e38", "1.4e-45", "-3.4028235e38", "0.1", "NaN", "Infinity", "-Infinity", "16777217"],
    "double precision": ["1.7976931348623157e308", "5e-324", "0.1", "NaN", "Infinity"],
    "date": ["infinity", "4713-01-01 BC", "5874897-12-31"],
    "timestamp with time zone": ["infinity", "4713-01-01 00:00+00 BC", "294276-12-31 00:00+00"],
    "time without time zone": ["24:00", "23:59:59.999999"],
    "numeric": ["NaN", "1e500", "0.1000", "-1e-400"],
    "text": ["", "NULL", "a,b", '"', "\\", "{}", "%s", "O'Hara", "\n", ":x"],
    "bytea": ["\\x", "\\x00", "\\x5c27"],
    "regclass": ["pg_class", "-", "4294967295"],
    "box_list.pair": ["(1,)", '("a,b",2)'],
}
TYPES = """
    select pgcombine_internal.type_name(t.oid, -1)
    from pg_type t
    where t.typtype in ('b', 'e', 'r', 'm', 'd', 'c') and t.typisdefined and t.typname !~ '^(_?pg_|_?gtsvector)'
      and (t.typtype <> 'c' or t.typnamespace = 'elsewhere'::regnamespace)
      and pgcombine_internal.type_operator(t.oid, 3) is not null
      and t.typnamespace in ('pg_catalog'::regnamespace, 'elsewhere'::regnamespace)
    order by 1
"""
DECOYS = """
    create schema decoys;
    create function decoys.never(anyelement, anyelement) returns boolean immutable language plpgsql
        as 'begin return false; end';
    create operator decoys.= (leftarg = anyelement, rightarg = anyelement, function = decoys.never);
    create schema elsewhere;
    create type elsewhere.pair as (a text, b integer);
    create type elsewhere."odd % type" as enum ('%s', 'b''c');
    create domain elsewhere.positive as integer check (value > 0);
"""


def called(conn: psycopg.Connection, template: str, column: str) -> list[Any]:
    """The values that a function in SQL returns for all keys. ``column`` makes an argument of a key column."""
    names = conn.execute("select name from pgcombine.queue_column where role = 'key' order by position").fetchall()
    arguments = sql.SQL(", ").join(sql.SQL(column).format(sql.Identifier(name)) for (name,) in names)
    return [value for (value,) in conn.execute(sql.SQL(template).format(arguments)).fetchall()]


def many(conn: psycopg.Connection, *_: object) -> list[Any]:
    missing = "select to_regproc('pgcombine.q_get_many') is null"
    array = "select bool_or(typcategory = 'A') from pgcombine.queue_column join pg_type t on t.oid = type::regtype"
    assert conn.execute(missing).fetchone() == conn.execute(f"{array} where role = 'key'").fetchone()
    if conn.execute(missing).fetchone() == (True,):  # there are no arrays of arrays
        return called(conn, "select n from pgcombine.q_values order by n", "{}")
    select = "select n from pgcombine.q_get_many({}) order by 1"
    return called(conn, select, "array(select {} from pgcombine.q_values order by n)")


CALLS: dict[str, Callable[[psycopg.Connection, CombineQueue, list[Any]], list[Any]]] = {
    "get": lambda conn, queue, keys: sorted(queue.get(conn, keys).values()),
    "get one": lambda conn, queue, keys: [value for key in keys for value in queue.get(conn, [key]).values()],
    "get of values": lambda conn, queue, _: sorted(queue.get(conn, [key for key, _ in queue.values(conn)]).values()),
    "top": lambda conn, *_: sorted(row[-1] for row in greatest(conn, "q", None, 100)[1]),
    "lateral": lambda conn, *_: called(
        conn, "select c.n from pgcombine.q_values v cross join lateral pgcombine.q_get({}) c order by 1", "v.{}"
    ),
    "many": many,
    "quarantined": lambda conn, _, keys: [*run(conn, content.quarantined("q", keys))],
}


def samples(conn: psycopg.Connection, type_: str) -> list[str]:
    """Return texts of different values of the type."""
    ((found,),) = conn.execute("select pgcombine_internal.samples(%s)", (type_,)).fetchall()
    bare = type_.rpartition(".")[2]
    wanted = [*EXTREMES.get(type_, []), *OF_EXTENSIONS.get(bare, []), *found]
    different: list[str] = []
    for text in wanted:
        try:
            with conn.transaction():
                conn.execute("set local search_path = public, elsewhere")
                known = sql.SQL("select exists (select from unnest({}) t where t::{type} = {}::text::{type})").format(
                    different, text, type=sql.SQL(type_)
                )
                if conn.execute(known).fetchone() == (False,):
                    different.append(text)
        except psycopg.Error:  # another type's extreme, or a value of a later version
            pass
    return different


def failures(conn: psycopg.Connection, type_: str) -> list[str]:
    """Return what goes wrong with a queue that has keys of the type, alone and in a key of two columns."""
    wrong: list[str] = []
    texts = samples(conn, type_)
    for key in ([f"k {type_}"], [f"k {type_}", '"%s:" text']):
        queue = CombineQueue("q", key=key, value=["n bigint sum"], buckets=2)
        with conn.transaction(force_rollback=True):
            try:
                queue.create(conn)
            except PgCombineError as error:
                return [] if "hash" in str(error) or "index" in str(error) else [str(error)]
            rows = [(text, *["x"] * (len(key) - 1), number) for number, text in enumerate(texts)]
            queue.initialize(conn, rows)
            queue.enqueue(conn, [(*row[:-1], 0) for row in rows])
            wanted = [row[0] if len(key) == 1 else row[:-1] for row in rows]
            for path in PATHS:
                conn.execute(f"set local search_path = {path}".encode())
                for name, call in CALLS.items():
                    try:
                        with conn.transaction():
                            found: Any = call(conn, queue, wanted)
                    except Exception as error:
                        found = f"{type(error).__name__}: {error}".splitlines()[0]
                    if found != ([0, 0] if name == "quarantined" else [*range(len(texts))]):
                        wrong.append(
                            f"{type_}, {len(key)} columns, {path}: {name}: {found} instead of {len(texts)} keys"
                        )
    return wrong


def checked(conn: psycopg.Connection, types: list[str]) -> None:
    wrong = [one for type_ in types for one in failures(conn, type_)]
    assert not wrong, f"{len(wrong)} of {len(types) * 2 * len(PATHS) * len(CALLS)} fail:\n" + "\n".join(wrong)


@pytest.mark.slow
@pytest.mark.timeout(180)
def test_keys_of_each_type_are_found(conn: psycopg.Connection) -> None:
    conn.execute(DECOYS)
    types = [type_ for (type_,) in conn.execute(TYPES)]
    assert len(types) > 60
    checked(conn, types)


@pytest.mark.timeout(60)
def test_keys_of_unusual_types_are_found(conn: psycopg.Connection) -> None:
    conn.execute(DECOYS)
    chosen = ["elsewhere.pair", "int4multirange", "interval", "real", "regclass", "integer[]", "text"]
    checked(conn, [*chosen, 'elsewhere."odd % type"'])


@with_contrib
def test_keys_of_extension_types_are_found(conn: psycopg.Connection) -> None:
    conn.execute(DECOYS)
    for extension in EXTENSIONS:
        conn.execute(sql.SQL("create extension {} schema elsewhere").format(sql.Identifier(extension)))
    checked(conn, [f"elsewhere.{type_}" for type_ in OF_EXTENSIONS])
