"""An HTTP server in this process that receives webhooks."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TypeAlias

Answer: TypeAlias = Callable[[bytes, dict[str, str]], int]


class Receiver(HTTPServer):
    """Keeps the headers and the body of each POST request, and answers with the status that ``answer`` returns."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.url = f"http://127.0.0.1:{self.server_port}/"
        self.asked: list[tuple[dict[str, str], bytes]] = []
        self.headers: dict[str, str] = {}  # of each answer
        self.answer: Answer = lambda body, headers: 200


class _Handler(BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        server = self.server
        assert isinstance(server, Receiver)
        body = self.rfile.read(int(self.headers["Content-Length"]))
        headers = {name.lower(): value for name, value in self.headers.items()}
        server.asked.append((headers, body))
        self.send_response(server.answer(body, headers))
        self.send_header("Content-Length", "0")
        for header in server.headers.items():
            self.send_header(*header)
        self.end_headers()

    def log_message(self, format: str, *args: object) -> None:
        pass


@contextmanager
def receiving() -> Iterator[Receiver]:
    """A receiver that runs during the block."""
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield server
        server.shutdown()
        thread.join()
