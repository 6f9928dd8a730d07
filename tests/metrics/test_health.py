"""``/healthz`` reports loops that hang; ``/readyz`` reports a schema of another version."""

from __future__ import annotations

import threading

import psycopg
import pytest
from support import eventually
from support.queues import add
from support.scrape import get, served
from support.servers import embedded_only
from support.sessions import workers

from pgcombine.runtime.heartbeat import Heartbeat
from pgcombine.worker.totals import Pass


@pytest.mark.usefixtures("impatient")
def test_another_schema_is_not_ready(conn: psycopg.Connection, dsn: str) -> None:
    heartbeat = Heartbeat()
    with heartbeat.loop(), heartbeat.connected(), served(dsn, heartbeat) as port:
        assert get(port, "/readyz") == (200, "ok\n")
        conn.execute("update pgcombine.schema_version set digest = 'another'")
        status, text = get(port, "/readyz")
        assert status == 503
        assert "pgcombine db upgrade" in text
        assert get(port, "/healthz") == (200, "ok\n")


@pytest.mark.wc
@embedded_only
def test_a_loop_that_hangs_is_not_healthy(conn: psycopg.Connection, dsn: str) -> None:
    hangs, goes_on = threading.Event(), threading.Event()

    def on_pass(_: Pass) -> None:
        hangs.set()
        goes_on.wait()

    try:
        with workers(dsn, "wc", poll=0.05, on_pass=on_pass) as worker, served(dsn, worker.heartbeat) as port:
            eventually(lambda: get(port, "/readyz")[0] == 200)
            assert get(port, "/healthz") == (200, "ok\n")
            add(conn, {"a": 1})
            assert hangs.wait(timeout=30)
            limit, worker.heartbeat.limit = worker.heartbeat.limit, 0.0
            status, text = get(port, "/healthz")
            assert status == 503
            assert text.startswith("a loop has made no progress for ")
            worker.heartbeat.limit = limit
            goes_on.set()
            assert get(port, "/healthz") == (200, "ok\n")
    finally:
        goes_on.set()


def test_heartbeat_without_loops_is_neither_ready_nor_stalled() -> None:
    heartbeat = Heartbeat(limit=-1)
    assert not heartbeat.ready
    assert heartbeat.stalled is None
    with heartbeat.loop():
        assert not heartbeat.ready
        assert heartbeat.stalled is not None
        with heartbeat.connected():
            assert heartbeat.ready
        assert not heartbeat.ready
    heartbeat.beat()  # outside of ``loop``, a thread that beats isn't watched
    assert heartbeat.stalled is None
