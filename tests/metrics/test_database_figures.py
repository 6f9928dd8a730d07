"""Which process serves the figures of the database, and what it serves when it can't read them."""

from __future__ import annotations

from functools import partial
from urllib.parse import urlsplit

import psycopg
import pytest
from support import eventually
from support.pgbouncer import left_behind, pgbouncer
from support.proxy import Proxy
from support.queues import add
from support.roles import Roles, as_role
from support.scrape import DATABASE, families, get, has_figures, scrape, served, value
from support.servers import embedded_only
from support.sessions import workers

from pgcombine.metrics import database
from pgcombine.metrics.server import ProcessMetrics

END_SESSIONS = """
    select pg_terminate_backend(pid, 30000) from pg_stat_activity
    where application_name = 'pgcombine metrics' and datname = current_database()
"""


@pytest.mark.usefixtures("busy", "impatient")
def test_one_process_serves_the_figures_of_the_database(conn: psycopg.Connection, dsn: str) -> None:
    with served(dsn) as second:
        with served(dsn) as first:
            assert has_figures(first)
            assert not has_figures(second)
            assert value(scrape(second), "build_info", version="0") == 1
            # END_SESSIONS ends the session that reads the figures, not the process. The next process that is asked for
            # metrics serves the figures.
            conn.execute(END_SESSIONS)
            eventually(lambda: has_figures(second), what="the second process takes over")
            assert not has_figures(first)
            conn.execute(END_SESSIONS)
            eventually(lambda: has_figures(first), what="the first process takes over again")
            assert not has_figures(second)
        eventually(lambda: has_figures(second), what="the second process takes over after the end of the first")


@embedded_only
@pytest.mark.usefixtures("busy", "impatient")
def test_process_that_is_not_scraped_gives_up_the_figures(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_UNASKED_SECONDS", 1.0)
    with served(dsn) as forgotten, served(dsn) as asked:
        assert has_figures(forgotten)
        eventually(lambda: has_figures(asked), what="the server has ended the idle session of the other process")
        assert not has_figures(forgotten)


@embedded_only
@pytest.mark.usefixtures("busy", "impatient")
def test_readiness_probes_do_not_claim_the_figures(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_UNASKED_SECONDS", 2.0)
    with served(dsn) as forgotten, served(dsn) as asked:
        assert has_figures(forgotten)
        eventually(
            lambda: get(forgotten, "/readyz")[1] and has_figures(asked),
            what="one process serves the figures, although the other is probed",
        )
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


@pytest.mark.slow
@embedded_only
@pytest.mark.usefixtures("busy", "impatient")
def test_process_survives_an_unreachable_database(
    conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """During the outage the process serves its own metrics and its health."""
    monkeypatch.setattr(database, "DEADLINE_SECONDS", 4.0)
    proxy = Proxy(urlsplit(dsn).port or 5432)
    parts = urlsplit(dsn)
    account = parts.netloc.rpartition("@")[0]
    through = parts._replace(netloc=f"{account}@127.0.0.1:{proxy.port}").geturl()
    metrics = ProcessMetrics("0")
    try:
        with (
            workers(through, "wc", poll=0.05, on_pass=metrics.passes.passed) as worker,
            served(through, worker.heartbeat, metrics=metrics) as port,
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
            eventually(lambda: get(port, "/readyz")[0] == 200, what="the process is ready again")
            eventually(lambda: has_figures(port))
            proxy.black_hole()  # the proxy swallows all packets, so only the deadline ends the wait
            found = scrape(port)
            assert combined(found) == 3
            assert value(found, "queue_lag_seconds", queue="wc") is None
            assert get(port, "/healthz") == (200, "ok\n")
            proxy.heal()
            eventually(lambda: has_figures(port))
    finally:
        proxy.close()
    told = [record.getMessage() for record in caplog.records if record.name == "pgcombine.metrics"]
    # one message for each of the two outages, not one for each failed read; a short recovery may add one
    assert len([message for message in told if message.startswith("metrics.failed")]) <= 3


@pytest.mark.usefixtures("busy", "impatient")
def test_a_locked_table_holds_up_one_query(conn: psycopg.Connection, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_STATEMENT_SECONDS", 1.0)
    with served(dsn) as port:
        eventually(lambda: has_figures(port), what="each query is answered within a second")
        with psycopg.connect(dsn) as blocker:
            blocker.execute("lock table pgcombine.quarantined_key in access exclusive mode")
            found = scrape(port)
        assert value(found, "queue_lag_seconds", queue="wc") is None
        assert value(found, "hints", destination="there") == 1
        assert value(found, "figures_read", query="metrics_queue") == 0
        assert value(found, "figures_read", query="metrics_hint") == 1
        eventually(lambda: has_figures(port), what="each query is answered within a second again")
        assert value(scrape(port), "figures_read", query="metrics_queue") == 1


@pytest.mark.usefixtures("busy", "impatient")
def test_role_with_the_right_monitor_serves_figures(
    conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    with Roles(conn, dsn) as roles:
        role = roles.login().info.user
        conn.execute("select pgcombine.grant_right('read', %s, 'wc')", (role,))
        with served(as_role(dsn, role)) as port, served(dsn) as other:
            for _ in range(2):
                assert not DATABASE & families(get(port, "/metrics")[1]).keys()
            told = [record.getMessage() for record in caplog.records if "metrics.partial" in record.getMessage()]
            assert len(told) == 1
            assert "grant_right" in told[0]
            assert has_figures(other)  # a role without the right doesn't block other processes
        conn.execute("select pgcombine.grant_right('monitor', %s)", (role,))
        with served(as_role(dsn, role)) as port:
            assert has_figures(port)
            assert value(scrape(port), "queue_pending_updates", queue="wc") == 3


@embedded_only
@pytest.mark.usefixtures("busy", "impatient")
def test_each_process_serves_figures_through_a_pooler(conn: psycopg.Connection, dsn: str) -> None:
    with pgbouncer(dsn, servers=2) as pooled:
        with served(pooled) as one_port, served(pooled) as other:
            assert has_figures(one_port)
            assert has_figures(other)
        assert left_behind(pooled, 2) == []
