"""Any role can hold any advisory lock. The tests hold advisory locks while pgcombine does its work."""

from __future__ import annotations

from uuid import uuid4

import psycopg
import pytest
from psycopg import sql
from support.queues import add, make_queue, one, values
from support.roles import Login
from support.sessions import in_background, waits, workers
from support.states import raises_state
from support.wait import eventually

from pgcombine import schema
from pgcombine.errors import QueueExistsError
from pgcombine.queue.combine_queue import CombineQueue

# advisory locks of this and of earlier versions, as arguments of pg_advisory_lock
LOCKS = [
    *(f"hashtext('pgcombine.create_queue'), hashtext('{queue}')" for queue in ("wc", "own")),
    "hashtext('pgcombine.create_export'), hashtext('words')",
    *(f"hashtext('pgcombine.handoff_rebuild'), {number}" for number in (0, 1)),
    "hashtext('pgcombine_internal.handoff_clean_up'), 0",
    "hashtext('pgcombine.tick'), 0",
    *(f"hashtext('pgcombine.{lock}'), hashtext('wc')" for lock in ("idle", "listener")),
    "hashtext('pgcombine.schema')",
    "hashtext('pgcombine.export')",
    "hashtextextended('pgcombine_internal.clean_loads', 0)",
    "hashtextextended('pgcombine.phrasecount', 0)",
]


@pytest.fixture
def hostile(login: Login) -> psycopg.Connection:
    """A role without rights that holds all advisory locks in LOCKS."""
    role = login()
    for lock in LOCKS:
        role.execute(f"select pg_advisory_lock({lock})".encode())
    return role


def test_advisory_locks_do_not_block_creation_and_upgrades(
    conn: psycopg.Connection, dsn: str, hostile: psycopg.Connection
) -> None:
    conn.execute("set lock_timeout = '5s'")
    make_queue(conn)
    conn.execute("select pgcombine.create_export('words', 'wc')")
    conn.execute("select pgcombine_internal.own_export('words', 'a')")
    assert schema.upgrade(dsn) == schema.head()


def test_second_creator_waits_and_is_refused(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second:
        make_queue(first)

        def again() -> None:
            with pytest.raises(QueueExistsError):
                CombineQueue("wc", key=["word text"], value=["n bigint sum"]).create(second)

        with in_background(again):
            waits(conn, second.info.backend_pid)
            first.commit()


def test_advisory_locks_do_not_block_maintenance(conn: psycopg.Connection, hostile: psycopg.Connection) -> None:
    make_queue(conn)
    conn.execute("select pgcombine_internal.tick()")
    assert one(conn, "select count(*) from pgcombine.tick") == 1
    one(conn, "select pgcombine_internal.begin_load(%s, 'wc', 'r')", uuid4())
    conn.execute("update pgcombine.spark_load set seen_at = now() - interval '2 days'")
    assert one(conn, "select loads from pgcombine_internal.clean_loads()") == 1
    conn.execute("insert into pgcombine.handoff_server (name, system_identifier) values ('a', 1)")
    conn.execute("insert into pgcombine.handoff_replica (name, dsn) values ('b', 'host=b')")
    conn.execute(
        "insert into pgcombine.handoff_delivery (destination, token, at, delivered, deduplicated) "
        "select 'b', gen_random_uuid(), now() - i * interval '1 s', 1, 0 from generate_series(1, 3) i"
    )
    conn.execute("select pgcombine_internal.handoff_clean_up()")
    assert one(conn, "select count(*) from pgcombine.handoff_delivery") == 1


@pytest.mark.wc
def test_advisory_locks_do_not_block_a_rebuild(conn: psycopg.Connection, dsn: str, hostile: psycopg.Connection) -> None:
    """Writes and rebuilds exclude each other by locks that need a right, not by advisory locks."""
    shape = one(conn, "select pgcombine_internal.handoff_shape('wc')")
    server = one(conn, "insert into pgcombine.handoff_server (name, system_identifier) values ('a', 1) returning id")
    check = "select pgcombine_internal.handoff_check(%s, 'wc', %s)"
    with psycopg.connect(dsn) as writer, psycopg.connect(dsn) as rebuild:
        writer.execute(check, (server, shape))
        rebuild.execute("set lock_timeout = '100ms'")
        with raises_state("PC046", writer.info.backend_pid):
            rebuild.execute("select pgcombine_internal.handoff_rebuild_begin()")
        rebuild.rollback()
        writer.rollback()
        rebuild.execute("select pgcombine_internal.handoff_rebuild_begin()")
        conn.execute("set lock_timeout = '100ms'")
        for call in (check, "select pgcombine_internal.handoff_rebuild_begin()"):
            with raises_state("PC046"):
                conn.execute(call, (server, shape) if call == check else None)
        rebuild.rollback()
        conn.execute(check, (server, shape))


def test_rebuild_waits_for_others_that_lock_the_server_briefly(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("insert into pgcombine.handoff_server (name, system_identifier) values ('a', 1)")
    with psycopg.connect(dsn) as cleaner, psycopg.connect(dsn) as rebuild:
        cleaner.execute("select from pgcombine.handoff_server for update")
        with in_background(lambda: rebuild.execute("select pgcombine_internal.handoff_rebuild_begin()")):
            waits(conn, rebuild.info.backend_pid)
            cleaner.commit()
        assert one(rebuild, "show lock_timeout") == "0"


@pytest.mark.wc
@pytest.mark.parametrize("shared", [False, True])
def test_updates_are_combined_although_a_role_holds_the_idle_lock(
    conn: psycopg.Connection, dsn: str, login: Login, shared: bool
) -> None:
    """Workers and writers go on without the idle lock, which a worker takes before it listens for notifications."""
    role = login()
    for lock in ("idle", "listener"):
        function = "pg_advisory_lock_shared" if shared else "pg_advisory_lock"
        role.execute(
            f"select {function}(hashtext('pgcombine.{lock}'), 'pgcombine.wc_updates'::regclass::integer)".encode()
        )
    with workers(dsn, "wc", poll=600):
        for n in range(3):
            add(conn, {"a": 1})
            eventually(lambda n=n: values(conn) == {"a": n + 1}, what="the update is combined")


def test_readers_cannot_lock_tables_against_writers(login: Login) -> None:
    role = login()
    for table in ("queue", "bucket", "schema_version", "spark_load", "token", "handoff_partial", "tick"):
        lock = sql.SQL("lock table {} in row exclusive mode").format(sql.Identifier("pgcombine", table))
        with pytest.raises(psycopg.errors.InsufficientPrivilege), role.transaction():
            role.execute(lock)
