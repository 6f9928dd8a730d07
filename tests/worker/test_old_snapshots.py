"""The old snapshots that workers log, and the timeouts and conflicts of workers."""

from __future__ import annotations

import json
import logging
from functools import partial

import psycopg
import pytest
from support import run_cli
from support.queues import add, make_queue, one, values, write_values
from support.sessions import in_background, waits, workers
from support.wait import eventually

from pgcombine.errors import ConfigError
from pgcombine.worker.maintenance import Maintenance, old_snapshots, warn_of_old_snapshots
from pgcombine.worker.passes import open_connection, run_pass
from pgcombine.worker.worker import Worker


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


def test_open_write_counts_as_an_old_snapshot(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn)
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


def test_worker_warns_of_an_old_snapshot_once(
    dsn: str, conn: psycopg.Connection, caplog: pytest.LogCaptureFixture
) -> None:
    make_queue(conn)
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


def test_status_lists_no_old_snapshot_if_there_is_none(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn)
    shown = run_cli("status", "--json", "--dsn", dsn)
    assert shown.returncode == 0, shown.stderr
    assert json.loads(shown.stdout)["old_snapshots"] == []


def test_worker_connection_has_timeouts(dsn: str) -> None:
    with open_connection(dsn, lock_timeout=1.5, statement_timeout=60) as worker:
        assert one(worker, "select current_setting('lock_timeout') || ' ' || current_setting('statement_timeout')") == (
            "1500ms 1min"
        )
    with open_connection(dsn) as worker:
        assert one(worker, "select current_setting('lock_timeout')") == "10s"
    with pytest.raises(ConfigError, match="negative"):
        Worker(dsn, lock_timeout=-1)


def test_locked_bucket_records_no_failure(conn: psycopg.Connection, dsn: str) -> None:
    """The worker combines the other bucket first, and the locked one after its lock is released."""
    make_queue(conn, buckets=2)
    with psycopg.connect(dsn) as owner:
        owner.execute("lock table pgcombine.wc_values_b0000 in access exclusive mode")
        with workers(dsn, "wc", poll=0.05, lock_timeout=0.05):
            add(conn, {f"w{i}": 1 for i in range(20)})
            free = "select count(*) from pgcombine.wc_values_b0001"
            eventually(lambda: one(conn, free) > 0, what="the other bucket is combined")
            assert conn.execute("select * from pgcombine.failure").fetchall() == []
            owner.rollback()
            eventually(lambda: len(values(conn)) == 20, what="both buckets are combined")
    assert conn.execute("select * from pgcombine.failure").fetchall() == []


def test_worker_counts_conflicts(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=1)
    add(conn, {"a": 1})
    with open_connection(dsn) as worker:
        run_pass(worker, "wc", 0)
        add(conn, {"a": 1})
        with psycopg.connect(dsn) as rival:
            write_values(rival, "update pgcombine.wc_values set n = n + 1")
            with in_background(lambda: run_pass(worker, "wc", 0)) as (done,):
                waits(conn, worker.info.backend_pid)
                rival.commit()
    assert getattr(done.result(), "conflicts", None) == 1
