"""Upgrades beside other upgrades, a removal, writers and sessions that read as workers do."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext

import psycopg
import pytest
from support.next_version import next_version
from support.queues import add, combine_all, current, enqueue, make_queue, one, values
from support.sessions import in_background, waits
from support.wait import eventually

from pgcombine import schema


def test_concurrent_upgrades_of_an_empty_database_succeed(empty_dsn: str) -> None:
    with in_background(*[lambda: schema.upgrade(empty_dsn)] * 3) as done:
        pass
    assert [future.result() for future in done] == [schema.head()] * 3
    assert schema.check(empty_dsn) == schema.head()


def test_an_upgrade_waits_for_another(empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn) as first, psycopg.connect(empty_dsn, autocommit=True) as watch:
        first.execute("create schema pgcombine")
        with in_background(lambda: schema.upgrade(empty_dsn)):
            second = (
                "select pid from pg_stat_activity where datname = current_database() and wait_event = 'transactionid'"
            )
            (pid,) = eventually(lambda: watch.execute(second).fetchone(), what="the upgrade waits")
            waits(watch, pid)
            assert one(watch, "select to_regnamespace('pgcombine') is null")
            first.commit()
    assert schema.check(empty_dsn) == schema.head()


def test_an_upgrade_waits_for_a_removal(dsn: str, conn: psycopg.Connection) -> None:
    """After the removal, the waiting upgrade installs the schema from scratch."""
    with psycopg.connect(dsn) as first:
        first.execute("comment on schema pgcombine is 'a removal'")
        with in_background(lambda: schema.upgrade(dsn)):
            second = "select pid from pg_stat_activity where datname = current_database() and wait_event = 'object'"
            (pid,) = eventually(lambda: conn.execute(second).fetchone(), what="the upgrade waits")
            waits(conn, pid)
            first.execute("drop schema pgcombine, pgcombine_internal cascade")
            first.commit()
    assert schema.check(dsn) == schema.head()


@pytest.mark.wc
def test_an_upgrade_beside_open_enqueues_loses_nothing(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as mine:
        add(mine, {"a": 1})
        with in_background(lambda: schema.upgrade(dsn)) as (upgraded,):
            while not upgraded.done():
                add(mine, {"a": 1})
                mine.commit()
                add(conn, {"b": 1})
                if one(conn, "select count(*) from pgcombine.wc_pending") > 200:
                    break
            mine.commit()
    total = one(conn, "select count(*)::int from pgcombine.wc_pending")
    combine_all(conn)
    assert sum(values(conn).values()) == total > 0


@pytest.mark.wc
@pytest.mark.parametrize("version", [nullcontext, next_version])
def test_upgrade_and_writer_do_not_deadlock(
    conn: psycopg.Connection, dsn: str, version: Callable[[], AbstractContextManager[None]]
) -> None:
    """A transaction that has written to a queue can enqueue again while the upgrade waits for it."""
    with psycopg.connect(dsn) as mine, version():
        add(mine, {"a": 1})
        with in_background(lambda: schema.upgrade(dsn)):
            waiting = (
                "select 1 from pg_locks l join pg_database d on d.oid = l.database where not granted and datname = %s"
            )
            eventually(lambda: conn.execute(waiting, (conn.info.dbname,)).fetchone(), what="the upgrade waits")
            enqueue(mine, [{"word": "a", "n": 1}])
            mine.commit()
        schema.check(dsn)
    assert current(conn) == {"a": 2}


def test_an_upgrade_waits_for_passes(conn: psycopg.Connection, dsn: str) -> None:
    """An upgrade waits for a session that reads the tables queue, expiry and the log in this order, as workers do.

    There is no deadlock, although the session reads the later tables while the upgrade waits.
    """
    make_queue(conn, expire_when="n <= 0")
    waiting = "select pid from pg_locks where relation = 'pgcombine.queue'::regclass and not granted"
    # only the reading session looks for deadlocks, so a deadlock would make this session fail
    prompt = psycopg.conninfo.make_conninfo(dsn, options="-c deadlock_timeout=100ms")
    patient = psycopg.conninfo.make_conninfo(dsn, options="-c deadlock_timeout=1h")
    with psycopg.connect(prompt) as mine, next_version():
        one(mine, "select count(*) from pgcombine.queue")
        with in_background(lambda: schema.upgrade(patient)):
            eventually(lambda: conn.execute(waiting).fetchone(), what="the upgrade waits")
            one(mine, "select count(*) from pgcombine.expiry")
            one(
                mine,
                "select pg_relation_size('pgcombine.wc_updates') + pg_relation_size('pgcombine.wc_updates_b0000_s0')",
            )
            mine.commit()
        schema.check(dsn)


@pytest.mark.wc
def test_upgrade_is_retried_after_a_deadlock(conn: psycopg.Connection, dsn: str) -> None:
    """A session that has read a table writes to a queue while the migration waits for this table: a deadlock."""
    waiting = "select pid from pg_locks where relation = 'pgcombine.tick'::regclass and not granted"
    # only the upgrade looks for deadlocks, so the upgrade is the session that fails
    patient = psycopg.conninfo.make_conninfo(dsn, options="-c deadlock_timeout=1h")
    prompt = psycopg.conninfo.make_conninfo(dsn, options="-c deadlock_timeout=100ms")
    with psycopg.connect(patient) as mine, next_version():
        one(mine, "select count(*) from pgcombine.tick")
        with in_background(lambda: schema.upgrade(prompt)):
            eventually(lambda: conn.execute(waiting).fetchone(), what="the upgrade waits")
            add(mine, {"a": 1})
            mine.commit()
        schema.check(dsn)
    assert current(conn) == {"a": 1}
