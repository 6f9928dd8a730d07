"""The code of a source's owner runs with that owner's rights alone, whoever works on the rollup.

PostgreSQL calls functions of a table's indexes when a session plans a query of the table. ``rights.md`` names the
statements that other roles plan: passes that compute columns from the source, and reads of the rollup's view.
A session keeps what these calls gave, so each step has a session of its own.
"""

from __future__ import annotations

from contextlib import suppress

import psycopg
import pytest
from psycopg import sql
from support.queues import make_queue
from support.roles import Login, as_role
from support.states import raises_state

# The function notes each role but the owner that runs it. An index on a constant call runs it in every plan.
TRAP = """
    create schema trap authorization {role};
    create sequence trap.times; grant usage on trap.times to public;
    create table trap.noted (who text, what text);
    grant insert on trap.noted to public;
    set role {role};
    grant usage on schema trap to public;
    create function trap.note(what text) returns int language plpgsql volatile as $f$
    begin perform nextval('trap.times'); insert into trap.noted values (current_user, what); return 1; end $f$;
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
    ("owner", "call pgcombine.drain('r')"),  # unless passes compute columns
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


def trapped(conn: psycopg.Connection, login: Login) -> psycopg.Connection:
    """Make the trap, and return a session of the role that owns it."""
    source = login()
    name = source.info.user
    conn.execute(sql.SQL(TRAP).format(role=sql.Identifier(name), name=sql.Literal(name)))  # type: ignore[arg-type]
    return source


@pytest.mark.parametrize("value", ["sum(n) as n", "max(n) as n"])
def test_nobody_else_runs_the_code_of_a_sources_owner(
    conn: psycopg.Connection, dsn: str, login: Login, value: str
) -> None:
    name = trapped(conn, login).info.user
    for role, step in STEPS:
        if "drain" in step and not value.startswith("sum"):
            continue
        with psycopg.connect(dsn if role == "owner" else as_role(dsn, name), autocommit=True) as session:
            session.execute(step.replace("%s", f"'{value}'").encode())
        assert conn.execute("select distinct who, what from trap.noted").fetchall() == [], step
        assert conn.execute("select is_called from trap.times").fetchone() == (False,), step  # also after a rollback


def test_code_of_a_sources_owner_does_not_change_the_session(conn: psycopg.Connection, login: Login) -> None:
    """A setting that code makes for the session would outlast the function that ran the code."""
    source = trapped(conn, login)
    source.execute(
        "create function trap.set() returns int language plpgsql immutable as $f$ begin "
        "perform set_config('search_path', 'trap', false), set_config('work_mem', '64kB', false); return 1; end $f$"
    )
    source.execute("create index on trap.t ((trap.set()))")
    settings = "select current_setting('search_path'), current_setting('work_mem')"
    conn.execute("discard all")
    before = conn.execute(settings).fetchone()
    conn.execute("select pgcombine.create_rollup('r', 'trap.t', '{k}', '{count(*) as n}')")
    conn.execute("call pgcombine.backfill('r')")
    conn.execute("insert into pgcombine.r_updates (k, n) values ('lost', 1)")
    assert len(conn.execute("select * from pgcombine.verify_rollup('r', repair => true)").fetchall()) == 1
    assert conn.execute(settings).fetchone() == before
    assert conn.execute("select k, n from pgcombine.r order by 1").fetchall() == [("a", 1), ("b", 1)]


@pytest.mark.parametrize("place", ["key", "value"])
@pytest.mark.parametrize(
    "type_", ["trap.color", "trap.color[]", "trap.span", "trap.spans", "trap.pair", "public.mixed"]
)
def test_type_of_another_role_is_refused(conn: psycopg.Connection, login: Login, type_: str, place: str) -> None:
    """The type's owner could add casts, which to_jsonb and ``::text`` call. ANALYZE calls a range's subtype_diff."""
    source = trapped(conn, login)
    source.execute(
        "create type trap.color as enum ('red'); create type trap.pair as (x int, y text);"
        "create function trap.diff(int, int) returns float8 language sql immutable as 'select 1.0::float8';"
        "create type trap.span as range (subtype = int, subtype_diff = trap.diff, multirange_type_name = trap.spans)"
    )
    conn.execute("create type public.mixed as (x int, y trap.color)")
    source.execute(f"create table trap.s (k {type_}, n int)".encode())
    key, value = ("k", "count(*) as n") if place == "key" else ("n", "array_agg(k order by n) as ks")
    with raises_state("PC003"):
        conn.execute("select pgcombine.create_rollup('r', 'trap.s', %s, %s)", ([key], [value]))


def test_code_of_a_sources_owner_has_no_rights_of_the_session(conn: psycopg.Connection, dsn: str, login: Login) -> None:
    """Functions with their owner's rights ask for the rights of the session's role, which runs the owner's code."""
    source = trapped(conn, login)
    make_queue(conn)
    conn.execute("select pgcombine.create_feed('words', 'wc')")
    source.execute(
        """
        create function trap.call() returns int language plpgsql volatile as $f$ declare p record; begin
            if session_user = current_user then return 1; end if;
            for p in select f.oid::regproc, f.oid::regprocedure as signature, (
                    select string_agg('null::' || format_type(t, null), ', ') from unnest(f.proargtypes) t) as nulls
                from pg_proc f where f.prosecdef and f.pronamespace in ('pgcombine'::regnamespace,
                    'pgcombine_internal'::regnamespace) and has_function_privilege(f.oid, 'execute')
                    and f.prorettype not in ('trigger'::regtype, 'event_trigger'::regtype)
                    and f.proowner <> (select oid from pg_roles where rolname = current_user)
            loop
                begin
                    execute format('select * from %s(%s)', p.oid, p.nulls);
                    raise notice '% ran', p.signature;
                exception when others then
                    raise notice '% %', p.signature,
                        case when sqlerrm ~ 'code of another role' then 'refused' else sqlerrm end;
                end;
            end loop;
            return 1; end $f$;
        create function trap.look() returns int language plpgsql immutable as 'begin return trap.call(); end';
        create index on trap.t ((trap.look()))
        """
    )
    conn.execute("select pgcombine.create_rollup('r', 'trap.t', '{k}', '{count(*) as n}')")
    notices: list[str] = []
    with psycopg.connect(dsn, autocommit=True) as session:
        session.add_notice_handler(lambda notice: notices.append(notice.message_primary or ""))
        session.execute("call pgcombine.backfill('r')")
    assert len(notices) > 25
    assert {notice for notice in notices if not notice.endswith(" refused")} == {
        "pgcombine_internal.queue_marks(text) ran"  # for every role
    }


@pytest.mark.parametrize("error", [None, "P0001", "57014", "P0004", "PC099"])
def test_code_of_a_sources_owner_prepares_no_statement(
    conn: psycopg.Connection, dsn: str, login: Login, error: str | None
) -> None:
    """The client would later execute such a statement with its rights, under the name of a statement of its own."""
    source = trapped(conn, login)
    after = f"raise exception using errcode = '{error}';" if error else ""
    source.execute(
        f"""
        create function trap.prepare() returns int language plpgsql volatile as $f$ begin
            if session_user = current_user then return 1; end if;
            perform nextval('trap.times');
            deallocate all;
            execute 'prepare _pg3_0 as select trap.note(''prepared'')';
            execute 'prepare "ALL" as select trap.note(''prepared'')';
            {after}
            return 1; end $f$;
        create function trap.look() returns int language plpgsql immutable as 'begin return trap.prepare(); end';
        create index on trap.t ((trap.look()))
        """.encode()
    )
    conn.execute("select pgcombine.create_rollup('r', 'trap.t', '{k}', '{count(*) as n}')")
    with psycopg.connect(dsn, autocommit=True, prepare_threshold=1) as session:
        for _ in range(3):
            session.execute("select 1")
        with suppress(psycopg.Error):
            session.execute("call pgcombine.backfill('r')", prepare=False)
        assert session.execute("select * from pg_prepared_statements where from_sql", prepare=False).fetchall() == []
    assert conn.execute("select is_called from trap.times").fetchone() == (True,)
    assert conn.execute("select who from trap.noted").fetchall() == []


DOMAINS = {  # the type of the column k
    "domain": "trap.d",
    "domain over a domain": "trap.dd",
    "array": "trap.d[]",
    "row": "trap.pair",
    "range": "trap.span",
}


@pytest.mark.parametrize("type_", DOMAINS)
def test_nobody_else_runs_the_checks_of_a_domain(conn: psycopg.Connection, dsn: str, login: Login, type_: str) -> None:
    """PostgreSQL calls a domain's checks for each cast and constant, whoever owns the table with the domain."""
    source = trapped(conn, login)
    source.execute("create domain trap.d as int; create domain trap.dd as trap.d; create type trap.pair as (x trap.d)")
    source.execute("create type trap.span as range (subtype = trap.d)")
    source.execute(f"create table trap.s (k {DOMAINS[type_]}, n int); create index on trap.s (k)".encode())
    create = "select pgcombine.create_rollup('r', 'trap.s', '{k}', '{count(*) as n}')"
    if type_ in ("array", "row", "range"):
        with raises_state("PC003"):
            conn.execute(create)
        return
    conn.execute(create)
    conn.execute("select pgcombine.create_tier('t', 'r', '{k}')")
    for role, step in (
        ("source", "alter domain trap.d add constraint c check (trap.spring('domain') = 1)"),
        ("owner", "select pgcombine.set_expiry('r', 'k < 0')"),
        ("owner", "select pgcombine.create_tier('u', 'r', array['k / 10 as k'])"),
        ("source", "alter domain trap.d rename to e"),
        ("source", "insert into trap.s values (1), (2)"),
        ("owner", "call pgcombine.backfill('r')"),
        ("owner", "call pgcombine.drain('r')"),
        ("owner", "call pgcombine.drain('t')"),
        ("owner", "call pgcombine.expire('r')"),
        ("owner", "select * from pgcombine.verify_rollup('r')"),
        ("owner", "select pgcombine_internal.regenerate(q) from unnest(array['r', 't', 'u']) q"),
        ("owner", "select pgcombine.rebucket('r', 2)"),
    ):
        with psycopg.connect(dsn if role == "owner" else as_role(dsn, source.info.user), autocommit=True) as session:
            session.execute(step.encode())
        assert conn.execute("select distinct who, what from trap.noted").fetchall() == [], step
    assert conn.execute("select k, n from pgcombine.r order by 1").fetchall() == [(1, 1), (2, 1)]


@pytest.mark.parametrize(
    "change",
    [
        "alter function {function} security invoker",
        "alter function {function} security invoker set role to {owner}",
        "alter function {function} set search_path to trap, pg_catalog",
        "alter function {function} set search_path to pgcombine_internal",
        "alter function {function} volatile",
        "alter function {function} strict",
        "drop function {function}(text)",
        *(f"alter function pgcombine_internal.r_rollup() {change}" for change in ("strict", "immutable")),
    ],
)
def test_altered_function_of_a_rollup_gains_nothing_and_is_told(
    conn: psycopg.Connection, login: Login, change: str
) -> None:
    source = trapped(conn, login)
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
