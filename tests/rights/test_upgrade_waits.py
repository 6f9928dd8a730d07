"""Upgrades while other roles hold locks: the upgrade doesn't block writers, and its error names the lock's holder."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import make_conninfo
from support.queues import add, current, enqueue, make_queue, one
from support.roles import Login
from support.sessions import in_background
from support.wait import eventually

from pgcombine import schema
from pgcombine.errors import SchemaError
from pgcombine.queue.combine_queue import CombineQueue

MAPPING = "select word, 1 as n"


def waiting(conn: psycopg.Connection) -> int:
    """The number of sessions that wait for a lock."""
    return one(
        conn,
        "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'",
    )


@pytest.mark.parametrize("locked", ["queue", "status", "wc_current", "wc_updates"])
def test_upgrade_that_waits_for_a_reader_does_not_block_writers(
    conn: psycopg.Connection, dsn: str, login: Login, locked: str
) -> None:
    """An upgrade that an open transaction blocks retries with short waits, so that writers and readers can go on."""
    make_queue(conn)
    reader = login("select on pgcombine.wc_current, pgcombine.wc_updates", "insert on pgcombine.wc_updates")
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
    """The error names the prepared transaction that blocks the upgrade. Its locks belong to no session."""
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
def attached(conn: psycopg.Connection, login: Login) -> psycopg.Connection:
    """A role whose tables attacker.t and attacker.u are attached to wc and lack a trigger."""
    make_queue(conn)
    role = login("insert on pgcombine.wc_updates")
    conn.execute("select pgcombine.grant_right('enqueue', %s, 'wc')", (role.info.user,))
    conn.execute(sql.SQL("create schema attacker authorization {}").format(sql.Identifier(role.info.user)))
    for table in "tu":
        role.execute(f"create table attacker.{table} (word text)".encode())
        role.execute("select pgcombine.attach('wc', %s, %s)", (f"attacker.{table}", MAPPING))
        role.execute(f"drop trigger pgcombine_wc_truncate on attacker.{table}".encode())
        role.execute(f"grant trigger on attacker.{table} to public".encode())
    return role


def upgraded(dsn: str) -> list[str]:
    warnings: list[str] = []
    schema.upgrade(dsn, warn=warnings.append)
    schema.check(dsn)
    return warnings


def test_upgrade_skips_triggers_of_locked_attached_tables(
    conn: psycopg.Connection, dsn: str, attached: psycopg.Connection
) -> None:
    with attached.transaction():
        attached.execute("lock table attacker.t, attacker.u in share mode")
        warnings = upgraded(dsn)
    assert [warning.split(" can't be made")[0] for warning in warnings] == [
        "the triggers of attacker.t",
        "the triggers of attacker.u",
    ]
    assert len([line for line in CombineQueue("wc").verify(conn) if "missing" in line]) == 2
    assert upgraded(dsn) == []
    assert CombineQueue("wc").verify(conn) == []


@pytest.mark.parametrize(
    "change",
    [
        "alter table attacker.t drop column word cascade",
        "revoke trigger on attacker.t from public",
        "create table attacker.heir () inherits (attacker.t); select pgcombine.attach('wc', 'attacker.heir', "
        "'select word, 1 as n')",
    ],
)
def test_upgrade_survives_changed_attached_tables(
    conn: psycopg.Connection, dsn: str, attached: psycopg.Connection, change: str
) -> None:
    """A role's changes to its attached table stop neither an upgrade nor other attached tables."""
    attached.execute(change.encode())
    upgraded(dsn)
    add(conn, {"a": 1})
    assert current(conn)["a"] == 1
    attached.execute("insert into attacker.u values ('b')")
    assert current(conn)["b"] == 1
    upgraded(dsn)


def test_role_may_attach_a_hundred_tables(conn: psycopg.Connection, attached: psycopg.Connection) -> None:
    """A role may attach at most 100 tables, because an upgrade creates their functions while writers wait."""
    attached.execute(
        """
        do $$ begin
            for i in 3 .. 100 loop
                execute format('create table attacker.t%s (word text)', i);
                perform pgcombine.attach('wc', format('attacker.t%s', i), 'select word, 1 as n');
            end loop;
        end $$
        """
    )
    attached.execute("create table attacker.more (word text)")
    with pytest.raises(psycopg.Error, match='has attached 100 tables to queue "wc"') as refused:
        attached.execute("select pgcombine.attach('wc', 'attacker.more', 'select word, 1 as n')")
    assert refused.value.sqlstate == "PC003"
    attached.execute("select pgcombine.detach('wc', 'attacker.t')")
    attached.execute("select pgcombine.attach('wc', 'attacker.more', 'select word, 1 as n')")


def test_dependants_do_not_stop_a_detach(
    conn: psycopg.Connection, dsn: str, attached: psycopg.Connection, login: Login
) -> None:
    function = one(
        conn, "select 'pgcombine_internal.' || pgcombine_internal.attached_function(min(id)) from pgcombine.attachment"
    )
    other = login()
    conn.execute(sql.SQL("create schema other authorization {}").format(sql.Identifier(other.info.user)))
    other.execute(
        f"create table other.t (word text); create view other.v as select '{function}()'::regprocedure;"
        f"create trigger t after insert on other.t for each row execute function {function}()".encode()
    )
    attached.execute("select pgcombine.detach('wc', 'attacker.t')")
    assert one(conn, "select count(*) from pgcombine.attachment where source = 'attacker.t'::regclass") == 0
    other.execute("insert into other.t values ('a')")
    attached.execute("insert into attacker.t values ('a')")
    assert current(conn) == {}
    assert len(upgraded(dsn)) == 1
    other.execute("drop schema other cascade")
    assert upgraded(dsn) == []
    assert one(conn, "select count(*) from pg_proc where proname like 'gone %'") == 0
