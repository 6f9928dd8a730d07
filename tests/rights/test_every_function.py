"""A role without rights calls the functions that run with their owner's rights (``security definer``).

A call must fail with SQLSTATE 42501 or an error of pgcombine, and must change nothing. ``FREE`` lists functions that
aren't called. A trigger function must not work on the role's own table. So the tests detect a new function that checks
no right. They also fail if a new function has a parameter for which ``fill`` returns no value.

PostgreSQL may also run the role's code in a privileged session. ``unguarded`` calls the functions from such code.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from psycopg import sql
from support.mutants import mutate_functions
from support.queues import add, combine_all, make_queue, one
from support.roles import Login, Roles, as_role
from support.servers import SETTINGS, embedded
from support.wait import eventually

from pgcombine import schema

Values = Mapping[str, list[Any]]

TOKEN = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"

# functions that don't check their caller, because any role may have the result
OPEN = ["pgcombine_internal.queue_marks(text)"]
# functions that a role without rights may call without an error
FREE = [*OPEN]

FUNCTIONS = """
    select p.oid::regprocedure::text, n.nspname, p.proname, p.prorettype = 'trigger'::regtype,
           coalesce(p.proconfig, '{}') @> array['search_path=pg_catalog, pg_temp'], p.prokind,
           array(select a.name || ' ' || format_type(a.type, null)
                 from unnest(p.proargtypes::oid[], p.proargnames) with ordinality a (type, name, place)
                 where a.place <= p.pronargs order by a.place)
    from pg_proc p join pg_namespace n on n.oid = p.pronamespace
    where p.prosecdef and n.nspname in ('pgcombine', 'pgcombine_internal')
      and p.prorettype <> 'event_trigger'::regtype -- nobody can call these
    order by 1
"""


def fill(conn: psycopg.Connection) -> Values:
    """Create a queue and other objects. Returns arguments for the functions, by the name and type of a parameter."""
    make_queue(conn)
    add(conn, {"a": 1})
    combine_all(conn)
    add(conn, {"a": 1})
    loads: list[UUID] = []
    for kind in ("stage", "stage", "values", "stage"):
        loads.append(uuid4())
        one(conn, "select pgcombine_internal.begin_load(%s, 'wc', %s, %s)", loads[-1], str(loads[-1]), kind)
    conn.execute("insert into pgcombine.token (queue, token, updates) values ('wc', 'r', 1)")
    conn.execute("update pgcombine.spark_load set ended_at = now() where load = %s", (loads[3],))
    conn.execute("select pgcombine.create_export('words', 'wc')")
    conn.execute("select pgcombine.create_feed('words', 'wc')")
    conn.execute("create schema app; grant usage on schema app to public; create table app.doc (body text)")
    conn.execute("insert into app.doc values ('a')")
    conn.execute("select pgcombine.create_rollup('docs', 'app.doc', '{body}', '{count(*) as n,max(body) as top}')")
    conn.execute("select pgcombine.create_budget('seats', array['show integer'])")
    conn.execute("select pgcombine_internal.handoff_handshake('a')")
    conn.execute("select pgcombine_internal.handoff_register('b', 'host=b user=app')")
    return {
        "load uuid": loads,
        "ended boolean": [False, True],
        "token uuid": [TOKEN],
        "queue text": ["wc"],
        "number bigint": [1],
        "token text": ["t"],
        "bucket integer": [0],
        "mark xid8": ["99"],
        "seen txid_snapshot": ["9:9:"],
        "seen_by txid_snapshot": ["9:9:"],
        "horizon bigint": [9],
        "keep interval": ["0 s"],
        "backlog bigint": [1],
        "segment regclass": ["pgcombine.wc_updates_b0000_s0"],
        # parameters about exports and their destinations
        "export text": ["words"],
        "kind text": ["export"],
        "name text": ["words"],
        "ticket bigint": [None],
        "reason text": ["no reason"],
        "failure text": [None],
        "probe interval": ["1 min"],
        "wait interval": ["1 min"],
        # parameters about feeds
        "feed text": ["words"],
        "consumer text": ["c"],
        "after jsonb": ["{}"],
        "most integer": [10],
        "compact boolean": [True, False],
        "upto jsonb": [None],
        # parameters about writes to several servers
        "server uuid": [TOKEN],
        "servers text[]": [["a", "b"]],
        "replicas integer": [2],
        "destination text": ["b"],
        "coordinator text": ["b"],
        "tokens uuid[]": [[TOKEN]],
        "digests uuid[]": [[TOKEN]],
        "digest uuid": [TOKEN],
        "shape uuid": [TOKEN],
        "servers jsonb[]": [["null"]],
        "destinations text[]": [["b"]],
        "placed text[]": [["a", "b"]],
        "coordinators uuid[]": [[TOKEN]],
        "payload text": ['{"{a}","{1}"}'],
        "max_writes integer": [10],
        "payloads text[]": [['{"{a}","{1}"}']],
        "deduplicated bigint": [0],
        "number integer": [1],
        "numbers integer[]": [[1]],
        "sqlstates text[]": [["x"]],
        "errors text[]": [["x"]],
        # parameters about rollups
        "rollup text": ["docs"],
        # parameters about contributions
        "source text": ["s"],
        "updates jsonb": ["[]"],
        "statement text": ["select 1"],
        "wait boolean": [True, False],
        "repair boolean": [True, False],
        # parameters about budgets
        "show integer": [7],
        "show integer[]": [[7]],
        "amount bigint": [1],
        "amounts bigint[]": [[1]],
        "hold text": ["h"],
        "for_at_most interval": ["1 min"],
    }


@pytest.fixture
def values(conn: psycopg.Connection) -> Values:
    return fill(conn)


def digest(conn: psycopg.Connection) -> dict[str, str]:
    """Return for each table of the schema its privileges and a digest of its rows."""
    found: dict[str, str] = {}
    for name, acl in conn.execute(
        "select c.oid::regclass::text, c.relacl::text from pg_class c join pg_namespace n on n.oid = c.relnamespace "
        "where n.nspname = 'pgcombine' and c.relkind in ('r', 'p')"
    ).fetchall():
        rows = sql.SQL("select md5(string_agg(t::text, ',' order by t::text)) from {} t").format(sql.SQL(name))
        found[name] = f"{acl} {one(conn, rows.as_string())}"
    return found


def statement(namespace: str, name: str, kind: str, parameters: list[str]) -> sql.Composed:
    return sql.SQL("{} {}.{}({})").format(
        sql.SQL("call" if kind == "p" else "select"),
        *(sql.Identifier(namespace), sql.Identifier(name)),
        sql.SQL(", ").join(sql.SQL("%s::{}").format(sql.SQL(p.split(" ", 1)[1])) for p in parameters),
    )


def misplaced(role: psycopg.Connection, function: str) -> Iterator[str]:
    """Yield a problem for each way in which a role can use a trigger function on its own table."""
    trigger = (
        "create temporary table t (n int); create trigger t before insert on t for each {} execute function {}({})"
    )
    for level, arguments in product(("statement", "row"), ("", "'wc', '1'")):
        with role.transaction(force_rollback=True), suppress(psycopg.errors.InsufficientPrivilege):
            role.execute(trigger.format(level, function, arguments).encode())
            with suppress(psycopg.Error), role.transaction():
                role.execute("insert into t values (1)")
                yield f"{function}({arguments}) runs as a trigger for each {level} of anybody's table"


def unchecked(owner: psycopg.Connection, role: psycopg.Connection, values: Values, *, any_queue: bool) -> Iterator[str]:
    """Call the functions as ``role`` and yield the problems.

    Functions in ``FREE`` aren't called; functions without parameters are called only with ``any_queue``.
    """
    before = digest(owner)
    for signature, namespace, name, trigger, pinned, kind, parameters in owner.execute(FUNCTIONS).fetchall():
        if not pinned:
            yield f"{signature} has no fixed search path"
        if trigger:
            yield from misplaced(role, f"{namespace}.{name}")
            continue
        if unknown := [parameter for parameter in parameters if parameter not in values]:
            yield f"{signature}: no value is known for {unknown}"
            continue
        if signature in FREE or (not parameters and not any_queue):
            continue
        call = statement(namespace, name, kind, parameters)
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


def test_functions_refuse_a_role_without_rights(conn: psycopg.Connection, login: Login, values: Values) -> None:
    assert list(unchecked(conn, login(), values, any_queue=True)) == []


def test_functions_refuse_a_role_with_rights_on_another_queue(
    conn: psycopg.Connection, login: Login, values: Values
) -> None:
    make_queue(conn, "own")
    role = login(*[f"all on pgcombine.own_{table}" for table in ("updates", "values", "pending", "current")])
    assert list(unchecked(conn, role, values, any_queue=False)) == []


@pytest.mark.parametrize(
    ("definition", "found"),
    [
        (
            "(queue text) returns bigint language sql security definer set search_path = pg_catalog, pg_temp "
            "begin atomic select count(*) from pgcombine.wc_updates; end",
            ["pgcombine.hole(text) with ('wc',) isn't refused"],
        ),
        (
            "(bucket integer) returns void language plpgsql security definer set search_path = pg_catalog, pg_temp "
            "as $$ begin insert into pgcombine.wc_updates (word, n) values ('hole', 1); end $$",
            [
                "pgcombine.hole(integer) with (0,) isn't refused",
                "pgcombine.hole(integer) with (0,) changed ['pgcombine.wc_updates', 'pgcombine.wc_updates_b000",
            ],
        ),
        (
            "(what point) returns void language plpgsql security definer as $$ begin end $$",
            ["pgcombine.hole(point) has no fixed search path", "pgcombine.hole(point): no value is known for"],
        ),
        (
            "() returns trigger language plpgsql security definer set search_path = pg_catalog, pg_temp "
            "as $$ begin return null; end $$",
            [
                f"pgcombine.hole({arguments}) runs as a trigger for each {level} of anybody's table"
                for level, arguments in product(("statement", "row"), ("", "'wc', '1'"))
            ],
        ),
    ],
)
def test_function_without_a_check_is_detected(
    conn: psycopg.Connection, login: Login, values: Values, definition: str, found: list[str]
) -> None:
    conn.execute(f"create function pgcombine.hole{definition}".encode())
    problems = list(unchecked(conn, login(), values, any_queue=True))
    assert len(problems) == len(found)
    assert all(problem.startswith(start) for problem, start in zip(problems, found, strict=True)), problems


# When a role runs one of these commands, PostgreSQL calls the functions of an index or of a materialized view as the
# owner of the table or view, in the role's session. Autovacuum also analyzes tables.
COMMANDS = (
    "analyze hostile.t",
    "reindex table hostile.t",
    "vacuum full hostile.t",
    "refresh materialized view hostile.v",
)

SPRING = """
    create table hostile.outcome (statement text, sqlstate text, message text);
    create table hostile.call (statement text);
    create function hostile.spring() returns void language plpgsql as $$
    declare
        s text;
    begin
        for s in select c.statement from hostile.call c loop
            begin
                execute s;
                raise exception 'done' using errcode = 'TRAPS';
            exception when others then
                insert into hostile.outcome values (s, sqlstate, sqlerrm);
            end;
        end loop;
    end $$;
    create function hostile.f(n int) returns int language plpgsql immutable as $$
    begin
        if session_user <> current_user then
            perform hostile.spring();
        end if;
        return n;
    end $$;
    create table hostile.t (n int);
    insert into hostile.t values (1);
    create index on hostile.t (hostile.f(n));
    create materialized view hostile.v as select hostile.f(1)
"""


def arm(owner: psycopg.Connection, role: psycopg.Connection, values: Values) -> dict[str, str]:
    """Store calls of the functions for ``SPRING``. Returns each function's signature by the text of its call."""
    called: dict[str, str] = {}
    for signature, namespace, name, trigger, _, kind, parameters in owner.execute(FUNCTIONS).fetchall():
        if not trigger and signature not in OPEN:  # trigger functions are checked by ``misplaced``
            call = statement(namespace, name, kind, parameters)
            text = psycopg.ClientCursor(role).mogrify(call, [values[parameter][0] for parameter in parameters])
            called[text] = signature
    role.execute("truncate hostile.call")
    role.cursor().executemany("insert into hostile.call values (%s)", [(text,) for text in called])
    return called


def called_without_refusal(role: psycopg.Connection, called: Mapping[str, str]) -> Iterator[str]:
    """Yield the functions whose calls since the last check weren't refused as security-restricted operations."""
    found = role.execute("delete from hostile.outcome returning statement, sqlstate, message").fetchall()
    assert {text for text, _, _ in found} == set(called), "not all functions were called"
    for text, sqlstate, message in found:
        refusals = ("security-restricted operation", "permission denied for function")  # the latter before any call
        if sqlstate != "42501" or not any(refusal in message for refusal in refusals):
            yield f"{called[text]}: {sqlstate} {message}"


def unguarded(
    owner: psycopg.Connection, role: psycopg.Connection, commanders: Iterable[psycopg.Connection], values: Values
) -> Iterator[str]:
    """Yield the functions that don't refuse a call from a security-restricted operation in another role's session.

    In such an operation, ``session_user`` is the other role. A function that trusts ``session_user`` would use the
    rights of that other role.
    """
    called = arm(owner, role, values)
    before = digest(owner)
    for commander, command in product(commanders, COMMANDS):
        commander.execute(command.encode())
        yield from (
            f"{problem} in {command} by {commander.info.user}" for problem in called_without_refusal(role, called)
        )
        if digest(owner) != before:
            yield f"{command} by {commander.info.user} changed something"
            before = digest(owner)


@dataclass
class RestrictedOperations:
    """A queue's owner, a hostile role with a schema and no rights, and the sessions that give the commands."""

    owner: psycopg.Connection
    role: psycopg.Connection
    commanders: list[psycopg.Connection]
    values: Values

    def problems(self) -> list[str]:
        return list(unguarded(self.owner, self.role, self.commanders, self.values))


@pytest.fixture
def restricted_operations(empty_dsn: str, login: Login) -> Iterator[RestrictedOperations]:
    names = [login().info.user for _ in range(3)]
    owner, role, other = map(sql.Identifier, names)
    with ExitStack() as stack:
        admin = stack.enter_context(psycopg.connect(empty_dsn, autocommit=True))
        database = sql.Identifier(admin.info.dbname)
        admin.execute(sql.SQL("grant create on database {} to {}, {}").format(database, owner, role))
        # members of the hostile role may run the commands on its table
        admin.execute(sql.SQL("grant {} to {}, {}").format(role, owner, other))
        admin.execute(sql.SQL("alter database {} owner to {}").format(database, other))
        schema.upgrade(as_role(empty_dsn, names[0]))
        first, second, third = (
            stack.enter_context(psycopg.connect(as_role(empty_dsn, name), autocommit=True)) for name in names
        )
        second.execute("create schema hostile; " + SPRING)
        yield RestrictedOperations(first, second, [admin, first, third], fill(first))
        for connection in (first, second, third):
            connection.close()
        admin.execute(sql.SQL("alter database {} owner to current_user").format(database))
        for name in (role, owner, other):
            admin.execute(sql.SQL("drop owned by {} cascade").format(name))


def test_functions_refuse_security_restricted_operations(restricted_operations: RestrictedOperations) -> None:
    assert restricted_operations.problems() == []


def test_function_without_the_guard_is_detected(restricted_operations: RestrictedOperations) -> None:
    """The guard is the function ``caller``, by which functions find out who calls them.

    The test adds a function that trusts session_user, then removes calls of ``caller``, then breaks ``caller``.
    """
    restricted_operations.commanders = restricted_operations.commanders[:1]
    restricted_operations.owner.execute(
        "create function pgcombine.hole(queue text) returns void language plpgsql security definer "
        "set search_path = pg_catalog, pg_temp as $$ begin "
        "perform pgcombine_internal.require_right(queue, 'work', session_user); end $$"
    )
    assert [problem.split(": ")[0] for problem in restricted_operations.problems()] == ["pgcombine.hole(text)"] * len(
        COMMANDS
    )
    restricted_operations.owner.execute("drop function pgcombine.hole")
    mutate_functions(restricted_operations.owner, "pgcombine_internal.caller()", "session_user")
    assert "pgcombine_internal.failures()" in {problem.split(": ")[0] for problem in restricted_operations.problems()}
    mutate_functions(restricted_operations.owner, "unlisten pgcombine_guard;", "")
    assert len(restricted_operations.problems()) >= len(COMMANDS) * 25


@pytest.mark.slow
def test_functions_refuse_calls_in_autovacuum(tmp_path: Path) -> None:
    """Autovacuum, which runs as a superuser, analyzes the hostile role's table."""
    with (
        embedded(tmp_path / "home", SETTINGS | {"autovacuum_naptime": "1s"}) as dsn,
        psycopg.connect(dsn, autocommit=True) as conn,
        Roles(conn, dsn) as roles,
    ):
        schema.upgrade(dsn)
        values = fill(conn)
        role = roles.login(sql.SQL("create on database {}").format(sql.Identifier(conn.info.dbname)).as_string())
        role.execute("create schema hostile; " + SPRING)
        called = arm(conn, role, values)
        before = digest(conn)
        role.execute(
            "alter table hostile.t set (autovacuum_analyze_threshold = 0, autovacuum_analyze_scale_factor = 0)"
        )
        role.execute("insert into hostile.t select generate_series(1, 60)")
        eventually(lambda: one(role, "select count(*) from hostile.outcome"), what="autovacuum analyzes the table")
        assert list(called_without_refusal(role, called)) == []
        assert digest(conn) == before
