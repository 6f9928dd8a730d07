"""Attacks by roles that have few rights or none."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from psycopg import errors, sql
from support.queues import add, make_queue, one
from support.roles import Login, as_role
from support.servers import Server

from pgcombine import Worker, schema


@pytest.fixture
def queues(conn: psycopg.Connection) -> psycopg.Connection:
    """The queues wc (with the export words) and other, and the schema attacker, where any role may create objects."""
    make_queue(conn)
    make_queue(conn, "other")
    conn.execute("select pgcombine.create_export('words', 'wc')")
    conn.execute("create schema attacker; grant all on schema attacker to public")
    return conn


@contextmanager
def working(dsn: str) -> Iterator[threading.Thread]:
    stop = threading.Event()
    thread = threading.Thread(target=Worker(dsn, poll=0.05).run, args=(stop,))
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        thread.join()


@pytest.fixture
def source(queues: psycopg.Connection, login: Login) -> psycopg.Connection:
    """A role that owns attacker.t, the source of the rollup spent."""
    role = login()
    role.execute("create table attacker.t (word text, n int)")
    role.execute("insert into attacker.t values ('a', 1)")
    queues.execute(
        "select pgcombine.create_rollup('spent', 'attacker.t', array['word'], array['sum(n) as n', 'max(n) as top'])"
    )
    return role


def test_trigger_of_a_rollup_runs_with_the_rights_of_its_sources_owner(
    queues: psycopg.Connection, source: psycopg.Connection, login: Login
) -> None:
    found = queues.execute(
        "select pg_get_userbyid(proowner), prosecdef, proconfig from pg_proc where proname = 'spent_rollup'"
    ).fetchone()
    assert found == (source.info.user, True, ["search_path=pg_catalog, pg_temp"])
    writer = login("insert, delete, truncate on attacker.t")
    writer.execute("insert into attacker.t values ('b', 2)")
    assert one(queues, "select n from pgcombine.spent where word = 'b'") == 2
    writer.execute("truncate attacker.t")
    assert one(queues, "select count(*) from pgcombine.spent where n <> 0") == 0


@pytest.mark.parametrize(
    "statement",
    [
        "create or replace function pgcombine_internal.spent_rollup() returns trigger language plpgsql as "
        "'begin return null; end'",
        "alter function pgcombine_internal.spent_rollup() rename to other",
        "update pgcombine.rollup set definition = '{}'",
        "delete from pgcombine.rollup",
        "select * from pgcombine.verify_rollup('spent', repair => true)",
        "select pgcombine_internal.backfill_slice('spent')",
        "select pgcombine.drop_rollup('spent')",
        "select pgcombine.create_rollup('mine', 'attacker.t', array['word'], array['count(*) as n'])",
        "select * from pgcombine.spent",
        "select * from pgcombine.spent_source",
    ],
)
def test_owner_of_a_source_gets_no_right_on_the_rollup(source: psycopg.Connection, statement: str) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        source.execute(statement.encode())


def test_trigger_function_of_a_rollup_is_for_its_source_alone(source: psycopg.Connection, login: Login) -> None:
    other = login()
    other.execute("create table attacker.other (word text, n int)")
    with pytest.raises(errors.InsufficientPrivilege):
        other.execute(
            "create trigger t after insert on attacker.other for each row execute function "
            "pgcombine_internal.spent_rollup()"
        )


def test_policies_of_a_source_never_run_with_the_schema_owners_rights(
    server: Server, empty_dsn: str, login: Login
) -> None:
    """The schema's owner isn't a superuser, and the source forces row security even for its owner."""
    owner, role = (login().info.user for _ in range(2))
    with psycopg.connect(empty_dsn, autocommit=True) as admin:
        admin.execute(
            sql.SQL("grant create on database {} to {}, {}; grant {} to {}").format(
                *map(sql.Identifier, (admin.info.dbname, owner, role, role, owner))
            )
        )
        schema.upgrade(as_role(empty_dsn, owner))
        with (
            psycopg.connect(as_role(empty_dsn, owner), autocommit=True) as own,
            psycopg.connect(as_role(empty_dsn, role), autocommit=True) as other,
        ):
            other.execute("create schema attacker; create table attacker.t (word text, n int)")
            other.execute("insert into attacker.t values ('a', 1)")
            own.execute("select pgcombine.create_rollup('spent', 'attacker.t', array['word'], array['sum(n) as n'])")
            other.execute(
                "create function attacker.evil() returns boolean language plpgsql as $$ begin "
                "raise exception 'runs as %', current_user; end $$; "
                "create policy p on attacker.t using (attacker.evil()); "
                "alter table attacker.t enable row level security, force row level security"
            )
            for statement in ("call pgcombine.backfill('spent')", "select * from pgcombine.verify_rollup('spent')"):
                with pytest.raises(errors.InsufficientPrivilege):
                    own.execute(statement.encode())
                own.execute("update pgcombine.rollup set ready_at = now()")
        for name in (role, owner):
            admin.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(name)))


def test_triggers_with_a_rollups_names_on_other_tables_are_ignored(
    queues: psycopg.Connection, source: psycopg.Connection, login: Login
) -> None:
    """The event triggers don't subtract the other table's rows from the rollup, and don't refuse to drop that table."""
    other = login()
    other.execute(
        "create table attacker.other (word text, n int); insert into attacker.other values ('a', 7); "
        "create function attacker.nothing() returns trigger language plpgsql as 'begin return null; end'; "
        'create trigger "~pgcombine_spent_truncate" before truncate on attacker.other '
        "execute function attacker.nothing()"
    )
    queues.execute("call pgcombine.backfill('spent')")
    source.execute("alter table attacker.t add more int")
    assert one(queues, "select n from pgcombine.spent where word = 'a'") == 1
    assert queues.execute("select * from pgcombine.verify('spent')").fetchall() == []
    other.execute("drop table attacker.other")


def test_idle_lock_of_a_hostile_role_hides_no_backlog(queues: psycopg.Connection, login: Login) -> None:
    role = login()
    role.execute("set application_name = 'pgcombine worker x'")
    assert one(role, "select pgcombine_internal.take_idle_lock('pgcombine.wc_updates'::regclass)") == "taken"
    add(queues, {"a": 1})
    assert one(queues, "select pending from pgcombine.queue_stat where queue = 'wc'") == 1


def test_source_of_another_role_stops_neither_an_upgrade_nor_a_drop(
    server: Server, empty_dsn: str, login: Login
) -> None:
    """The schema's owner isn't a superuser, and is no longer a member of the role that owns the source."""
    owner, role = (login().info.user for _ in range(2))
    with psycopg.connect(empty_dsn, autocommit=True) as admin:
        admin.execute(
            sql.SQL("grant create on database {} to {}, {}").format(
                *map(sql.Identifier, (admin.info.dbname, owner, role))
            )
        )
        admin.execute(sql.SQL("grant {} to {}").format(*map(sql.Identifier, (role, owner))))
        schema.upgrade(as_role(empty_dsn, owner))
        with (
            psycopg.connect(as_role(empty_dsn, owner), autocommit=True) as own,
            psycopg.connect(as_role(empty_dsn, role), autocommit=True) as other,
        ):
            other.execute("create schema attacker; create table attacker.t (word text)")
            own.execute("select pgcombine.create_rollup('spent', 'attacker.t', array['word'], array['count(*) as n'])")
            admin.execute(sql.SQL("revoke {} from {}").format(*map(sql.Identifier, (role, owner))))
            own.execute("update pgcombine.schema_version set digest = 'older'")
            warnings: list[str] = []
            schema.upgrade(as_role(empty_dsn, owner), warn=warnings.append)
            assert len(warnings) == 1
            assert warnings[0].startswith('the view and the triggers of rollup "spent" can\'t be made again: ')
            other.execute("insert into attacker.t values ('a')")
            assert one(own, "select n from pgcombine.spent") == 1
            own.execute("select pgcombine.drop_rollup('spent')")
            other.execute("insert into attacker.t values ('a')")
            assert one(own, "select count(*) from pg_trigger where tgname ~ 'spent'") == 0
        for name in (role, owner):
            admin.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(name)))


def test_views_hide_rows_from_users_functions(queues: psycopg.Connection, login: Login) -> None:
    queues.execute(
        "insert into pgcombine.quarantined_key (queue, key, updates, attempts, error) values "
        """('other', '{"word": "secret"}', 0, 1, 'secret')"""
    )
    role = login()
    seen: list[str] = []
    role.add_notice_handler(lambda notice: seen.append(str(notice.message_primary)))
    role.execute(
        "create function attacker.leak(t text) returns boolean language plpgsql cost 0.0001 as "
        "$$ begin raise notice '%', t; return true; end $$"
    )
    for column in ("key", "error"):
        query = sql.SQL("select * from pgcombine.quarantine where attacker.leak({}::text)")
        assert role.execute(query.format(sql.Identifier(column))).fetchall() == []
    for view in ("status", "export_stat", "load_stat", "feed_stat", "destination"):
        with pytest.raises(errors.InsufficientPrivilege):
            role.execute(sql.SQL("table pgcombine.{}").format(sql.Identifier(view)))
    assert seen == []


def test_worker_survives_a_failure_that_cannot_be_recorded(queues: psycopg.Connection, login: Login, dsn: str) -> None:
    """If a pass fails and its failure can't be recorded, the worker goes on with another queue."""
    queues.execute(
        "create function attacker.refuse() returns trigger language plpgsql as "
        "$$ begin raise exception using errcode = '22003', message = 'refused'; end $$; "
        "create trigger refuse before insert on pgcombine.failure for each row execute function attacker.refuse()"
    )
    with working(dsn) as worker:
        add(queues, [("poison", 2**62), ("poison", 2**62)])
        for number in range(3):
            add(queues, {f"w{number}": 1}, "other")
            queues.execute("call pgcombine.wait('other', '1 min')")
        assert worker.is_alive()
