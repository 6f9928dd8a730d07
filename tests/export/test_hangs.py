"""Destinations that hold connections open and don't answer: deliveries end with an error, and other exports go on."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest
from support.exports import exported, make_export, make_exported, state, waiting, worker_to
from support.proxy import Proxy
from support.queues import combine, one, values
from support.servers import embedded_only
from support.sessions import in_background
from support.wait import eventually

from pgcombine import ExportWorker

pytestmark = embedded_only


@pytest.fixture
def proxied(target: str) -> Iterator[tuple[Proxy, str]]:
    """A proxy in front of the destination's server, and the destination's URI through the proxy."""
    parts = urlsplit(target)
    assert parts.port is not None
    proxy = Proxy(parts.port)
    yield proxy, parts._replace(netloc=parts.netloc.replace(f":{parts.port}", f":{proxy.port}")).geturl()
    proxy.close()


@pytest.mark.parametrize("connected", [pytest.param(False, marks=pytest.mark.slow), True])
def test_worker_gives_up_a_hanging_postgresql(
    conn: psycopg.Connection, dsn: str, target: str, proxied: tuple[Proxy, str], connected: bool
) -> None:
    """The destination stops answering before or after the first delivery. Another export goes on.

    After the destination answers again and its export is resumed, it gets the waiting entries.
    """
    proxy, through = proxied
    make_exported(conn, target)
    make_export(conn, through, "stuck")
    conn.execute("select pgcombine_internal.add_destination('export', 'stuck', down_after => 1, backoff => '1 hour')")
    stop = threading.Event()
    stuck, well = worker_to(dsn, through, "stuck", timeout=1.0), worker_to(dsn, target)
    with in_background(lambda: stuck.run(stop), lambda: well.run(stop)):
        try:
            if connected:
                combine(conn, {"first": 1})
                eventually(lambda: stuck.delivered == 1)
            proxy.black_hole()
            for round_ in range(3):
                combine(conn, {"a": 1, f"b{round_}": 1})
                eventually(lambda: well.delivered and exported(target) == values(conn), what="the other export goes on")
            eventually(lambda: state(conn, "stuck") == "down")
            assert one(conn, "select reason from pgcombine.destination where name = 'stuck'")
            assert state(conn, "search") == "up"
            assert waiting(conn, "stuck") == 6
            proxy.heal()
            conn.execute("select pgcombine.resume_export('stuck')")
            eventually(
                lambda: stuck.delivered and exported(target, "stuck") == values(conn), what="stuck has delivered all"
            )
        finally:
            stop.set()
    assert state(conn, "stuck") == "up"


def test_worker_gives_up_a_hanging_webhook(conn: psycopg.Connection, dsn: str, target: str) -> None:
    make_exported(conn, target)
    with socket.create_server(("127.0.0.1", 0)) as silent:  # the kernel accepts connections, but no program reads them
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        make_export(conn, export="stuck", exporter="webhook", target=url)
        conn.execute("select pgcombine_internal.add_destination('export', 'stuck', down_after => 2, backoff => '1 ms')")
        combine(conn, {"a": 1})
        stop = threading.Event()
        stuck, well = ExportWorker(dsn, "stuck", timeout=0.2), worker_to(dsn, target)
        with in_background(lambda: stuck.run(stop), lambda: well.run(stop)):
            try:
                eventually(lambda: state(conn, "stuck") == "down")
                eventually(lambda: well.delivered and exported(target) == {"a": 1})
            finally:
                stop.set()
    assert "took more than 0.2 s" in str(one(conn, "select reason from pgcombine.destination where name = 'stuck'"))
    assert waiting(conn, "stuck") == 1
