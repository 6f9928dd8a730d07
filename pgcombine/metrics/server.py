"""The HTTP server of a process: ``/metrics``, ``/healthz`` and ``/readyz``.

- ``/metrics``: the process's own metrics, and the figures of the database if this process gives them
  (:mod:`pgcombine.metrics.database`).
- ``/healthz``: 503 if a loop is stalled (:mod:`pgcombine.runtime.heartbeat`), else 200. A loop that waits for an
  unreachable database isn't stalled.
- ``/readyz``: 200 if all loops are connected and the schema has this program's version, else 503 with the reason.
"""

from __future__ import annotations

import io
import logging
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from socketserver import TCPServer, ThreadingMixIn
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry, Gauge, ProcessCollector, disable_created_metrics, make_wsgi_app

from pgcombine.errors import ConfigError
from pgcombine.metrics import names
from pgcombine.metrics.database import DatabaseFigures
from pgcombine.metrics.passes import PassCounters
from pgcombine.runtime.heartbeat import Heartbeat

log = logging.getLogger("pgcombine.metrics")

MOST_AT_ONCE = 64  # connections

Application = Callable[[dict[str, Any], Callable[..., Any]], Any]


class _Until(io.RawIOBase):
    """Reads from a socket until a deadline."""

    def __init__(self, sock: socket.socket, end: float) -> None:
        self._sock = sock
        self._end = end

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        self._sock.settimeout(max(0.001, self._end - time.monotonic()))
        return self._sock.recv_into(buffer)


class _Handler(WSGIRequestHandler):
    timeout = 10  # seconds for a request to arrive, and for the client to take each part of the answer

    def setup(self) -> None:
        """Limit the time for the whole request. The socket's timeout only limits the wait for the next bytes."""
        super().setup()
        self.rfile = io.BufferedReader(_Until(self.connection, time.monotonic() + self.timeout))

    def handle(self) -> None:
        try:
            super().handle()
        finally:
            self.connection.settimeout(self.timeout)

    def log_message(self, format: str, *args: Any) -> None:
        """Log no requests, since scrapes and probes would fill the log."""


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True
    request_queue_size = 2 * MOST_AT_ONCE  # a client that finds the queue full tries again only after a second or more

    def __init__(self, *given: Any) -> None:
        self._open: dict[socket.socket, None] = {}
        self._lock = threading.Lock()
        super().__init__(*given)

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer in a thread. If MOST_AT_ONCE connections are open, first close the oldest one."""
        with self._lock:
            while len(self._open) >= MOST_AT_ONCE:
                oldest = next(iter(self._open))
                del self._open[oldest]
                with suppress(OSError):
                    oldest.shutdown(socket.SHUT_RDWR)
            self._open[request] = None
        super().process_request(request, client_address)

    def shutdown_request(self, request: Any) -> None:
        with self._lock:
            self._open.pop(request, None)
        super().shutdown_request(request)

    def server_bind(self) -> None:
        """Bind without the base class's look-up of the host's name, which may take seconds."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = self.server_address[:2]  # type: ignore[assignment]
        self.setup_environ()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Log an error at the level DEBUG, since usually the client has disconnected."""
        log.debug("metrics.request_failed", exc_info=True)


class ProcessMetrics:
    """The metrics of this process. ``version`` is the program's version. ``passes`` counts the process's passes."""

    def __init__(self, version: str) -> None:
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        info = names.BUILD_INFO
        Gauge(info.name, info.help, info.labels, registry=self._registry).labels(version).set(1)
        self._waiting = Gauge(names.WAITING.name, names.WAITING.help, registry=self._registry)
        self.passes = PassCounters(self._registry)

    @contextmanager
    def served(self, dsn: str, heartbeats: Sequence[Heartbeat], *, port: int, host: str) -> Iterator[int]:
        """Serve until the end of the block. Yields the port, which the system chooses if ``port`` is 0.

        The figures of the database at ``dsn`` are served, too. ``heartbeats`` are those of the process's daemons.
        Raises ConfigError if ``host`` isn't known, or if the port can't be used.
        """
        with closing(DatabaseFigures(dsn)) as figures, _listening(host, port) as server:
            self._registry.register(figures)
            self._waiting.set_function(lambda: sum(heartbeat.waiting for heartbeat in heartbeats))
            server.set_app(_application(self._registry, figures, heartbeats))
            thread = threading.Thread(target=server.serve_forever, name="pgcombine-metrics", daemon=True)
            thread.start()
            log.info("metrics.start host=%s port=%d", host, server.server_port)
            try:
                yield server.server_port
            finally:
                server.shutdown()
                thread.join()
                self._registry.unregister(figures)


@contextmanager
def _listening(host: str, port: int) -> Iterator[_Server]:
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        kind = type("_Server", (_Server,), {"address_family": family})
        server: _Server = kind(address[:2], _Handler)
    except socket.gaierror as error:
        raise ConfigError(f"the host {host} for metrics isn't known ({error.strerror}): check its name") from error
    except OSError as error:
        raise ConfigError(
            f"port {port} of {host} can't serve metrics ({error.strerror}); choose another one with --metrics-port"
        ) from error
    with server:
        yield server


def _application(registry: CollectorRegistry, figures: DatabaseFigures, heartbeats: Sequence[Heartbeat]) -> Application:
    metrics = make_wsgi_app(registry)

    def health() -> str | None:
        ages = [heartbeat.stalled for heartbeat in heartbeats]
        stalled = max((age for age in ages if age is not None), default=None)
        return None if stalled is None else f"a loop has made no progress for {stalled:.0f} s"

    def readiness() -> str | None:
        if (trouble := figures.unfit()) or all(heartbeat.ready for heartbeat in heartbeats):
            return trouble
        waiting = sum(heartbeat.waiting for heartbeat in heartbeats)
        return f"loops that wait for a connection: {waiting}" if waiting else "no loop has started"

    checks = {"/healthz": health, "/readyz": readiness}

    def answer(environ: dict[str, Any], start_response: Callable[..., Any]) -> Any:
        path = environ.get("PATH_INFO", "")
        if path == "/metrics":
            return metrics(environ, start_response)
        status, text = "404 Not Found", "/metrics, /healthz, /readyz"
        if path in checks:
            trouble = checks[path]()
            status, text = ("200 OK", "ok") if trouble is None else ("503 Service Unavailable", trouble)
        start_response(status, [("Content-Type", "text/plain; charset=utf-8"), ("Cache-Control", "no-store")])
        return [f"{text}\n".encode()]

    return answer
