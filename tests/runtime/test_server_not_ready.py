"""Commands that start while the server takes no connections yet (SQLSTATE 57P03) wait until the server is ready.

A crashed server is in that state only during its recovery. Most tests therefore start the server as a standby that
refuses queries: it stays in that state until its promotion, so that these tests don't depend on timing.
"""

from __future__ import annotations

import json
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from support import eventually, run_cli, start_cli
from support.homes import SMALL, Filled
from support.queues import add, make_queue, one, values
from support.sessions import in_background

from pgcombine.database.connect import becomes_ready, connect
from pgcombine.database.sqlfiles import query
from pgcombine.embedded import EmbeddedServer
from pgcombine.errors import ConnectError, ServerNotReadyError
from pgcombine.worker.drain import drain
from pgcombine.worker.worker import Worker

UPDATES = 20_000


class Recovering:
    """A server that ``crash`` kills. After ``recover`` it stays in recovery until ``promote``."""

    def __init__(self, home: Path) -> None:
        self.server = EmbeddedServer(home, settings=SMALL | {"hot_standby": "off"})
        self.dsn = self.server.start()
        self.data = self.server.status().data_directory

    def crash(self) -> None:
        pid = self.server.status().pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
        eventually(lambda: not self.server.status().running, what="the server is gone")

    def recover(self) -> None:
        """Start the server; it takes no connections until ``promote``."""
        (self.data / "standby.signal").touch()
        self.thread = threading.Thread(target=self.server.start)
        self.thread.start()
        eventually(self.refuses, what="the server refuses connections")

    def refuses(self) -> bool:
        return psycopg.pq.PGconn.ping(self.dsn.encode()) == psycopg.pq.Ping.REJECT

    def promote(self) -> None:
        (self.data / "promote").touch()
        os.kill(int((self.data / "postmaster.pid").read_text().split()[0]), signal.SIGUSR1)
        self.thread.join()


@pytest.fixture
def recovering(tmp_path: Path, filled: Filled) -> Iterator[Recovering]:
    """A server in recovery after a kill, with a queue whose updates were committed just before the kill."""
    there = Recovering(filled(tmp_path / "home"))
    try:
        with psycopg.connect(there.dsn, autocommit=True) as conn:
            make_queue(conn)
            add(conn, [(f"w{i % 100}", 1) for i in range(UPDATES)])
            there.crash()
        there.recover()
        yield there
    finally:
        there.server.stop("immediate")


EXPECTED = {f"w{i}": UPDATES // 100 for i in range(100)}


@pytest.mark.slow
def test_daemons_started_during_recovery_work_afterwards(recovering: Recovering) -> None:
    commands = {
        "worker": ("worker", "wc", "--poll", 1),
        "drain": ("drain", "wc", "--json"),
        "worker --drain": ("worker", "--drain"),
        "wait": ("wait", "wc", "--json"),
        "queue ls": ("queue", "ls", "--json"),
    }
    dsn = recovering.dsn
    with ExitStack() as stack:
        started = {name: stack.enter_context(start_cli(*call, "--dsn", dsn)) for name, call in commands.items()}
        worker = started.pop("worker")
        assert worker.stdout is not None
        line = worker.stdout.readline()
        assert "worker.waiting reason=can't connect to PostgreSQL: " in line
        assert all(process.poll() is None for process in [worker, *started.values()])
        recovering.promote()
        for name, process in started.items():
            output = process.communicate(timeout=60)[0]
            assert process.returncode == 0, f"{name}: {output}"
        with psycopg.connect(dsn, autocommit=True) as conn:
            assert values(conn) == EXPECTED
            add(conn, {"w0": 1})
            eventually(lambda: values(conn)["w0"] == EXPECTED["w0"] + 1, what="the worker works")
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(timeout=30) == 0


@pytest.mark.slow
def test_waiting_daemons_stop_on_sigterm(recovering: Recovering) -> None:
    for command in (("worker", "wc"), ("export", "run", "search"), ("replicas", "run")):
        with start_cli(*command, "--dsn", recovering.dsn) as process:
            assert process.stdout is not None
            assert "worker.waiting" in process.stdout.readline()
            process.send_signal(signal.SIGTERM)
            assert process.wait(timeout=30) == 0, command
    recovering.promote()


@pytest.mark.slow
def test_replayer_waits_for_its_server(recovering: Recovering) -> None:
    """At its start the replayer waits for the server. After a crash it connects again, and checks the schema again."""
    with start_cli("replicas", "run", "--poll", 0.1, "--dsn", recovering.dsn) as process:
        assert process.stdout is not None
        assert "worker.waiting" in process.stdout.readline()
        recovering.promote()
        assert "handoff.start" in process.stdout.readline()
        with psycopg.connect(recovering.dsn, autocommit=True) as conn:
            due = "select count(*) from pg_stat_activity where starts_with(query, %s)"
            first_line = query("handoff_due").splitlines()[0]
            eventually(lambda: one(conn, due, first_line), what="the replayer has checked the schema and polls")
        recovering.crash()
        assert recovering.server.start() == recovering.dsn
        assert "handoff.disconnected" in process.stdout.readline()
        with psycopg.connect(recovering.dsn, autocommit=True) as conn:
            conn.execute("update pgcombine.schema_version set digest = 'another'")
        told = process.communicate(timeout=60)[0].splitlines()
    assert "run 'pgcombine db upgrade'" in told[-1]
    assert [line for line in told if "handoff.disconnected" in line] == []
    assert process.returncode == 3


@pytest.mark.slow
def test_connect_raises_after_its_timeout(recovering: Recovering) -> None:
    for command in ("drain", "wait"):
        late = run_cli(command, "wc", "--timeout", 0.3, "--dsn", recovering.dsn)
        assert late.returncode == 1
        assert "can't connect to PostgreSQL" in late.stderr
        assert "wait until it is ready" in late.stderr
        assert len(late.stderr.splitlines()) == 1
    with pytest.raises(ServerNotReadyError):
        drain(recovering.dsn, "wc", timeout=0.1)
    with pytest.raises(ServerNotReadyError):
        connect(recovering.dsn, timeout=0)
    recovering.promote()
    assert drain(recovering.dsn, "wc", timeout=60).updates == UPDATES


def test_connect_recognizes_a_server_not_ready_in_any_language(recovering: Recovering) -> None:
    said = "Das Datenbanksystem startet"
    assert becomes_ready(recovering.dsn, said)
    recovering.promote()
    assert not becomes_ready(recovering.dsn, said)
    recovering.server.stop()
    assert not becomes_ready(recovering.dsn, said)


def test_refusal_with_a_detail_is_recognized_by_its_message(recovering: Recovering) -> None:
    """``connect`` gets a function instead of the server's address, so it can't ping the server."""

    def has_a_detail() -> bool:
        with pytest.raises(psycopg.OperationalError) as refused:
            psycopg.connect(recovering.dsn)
        return "DETAIL:" in str(refused.value)

    eventually(has_a_detail, what="the server has finished its start")
    with pytest.raises(ServerNotReadyError):
        connect(lambda: psycopg.connect(recovering.dsn), timeout=0)
    recovering.promote()


@pytest.mark.slow
def test_daemon_waits_for_an_unreachable_server_on_request(tmp_path: Path, filled: Filled) -> None:
    server = EmbeddedServer(filled(tmp_path / "home"), settings=SMALL)
    try:
        dsn = server.start()
        with psycopg.connect(dsn, autocommit=True) as conn:
            make_queue(conn)
            add(conn, {"a": 1})
        server.stop()
        with pytest.raises(ConnectError):
            Worker(dsn, ["wc"]).run(threading.Event())
        at_once = run_cli("worker", "wc", "--dsn", dsn)
        assert at_once.returncode == 1
        assert "can't connect to PostgreSQL" in at_once.stderr
        with start_cli("worker", "wc", "--connect-timeout", 300, "--json", "--dsn", dsn, stderr=None) as worker:
            stop = threading.Event()
            with in_background(lambda: Worker(dsn, ["wc"], connect_timeout=300).run(stop)):
                assert server.start() == dsn
                with psycopg.connect(dsn, autocommit=True) as conn:
                    eventually(lambda: values(conn) == {"a": 1}, what="a worker combined")
                    both = "select count(*) from pgcombine.worker"
                    eventually(lambda: one(conn, both) == 2, what="both workers are there")
                stop.set()
            worker.send_signal(signal.SIGTERM)
            output = worker.communicate(timeout=30)[0]
            assert worker.returncode == 0
            assert json.loads(output)["conflicts"] >= 0
    finally:
        server.stop("immediate")
