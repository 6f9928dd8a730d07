"""Two servers, their queues, and the daemons that an operator runs, each as a process.

Server ``a`` has the queue ``plain``, whose changes are exported to a table on server ``b``. The queue ``wc`` is on both
servers. A daemon that ends is started again within about a second.
"""

from __future__ import annotations

import socket
import subprocess
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

import psutil
import psycopg
from support.cli import command, environment
from support.clusters import Cluster
from support.queues import make_queue

from pgcombine.embedded.processes import PidFile

RESTART_SECONDS = 1.0
WRITTEN = "create table public.written (seed bigint not null)"


@dataclass
class Daemon:
    """``pgcombine ARGUMENTS`` as a process. ``starts`` counts its starts."""

    name: str
    arguments: tuple[object, ...]
    log: Path
    starts: int = 0
    _process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        """Start the daemon if it isn't running."""
        if self._process is None or self._process.poll() is not None:
            with self.log.open("ab") as told:
                self._process = subprocess.Popen(
                    command(*self.arguments), env=environment(), stdin=subprocess.DEVNULL, stdout=told, stderr=told
                )
            self.starts += 1

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def stop(self) -> int | None:
        """Stop the daemon with SIGTERM, or with SIGKILL after a minute.

        Returns its status, which is -9 after SIGKILL, or None if the daemon was never started.
        """
        if self._process is None:
            return None
        self._process.terminate()
        try:
            return self._process.wait(60)
        except subprocess.TimeoutExpired:
            self.kill()
            return -9

    def memory(self) -> float | None:
        """Return the resident memory of the daemon in MB, or None if it doesn't run."""
        if self._process is None or self._process.poll() is not None:
            return None
        with suppress(psutil.Error):
            return float(psutil.Process(self._process.pid).memory_info().rss) / 1e6
        return None


@dataclass
class Installation:
    """The running servers and daemons, each by name."""

    servers: Mapping[str, Cluster]
    daemons: dict[str, Daemon]
    page: str  # the URL of the web page about server a

    def memory(self) -> dict[str, float]:
        """Return the memory in MB by name: resident memory of a daemon, private memory of a server's processes."""
        found = {name: daemon.memory() for name, daemon in self.daemons.items()}
        found |= {f"server {name}": _private(server) for name, server in self.servers.items()}
        return {name: megabytes for name, megabytes in found.items() if megabytes is not None}


def _private(server: Cluster) -> float | None:
    running = PidFile.read(server.embedded.home / "postgres" / "data")
    if running is None:
        return None
    total = 0.0
    with suppress(psutil.Error):
        postmaster = psutil.Process(running.pid)
        for process in (postmaster, *postmaster.children()):
            with suppress(psutil.NoSuchProcess):
                used = process.memory_info()
                total += used.rss - used.shared
        return total / 1e6
    return None


@contextmanager
def installed(servers: Mapping[str, Cluster], directory: Path) -> Iterator[Installation]:
    """Make the queue ``plain`` and its export, and run the daemons during the block. Both servers must have ``wc``."""
    a, b = servers["a"], servers["b"]
    target = urlsplit(b.dsn)
    with a.connect() as connection:
        make_queue(connection, "plain", buckets=4)
        connection.execute(WRITTEN)
        connection.execute(
            "select pgcombine.create_export('copied', 'plain', 'postgres', target => %s)",
            (f"host=127.0.0.1 port={target.port} dbname={target.path.lstrip('/')} user={target.username}",),
        )
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]  # the page keeps this port when it is started again
    daemons = {
        "page": ("web", "--port", port, "--dsn", a.dsn),
        "worker 1": ("worker", "--metrics-port", 0, "--dsn", a.dsn),
        "worker 2": ("worker", "--concurrency", 2, "--metrics-port", 0, "--dsn", a.dsn),
        "worker of b": ("worker", "--dsn", b.dsn),
        "exporter": ("export", "run", "copied", "--dsn", a.dsn),
        "replayer of a": ("replicas", "run", "--dsn", a.dsn),
        "replayer of b": ("replicas", "run", "--dsn", b.dsn),
    }
    installation = Installation(
        servers,
        {
            name: Daemon(name, arguments, directory / f"{name.replace(' ', '_')}.log")
            for name, arguments in daemons.items()
        },
        f"http://127.0.0.1:{port}",
    )
    over = threading.Event()
    with ExitStack() as stack:
        supervisor = threading.Thread(target=_supervise, args=(installation, over), name="supervisor")
        supervisor.start()
        stack.callback(_stop, installation)
        stack.callback(supervisor.join)
        stack.callback(over.set)
        yield installation


def _supervise(installation: Installation, over: threading.Event) -> None:
    while True:
        for daemon in installation.daemons.values():
            daemon.start()
        if over.wait(RESTART_SECONDS):
            return


def _stop(installation: Installation) -> None:
    for daemon in installation.daemons.values():
        daemon.stop()


@contextmanager
def connected(server: Cluster, over: threading.Event, timeout: float = 120.0) -> Iterator[psycopg.Connection]:
    """Connect to a server that may be unreachable at first. Yields the connection.

    Raises the error of the last attempt if ``timeout`` seconds are over, or if ``over`` is set.
    """
    until = time.monotonic() + timeout
    while True:
        try:
            connection = psycopg.connect(server.dsn, autocommit=True, connect_timeout=5)
            break
        except psycopg.OperationalError:
            if time.monotonic() > until or over.wait(0.2):
                raise
    with connection:
        yield connection
