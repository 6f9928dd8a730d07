"""The code of a source's owner runs with that owner's rights alone, whoever works on the rollup.

PostgreSQL calls functions of a table's indexes when a session plans a query of the table. ``rights.md`` names the
statements that other roles plan: passes that compute columns from the source, and reads of the rollup's view.
"""

from __future__ import annotations

from contextlib import suppress

import psycopg
import pytest
from psycopg import sql
from support.roles import Login

# The function notes each role but the owner that runs it. An index on a constant call runs it in every plan.
TRAP = """
    create schema trap authorization {role};
    create table trap.noted (who text, what text);
    grant insert on trap.noted to public;
    set role {role};
    grant usage on schema trap to public;
    create function trap.note(what text) returns int language plpgsql volatile as $f$
    begin insert into trap.noted values (current_user, what); return 1; end $f$;
    create function trap.spring(what text) returns int language plpgsql immutable as $f$
    begin if current_user <> {name} then return trap.note(what); end if; return 1; end $f$;
    create table trap.t (k text, n int default trap.spring('default'), at int);
    create index on trap.t (k); create index on trap.t ((trap.spring('index')));
    create statistics trap.s on (trap.spring('statistics')), k from trap.t;
    create table trap.part (k text, n int, at int);
    create index on trap.part ((trap.spring('part')));
    insert into trap.t values ('a', 1, 1), ('b', 2, 2); insert into trap.part values ('z', 1, 3);
    reset role
"""
STEPS = (  # the role of each: the schema's owner, a superuser; or the source's owner
    ("owner", "select pgcombine.create_rollup('r', 'trap.t', '{k}', array[%s], slice_by => 'at')"),
    ("owner", "call pgcombine.backfill('r')"),
    ("source", "alter table trap.part inherit trap.t"),
    ("source", "insert into trap.t values ('c', 3); update trap.t set n = 4; delete from trap.t where k = 'a'"),
    ("owner", "select * from pgcombine.verify_rollup('r')"),
    ("owner", "select pgcombine.drain_if_plain()"),
    ("owner", "insert into pgcombine.r_updates (k, row_count) values ('lost', 1)"),
    ("owner", "select * from pgcombine.verify_rollup('r', repair => true)"),
    ("source", "alter table trap.part no inherit trap.t"),
    ("source", "alter table trap.t rename column n to m; alter table trap.t add column x int"),
    ("owner", "select pgcombine_internal.regenerate('r')"),
    ("owner", "select * from pgcombine.verify('r')"),
    ("owner", "select * from pgcombine.status"),
    ("source", "truncate trap.t"),
    ("owner", "select pgcombine.drop_rollup('r')"),
)


@pytest.mark.parametrize("value", ["sum(n) as n", "max(n) as n"])
def test_nobody_else_runs_the_code_of_a_sources_owner(conn: psycopg.Connection, login: Login, value: str) -> None:
    source = login()
    name = source.info.user
    conn.execute(sql.SQL(TRAP).format(role=sql.Identifier(name), name=sql.Literal(name)))  # type: ignore[arg-type]
    for role, step in STEPS:
        if "drain_if_plain" in step:
            if value.startswith("sum"):
                conn.execute("call pgcombine.drain('r')")
        elif role == "owner":
            conn.execute(step.replace("%s", f"'{value}'").encode())
        else:
            source.execute(step.encode())
        assert conn.execute("select distinct who, what from trap.noted").fetchall() == [], step


@pytest.mark.parametrize(
    "change",
    [
        "alter function {function} security invoker",
        "alter function {function} security invoker set role to {owner}",
        "alter function {function} set search_path to trap, pg_catalog",
        "alter function {function} volatile",
        "drop function {function}(text)",
    ],
)
def test_altered_function_of_a_rollup_gains_nothing_and_is_told(
    conn: psycopg.Connection, login: Login, change: str
) -> None:
    source = login()
    name = source.info.user
    conn.execute(sql.SQL(TRAP).format(role=sql.Identifier(name), name=sql.Literal(name)))  # type: ignore[arg-type]
    conn.execute("select pgcombine.create_rollup('r', 'trap.t', '{k}', '{count(*) as n}')")
    source.execute(change.format(function="pgcombine_internal.r_owned", owner=conn.info.user).encode())
    problems = [problem for (problem,) in conn.execute("select pgcombine_internal.rollup_problems('r')")]
    assert any("was altered" in problem for problem in problems), problems
    with suppress(psycopg.errors.InsufficientPrivilege, psycopg.errors.UndefinedFunction):
        conn.execute("call pgcombine.backfill('r')")
    assert conn.execute("select * from trap.noted").fetchall() == []
    conn.execute("select pgcombine_internal.regenerate('r')")
    conn.execute("call pgcombine.backfill('r')")
    assert conn.execute("select pgcombine_internal.rollup_problems('r')").fetchall() == []
    assert conn.execute("select k, n from pgcombine.r order by 1").fetchall() == [("a", 1), ("b", 1)]


def test_definitions_of_two_parts_change_at_the_same_time(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table src (k text) partition by list (k)")
    conn.execute("create table a partition of src for values in ('a'); create table b partition of src default")
    conn.execute("select pgcombine.create_rollup('r', 'src', '{k}', '{count(*) as n}')")
    with psycopg.connect(dsn) as other:
        other.execute("alter table a alter k set statistics 10")
        conn.execute("set lock_timeout = '5s'; alter table b alter k set statistics 10")


def test_setting_does_not_keep_rollups_from_following(conn: psycopg.Connection, login: Login) -> None:
    conn.execute("create table src (k text); create table part (k text); insert into part values ('a')")
    conn.execute("select pgcombine.create_rollup('r', 'src', '{k}', '{count(*) as n}')")
    conn.execute("set pgcombine.making_triggers = on; alter table part inherit src")
    assert conn.execute("select k, n from pgcombine.r").fetchall() == [("a", 1)]


def test_temporary_part_of_another_session_blocks_nothing(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table src (k text)")
    conn.execute("select pgcombine.create_rollup('r', 'src', '{k}', '{count(*) as n}')")
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute("create temporary table mine () inherits (src)")
        conn.execute("create table part () inherits (src); alter table src set (fillfactor = 90)")
        conn.execute("select pgcombine_internal.regenerate('r')")
        conn.execute("insert into src values ('a')")
        assert conn.execute("select pgcombine_internal.rollup_problems('r')").fetchall() == []
    assert conn.execute("select k, n from pgcombine.r").fetchall() == [("a", 1)]
