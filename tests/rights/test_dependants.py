"""Objects of ordinary roles that depend on pgcombine's objects don't stop an upgrade."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from migration.test_schema import dump
from psycopg import sql
from support.queues import add, make_queue, one
from support.roles import Login
from support.servers import embedded_only
from support.states import raises_state

from pgcombine import schema
from pgcombine.errors import SchemaError

# Statements by which a role creates an object {o} that depends on a function {f} with the parameters (text, pg_lsn) or
# (anyenum), or on the trigger function {trigger}.
FUNCTION_KINDS = {
    "view": "create view {o} as select {f}('a'::text, '0/0'::pg_lsn)",
    "constant": "create view {o} as select '{f}(text, pg_lsn)'::regprocedure",
    "materialized view": "create materialized view {o} as select {f}('a'::text, '0/0'::pg_lsn)",
    "default": "create table {o} (c text default {f}('a'::text, '0/0'::pg_lsn))",
    "check": "create table {o} (c text check ({f}(c, '0/0'::pg_lsn) is not null))",
    "domain": "create domain {o} as text check ({f}(value, '0/0'::pg_lsn) is not null)",
    "index": "create table {o} (c text); create index on {o} ({f}(c, '0/0'::pg_lsn))",
    "statistics": "create table {o} (c text); create statistics {o}_s on {f}(c, '0/0'::pg_lsn), c from {o}",
    "generated column": "create table {o} (c text, e text generated always as ({f}(c, '0/0'::pg_lsn)) stored)",
    "rule": "create table {o} (c text); create rule r as on insert to {o} do also select {f}('a'::text, '0/0'::pg_lsn)",
    "policy": "create table {o} (c text); create policy p on {o} using ({f}(c, '0/0'::pg_lsn) is not null)",
    "condition": "create table {o} (c text); create trigger t before update on {o} for each row"
    " when ({f}(new.c, '0/0'::pg_lsn) is null) execute function suppress_redundant_updates_trigger()",
    "trigger": "create table {o} (c text); create trigger t before insert on {o} execute function {trigger}()",
    "body": "create function {o}() returns text begin atomic select {f}('a'::text, '0/0'::pg_lsn); end",
    "argument": "create function {o}(c text default {f}('a'::text, '0/0'::pg_lsn)) returns text return c",
    "operator": "create operator attacker.{sign} (leftarg = text, rightarg = pg_lsn, function = {f})",
    "aggregate": "create aggregate {o}(pg_lsn) (sfunc = {f}, stype = text)",
    "cast": "create type {o} as enum ('a'); create cast ({o} as text) with function {f}(anyenum)",
}
# Statements by which a role creates an object {o} that depends on a relation {r}, mostly on its column older.
RELATION_KINDS = {
    "view": "create view {o} as select older from {r}",
    "materialized view": "create materialized view {o} as select older from {r} with no data",
    "rule": "create table {o} (c text); create rule r as on insert to {o} do also select older from {r}",
    "policy": "create table {o} (c text); create policy p on {o} using (exists (select older from {r}))",
    "body": "create function {o}() returns bigint begin atomic select count(older) from {r}; end",
    "constant": "create table {o} (c regclass default '{r}'::regclass)",
    "on another view": "create view {o} as select older from {r}; create view {o}_2 as select * from {o}",
}
MADE = (
    "select count(*) from pg_depend where refclassid = 'pg_namespace'::regclass and refobjid = 'attacker'::regnamespace"
)


def sign(number: int) -> str:
    """Return an operator name for a number."""
    return "".join("<>=*"[number >> 2 * place & 3] for place in range(8)) + "~"


@pytest.fixture
def attacker(conn: psycopg.Connection, login: Login) -> psycopg.Connection:
    """The connection of a role that owns the schema ``attacker`` and was granted no right."""
    role = login()
    conn.execute(sql.SQL("create schema attacker authorization {}").format(sql.Identifier(role.info.user)))
    return role


def upgraded(dsn: str) -> list[str]:
    warnings: list[str] = []
    schema.upgrade(dsn, warn=warnings.append)
    schema.check(dsn)
    return warnings


def older_functions(conn: psycopg.Connection) -> Iterator[tuple[str, str, bool]]:
    """Add overloads of pgcombine's functions, as if an older version had other parameters.

    Yields the function's qualified name, its plain name, and whether a trigger function of that name was added, too.
    """
    functions = conn.execute(
        """
        select format('%I.%I', n.nspname, p.proname), p.proname, bool_and(p.pronargs > 0)
        from pg_proc p join pg_namespace n on n.oid = p.pronamespace
        where n.nspname in ('pgcombine', 'pgcombine_internal') and p.proname not like 'wc\\_%'
        group by 1, 2 order by 1
        """
    ).fetchall()
    assert len(functions) > 200
    for function, name, free in functions:
        conn.execute(
            f"""
            create function {function}(a text, b pg_lsn) returns text language sql immutable security definer
                as $$ select 'older' $$;
            create function {function}(a anyenum) returns text language sql immutable as $$ select 'older' $$;
            """.encode()
        )
        if free:
            trigger = "returns trigger language plpgsql as $$ begin return null; end $$"
            conn.execute(f"create function {function}() {trigger}".encode())
        yield function, name, free


def make(role: psycopg.Connection, template: str, number: int, **names: str) -> None:
    statements = template.format(o=f"attacker.o{number}", sign=sign(number), **names)
    role.execute(statements.encode())


def test_upgrade_keeps_objects_that_depend_on_functions(
    conn: psycopg.Connection, dsn: str, attacker: psycopg.Connection
) -> None:
    upgrade_beside_dependants(conn, dsn, attacker, each=False)


@pytest.mark.slow
@embedded_only  # a server with default settings has too few locks to drop the schema with all these objects
def test_upgrade_keeps_all_kinds_of_objects_that_depend_on_functions(
    conn: psycopg.Connection, dsn: str, attacker: psycopg.Connection
) -> None:
    upgrade_beside_dependants(conn, dsn, attacker, each=True)


def upgrade_beside_dependants(conn: psycopg.Connection, dsn: str, attacker: psycopg.Connection, *, each: bool) -> None:
    """Upgrade while objects depend on the functions: one kind of object on each function, or all kinds if ``each``."""
    make_queue(conn)
    before = dump(dsn, "--schema-only", "--exclude-schema=attacker")
    kinds = list(FUNCTION_KINDS)
    number = 0
    hit = set()
    for place, (function, name, free) in enumerate(older_functions(conn)):
        for kind in kinds if each else [kinds[place % len(kinds)]]:
            if kind == "trigger" and not free:
                continue
            make(attacker, FUNCTION_KINDS[kind], number, f=function, trigger=function)
            number += 1
            hit.add((name, kind))
    assert {kind for _, kind in hit} == set(kinds)
    made = one(conn, MADE)
    warnings = upgraded(dsn)
    assert one(conn, MADE) == made
    role = f'of role "{attacker.info.user}"'
    assert {warning.split()[4] for warning in warnings} == {name for name, _ in hit}
    assert all(role in warning or "since cast from" in warning for warning in warnings)
    kept = "select count(*), count(*) filter (where prosecdef) from pg_proc where proname like 'gone %'"
    assert conn.execute(kept).fetchone() == (len(warnings), 0)
    unsound = "select proname from pg_proc where prosrc ~ 'select .older' and proname not like 'gone %'"
    assert conn.execute(unsound).fetchall() == []
    make_queue(conn, "another")
    add(conn, {"a": 1}, "another")
    conn.execute("select pgcombine.drop_queue('another', true)")
    attacker.execute("drop schema attacker cascade")
    assert upgraded(dsn) == []
    assert dump(dsn, "--schema-only", "--exclude-schema=attacker") == before


def test_upgrade_renames_functions_that_it_cannot_replace(
    conn: psycopg.Connection, dsn: str, attacker: psycopg.Connection
) -> None:
    """An upgrade renames a function in use that CREATE OR REPLACE can't change, such as one with another result."""
    conn.execute("drop function pgcombine.pause(text), pgcombine.backlog(text) cascade; drop procedure pgcombine.wait")
    conn.execute("create function pgcombine.pause(older text) returns text return null")
    conn.execute("create function pgcombine.backlog(queue text) returns text return 'older'")
    conn.execute("create function pgcombine.wait(queue text, timeout interval) returns text return 'older'")
    conn.execute("create function pgcombine.wait(queue text) returns text return 'older'")
    for number, call in enumerate(("pause('a')", "backlog('a')", "wait('a', '1 s')", "wait('a')")):
        attacker.execute(f"create view attacker.v{number} as select pgcombine.{call}".encode())
    assert len(upgraded(dsn)) == 4
    with pytest.raises(psycopg.Error):
        one(conn, "select pgcombine.wait('a')")
    assert one(attacker, "select * from attacker.v1") == "older"
    make_queue(conn)
    assert one(conn, "select pgcombine.backlog('wc')") == 0
    attacker.execute("drop schema attacker cascade")
    assert upgraded(dsn) == []


@pytest.mark.wc
def test_upgrade_keeps_objects_that_depend_on_views(
    conn: psycopg.Connection, dsn: str, attacker: psycopg.Connection
) -> None:
    """A column of each view has another name than in this version, and objects depend on it."""
    conn.execute("select pgcombine.grant_right('monitor', %s)", (attacker.info.user,))
    before = dump(dsn, "--schema-only", "--exclude-schema=attacker")
    views = conn.execute(
        "select c.oid::regclass::text, a.attname from pg_class c join pg_attribute a on a.attrelid = c.oid"
        " where c.relnamespace = 'pgcombine'::regnamespace and c.relkind = 'v' and a.attnum = 1 order by 1"
    ).fetchall()
    assert len(views) > 15
    number = 0
    for view, column in views:
        conn.execute(f'alter view {view} rename column "{column}" to older'.encode())
        for template in RELATION_KINDS.values():
            make(attacker, template, number, r=view)
            number += 1
    made = one(conn, MADE)
    warnings = upgraded(dsn)
    assert one(conn, MADE) == made
    assert {warning.split()[4] for warning in warnings} == {view.removeprefix("pgcombine.") for view, _ in views}
    assert all(f'of role "{attacker.info.user}"' in warning for warning in warnings)
    with raises_state("42704"):
        conn.execute("select * from attacker.o0")
    attacker.execute("drop schema attacker cascade")
    assert upgraded(dsn) == []
    assert dump(dsn, "--schema-only", "--exclude-schema=attacker") == before


def test_objects_that_depend_on_a_changed_column_stop_an_upgrade(
    conn: psycopg.Connection, dsn: str, attacker: psycopg.Connection, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the object. Without it, the upgrade succeeds."""
    conn.execute("alter table pgcombine.queue add column older integer")
    revisions = schema._revisions_sql()
    drop = {"0002": "alter table pgcombine.queue drop column older;\n"}
    monkeypatch.setattr(schema, "_revisions_sql", lambda: revisions | drop)
    monkeypatch.setattr(schema, "head", lambda: "0002")
    for kind, template in RELATION_KINDS.items():
        if kind != "constant":  # that one doesn't depend on the column
            make(attacker, template, 0, r="pgcombine.queue")
            with pytest.raises(SchemaError):
                upgraded(dsn)
            attacker.execute("drop schema attacker cascade")
            conn.execute(sql.SQL("create schema attacker authorization {}").format(sql.Identifier(attacker.info.user)))
    assert upgraded(dsn) == []


def test_roles_may_not_use_types(conn: psycopg.Connection, attacker: psycopg.Connection) -> None:
    """If roles could use row types, their objects could stop migrations. Roles may use domains, which passes need."""
    types = conn.execute(
        "select t.oid::regtype::text from pg_type t left join pg_class c on c.oid = t.typrelid"
        " where t.typnamespace::regnamespace::text in ('pgcombine', 'pgcombine_internal')"
        " and t.typtype not in ('b', 'p', 'd')"
    ).fetchall()
    assert len(types) > 40
    for (name,) in types:
        for template in (f"create table attacker.t (c {name})", f"create domain attacker.d as {name}"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                attacker.execute(template.encode())
