"""``status --watch`` and ``top --watch``, on a terminal and in a pipe."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from support import eventually, run_cli, start_cli
from support.cli import command, environment
from support.proxy import Proxy
from support.queues import add, combine_all, hold, make_queue, one
from support.servers import embedded_only
from support.sessions import in_background

from pgcombine.cli.watch import History

LINE = r"\d{4}-\d\d-\d\dT\S+ "


@contextmanager
def watching(directory: Path, *args: object) -> Iterator[tuple[subprocess.Popen[str], Path, Path]]:
    """Run a command with --watch. Yield the process and its output files. SIGINT must end it with status 0."""
    out, err = directory / "out", directory / "err"
    with out.open("w") as stdout, err.open("w") as stderr, start_cli(*args, stdout=stdout, stderr=stderr) as process:
        yield process, out, err
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 0, err.read_text()


def lines(file: Path) -> list[str]:
    return file.read_text(encoding="utf-8").splitlines()


@pytest.mark.wc
def test_status_prints_lines_in_a_pipe(conn: psycopg.Connection, dsn: str, tmp_path: Path) -> None:
    add(conn, {"a": 1, "b": 2})
    with watching(tmp_path, "status", "--watch", 0.1, "--dsn", dsn) as (_, out, err):
        eventually(lambda: len(lines(out)) > 2, what="several polls")
        assert re.match(LINE + r"queue=wc backlog=2 lag_seconds=[\d.]+ updates_per_second=0 ", lines(out)[0])
        combine_all(conn)
        eventually(lambda: " backlog=0 " in lines(out)[-1], what="the updates are combined")
        eventually(lambda: " updates_per_second=0.033 " in lines(out)[-1], what="two updates a minute")
    assert err.read_text() == ""


@pytest.mark.wc
@embedded_only
def test_status_prints_lines_of_json(conn: psycopg.Connection, dsn: str, tmp_path: Path) -> None:
    with watching(tmp_path, "status", "--watch=0.1", "--json", "--dsn", dsn) as (_, out, _):
        eventually(lambda: len(lines(out)) > 1, what="several polls")
        for line in lines(out)[:2]:
            found = json.loads(line)
            names = ["at", "queues", "rollups", "fronts", "exports", "feeds", "workers", "old_snapshots", "log"]
            assert list(found) == names
            assert found["queues"][0]["backlog"] == 0


@pytest.mark.wc
@embedded_only
def test_top_prints_lines_in_a_pipe(conn: psycopg.Connection, dsn: str, tmp_path: Path) -> None:
    add(conn, {"a": 1, "b": 5})
    combine_all(conn)
    with watching(tmp_path, "top", "wc", "-n", 1, "--watch", 0.1, "--dsn", dsn) as (_, out, _):
        eventually(lambda: len(lines(out)) > 1, what="several polls")
        assert re.fullmatch(LINE + "queue=wc word=b n=5 per_second=", lines(out)[0])
        add(conn, {"b": 10})
        combine_all(conn)
        eventually(lambda: re.search(r"n=15 per_second=[1-9]", out.read_text()), what="the rate")


@pytest.mark.wc
def test_lost_connection_is_opened_again(conn: psycopg.Connection, dsn: str, tmp_path: Path) -> None:
    with watching(tmp_path, "status", "--watch", 0.1, "--dsn", dsn) as (_, out, err):
        eventually(lambda: lines(out), what="a first poll")
        ended = "select count(pg_terminate_backend(pid)) from pg_stat_activity"
        assert one(conn, f"{ended} where application_name = 'pgcombine cli' and datname = current_database()") == 1
        eventually(lambda: lines(err), what="a note says so")
        before = len(lines(out))
        eventually(lambda: len(lines(out)) > before + 1, what="the command is connected again")
    (told,) = lines(err)
    assert re.match(r"pgcombine: note: no figures: .+; trying again$", told)


def test_watch_fails_without_a_server() -> None:
    failed = run_cli("status", "--watch", "--dsn", "host=127.0.0.1 port=1 dbname=none")
    assert (failed.returncode, failed.stdout, len(failed.stderr.splitlines())) == (1, "", 1)


@pytest.mark.wc
@embedded_only
def test_watch_ends_with_the_reader_of_its_pipe(conn: psycopg.Connection, dsn: str) -> None:
    with start_cli("status", "--watch", 0.1, "--dsn", dsn, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline()
        process.stdout.close()
        process.wait(timeout=30)
        assert process.stderr.read() == ""


@embedded_only
@pytest.mark.parametrize(
    "arguments", [("--watch", "-1"), ("--watch=x",), ("--watch", "--max-lag", "1"), ("--watch", "1", "more")]
)
def test_wrong_usage_ends_with_status_2(dsn: str, arguments: tuple[str, ...]) -> None:
    assert run_cli("status", *arguments, "--dsn", dsn).returncode == 2


def on_terminal(
    *args: object, until: str, stop: signal.Signals = signal.SIGINT, ignored: bool = False, columns: int = 160
) -> tuple[str, int]:
    """Run a command on a terminal until ``until`` appears, then stop it. Return its output and its status.

    With ``ignored`` the command ignores SIGINT from its start.
    """
    controller, terminal = pty.openpty()
    env = environment({"TERM": "xterm", "LANG": "C.UTF-8", "PYTHONUTF8": "1", "COLUMNS": columns, "LINES": 40})
    shell = ["sh", "-c", "trap '' INT; exec \"$@\"", "sh"] if ignored else []
    process = subprocess.Popen([*shell, *command(*args)], stdin=terminal, stdout=terminal, stderr=terminal, env=env)
    os.close(terminal)
    seen = ""
    deadline = time.monotonic() + 60
    try:
        while not re.search(until, seen):
            assert time.monotonic() < deadline, seen
            if select.select([controller], [], [], 0.1)[0]:
                seen += os.read(controller, 65536).decode("utf-8", "replace")
        process.send_signal(stop)
        while process.poll() is None:
            assert time.monotonic() < deadline
            if select.select([controller], [], [], 0.1)[0]:
                try:
                    seen += os.read(controller, 65536).decode("utf-8", "replace")
                except OSError:  # the command has ended and closed the terminal
                    break
        return seen, process.wait(timeout=30)
    finally:
        process.kill()
        process.wait()
        os.close(controller)


@pytest.mark.wc
@pytest.mark.parametrize(("stop", "ignored"), [(signal.SIGINT, False), (signal.SIGTERM, False), (signal.SIGTERM, True)])
def test_status_restores_the_terminal(conn: psycopg.Connection, dsn: str, stop: signal.Signals, ignored: bool) -> None:
    add(conn, {"a": 1})
    seen, code = on_terminal(
        "status", "--watch", 0.1, "--dsn", dsn, until="backlog[^█]*█{3}", stop=stop, ignored=ignored
    )
    assert code == 0
    assert "Ctrl-C ends it" in seen
    assert "no worker is connected" in seen
    assert seen.index("\x1b[?1049h") < seen.rindex("\x1b[?1049l")  # at the end the command leaves the alternate screen


def test_status_on_a_narrow_terminal_cuts_nothing(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, "page_views_by_day")
    make_queue(conn, "held")
    add(conn, {"a": 1}, "page_views_by_day")
    add(conn, {"bad": 1}, "held")
    hold(conn, "held", word="bad")
    conn.execute("select pgcombine.pause('held')")
    seen, code = on_terminal("status", "--watch", 0.1, "--dsn", dsn, until="no worker is connected", columns=80)
    assert code == 0
    shown = re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", seen)
    assert "…" not in shown
    for text in ("page_views_by_day", "backlog", "combined", "behind", "quarantined", "1 key", "paused"):
        assert text in shown, text


@pytest.mark.wc
def test_top_shows_rates_on_a_terminal(conn: psycopg.Connection, dsn: str) -> None:
    add(conn, {"a\x1b[31m": 1})
    combine_all(conn)
    seen, code = on_terminal("top", "wc", "--watch", 0.1, "--dsn", dsn, until=r"change(?s:.*)\+0\.0/s(?s:.*)combined")
    assert code == 0
    assert "a\\x1b[31m" in seen
    assert "0 pending" in seen


@pytest.mark.wc
@pytest.mark.slow
@embedded_only
def test_terminal_shows_old_figures_without_the_server(conn: psycopg.Connection, dsn: str) -> None:
    parts = urlsplit(dsn)
    proxy = Proxy(parts.port or 5432)
    there = parts._replace(netloc=f"{parts.netloc.rpartition(':')[0]}:{proxy.port}").geturl()
    poll = (
        "select query_start from pg_stat_activity where application_name = 'pgcombine cli' "
        "and datname = current_database() and query ~ 'pgcombine.worker'"
    )
    polls: set[object] = set()

    def second() -> bool:
        polls.update(conn.execute(poll).fetchone() or ())
        return len(polls) > 1

    def refuse() -> None:
        eventually(second, what="the result of the first poll is shown")
        proxy.refuse = True
        proxy.cut()

    try:
        with in_background(refuse):
            until = "no figures: .*; trying again. These are old(?s:.*)wc "
            seen, code = on_terminal("status", "--watch", 0.2, "--dsn", there, until=until)
        assert code == 0, seen
    finally:
        proxy.close()


def test_sparkline_follows_the_figures() -> None:
    history = History(width=4)
    assert history.line("a", figure=0).strip() == ""
    for figure in (1, 2, 4):
        line = history.line("a", figure=figure)
    assert len({*line[-3:]}) == 3
    assert line[-1] == max(line)
    assert history.line("a", figure=float("inf"))[-1] == " "
    assert len(line) == len(history.line("b", figure=7))
