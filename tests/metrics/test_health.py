"""``/healthz`` and ``/readyz``: loops that hang, and a schema that isn't the program's."""

from __future__ import annotations

import threading

import psycopg
import pytest
from support import eventually
from support.queues import add, make_queue
from support.scrape import get, served
from support.servers import embedded_only
from support.sessions import workers

from pgcombine.runtime.pulse import Pulse
from pgcombine.worker.totals import Pass


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
