"""A worker on a server that takes no writes waits until the server takes them, and logs the reason."""

from __future__ import annotations

import shutil
import signal
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from support import eventually, run_cli, start_cli
from support.homes import SMALL, Filled
from support.queues import add, make_queue, one, values

from pgcombine.database.connect import connect, require_writable
from pgcombine.embedded import EmbeddedServer
from pgcombine.errors import ServerNotReadyError
from pgcombine.worker.passes import open_connection, run_pass


@pytest.fixture
def standby(tmp_path: Path, filled: Filled) -> Iterator[str]:
    """The URI of a hot standby with a queue and a pending update. The standby is a copy of a stopped primary."""
    homes = filled(tmp_path / "primary"), tmp_path / "standby"
    primary, standby = (EmbeddedServer(home, settings=SMALL) for home in homes)
    try:
        dsn = primary.start()
        with psycopg.connect(dsn, autocommit=True) as conn:
            make_queue(conn)
            add(conn, {"a": 1})
        primary.stop()
        shutil.copytree(*homes, ignore=shutil.ignore_patterns("run", "*.lock", "port"))
        (homes[1] / "postgres" / "data" / "standby.signal").touch()
        standby.start()
        yield standby.superuser_dsn()  # a superuser may promote the standby
    finally:
        for server in (primary, standby):
            server.stop("immediate")


@pytest.mark.slow
def test_worker_waits_for_the_promotion_of_a_standby(standby: str) -> None:
    refused = run_cli("drain", "wc", "--dsn", standby)
    assert refused.returncode == 1
    assert "the server is a standby and takes no writes (promote it" in refused.stderr
    chosen = psycopg.conninfo.make_conninfo(standby, target_session_attrs="read-write")
    with pytest.raises(ServerNotReadyError):
        connect(chosen, timeout=0)
    with (
        start_cli("worker", "wc", "--concurrency", 2, "--dsn", standby) as worker,
        start_cli("worker", "--dsn", chosen) as choosing,
        psycopg.connect(standby, autocommit=True) as conn,
    ):
        for process, reason in ((worker, "the server is a standby"), (choosing, "can't connect to PostgreSQL: ")):
            assert process.stdout is not None
            assert f"worker.waiting reason={reason}" in process.stdout.readline()
        assert one(conn, "select pg_promote()")
        eventually(lambda: values(conn) == {"a": 1}, what="the update is combined")
        add(conn, {"a": 1})
        eventually(lambda: values(conn) == {"a": 2}, what="the next update is combined")
        for process in (worker, choosing):
            process.send_signal(signal.SIGTERM)
            output = process.communicate(timeout=30)[0]
            assert process.returncode == 0, output
            assert "Traceback" not in output


@pytest.mark.slow
def test_views_work_on_a_standby(standby: str) -> None:
    with psycopg.connect(standby, autocommit=True) as conn:
        assert one(conn, "select pg_is_in_recovery() and pgcombine.backlog('wc') = 1")
        assert one(conn, "select n from pgcombine.wc_current") == 1
        assert one(conn, "select backlog from pgcombine.status") == 1
        assert one(conn, "select pending from pgcombine.queue_stat") == 1


@pytest.mark.wc
@pytest.mark.parametrize(
    ("whom", "where"),
    [pytest.param("database", "set for the database", marks=pytest.mark.slow), ("role", "set for the role")],
)
def test_worker_waits_while_a_setting_forbids_writes(dsn: str, conn: psycopg.Connection, whom: str, where: str) -> None:
    """The worker waits while default_transaction_read_only is on: at its start, and when it connects again."""
    role = f"reader_{conn.info.backend_pid}"
    name = {"database": conn.info.dbname, "role": role}[whom]
    conn.execute(sql.SQL("create role {} superuser login password 'not-secret'").format(sql.Identifier(role)))
    own = psycopg.conninfo.make_conninfo(dsn, user=role, password="not-secret")
    setting = sql.SQL("alter {} {} set default_transaction_read_only = {}")

    def allow(allowed: bool) -> None:
        with psycopg.connect(dsn, autocommit=True, options="-c default_transaction_read_only=off") as admin:
            level = sql.SQL("off" if allowed else "on")
            admin.execute(setting.format(sql.SQL(whom), sql.Identifier(name), level))

    try:
        allow(False)
        with start_cli("worker", "wc", "--poll", 0.1, "--dsn", own) as worker:
            assert worker.stdout is not None
            line = worker.stdout.readline()
            assert "worker.waiting reason=the server takes no writes: default_transaction_read_only is on" in line
            assert where in line
            allow(True)
            add(conn, {"a": 1})
            eventually(lambda: values(conn) == {"a": 1}, what="the updates are combined")
            allow(False)
            conn.execute(
                "select pg_terminate_backend(pid) from pg_stat_activity"
                " where application_name like 'pgcombine worker%%' and usename = %s",
                (role,),
            )
            while "worker.waiting" not in (line := worker.stdout.readline()):
                assert line, f"the worker ended, status {worker.poll()}"
            assert where in line
            allow(True)
            add(conn, {"a": 1})
            eventually(lambda: values(conn) == {"a": 2}, what="the updates are combined")
            worker.send_signal(signal.SIGTERM)
            assert worker.wait(timeout=30) == 0
    finally:
        conn.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


@pytest.mark.wc
def test_read_only_session_records_no_failure(dsn: str, conn: psycopg.Connection) -> None:
    """A session that becomes read-only, as after a reload of the configuration, records no failure of a bucket."""
    add(conn, {"a": 1})
    (bucket,) = conn.execute("select bucket from pgcombine_internal.busy()").fetchone() or (None,)
    with closing(open_connection(dsn)) as worker:
        worker.execute("set default_transaction_read_only = on")
        with pytest.raises(ServerNotReadyError):
            run_pass(worker, "wc", bucket)
        worker.execute("set default_transaction_read_only = off")
        require_writable(worker)
        assert run_pass(worker, "wc", bucket).updates == 1
    assert conn.execute("select * from pgcombine.failure").fetchall() == []
