"""``/metrics``, ``/healthz`` and ``/readyz`` of the processes that work all day."""

from __future__ import annotations

import logging
import signal
import socket
import sys
import threading
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from support import eventually, run_cli
from support.pgbouncer import left_behind, pgbouncer
from support.proxy import Proxy
from support.queues import add, make_queue, one, values
from support.roles import Roles, as_role
from support.scrape import Samples, daemon, families, get, samples, served, value
from support.servers import embedded_only
from support.sessions import workers

from pgcombine.cli.metrics import Metrics
from pgcombine.errors import ConfigError
from pgcombine.metrics import database, names
from pgcombine.metrics.server import ProcessMetrics
from pgcombine.runtime.pulse import Pulse
from pgcombine.worker.totals import Pass

DATABASE = {gauge.name for gauge in names.OF_THE_DATABASE}
END_SESSIONS = """
    select pg_terminate_backend(pid, 30000) from pg_stat_activity
    where application_name = 'pgcombine metrics' and datname = current_database()
"""


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures are read at each request, also after a failure."""
    monkeypatch.setattr(database, "_KEPT_SECONDS", 0.0)
    monkeypatch.setattr(database, "_REST_SECONDS", 0.0)


def scrape(port: int) -> Samples:
    status, text = get(port, "/metrics")
    assert status == 200
    return samples(text)


def has_figures(port: int) -> bool:
    return families(get(port, "/metrics")[1]).keys() >= DATABASE


@pytest.mark.usefixtures("busy")
def test_a_worker_as_a_program(conn: psycopg.Connection, dsn: str) -> None:
    with daemon("worker", "--poll", 0.1, "--dsn", dsn) as (port, process):
        eventually(lambda: values(conn) == {"the first key": 2, "the second key": 3, "the third key": 3})
        eventually(lambda: get(port, "/readyz") == (200, "ok\n"), what="it is ready")
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
        assert (value(found, "export_pending_entries", export="search", queue="wc") or 0) >= 2  # by the statistics
        assert value(found, "destination_up", kind="export", destination="search") == 1
        assert value(found, "hints", destination="there") == 1
        assert value(found, "hint_age_seconds", destination="there") == pytest.approx(3600, abs=600)
        text = get(port, "/metrics")[1]
        metrics = {metric.name: (metric.kind, frozenset(metric.labels)) for metric in names.OF_A_PROCESS}
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
@pytest.mark.parametrize("arguments", [("export", "run", "search", "--app", "sink:take"), ("handoff", "run")])
def test_other_daemons(
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
        eventually(lambda: get(port, "/readyz") == (200, "ok\n"), what="it is ready")
        assert get(port, "/healthz") == (200, "ok\n")
        found = scrape(port)
        assert value(found, "queue_pending_updates", queue="wc") == 3
        assert value(found, "passes_total", queue="wc", outcome="combined") is None
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=30) == 0


@embedded_only
def test_failed_passes_and_conflicts(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=1)
    metrics = ProcessMetrics("0")
    counters = metrics.passes
    with (
        served(dsn, metrics=metrics) as port,
        workers(dsn, "wc", poll=0.05, on_pass=counters.passed, on_failure=counters.failed),
    ):
        add(conn, {"a": 1})
        eventually(lambda: values(conn) == {"a": 1})
        with psycopg.connect(dsn) as rival:
            rival.execute("update pgcombine.wc_values set n = n + 10")
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


@pytest.mark.usefixtures("busy", "impatient")
def test_one_process_gives_the_figures_of_the_database(
    conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, logger="pgcombine.metrics")
    with served(dsn) as second:
        with served(dsn) as first:
            assert has_figures(first)
            assert not has_figures(second)
            assert value(scrape(second), "build_info", version="0") == 1
            # a session that ends without the process: whoever is asked first has the figures
            conn.execute(END_SESSIONS)
            eventually(lambda: has_figures(second), what="the other one takes over")
            assert not has_figures(first)
            conn.execute(END_SESSIONS)
            eventually(lambda: has_figures(first), what="and back")
            assert not has_figures(second)
        eventually(lambda: has_figures(second), what="the first one has ended")


@embedded_only
@pytest.mark.usefixtures("busy", "impatient")
def test_a_process_that_nobody_asks_makes_room(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_UNASKED_SECONDS", 1.0)
    with served(dsn) as forgotten, served(dsn) as asked:
        assert has_figures(forgotten)
        eventually(lambda: has_figures(asked), what="the server has ended the other session")
        assert not has_figures(forgotten)


@pytest.mark.usefixtures("busy")
def test_figures_are_kept_for_a_moment(conn: psycopg.Connection, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_KEPT_SECONDS", 3600.0)
    with served(dsn) as port:
        pending = partial(value, name="queue_pending_updates", queue="wc")
        assert pending(scrape(port)) == 3
        add(conn, {"b": 1})
        conn.execute("delete from pgcombine.sample")
        assert pending(scrape(port)) == 3
    monkeypatch.setattr(database, "_KEPT_SECONDS", 0.0)
    with served(dsn) as port:
        assert pending(scrape(port)) == 4


@embedded_only
@pytest.mark.usefixtures("busy", "impatient")
def test_a_database_that_goes_away(conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    """The process's own metrics are there all the time, and so is its health."""
    proxy = Proxy(urlsplit(dsn).port or 5432)
    parts = urlsplit(dsn)
    account = parts.netloc.rpartition("@")[0]
    through = parts._replace(netloc=f"{account}@127.0.0.1:{proxy.port}").geturl()
    metrics = ProcessMetrics("0")
    try:
        with (
            workers(through, "wc", poll=0.05, on_pass=metrics.passes.passed) as worker,
            served(through, worker.pulse, metrics=metrics) as port,
        ):
            combined = partial(value, name="updates_combined_total", queue="wc")
            eventually(lambda: combined(scrape(port)) == 3)
            eventually(lambda: get(port, "/readyz")[0] == 200)
            proxy.refuse = True
            proxy.cut()
            eventually(lambda: get(port, "/readyz")[0] == 503)
            found = scrape(port)
            assert combined(found) == 3
            assert value(found, "queue_lag_seconds", queue="wc") is None
            assert get(port, "/healthz") == (200, "ok\n")
            assert get(port, "/readyz") == (503, "the database can't be reached\n")
            proxy.heal()
            eventually(lambda: get(port, "/readyz")[0] == 200, what="it is ready again")
            eventually(lambda: has_figures(port))
            proxy.black_hole()  # no error comes, only the deadline ends the wait
            found = scrape(port)
            assert combined(found) == 3
            assert value(found, "queue_lag_seconds", queue="wc") is None
            assert get(port, "/healthz") == (200, "ok\n")
            proxy.heal()
            eventually(lambda: has_figures(port))
    finally:
        proxy.close()
    told = [record.getMessage() for record in caplog.records if record.name == "pgcombine.metrics"]
    assert len([message for message in told if message.startswith("metrics.failed")]) <= 3  # once an outage


@pytest.mark.usefixtures("busy", "impatient")
def test_a_locked_table_holds_up_one_query(conn: psycopg.Connection, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_STATEMENT_SECONDS", 1.0)
    monkeypatch.setattr(database, "DEADLINE_SECONDS", 20.0)
    with served(dsn) as port:
        assert has_figures(port)
        with psycopg.connect(dsn) as blocker:
            blocker.execute("lock table pgcombine.quarantined_key in access exclusive mode")
            found = scrape(port)
        assert value(found, "queue_lag_seconds", queue="wc") is None
        assert value(found, "hints", destination="there") == 1
        assert has_figures(port)


@pytest.mark.usefixtures("busy", "impatient")
def test_a_role_gives_figures_if_it_may_monitor(
    conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Roles(conn, dsn) as roles:
        role = roles.login().info.user
        conn.execute("select pgcombine.grant_work(%s, 'wc')", (role,))
        with served(as_role(dsn, role)) as port, served(dsn) as other:
            for _ in range(2):
                assert not DATABASE & families(get(port, "/metrics")[1]).keys()
            told = [record.getMessage() for record in caplog.records if "metrics.partial" in record.getMessage()]
            assert len(told) == 1
            assert "grant_monitor" in told[0]
            assert has_figures(other)  # it doesn't keep others from it
        conn.execute("select pgcombine.grant_monitor(%s)", (role,))
        with served(as_role(dsn, role)) as port:
            assert has_figures(port)
            assert value(scrape(port), "queue_pending_updates", queue="wc") == 3


@embedded_only
@pytest.mark.usefixtures("busy", "impatient")
def test_through_a_pooler_each_process_gives_them(conn: psycopg.Connection, dsn: str) -> None:
    with pgbouncer(dsn, servers=2) as pooled:
        with served(pooled) as one_port, served(pooled) as other:
            assert has_figures(one_port)
            assert has_figures(other)
        assert left_behind(pooled, 2) == []


@pytest.mark.usefixtures("impatient")
def test_another_schema_is_not_ready(conn: psycopg.Connection, dsn: str) -> None:
    pulse = Pulse()
    with pulse.loop(), pulse.connected(), served(dsn, pulse) as port:
        assert get(port, "/readyz") == (200, "ok\n")
        conn.execute("update pgcombine.repeatable set digest = 'another'")
        status, text = get(port, "/readyz")
        assert status == 503
        assert "pgcombine db upgrade" in text
        assert get(port, "/healthz") == (200, "ok\n")


@embedded_only
def test_a_loop_that_hangs_is_not_healthy(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn)
    hangs, goes_on = threading.Event(), threading.Event()

    def on_pass(_: Pass) -> None:
        hangs.set()
        goes_on.wait()

    try:
        with workers(dsn, "wc", poll=0.05, on_pass=on_pass) as worker, served(dsn, worker.pulse) as port:
            eventually(lambda: get(port, "/readyz")[0] == 200)
            assert get(port, "/healthz") == (200, "ok\n")
            add(conn, {"a": 1})
            assert hangs.wait(timeout=30)
            limit, worker.pulse.limit = worker.pulse.limit, 0.0
            status, text = get(port, "/healthz")
            assert status == 503
            assert text.startswith("a loop has not gone on for ")
            worker.pulse.limit = limit
            goes_on.set()
            assert get(port, "/healthz") == (200, "ok\n")
    finally:
        goes_on.set()


def test_without_loops_nothing_is_ready_or_stalled() -> None:
    pulse = Pulse(limit=-1)
    assert not pulse.ready
    assert pulse.stalled is None
    with pulse.loop():
        assert not pulse.ready
        assert pulse.stalled is not None
        with pulse.connected():
            assert pulse.ready
        assert not pulse.ready
    pulse.beat()  # a thread that isn't watched
    assert pulse.stalled is None


@embedded_only
def test_a_port_that_is_taken(dsn: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        for command in (("worker",), ("handoff", "run")):
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
    "arguments", [("worker", "--drain"), ("export", "run", "search", "--drain"), ("handoff", "run", "--once")]
)
def test_a_command_that_ends_has_none(dsn: str, arguments: tuple[str, ...]) -> None:
    done = run_cli(*arguments, "--metrics-port", 0, "--dsn", dsn)
    assert done.returncode == 2
    assert "--metrics-port" in done.stderr


def test_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in sys.modules if name.startswith("pgcombine.metrics.")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "prometheus_client", None)
    with pytest.raises(ConfigError, match=r"pip install 'pgcombine\[metrics\]'"):
        Metrics(0, "127.0.0.1")


def test_without_a_port_nothing_is_imported() -> None:
    import subprocess

    program = (
        "import sys; from pgcombine.cli.app import app; from pgcombine.cli.metrics import Metrics; "
        "metrics = Metrics(None, ''); assert metrics.on_pass is None and metrics.on_failure is None; "
        "print([name for name in sys.modules if name.startswith(('prometheus', 'pgcombine.metrics', 'wsgiref'))])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
