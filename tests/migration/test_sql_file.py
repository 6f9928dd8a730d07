"""``pgcombine db upgrade --sql`` prints a file that any client can apply, and that upgrades as the program does."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from migration.test_schema import dump, holds, with_queues
from psycopg.conninfo import make_conninfo
from support import run_cli
from support.next_version import FIRST
from support.queues import add, combine_all, make_queue, one, values
from support.roles import Roles, as_role
from support.servers import Server
from support.sessions import in_background
from support.wait import eventually

from pgcombine import schema
from pgcombine.embedded import programs

ROLE = "pgcombine_administrator"
# A schema with copies of the functions, binary operators and common types of pg_catalog, which all refuse to work
SHADOWS = """
create schema evil;
do $$
declare
    _statement text;
begin
    for _statement in
        select format('create function evil.%I(%s) returns %s language plpgsql as $a$begin raise ''a shadow''; end$a$',
            p.proname, pg_get_function_identity_arguments(p.oid), p.prorettype::regtype)
        from pg_proc p
        where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind = 'f' and p.provariadic = 0 and not p.proretset
          and p.proargmodes is null and not exists (
            select from unnest(p.proargtypes::oid[] || p.prorettype) a join pg_type t on t.oid = a
            where t.typtype = 'p')
        union all
        select format('create operator evil.%s (leftarg = %s, rightarg = %s, function = evil.%I)', o.oprname,
            o.oprleft::regtype, o.oprright::regtype, p.proname)
        from pg_operator o join pg_proc p on p.oid = o.oprcode
        where o.oprnamespace = 'pg_catalog'::regnamespace and o.oprkind = 'b' and not exists (
            select from unnest(p.proargtypes::oid[] || p.prorettype) a join pg_type t on t.oid = a
            where t.typtype = 'p')
        union all
        select format('create domain evil.%1$I as pg_catalog.%1$I check (false)', t)
        from unnest(array['text', 'name', 'regclass', 'jsonb', 'oid', 'pg_lsn', 'xid8', 'pg_snapshot', 'uuid']) t
    loop
        begin
            execute _statement;
        exception when undefined_function then -- an operator whose function isn't among the copies
        end;
    end loop;
end
$$;
"""


def psql(dsn: str, text: str, *options: str) -> subprocess.CompletedProcess[str]:
    """Apply a file with the psql options that it names in its first lines, and with ``options``."""
    command = [programs.find().path("psql"), "-X", "-v", "ON_ERROR_STOP=1", "--dbname", dsn, *options, "-f", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, timeout=120, check=False)


def applied(dsn: str, text: str, *options: str) -> None:
    done = psql(dsn, text, *options)
    assert (done.returncode, done.stderr) == (0, "")


def fails(dsn: str, text: str, *words: str) -> None:
    """Check that psql fails with an error that has these words, and changes nothing."""
    before = dump(dsn)
    done = psql(dsn, text)
    assert done.returncode == 3
    assert all(word in done.stderr for word in words), done.stderr
    assert dump(dsn) == before


def same(first: str, second: str) -> None:
    """Check that both databases have equal schemas and comments, and equal data apart from the cluster identity."""
    for options in (["--schema-only"], ["--data-only", "--exclude-table=pgcombine.cluster_identity"]):
        assert dump(first, *options) == dump(second, *options)
    comments = (
        "select pg_describe_object(classoid, objoid, objsubid), description from pg_description d"
        " where pg_identify_object(classoid, objoid, objsubid)::text ~ 'pgcombine' order by 1"
    )
    with psycopg.connect(first) as one_, psycopg.connect(second) as other:
        found = one_.execute(comments).fetchall()
        assert found == other.execute(comments).fetchall()
        assert len(found) > 100


def hostile(text: str) -> list[str]:
    """Options that set a psql variable for each name after a colon in the file. psql must not insert the values."""
    names = set(re.findall(r":['\"{]?\??(\w+)", text))
    assert len(names) > 5
    return [option for name in sorted(names) for option in ("-v", f"{name}=) hostile (")]


def test_migration_tools_find_nothing_to_replace() -> None:
    """Flyway, Liquibase and others take ``${name}`` for a variable, everywhere in a file."""
    assert re.findall(r"\$\{\w*", schema.upgrade_sql()) == []


def test_file_creates_the_same_schema_as_the_program(dsn: str, empty_dsn: str) -> None:
    text = schema.upgrade_sql()
    applied(empty_dsn, text, *hostile(text))
    assert schema.check(empty_dsn) == schema.head()
    same(empty_dsn, dsn)
    with_queues(empty_dsn)
    holds(empty_dsn)
    before = dump(empty_dsn)
    applied(empty_dsn, text)
    assert dump(empty_dsn) == before


@pytest.mark.parametrize("times", [1, 2])
def test_migration_tool_applies_the_file_in_its_own_transaction(empty_dsn: str, times: int) -> None:
    settings = "select name, setting from pg_settings order by name"
    with psycopg.connect(empty_dsn) as conn:
        conn.execute("do $$ begin end $$")  # loads the settings of PL/pgSQL
        before = conn.execute(settings).fetchall()
        for _ in range(times):
            conn.execute(schema.upgrade_sql().encode())
        assert conn.execute(settings).fetchall() == before
        make_queue(conn)
        add(conn, {"a": 1})
    assert schema.check(empty_dsn) == schema.head()


@pytest.mark.parametrize(
    "setting",
    ["default_transaction_isolation=serializable", "default_transaction_read_only=on", "client_encoding=latin1"],
)
def test_file_refuses_a_session(empty_dsn: str, setting: str) -> None:
    fails(make_conninfo(empty_dsn, options=f"-c {setting}"), schema.upgrade_sql(), "nothing was changed")


def test_a_role_that_may_not_create_schemas_is_told_what_to_grant(empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn, autocommit=True) as admin, Roles(admin, empty_dsn) as roles:
        admin.execute(f'revoke temporary on database "{admin.info.dbname}" from public')
        user = roles.login().info.user
        low = as_role(empty_dsn, user)
        grant = f'grant create, temporary on database "?{admin.info.dbname}"? to "?{user}"?'
        done = psql(low, schema.upgrade_sql())
        assert (done.returncode, bool(re.search(grant, done.stderr))) == (3, True), done.stderr
        with pytest.raises(psycopg.errors.InsufficientPrivilege, match="lacks the privilege create, temporary"):
            schema.upgrade(low)
        admin.execute(f'grant create, temporary on database "{admin.info.dbname}" to "{user}"')
        applied(low, schema.upgrade_sql())


def test_functions_of_an_older_version_are_replaced(dsn: str) -> None:
    before = dump(dsn, "--schema-only")
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("drop function pgcombine.pause_export(text, text)")
        connection.execute(
            "create function pgcombine.pause_export(export text, other text) returns text return 'older'"
        )
        connection.execute("create function pgcombine.pause(queue text, times integer) returns void return null")
    applied(dsn, schema.upgrade_sql())
    assert dump(dsn, "--schema-only") == before


def test_nothing_on_the_search_path_is_used(empty_dsn: str, dsn: str) -> None:
    """The file makes the same schema for a session that finds other functions, operators and types before the usual."""
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        conn.execute(SHADOWS)
        assert one(conn, "select count(*) from pg_proc where pronamespace = 'evil'::regnamespace") > 1000
        assert one(conn, "select count(*) from pg_operator where oprnamespace = 'evil'::regnamespace") > 500
    for _ in "12":
        applied(make_conninfo(empty_dsn, options="-c search_path=evil,pg_catalog"), schema.upgrade_sql())
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        conn.execute("drop schema evil cascade")
    same(empty_dsn, dsn)


def test_an_error_in_the_middle_changes_nothing(empty_dsn: str) -> None:
    broken = schema.upgrade_sql().replace("\nend\n$pgcombine_file$", "\nperform 1/0;\nend\n$pgcombine_file$")
    fails(empty_dsn, broken, "division by zero")
    before = dump(empty_dsn)
    assert psql(empty_dsn, broken, "-v", "ON_ERROR_STOP=0").returncode == 0
    assert dump(empty_dsn) == before


def test_file_and_program_exclude_each_other(empty_dsn: str) -> None:
    """An upgrade and psql wait until the file is applied. Then they succeed."""
    text = schema.upgrade_sql()
    with psycopg.connect(empty_dsn) as applying, psycopg.connect(empty_dsn, autocommit=True) as conn:
        applying.execute(text.encode())
        with in_background(lambda: schema.upgrade(empty_dsn), lambda: applied(empty_dsn, text)):
            waiting = (
                "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
            )
            eventually(lambda: one(conn, waiting) == 2, what="the upgrade and psql wait")
            applying.commit()
    schema.check(empty_dsn)


@contextmanager
def administrator(dsn: str) -> Iterator[str]:
    """The DSN of a role that owns the database, but isn't a superuser."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        name = conn.info.dbname
        conn.execute(f"drop role if exists {ROLE}")
        conn.execute(f"create role {ROLE}")
        conn.execute(f'alter database "{name}" owner to {ROLE}')
        try:
            yield make_conninfo(dsn, options=f"-c role={ROLE}")
        finally:
            conn.execute(f'alter database "{name}" owner to current_user')
            conn.execute(f"drop owned by {ROLE} cascade")
            conn.execute(f"drop role {ROLE}")


@pytest.mark.parametrize("revision", [None, FIRST])
def test_owner_of_the_database_may_apply_the_file(empty_dsn: str, server: Server, revision: str | None) -> None:
    with administrator(empty_dsn) as dsn:
        if revision is not None:
            schema.upgrade(dsn)
            before = dump(dsn, "--schema-only")
            with_queues(dsn)
        applied(dsn, schema.upgrade_sql())
        with psycopg.connect(dsn, autocommit=True) as conn:
            owners = (
                "select distinct relowner::regrole::text from pg_class where relnamespace = 'pgcombine'::regnamespace"
            )
            assert conn.execute(owners).fetchall() == [(ROLE,)]
            if revision is None:
                make_queue(conn)
                add(conn, {"a": 1})
                combine_all(conn)
                assert values(conn) == {"a": 1}
            else:
                holds(dsn)
                for queue in ("wc", "plain", "notes"):
                    conn.execute("select pgcombine.drop_queue(%s, true)", (queue,))
                assert dump(dsn, "--schema-only") == before


def test_a_schema_of_another_role_is_refused(empty_dsn: str) -> None:
    with administrator(empty_dsn) as dsn:
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("create schema pgcombine")
        fails(
            empty_dsn,
            schema.upgrade_sql(),
            f'schema pgcombine belongs to the role "{ROLE}"',
            f'Apply this file as "{ROLE}"',
        )


def _call(*args: str) -> tuple[int, str, str]:
    done = run_cli("db", "upgrade", *args, env={"PGCOMBINE_DSN": "host=nowhere.invalid"})
    return done.returncode, done.stdout, done.stderr


def test_command_prints_the_file(empty_dsn: str) -> None:
    status, out, err = _call("--sql")
    assert (status, err) == (0, "")
    assert out == schema.upgrade_sql()
    assert _call("--sql", "--json")[:2] == (2, "")
