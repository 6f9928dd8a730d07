"""Every function that runs with its owner's rights, found in the catalog, is tried by a role without rights.

Each call has to fail, by a missing right or by an error of pgcombine's own, and nothing may change. A new function that
doesn't check is found so, and so is one with a parameter that this doesn't know how to fill.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql
from support.queues import add, combine_all, make_queue, one
from support.roles import Login

Values = Mapping[str, list[Any]]

TOKEN = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"

# what anybody may call: it does only what rows say that a right was needed for, tells what a domain asks, or returns
# rows of the caller's queues alone
FREE = ["pgcombine_internal.delete_marked()", "pgcombine_internal.restoring()", "pgcombine_internal.sample(text)"]

FUNCTIONS = """
    select p.oid::regprocedure::text, n.nspname, p.proname, p.prorettype = 'trigger'::regtype,
           coalesce(p.proconfig, '{}') @> array['search_path=pg_catalog, pg_temp'], p.prokind,
           array(select a.name || ' ' || format_type(a.type, null)
                 from unnest(p.proargtypes::oid[], p.proargnames) with ordinality a (type, name, place)
                 where a.place <= p.pronargs order by a.place)
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where p.prosecdef and n.nspname in ('pgcombine', 'pgcombine_internal')
    order by 1
"""


@pytest.fixture
def values(conn: psycopg.Connection) -> Values:
    """A queue with updates, values and loads of each kind, and what names them, by parameter: name and type."""
    make_queue(conn)
    add(conn, {"a": 1})
    combine_all(conn)
    add(conn, {"a": 1})
    loads: list[UUID] = []
    for kind in ("stage", "token", "values", "stage"):
        loads.append(uuid4())
        one(conn, "select pgcombine_internal.begin_load(%s, 'wc', %s, %s)", loads[-1], str(loads[-1]), kind)
    conn.execute("insert into pgcombine.spark_part values (%s, 0)", (loads[1],))
    conn.execute("insert into pgcombine.spark_run (queue, run_id, updates) values ('wc', 'r', 1)")
    conn.execute("update pgcombine.spark_load set ended_at = now() where load = %s", (loads[3],))
    conn.execute("select pgcombine.create_export('words', 'wc')")
    conn.execute("create table doc (body text)")
    conn.execute("select pgcombine.attach('wc', 'doc', 'select body as word, 1 as n')")
    attachment = one(conn, "select id from pgcombine.attachment")
    conn.execute("select pgcombine_internal.handoff_hello('a')")
    conn.execute("select pgcombine_internal.handoff_register('b', 'host=b user=app')")
    return {
        "load uuid": loads,
        "token uuid": [TOKEN],
        "queue text": ["wc"],
        "bucket integer": [0],
        "mark xid8": ["99"],
        "seen txid_snapshot": ["9:9:"],
        "seen_by txid_snapshot": ["9:9:"],
        "horizon bigint": [9],
        "keep interval": ["0 s"],
        "backlog bigint": [1],
        # exports and their destinations
        "export text": ["words"],
        "kind text": ["export"],
        "name text": ["words"],
        "ticket bigint": [None],
        "reason text": ["no reason"],
        "probe interval": ["1 min"],
        # writes that are handed on
        "servers text[]": [["a", "b"]],
        "replicas integer": [2],
        "destination text": ["b"],
        "home text": ["b"],
        "tokens uuid[]": [[TOKEN]],
        "digests uuid[]": [[TOKEN]],
        "digest uuid": [TOKEN],
        "shape uuid": [TOKEN],
        "servers jsonb[]": [["null"]],
        "destinations text[]": [["b"]],
        "placed text[]": [["a", "b"]],
        "homes uuid[]": [[TOKEN]],
        "payload text": ['{"{a}","{1}"}'],
        "max_writes integer": [10],
        "payloads text[]": [['{"{a}","{1}"}']],
        "deduplicated bigint": [0],
        # attached tables
        "id integer": [attachment],
        "source regclass": ["doc"],
        "alias text": ["doc"],
        "mapping text": ["select 1"],
        "columns name[]": [["word"]],
        "reads name[]": [["body"]],
        "path name[]": [["public"]],
    }


def digest(conn: psycopg.Connection) -> dict[str, str]:
    """Each table with its privileges and its rows."""
    found: dict[str, str] = {}
    for name, acl in conn.execute(
        "select c.oid::regclass::text, c.relacl::text from pg_class c join pg_namespace n on n.oid = c.relnamespace "
        "where n.nspname = 'pgcombine' and c.relkind in ('r', 'p')"
    ).fetchall():
        rows = sql.SQL("select md5(string_agg(t::text, ',' order by t::text)) from {} t").format(sql.SQL(name))
        found[name] = f"{acl} {one(conn, rows.as_string())}"
    return found


def unchecked(owner: psycopg.Connection, role: psycopg.Connection, values: Values, *, any_queue: bool) -> Iterator[str]:
    """What is wrong, for each function; ``any_queue``: also with those that aren't about one queue."""
    before = digest(owner)
    for signature, schema, name, trigger, pinned, kind, parameters in owner.execute(FUNCTIONS).fetchall():
        if not pinned:
            yield f"{signature} has no fixed search path"
        if trigger:
            yield f"{signature} is a trigger that anybody can put on a table of his own"
            continue
        if unknown := [parameter for parameter in parameters if parameter not in values]:
            yield f"{signature}: no value is known for {unknown}"
            continue
        if signature in FREE or (not parameters and not any_queue):
            continue
        call = sql.SQL("{} {}.{}({})").format(
            sql.SQL("call" if kind == "p" else "select"),
            *(sql.Identifier(schema), sql.Identifier(name)),
            sql.SQL(", ").join(sql.SQL("%s::{}").format(sql.SQL(p.split(" ", 1)[1])) for p in parameters),
        )
        for arguments in product(*[values[parameter] for parameter in parameters]):
            try:
                role.execute(call, arguments)
            except psycopg.Error as error:
                if error.sqlstate != "42501" and not (error.sqlstate or "").startswith("PC"):
                    yield f"{signature} with {arguments}: {error}"
            else:
                yield f"{signature} with {arguments} isn't refused"
            if (after := digest(owner)) != before:
                changed = sorted(table for table in before | after if before.get(table) != after.get(table))
                yield f"{signature} with {arguments} changed {changed}"
                before = after


def test_without_any_right(conn: psycopg.Connection, login: Login, values: Values) -> None:
    assert list(unchecked(conn, login(), values, any_queue=True)) == []


def test_with_all_rights_on_another_queue(conn: psycopg.Connection, login: Login, values: Values) -> None:
    make_queue(conn, "own")
    role = login(*[f"all on pgcombine.own_{table}" for table in ("updates", "values", "pending", "current")])
    assert list(unchecked(conn, role, values, any_queue=False)) == []


@pytest.mark.parametrize(
    ("definition", "found"),
    [
        (
            "(queue text) returns bigint language sql security definer set search_path = pg_catalog, pg_temp "
            "begin atomic select count(*) from pgcombine.wc_updates; end",
            ["pgcombine.door(text) with ('wc',) isn't refused"],
        ),
        (
            "(bucket integer) returns void language plpgsql security definer set search_path = pg_catalog, pg_temp "
            "as $$ begin delete from pgcombine.wc_updates; end $$",
            [
                "pgcombine.door(integer) with (0,) isn't refused",
                "pgcombine.door(integer) with (0,) changed ['pgcombine.wc_updates', 'pgcombine.wc_updates_b000",
            ],
        ),
        (
            "(what point) returns void language plpgsql security definer as $$ begin end $$",
            ["pgcombine.door(point) has no fixed search path", "pgcombine.door(point): no value is known for"],
        ),
        (
            "() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp "
            "as $$ begin return null; end $$",
            ["pgcombine.door() is a trigger that anybody can put on a table of his own"],
        ),
    ],
)
def test_a_new_function_that_does_not_check(
    conn: psycopg.Connection, login: Login, values: Values, definition: str, found: list[str]
) -> None:
    conn.execute(f"create function pgcombine.door{definition}".encode())
    problems = list(unchecked(conn, login(), values, any_queue=True))
    assert len(problems) == len(found)
    assert all(problem.startswith(start) for problem, start in zip(problems, found, strict=True)), problems
