"""``/metrics``, ``/healthz`` and ``/readyz`` of the daemons, and errors of the options for metrics."""

from __future__ import annotations

import signal
import socket
import sys
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from support import eventually, run_cli
from support.queues import add, one, values, write_values
from support.scrape import daemon, families, get, scrape, served, value
from support.servers import embedded_only
from support.sessions import workers

from pgcombine.cli.metrics import Metrics
from pgcombine.errors import ConfigError
from pgcombine.metrics import names
from pgcombine.metrics.server import ProcessMetrics


@pytest.mark.usefixtures("busy")
def test_worker_serves_metrics_and_health(conn: psycopg.Connection, dsn: str) -> None:
    with daemon("worker", "--poll", 0.1, "--dsn", dsn) as (port, process):
        eventually(lambda: values(conn) == {"the first key": 2, "the second key": 3, "the third key": 3})
        eventually(lambda: get(port, "/readyz") == (200, "ok\n"), what="the daemon is ready")
        assert get(port, "/healthz") == (200, "ok\n")
        assert get(port, "/")[0] == 404
        found = eventually(lambda: value(got := scrape(port), "changes_total", queue="wc") and got)
        assert value(found, "updates_combined_total", queue="wc") == 3
        assert value(found, "changes_total", queue="wc") == 3
        assert value(found, "passes_total", queue="wc", outcome="combined") == 1
        assert value(found, "passes_total", queue="wc", outcome="failed") == 0
        assert value(found, "pass_duration_seconds_count", queue="wc") == 1
        assert 0 < (value(found, "pass_duration_seconds_sum", queue="wc") or 0) < 60
        assert value(found, "queue_quarantined_keys", queue="wc") == 0
        # the number of entries is an estimate from the statistics
        assert (value(found, "export_pending_entries", export="search", queue="wc") or 0) >= 2
        assert value(found, "destination_up", kind="export", destination="search") == 1
        assert value(found, "hints", destination="there") == 1
        assert value(found, "hint_age_seconds", destination="there") == pytest.approx(3600, abs=600)
        text = get(port, "/metrics")[1]
        metrics = {
            metric.name: (metric.kind, frozenset(metric.labels)) for metric in (*names.OF_A_PROCESS, names.FIGURES_READ)
        }
        metrics |= {gauge.name: (gauge.kind, frozenset(gauge.labels)) for gauge in names.OF_THE_DATABASE}
        assert families(text) == metrics
        assert "_created" not in text
        labels = {label for _, pairs in found for label in pairs}
        assert not [label for label in labels if " key" in label[1]]
        (address,) = {urlsplit(f"//{line}").hostname for line in listening(process.pid)}
        assert address == "127.0.0.1"
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


def listening(pid: int) -> set[str]:
    """The addresses on which a process listens."""
    import psutil

    return {
        f"{one.laddr.ip}:{one.laddr.port}"
        for one in psutil.Process(pid).net_connections("tcp")
        if one.status == psutil.CONN_LISTEN
    }


@embedded_only
@pytest.mark.usefixtures("busy")
@pytest.mark.parametrize("arguments", [("export", "run", "search", "--app", "sink:take"), ("replicas", "run")])
def test_other_daemons_serve_metrics(
    conn: psycopg.Connection,
    dsn: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: tuple[str, ...],
) -> None:
    (tmp_path / "sink.py").write_text("def take(entries): pass\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    with daemon(*arguments, "--dsn", dsn) as (port, process):
        eventually(lambda: get(port, "/readyz") == (200, "ok\n"), what="the daemon is ready")
        assert get(port, "/healthz") == (200, "ok\n")
        found = scrape(port)
        assert value(found, "queue_pending_updates", queue="wc") == 3
        assert value(found, "passes_total", queue="wc", outcome="combined") is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


@pytest.mark.wc(buckets=1)
@embedded_only
def test_worker_counts_failed_passes_and_conflicts(conn: psycopg.Connection, dsn: str) -> None:
    metrics = ProcessMetrics("0")
    counters = metrics.passes
    with (
        served(dsn, metrics=metrics) as port,
        workers(dsn, "wc", poll=0.05, on_pass=counters.passed, on_failure=counters.failed),
    ):
        add(conn, {"a": 1})
        eventually(lambda: values(conn) == {"a": 1})
        with psycopg.connect(dsn) as rival:
            write_values(rival, "update pgcombine.wc_values set n = n + 10")
            add(conn, {"a": 1})
            eventually(
                lambda: one(conn, "select count(*) from pg_locks where not granted"),
                what="the pass waits for the rival",
            )
            rival.commit()
        eventually(lambda: values(conn) == {"a": 12})
        eventually(lambda: value(scrape(port), "passes_total", queue="wc", outcome="conflict") == 1)
        conn.execute("select pgcombine.add_observer('wc', 'o', 'select 1 / (new_n - 13) from changes')")
        add(conn, {"a": 1})
        eventually(lambda: (value(scrape(port), "passes_total", queue="wc", outcome="failed") or 0) >= 1)
        assert value(scrape(port), "passes_total", queue="wc", outcome="combined") == 2


@embedded_only
def test_taken_port_is_reported(dsn: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for command in (("worker",), ("replicas", "run")):
            done = run_cli(*command, "--metrics-port", port, "--dsn", dsn)
            assert done.returncode == 1
            (line,) = [line for line in done.stderr.splitlines() if line.startswith("pgcombine:")]
            assert line == (
                f"pgcombine: port {port} of 127.0.0.1 can't serve metrics (Address already in use); "
                "choose another one with --metrics-port"
            )
    done = run_cli("worker", "--metrics-port", 0, "--metrics-host", "no host", "--dsn", dsn)
    assert done.returncode == 1
    assert "the host no host for metrics isn't known" in done.stderr


@embedded_only
@pytest.mark.parametrize(
    "arguments", [("worker", "--drain"), ("export", "run", "search", "--drain"), ("replicas", "run", "--once")]
)
def test_commands_that_end_refuse_a_metrics_port(dsn: str, arguments: tuple[str, ...]) -> None:
    done = run_cli(*arguments, "--metrics-port", 0, "--dsn", dsn)
    assert done.returncode == 2
    assert "--metrics-port" in done.stderr


def test_missing_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("pgcombine.metrics.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ConfigError, match="metrics"):
        Metrics(0, "127.0.0.1")


def test_command_without_a_port_imports_no_metrics() -> None:
    import subprocess

    program = (
        "import sys; from pgcombine.cli.app import app; from pgcombine.cli.metrics import Metrics; "
        "metrics = Metrics(None, ''); assert metrics.on_pass is None and metrics.on_failure is None; "
        "print([name for name in sys.modules if name.startswith(('prometheus', 'pgcombine.metrics', 'wsgiref'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
