"""Many signals at once end a command that runs until it is stopped, in order."""

from __future__ import annotations

import ast
import signal
import subprocess
import time
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
from support import eventually, start_cli
from support.servers import embedded_only

import pgcombine
from pgcombine.feed.feed import Feed

COMMANDS = {
    "worker": ("worker", "--concurrency", 2),
    "worker with all duties": ("worker", "--handoff", "--metrics-port", 0),
    "export": ("export", "run", "words"),
    "replicas": ("replicas", "run"),
    "web": ("web", "--port", 0),
    "quickstart": ("quickstart",),
    "status": ("status", "--watch", 0.1),
    "top": ("top", "wc", "--watch", 0.1),
    "feed": ("feed", "tail", "wc_feed", "--follow"),
}
STORM = [signal.SIGTERM, signal.SIGINT]


def handles(process: subprocess.Popen[str], number: int) -> bool:
    """Whether the process has a handler for a signal. Fails if the process has ended."""
    caught = Path(f"/proc/{process.pid}/status").read_text().split("SigCgt:")[1].split()[0]
    return bool(int(caught, 16) >> (number - 1) & 1)


@pytest.mark.wc
@embedded_only
def test_a_storm_of_signals_ends_each_command(conn: psycopg.Connection, dsn: str, tmp_path: Path) -> None:
    conn.execute("select pgcombine.create_export('words', 'wc', 'files', %s)", (str(tmp_path / "words"),))
    conn.execute("select pgcombine_internal.handoff_identify('a')")
    Feed("wc_feed", queue="wc").create(conn)
    with ExitStack() as stack:
        logs = {name: stack.enter_context((tmp_path / name).open("w+")) for name in COMMANDS}
        running = {
            name: stack.enter_context(
                start_cli(*args, "--dsn", dsn, stdout=subprocess.DEVNULL, stderr=logs[name], cwd=tmp_path)
            )
            for name, args in COMMANDS.items()
        }
        for name, process in running.items():
            eventually(lambda process=process: handles(process, signal.SIGTERM), what=f"{name} handles signals")
        time.sleep(0.5)  # the commands are in their loops
        for _ in range(100):
            for process in running.values():
                for number in STORM * 3:
                    process.send_signal(number)
        ends: dict[str, object] = {}
        for name, process in running.items():
            try:
                status = process.wait(120)  # a process that writes to a busy disk can't end
                # a signal that comes when the command has ended and Python is exiting kills the process
                ends[name] = 0 if -status in STORM else status
            except subprocess.TimeoutExpired:
                ends[name] = "hangs"
        assert ends == dict.fromkeys(COMMANDS, 0), {n: Path(f.name).read_text() for n, f in logs.items() if ends[n]}


@pytest.mark.wc
def test_a_hangup_ends_a_worker_among_other_signals(conn: psycopg.Connection, dsn: str) -> None:
    with start_cli("worker", "--dsn", dsn) as process:
        eventually(lambda: handles(process, signal.SIGTERM), what="the worker handles signals")
        for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT) * 3:
            process.send_signal(number)
        assert process.wait(120) in (0, -signal.SIGHUP)


def test_only_these_files_handle_signals() -> None:
    """The commands above have the handlers of the first file."""
    found = {
        path.relative_to(Path(pgcombine.__file__).parent).as_posix()
        for path in Path(pgcombine.__file__).parent.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Attribute)
        and node.attr in ("signal", "set_wakeup_fd", "add_signal_handler")
        and not isinstance(node.value, ast.Attribute)
    }
    assert found == {"cli/loops.py", "cli/__init__.py", "phrasecount/session.py"}
