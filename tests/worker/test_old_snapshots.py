"""The old snapshots that workers log, and the timeouts and conflicts of workers."""

from __future__ import annotations

import logging
from functools import partial

import psycopg
import pytest
from support.needs import does_not_apply
from support.queues import add, make_queue, values
from support.sessions import in_background, workers
from support.wait import eventually

from pgcombine import schema
from pgcombine.worker.maintenance import Maintenance, old_snapshots, warn_of_old_snapshots


def test_old_snapshots_names_the_holders(conn: psycopg.Connection, dsn: str) -> None:
    assert old_snapshots(conn, 0) == []
    with psycopg.connect(dsn, application_name="report") as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select 1 as long_report")
        (found,) = old_snapshots(conn, 0)
        assert old_snapshots(conn, 3600) == []
        assert (found["holder"], found["pid"], found["name"]) == ("session", holder.info.backend_pid, "report")
        assert found["age_seconds"] >= 0
        assert found["detail"].startswith(f"idle in transaction, role {holder.info.user}, its query began at ")
        assert "long_report" not in found["detail"]  # workers log the detail, and a query may contain secrets
    with psycopg.connect(dsn) as other:
        other.execute("select 1")
        assert old_snapshots(conn, 0) == []


REWRITES = {"vacuum full t": "VACUUM FULL", "cluster t using t_pkey": "CLUSTER", "repack (concurrently) t": "REPACK"}


@pytest.mark.parametrize("command", REWRITES)
def test_old_snapshots_name_the_table_that_a_session_rewrites(
    conn: psycopg.Connection, dsn: str, empty_dsn: str, command: str
) -> None:
    """The new copy of an index waits for an advisory lock."""
    if command.startswith("repack") and conn.info.server_version < 190000:
        does_not_apply("REPACK needs PostgreSQL 19")
    conn.execute("create table t (a int primary key)")
    conn.execute("insert into t values (1)")
    conn.execute(
        "create function waits(int) returns int language plpgsql immutable as "
        "'begin perform pg_advisory_xact_lock(1); return $1; end'"
    )
    conn.execute("create index on t (waits(a))")
    conn.execute("select pg_advisory_lock(1)")

    def rewrite() -> None:
        with psycopg.connect(dsn, autocommit=True, options="-c lock_timeout=1min") as other:
            other.execute(command.encode())

    def details(database: psycopg.Connection) -> list[str]:
        return [row["detail"] for row in old_snapshots(database, 0)]

    with in_background(rewrite), psycopg.connect(empty_dsn, autocommit=True) as elsewhere:
        eventually(lambda: " rewrites " in str(details(conn)), what="the session is named")
        (detail,) = details(conn)
        assert detail.endswith(f", it rewrites t ({REWRITES[command]})")
        elsewhere.execute(schema.upgrade_sql().encode())
        of_another = f"repack (concurrently) in the database {conn.info.dbname}"
        assert details(elsewhere) == ([of_another] if "concurrently" in command else [])
        conn.execute("select pg_advisory_unlock(1)")
    assert old_snapshots(conn, 0) == []


@pytest.mark.wc
def test_open_write_counts_as_an_old_snapshot(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as writer:
        add(writer, {"a": 1})
        assert [found["pid"] for found in old_snapshots(conn, 0)] == [writer.info.backend_pid]


def test_prepared_transaction_counts_as_an_old_snapshot(conn: psycopg.Connection, dsn: str) -> None:
    name = f"forgotten in {conn.info.dbname}"
    make_queue(conn)
    with psycopg.connect(dsn, autocommit=True) as other:
        other.execute("begin")
        add(other, {"a": 1})
        other.execute(f"prepare transaction '{name}'")
        (found,) = old_snapshots(conn, 0)
        assert (found["holder"], found["name"], found["pid"]) == ("prepared transaction", name, None)
        other.execute(f"rollback prepared '{name}'")
    assert old_snapshots(conn, 0) == []


@pytest.mark.wc
def test_worker_warns_of_an_old_snapshot_once(
    dsn: str, conn: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(dsn, application_name="report") as holder, caplog.at_level(logging.WARNING):
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select 1")
        pid = holder.info.backend_pid
        with workers(dsn, "wc", count=2, poll=0.05, old_snapshot=0.001):
            eventually(lambda: "snapshot.old" in caplog.text, what="the worker warns")
            for n in range(20):
                add(conn, {"a": 1})
                eventually(lambda n=n: values(conn) == {"a": n + 1}, what="the updates are combined")
    warnings = [record.getMessage() for record in caplog.records if "snapshot.old" in record.getMessage()]
    assert len([warning for warning in warnings if f"pid={pid} name=report" in warning]) == 1


def test_maintenance_runs_only_when_it_is_due(
    conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    with psycopg.connect(dsn) as holder, caplog.at_level(logging.WARNING):
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select 1")
        warn = partial(warn_of_old_snapshots, older_than=0)
        watch, eager = Maintenance("snapshots", 60, warn), Maintenance("snapshots", 0, warn)
        for _ in range(3):
            watch.run_if_due(conn)
        assert len(caplog.records) == 1
        for _ in range(3):
            eager.run_if_due(conn)
        assert len(caplog.records) == 4
