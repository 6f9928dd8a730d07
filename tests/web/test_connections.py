"""Clients that hold connections: half-sent requests keep nobody out, and the server closes their connections."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import pytest
from support import eventually
from support.servers import embedded_only
from support.sessions import in_background
from support.site import address, is_ended, served

from pgcombine.web import connections, guard
from pgcombine.web.serve import listening, serve

pytestmark = embedded_only
HALVES = {
    "nothing": b"",
    "a line": b"GET / HTTP/1.1\r\n",
    "headers": b"GET / HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"x" * 1000,
    "a form": b"POST /login HTTP/1.1\r\nHost: localhost\r\nOrigin: http://localhost\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\nContent-Length: 100\r\n\r\ntoken=",
}


@contextmanager
def half_open(url: str, half: bytes, count: int) -> Iterator[list[socket.socket]]:
    """Open ``count`` connections, each of which has sent ``half``, mostly the start of a request."""
    host, port = url.removeprefix("http://").split(":")
    with ExitStack() as stack:
        found = [stack.enter_context(socket.create_connection((host, int(port)))) for _ in range(count)]
        for one in found:
            one.sendall(half)
        yield found


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_half_requests_keep_nobody_out(busy: None, dsn: str, half: bytes, caplog: pytest.LogCaptureFixture) -> None:
    with (
        served(dsn, token="a token of some length") as client,
        half_open(address(client), half, 120) as others,
        half_open(address(client), half, 120),
    ):
        for _ in range(3):
            assert client.get("/healthz").status_code == 200
            assert client.get("/login").status_code == 200
        assert is_ended(others[0])  # the server closed this connection to make room
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []


def test_all_requests_of_a_burst_are_answered(dsn: str) -> None:
    stop, sock = threading.Event(), listening("127.0.0.1", 0)
    asked = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    # all connections wait in the listening socket's queue until the server starts, and are then accepted at once
    with (
        half_open(f"http://127.0.0.1:{sock.getsockname()[1]}", asked, connections.MOST_OF_CLIENT + 10) as burst,
        in_background(lambda: serve(dsn, sock, stop, version="0")),
    ):
        try:
            answers = [one.recv(65536) for one in burst]
        finally:
            stop.set()
    assert {answer.split(b"\r\n")[0] for answer in answers} == {b"HTTP/1.1 200 OK"}


@pytest.mark.parametrize("half", HALVES.values(), ids=HALVES)
def test_half_request_ends(dsn: str, half: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "REQUEST_SECONDS", 0.3)
    with served(dsn, token="a token of some length") as client, half_open(address(client), half, 1) as (other,):
        assert is_ended(other)


def test_unread_answer_ends(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "ANSWER_SECONDS", 0.3)
    asked = b"GET /static/page.css HTTP/1.1\r\nHost: localhost\r\n\r\n"
    with served(dsn) as client, half_open(address(client), b"", 1) as (other,):
        other.settimeout(0.05)

        def is_refused() -> bool:
            """Send more requests without reading an answer. Return whether the server has closed the connection."""
            try:
                other.sendall(asked * 100)
            except TimeoutError:
                return False
            except OSError:
                return True
            return False

        eventually(is_refused, timeout=60, what="the server closes the connection")
        assert client.get("/healthz").status_code == 200


def test_whole_requests_are_limited_and_a_probe_is_answered(
    busy: None, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guard, "MOST_AT_ONCE", 0)
    with served(dsn) as client:
        answer = client.get("/")
        assert answer.status_code == 503
        assert answer.headers["retry-after"] == "5"
        assert client.get("/healthz").status_code == 200
