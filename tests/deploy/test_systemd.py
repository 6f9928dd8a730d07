"""A daemon tells systemd that it is ready, alive and stopping. The unit file is valid."""

from __future__ import annotations

import configparser
import os
import shlex
import signal
import socket
import subprocess
import tempfile
import threading
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from support.cli import SCRIPT, start_cli
from support.exports import make_export
from support.needs import require_program
from support.readme import ROOT
from support.servers import embedded_only
from support.tiers import each_nth

from pgcombine.runtime.heartbeat import Heartbeat
from pgcombine.runtime.systemd import reported

UNIT = ROOT / "pgcombine" / "deploy" / "pgcombine-worker.service"


@contextmanager
def systemd(
    monkeypatch: pytest.MonkeyPatch, *, abstract: bool = False, watchdog: float | None = 0.2
) -> Iterator[socket.socket]:
    """Receive notifications as systemd does, and yield the socket.

    Sets NOTIFY_SOCKET, and WATCHDOG_USEC if ``watchdog``, in seconds, isn't None.
    """
    with (
        tempfile.TemporaryDirectory() as directory,
        closing(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)) as receiver,
    ):
        address = f"@pgcombine-test-{os.getpid()}" if abstract else f"{directory}/notify"
        receiver.bind(address.replace("@", "\0"))
        receiver.settimeout(30)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        if watchdog is not None:
            monkeypatch.setenv("WATCHDOG_USEC", str(int(watchdog * 1e6)))
        yield receiver


def heard(receiver: socket.socket) -> str:
    return receiver.recv(4096).decode()


@pytest.mark.wc
@embedded_only
@pytest.mark.parametrize(
    "command",
    each_nth(3, [["worker", "--handoff"], ["export", "run", "out"], ["replicas", "run"]]),
    ids=lambda words: words[0],
)
def test_daemon_notifies_systemd(
    conn: psycopg.Connection, dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: list[str]
) -> None:
    make_export(conn, export="out", exporter="files", target=str(tmp_path))
    with systemd(monkeypatch) as receiver, start_cli(*command, "--dsn", dsn) as daemon:
        assert heard(receiver) == "READY=1"
        assert heard(receiver) == heard(receiver) == "WATCHDOG=1"
        daemon.send_signal(signal.SIGTERM)
        while (message := heard(receiver)) == "WATCHDOG=1":
            pass
        assert message == "STOPPING=1"
        out, _ = daemon.communicate(timeout=60)
        assert daemon.returncode == 0, out


@embedded_only
def test_hanging_process_sends_no_watchdog_message(
    conn: psycopg.Connection, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    with systemd(monkeypatch) as receiver, start_cli("worker", "--dsn", dsn) as daemon:
        assert heard(receiver) == "READY=1"
        assert heard(receiver) == "WATCHDOG=1"
        daemon.send_signal(signal.SIGSTOP)
        os.waitid(os.P_PID, daemon.pid, os.WSTOPPED | os.WNOWAIT)
        receiver.setblocking(False)
        with suppress(BlockingIOError):  # drop the messages that the daemon sent before it was stopped
            while heard(receiver):
                pass
        receiver.settimeout(2)
        with pytest.raises(TimeoutError):
            heard(receiver)


@pytest.mark.parametrize("abstract", [True, False])
def test_hanging_loop_ends_the_watchdog_messages(monkeypatch: pytest.MonkeyPatch, abstract: bool) -> None:
    heartbeat = Heartbeat()
    notified = systemd(monkeypatch, abstract=abstract, watchdog=0.02)
    with notified as receiver, reported([heartbeat]), heartbeat.loop(), heartbeat.connected():
        assert heard(receiver) == "READY=1"
        assert heard(receiver) == "WATCHDOG=1"
        heartbeat.limit = -1.0
        while (message := heard(receiver)) == "WATCHDOG=1":
            pass
        assert message.startswith("STATUS=A loop hangs")


def test_process_is_ready_once_all_loops_are_connected(monkeypatch: pytest.MonkeyPatch) -> None:
    one, other = Heartbeat(), Heartbeat()
    with systemd(monkeypatch, watchdog=None) as receiver:
        with reported([one, other]), one.loop(), one.connected(), other.loop():
            receiver.settimeout(0.5)
            with pytest.raises(TimeoutError):
                heard(receiver)
            receiver.settimeout(30)
            with other.connected():
                assert heard(receiver) == "READY=1"
        assert heard(receiver) == "STOPPING=1"


def test_watchdog_of_another_process_is_ignored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WATCHDOG_PID", str(os.getppid()))
    heartbeat = Heartbeat()
    with systemd(monkeypatch) as receiver:
        with reported([heartbeat]), heartbeat.loop(), heartbeat.connected():
            assert heard(receiver) == "READY=1"
        assert heard(receiver) == "STOPPING=1"


def test_process_without_systemd_starts_no_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NOTIFY_SOCKET", raising=False)
    before = threading.active_count()
    with reported([Heartbeat()]):
        assert threading.active_count() == before


def test_missing_socket_does_not_stop_the_daemon(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", "/nonexistent/notify")
    with reported([Heartbeat()]):
        pass
    assert [record.getMessage().partition(" ")[0] for record in caplog.records] == ["systemd.failed"]


def test_unit_is_valid(tmp_path: Path) -> None:
    program = require_program("systemd-analyze")
    text = UNIT.read_text(encoding="utf-8")
    assert "/opt/pgcombine/bin/pgcombine" in text
    unit = tmp_path / UNIT.name
    unit.write_text(text.replace("/opt/pgcombine/bin/pgcombine", str(SCRIPT)), encoding="utf-8")
    done = subprocess.run([program, "verify", "--man=no", unit], capture_output=True, text=True, check=False)
    about_it = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert (done.returncode, about_it) == (0, []), done.stderr


def test_unit_runs_an_existing_command() -> None:
    unit = configparser.ConfigParser(interpolation=None, strict=False)
    unit.optionxform = str
    unit.read_string(UNIT.read_text(encoding="utf-8"))
    service = unit["Service"]
    program, *arguments = shlex.split(service["ExecStart"])
    done = subprocess.run([SCRIPT, *arguments, "--help"], capture_output=True, text=True, check=False)
    assert (Path(program).name, done.returncode) == ("pgcombine", 0), done.stderr
    assert (service["Type"], service["Restart"], service["RestartPreventExitStatus"]) == ("notify", "on-failure", "2")
    assert 0 < int(service["WatchdogSec"]) <= 120
