"""Upgrades while other roles hold locks: writers can go on, and the upgrade's error names the lock's holder."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from support.queues import add, current, enqueue, one
from support.roles import Login
from support.sessions import in_background
from support.wait import eventually

from pgcombine import schema
from pgcombine.errors import SchemaError
from pgcombine.queue.combine_queue import CombineQueue


def waiting(conn: psycopg.Connection) -> int:
    """Return the number of sessions of this database that wait for a lock."""
    return one(
        conn,
        "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    )


@pytest.mark.wc
@pytest.mark.parametrize("locked", ["queue", "status", "wc_current", "wc_updates"])
def test_upgrade_that_waits_for_a_reader_does_not_block_writers(
    conn: psycopg.Connection, dsn: str, login: Login, locked: str
) -> None:
    """While an open transaction blocks it, an upgrade waits briefly, again and again. So writers and readers go on."""
    reader = login("select on pgcombine.wc_current, pgcombine.wc_updates", "insert on pgcombine.wc_updates")
    conn.execute("select pgcombine.grant_right('monitor', %s)", (reader.info.user,))
    prompt = make_conninfo(dsn, options="-c statement_timeout=20s")  # shorter than the upgrade's total wait
    with psycopg.connect(prompt, autocommit=True) as writer, reader.transaction():
        if locked == "wc_updates":
            add(reader, {"r": 1})
        else:
            reader.execute(sql.SQL("select from {} limit 1").format(sql.Identifier("pgcombine", locked)))
        with in_background(lambda: schema.upgrade(dsn)) as (upgraded,):
            try:
                for number in range(3):
                    eventually(lambda: waiting(conn) > 0, what="the upgrade waits")
                    add(writer, {"a": 1})
                    enqueue(writer, [{"word": "b", "n": 1}])
                    assert current(writer)["a"] == number + 1
                    eventually(lambda: waiting(conn) == 0, what="the upgrade has given its locks back")
                assert not upgraded.done()
            finally:
                reader.execute("commit" if locked == "wc_updates" else "rollback")
        assert schema.check(dsn) == schema.head()


def test_error_names_a_prepared_transaction(conn: psycopg.Connection, dsn: str, login: Login) -> None:
    """The locks of a prepared transaction belong to no session."""
    role = login()
    with role.transaction():
        role.execute("select from pgcombine.queue")
        role.execute("select pg_current_xact_id()")
        role.execute("prepare transaction 'forgotten'")
    try:
        with pytest.raises(SchemaError) as refused:
            schema.upgrade(make_conninfo(dsn, options="-c lock_timeout=700ms"))
        assert f"""the prepared transaction "forgotten" (role "{role.info.user}")""" in str(refused.value)
    finally:
        conn.execute("rollback prepared 'forgotten'")
    schema.upgrade(dsn)


@pytest.fixture
def owner(conn: psycopg.Connection, login: Login) -> psycopg.Connection:
    """A role that owns attacker.t and attacker.u, the sources of the rollups t and u. Each source lacks a trigger."""
    role = login()
    conn.execute(sql.SQL("create schema attacker authorization {}").format(sql.Identifier(role.info.user)))
    for table in "tu":
        role.execute(f"create table attacker.{table} (word text, n int)".encode())
        conn.execute(
            "select pgcombine.create_rollup(%s, %s, %s, %s)",
            (table, f"attacker.{table}", ["word"], ["count(*) as docs", "max(n) as top"]),
        )
        role.execute(f'drop trigger "~pgcombine_{table}_truncate" on attacker.{table}'.encode())
    return role


def upgraded(dsn: str) -> list[str]:
    warnings: list[str] = []
    schema.upgrade(dsn, warn=warnings.append)
    schema.check(dsn)
    return warnings


def problems(conn: psycopg.Connection) -> list[str]:
    return [line for rollup in "tu" for line in CombineQueue(rollup).verify(conn)]


def test_upgrade_skips_triggers_of_locked_sources(
    conn: psycopg.Connection, dsn: str, owner: psycopg.Connection
) -> None:
    with owner.transaction():
        owner.execute("lock table attacker.t, attacker.u in share mode")
        warnings = upgraded(dsn)
    assert [warning.split(" can't be made")[0] for warning in warnings] == [
        "the triggers of attacker.t",
        "the triggers of attacker.u",
    ]
    assert len([line for line in problems(conn) if "missing" in line]) == 2
    assert upgraded(dsn) == []
    assert problems(conn) == []


@pytest.mark.parametrize(
    ("change", "warning", "problem"),
    [
        ("alter table attacker.t drop column n cascade", 'the view and the triggers of rollup "t"', "was dropped"),
        ("drop table attacker.t cascade", 'the view and the triggers of rollup "t"', "was dropped"),
        ("drop function pgcombine_internal.t_rollup() cascade", "", ""),
    ],
)
def test_owner_of_a_source_does_not_stop_an_upgrade(
    conn: psycopg.Connection, dsn: str, owner: psycopg.Connection, change: str, warning: str, problem: str
) -> None:
    """A role's changes to the source of one rollup stop neither an upgrade nor another rollup."""
    conn.execute(
        "drop event trigger if exists pgcombine_follow_ddl; drop event trigger if exists pgcombine_follow_drop"
    )
    owner.execute(change.encode())
    assert [line[: len(warning)] for line in upgraded(dsn)] == ([warning] if warning else [])
    owner.execute("insert into attacker.u values ('b', 1)")
    assert one(conn, "select docs from pgcombine.u where word = 'b'") == 1
    found = problems(conn)
    assert any(problem in line for line in found) if problem else found == []
    conn.execute("select pgcombine.drop_rollup('t')")


def test_definitions_of_other_tables_do_not_wait_for_a_source(
    conn: psycopg.Connection, dsn: str, owner: psycopg.Connection
) -> None:
    """When another table is defined, the event triggers lock no source, even if a source lacks a trigger."""
    with owner.transaction():
        owner.execute("lock table attacker.t in share mode")
        conn.execute("set lock_timeout = '10 s'; create table public.other (a int); alter table public.other add b int")
