"""Clients that hold connections to the metrics server: probes are answered, and half-sent requests end."""

from __future__ import annotations

import socket
import urllib.request
from collections.abc import Iterator
from contextlib import ExitStack

import pytest
from support.servers import embedded_only
from support.site import is_ended

from pgcombine.metrics import server
from pgcombine.metrics.server import ProcessMetrics

pytestmark = embedded_only


@pytest.fixture
def port(dsn: str) -> Iterator[int]:
    with ProcessMetrics("0").served(dsn, [], port=0, host="127.0.0.1") as port:
        yield port


@pytest.mark.parametrize("half", [b"", b"GET /metrics HTTP/1.1\r\nHost: loc"])
def test_half_requests_keep_nobody_out(port: int, monkeypatch: pytest.MonkeyPatch, half: bytes) -> None:
    monkeypatch.setattr(server._Handler, "timeout", 0.5)
    with ExitStack() as stack:
        held = []
        for _ in range(server.MOST_AT_ONCE + 4):
            held.append(stack.enter_context(socket.create_connection(("127.0.0.1", port))))
            held[-1].sendall(half)
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=60) as answer:
            assert answer.status == 200
        assert is_ended(held[0])


def test_slow_bytes_do_not_prolong_a_request(port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server._Handler, "timeout", 0.5)
    with socket.create_connection(("127.0.0.1", port)) as slow:
        slow.settimeout(0.05)
        slow.sendall(b"GET /metrics HTTP/1.1\r\nX-Slow: ")
        for _ in range(1200):  # a minute
            try:
                slow.sendall(b"x")
                if slow.recv(1) == b"":
                    break
            except TimeoutError:
                continue
            except OSError:
                break
        else:
            pytest.fail("the server still waits for the rest of the request")
