"""Running workers, and the commands worker, drain and status."""

from __future__ import annotations

import json
import logging
import re
import shutil
import signal
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support import eventually, run_cli, start_cli
from support.homes import SMALL, Filled
from support.queues import add, make_queue, one, values, write_values
from support.servers import embedded_only
from support.sessions import warnings, worker_listens, workers

from pgcombine.cli.app import app
from pgcombine.embedded import EmbeddedServer
from pgcombine.embedded.network import free_port
from pgcombine.worker.maintenance import old_snapshots

WORKER_PID = (
    "select pid from pg_stat_activity where application_name like 'pgcombine worker%' and datname = current_database()"
)


@pytest.mark.wc
@pytest.mark.parametrize("paused_first", [True, False])
def test_pause_stops_passes_and_resume_wakes_the_worker(conn: psycopg.Connection, dsn: str, paused_first: bool) -> None:
    """The worker polls once an hour, so only the notification of ``resume`` wakes it in time."""
    make_queue(conn, "other")
    if paused_first:
        conn.execute("select pgcombine.pause('wc')")
    with workers(dsn, poll=3600):
        eventually(lambda: worker_listens(conn, "other"), what="the worker listens")
        conn.execute("select pgcombine.pause('wc')")
        for n in (1, 2):
            add(conn, {"a": 1})
            add(conn, {"a": 1}, "other")
            eventually(lambda n=n: values(conn, "other") == {"a": n}, what="the other queue is combined")
            eventually(lambda: worker_listens(conn, "other"), what="the worker listens again")
        assert values(conn) == {}
        assert one(conn, "select pgcombine.backlog('wc')") == 2
        conn.execute("select pgcombine.resume('wc')")
        eventually(lambda: values(conn) == {"a": 2}, what="updates that came during the pause are combined")


@pytest.mark.wc(buckets=1)
def test_pause_lets_the_pass_in_progress_end(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as blocker, workers(dsn, "wc", poll=0.05):
        blocker.execute("lock table pgcombine.wc_values in access exclusive mode")
        add(conn, {"a": 1})
        eventually(lambda: conn.execute(f"{WORKER_PID} and wait_event_type = 'Lock'").fetchone(), what="a pass runs")
        conn.execute("select pgcombine.pause('wc')")
        blocker.commit()
        eventually(lambda: values(conn) == {"a": 1}, what="the pass commits")


@pytest.mark.wc(buckets=1)
def test_worker_logs_a_conflict_at_debug_level_only(
    conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    add(conn, {"a": 1})
    with caplog.at_level(logging.DEBUG, logger="pgcombine"), workers(dsn, "wc", poll=0.05) as worker:
        eventually(lambda: values(conn) == {"a": 1}, what="the worker combines")
        with psycopg.connect(dsn) as rival:
            write_values(rival, "update pgcombine.wc_values set n = n + 10")
            add(conn, {"a": 1})
            eventually(
                lambda: conn.execute(f"{WORKER_PID} and wait_event_type = 'Lock'").fetchone(),
                what="the pass waits for the rival",
            )
            rival.commit()
        eventually(lambda: values(conn) == {"a": 12}, what="the pass was run again")
    assert worker.totals.conflicts == 1
    told = [record for record in caplog.records if "conflict queue=wc bucket=0 sqlstate=40001" in record.getMessage()]
    assert [record.levelno for record in told] == [logging.DEBUG]
    assert warnings(caplog) == []
    assert conn.execute("select * from pgcombine.failure").fetchall() == []


@pytest.mark.wc(buckets=1)
@embedded_only
def test_worker_logs_each_pass_as_text_or_json(conn: psycopg.Connection, dsn: str) -> None:
    add(conn, {"a": 1})
    done = run_cli("worker", "--drain", "--verbose", "--dsn", dsn)
    told = r" DEBUG pass queue=wc bucket=0 updates=1 keys=1 changes=1 expired=0 ms=\d+\.\d\n"
    assert re.search(told, done.stderr), done.stderr
    add(conn, {"a": 1, "b": 2})
    done = run_cli("worker", "wc", "--drain", "--verbose", "--log-format", "json", "--dsn", dsn)
    assert done.returncode == 0, done.stderr
    (told,) = [line for line in map(json.loads, done.stderr.splitlines()) if line.get("event") == "pass"]
    assert {"level": "DEBUG", "queue": "wc", "bucket": 0, "updates": 2, "keys": 2, "changes": 2}.items() <= told.items()


@pytest.mark.wc
def test_status_shows_who_holds_an_old_snapshot(
    conn: psycopg.Connection, dsn: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    # status shows snapshots older than a minute; the test lowers this age to zero
    monkeypatch.setattr("pgcombine.cli.overview.old_snapshots", partial(old_snapshots, older_than=0))

    def status(*options: str) -> str:
        with pytest.raises(SystemExit) as ended:
            app(["status", *options, "--dsn", dsn])
        assert not ended.value.code
        return capsys.readouterr().out

    assert "old snapshot" not in status()
    with psycopg.connect(dsn, application_name="report") as holder:
        holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        holder.execute("select 1 as long_report")
        pid = holder.info.backend_pid
        (told,) = [line for line in status().splitlines() if line.startswith("old snapshot")]
        assert f"by session report (pid {pid}), " in told
        assert "long_report" not in told  # the text of the query isn't shown: it may contain secrets
        (found,) = json.loads(status("--json"))["old_snapshots"]
        assert (found["holder"], found["pid"], found["name"]) == ("session", pid, "report")


@pytest.mark.slow
def test_worker_follows_a_failover(tmp_path: Path, filled: Filled) -> None:
    """The worker's DSN names two servers. After the first one stops, the worker connects to the second, its copy."""
    homes = filled(tmp_path / "first"), tmp_path / "second"
    first, second = (EmbeddedServer(home, settings=SMALL) for home in homes)
    try:
        dsn = first.start()
        parts: dict[str, Any] = psycopg.conninfo.conninfo_to_dict(dsn)
        port = free_port()
        both = {**parts, "host": f"{parts['host']},{parts['host']}", "port": f"{parts['port']},{port}"}
        with psycopg.connect(dsn, autocommit=True) as conn:
            make_queue(conn)
            add(conn, {"a": 1})
            with start_cli("worker", "wc", "--dsn", psycopg.conninfo.make_conninfo("", **both)) as worker:
                eventually(lambda: values(conn) == {"a": 1}, what="the worker combines on the first server")
                conn.close()
                first.stop()
                shutil.copytree(*homes, ignore=shutil.ignore_patterns("run", "*.lock"))
                (homes[1] / "postgres" / "port").write_text(f"{port}\n")
                dsn = second.start()
                assert f":{port}/" in dsn
                with psycopg.connect(dsn, autocommit=True) as other:
                    add(other, {"a": 1})
                    eventually(lambda: values(other) == {"a": 2}, what="the worker combines on the second server")
                worker.send_signal(signal.SIGTERM)
                assert worker.wait(timeout=30) == 0
    finally:
        for server in (first, second):
            server.stop("immediate")
