"""Deliveries to HTTP receivers that are slow on purpose, answer without an end, or have a name that isn't resolved."""

from __future__ import annotations

import asyncio
import gc
import gzip
import importlib.util
import logging
import socket
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import psycopg
import pytest
from anyio._backends._asyncio import TaskGroup
from support.exports import make_export, state, waiting
from support.needs import require
from support.queues import combine
from support.servers import embedded_only
from support.wait import eventually

from pgcombine import Entry, ExportWorker
from pgcombine.errors import DeliveryRejectedError, DestinationDownError
from pgcombine.export.webhook import WebhookExporter

pytestmark = pytest.mark.timeout(240)
ENTRY = Entry("a", None, 1, 1, '{"word": "a", "seq": 1}')


@pytest.fixture(autouse=True)
def httpx_is_there() -> None:
    require("httpx2", there=importlib.util.find_spec("httpx2") is not None)


@contextmanager
def receiver(answer: Callable[[socket.socket, threading.Event], None]) -> Iterator[tuple[str, list[bytes]]]:
    """Run a server that reads from each connection once and then calls ``answer``. Yield its URL and what it read."""
    asked: list[bytes] = []
    end = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.05)

        def serve(connection: socket.socket) -> None:
            with connection, suppress(OSError):
                asked.append(connection.recv(65536))
                answer(connection, end)

        def accept() -> None:
            while not end.is_set():
                with suppress(TimeoutError):
                    connection, _ = listening.accept()
                    connection.settimeout(None)
                    threading.Thread(target=serve, args=(connection,), daemon=True).start()

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}/?to=t0psecret", asked
        finally:
            end.set()
            thread.join()


def drip(text: bytes) -> Callable[[socket.socket, threading.Event], None]:
    """Make an ``answer`` that sends the text, and then a byte every 50 ms until the receiver ends."""

    def answer(connection: socket.socket, end: threading.Event) -> None:
        connection.sendall(text)
        while not end.wait(0.05):
            connection.sendall(b"x")

    return answer


def deliver(
    url: str,
    timeout: float = 0.5,
    stop: threading.Event | None = None,
    headers: dict[str, str] | None = None,
) -> None:
    exporter = WebhookExporter(url, "search", timeout=timeout, headers=headers, stop=stop)
    try:
        exporter.deliver([ENTRY])
    finally:
        exporter.close()


@pytest.mark.parametrize("beginning", [b"", b"HTTP/1.1 200 OK\r\nX-Slow: "])
def test_answer_by_the_byte_keeps_the_deadline(beginning: bytes) -> None:
    with (
        receiver(drip(beginning)) as (url, _),
        pytest.raises(DestinationDownError),
    ):
        deliver(url)


def test_request_read_by_the_byte_keeps_the_deadline() -> None:
    def read_slowly(connection: socket.socket, end: threading.Event) -> None:
        while not end.wait(0.05):
            connection.recv(1)

    entry = ENTRY._replace(json=f'{{"word": "{"x" * 50_000_000}"}}')
    with receiver(read_slowly) as (url, _), pytest.raises(DestinationDownError):
        WebhookExporter(url, "search", timeout=0.5).deliver([entry])


def test_endless_handshake_keeps_the_deadline() -> None:
    with (
        receiver(drip(b"\x16\x03\x03\x40\x00")) as (url, _),
        pytest.raises(DestinationDownError),
    ):
        deliver(url.replace("http:", "https:"), timeout=4)


def test_close_ends_a_connection_in_progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Python would warn of a coroutine that was never awaited if a task of the client ended before it began."""
    exporter = WebhookExporter("http://127.0.0.1:9/", "search", timeout=4)
    start_soon = TaskGroup.start_soon

    def closing(group: TaskGroup, *task: Any) -> None:
        monkeypatch.undo()
        ends.append(asyncio.ensure_future(exporter._end()))  # begins before the connection's task
        start_soon(group, *task)

    ends: list[asyncio.Task[None]] = []
    monkeypatch.setattr(TaskGroup, "start_soon", closing)
    with pytest.raises(DestinationDownError):
        exporter.deliver([ENTRY])
    exporter.close()
    assert len(ends) == 1
    gc.collect()


def test_unresolved_name_keeps_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    answered = threading.Event()
    lookup = socket.getaddrinfo

    def hang(host: object, *rest: object, **named: object) -> object:
        if host in ("slow.example", b"slow.example"):
            answered.wait()
        return lookup("127.0.0.1", *rest, **named)  # type: ignore[arg-type]

    monkeypatch.setattr(socket, "getaddrinfo", hang)
    try:
        with pytest.raises(DestinationDownError):
            deliver("http://slow.example/", timeout=4)
    finally:
        answered.set()


def test_status_counts_before_a_slow_body() -> None:
    with receiver(drip(b"HTTP/1.1 200 OK\r\n\r\n")) as (url, _):
        deliver(url, timeout=60)


def test_endless_answer_is_read_up_to_a_bound() -> None:
    def flood(connection: socket.socket, end: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 422 No\r\n\r\n")
        while not end.is_set():
            connection.sendall(b"x" * 65536)

    with receiver(flood) as (url, _), pytest.raises(DeliveryRejectedError):
        deliver(url, timeout=60)


def test_compressed_answers_are_not_unpacked() -> None:
    packed = gzip.compress(b"\0" * 50_000_000, 1)

    def answer(connection: socket.socket, _: threading.Event) -> None:
        head = f"HTTP/1.1 422 No\r\nContent-Encoding: gzip\r\nContent-Length: {len(packed)}\r\n\r\n"
        connection.sendall(head.encode() + packed)

    with receiver(answer) as (url, asked):
        tracemalloc.start()
        try:
            with pytest.raises(DeliveryRejectedError):
                deliver(url, timeout=60)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert peak < 10_000_000
    assert b"accept-encoding: identity" in asked[0].lower()


def test_urls_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    """The log has no URL and no header of a delivery, since these may hold tokens. Other requests are still logged."""

    def answer(connection: socket.socket, _: threading.Event) -> None:
        connection.sendall(b"HTTP/1.1 200 OK\r\nLocation: /?key=t0psecret\r\nContent-Length: 0\r\n\r\n")

    with receiver(answer) as (url, _), caplog.at_level(logging.DEBUG):
        deliver(url, timeout=60, headers={"Authorization": "Bearer t0psecret"})
        with pytest.raises(DestinationDownError):  # nobody listens there
            deliver("http://t0psecret:t0psecret@127.0.0.1:1/t0psecret?t0psecret=t0psecret", timeout=60)
        assert "t0psecret" not in caplog.text
        httpx2 = pytest.importorskip("httpx2")
        httpx2.get(url.replace("t0psecret", "another"))  # other requests by httpx2 are logged as before
        assert "another" in caplog.text
        assert "httpcore2" in caplog.text


@pytest.mark.wc
@embedded_only
def test_stopped_worker_gives_up_a_delivery(conn: psycopg.Connection, dsn: str) -> None:
    with receiver(drip(b"")) as (url, asked):
        make_export(conn, exporter="webhook", target=url)
        combine(conn, {"a": 1})
        stop = threading.Event()
        worker = ExportWorker(dsn, "search", timeout=600)
        thread = threading.Thread(target=worker.run, args=(stop,))
        thread.start()
        eventually(lambda: asked)
        stop.set()
        thread.join()
    assert worker.delivered == 0
    assert state(conn) == "up"
    assert waiting(conn) == 1
