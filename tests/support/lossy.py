"""A proxy in front of PostgreSQL that loses the answer to a commit: the commit succeeds, but the client isn't told.

The proxy can also hold back the answers to several writers' commits until the server has answered all of them.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class Proxy:
    """Forwards connections to the server of ``dsn``. The attribute ``dsn`` leads to the proxy.

    After a client has sent the bytes ``after``, the proxy loses the answer to the client's next COMMIT and ends the
    connection. It does so ``times`` times, and sets ``lost`` at the first. With ``hang`` it leaves the connection open.
    """

    def __init__(self, dsn: str, after: bytes, *, times: int = 1, hang: bool = False) -> None:
        parts = urlsplit(dsn)
        self._server = (parts.hostname, parts.port)
        self._after, self._times, self._hang = after, times, hang
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self.lost = threading.Event()
        self._lost_port = 0
        self._to_gather = 0
        self.ends: list[bytes] = []  # COMMIT or ROLLBACK, as the client sent it, for each gathered transaction
        self.gathered = threading.Event()
        user = parts.netloc.rpartition("@")[0]
        self.dsn = parts._replace(netloc=f"{user}@127.0.0.1:{self._listener.getsockname()[1]}").geturl()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def gather(self, count: int) -> None:
        """Hold back the answers to COMMIT and ROLLBACK until there are ``count`` of them. Then set ``gathered``.

        Only the answers to clients that have sent the bytes ``after`` are held back.
        """
        self._to_gather = count

    @property
    def owner(self) -> int:
        """The process id of the client whose answer was lost last."""
        import psutil

        here = self._listener.getsockname()[1]  # other processes may have connections with the same port of their own
        return next(
            found.pid
            for found in psutil.net_connections("tcp")
            if found.pid and found.laddr.port == self._lost_port and found.raddr and found.raddr.port == here
        )

    def close(self) -> None:
        self.gathered.set()
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for one in self._sockets:
            _shut(one)
        for thread in self._threads:
            thread.join(10)
        for one in self._sockets:
            one.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
                server = socket.create_connection(self._server)
            except OSError:
                return
            self._sockets += [client, server]
            losing, ending = threading.Event(), threading.Event()
            for target in (self._requests, self._answers):
                thread = threading.Thread(target=target, args=(client, server, losing, ending), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _requests(
        self, client: socket.socket, server: socket.socket, losing: threading.Event, ending: threading.Event
    ) -> None:
        seen = b""
        marked = False
        while data := _receive(client):
            seen = seen[-64:] + data
            marked = marked or self._after in seen
            if marked and b"COMMIT" in data:
                with self._lock:
                    if self._times:
                        self._times -= 1
                        self._lost_port = client.getpeername()[1]
                        losing.set()
            end = next((word for word in (b"COMMIT", b"ROLLBACK") if word in data), None)
            if marked and end and self._to_gather:
                with self._lock:
                    self.ends.append(end)
                ending.set()
            if not _send(server, data):
                break
        _shut(server)

    def _answers(
        self, client: socket.socket, server: socket.socket, losing: threading.Event, ending: threading.Event
    ) -> None:
        while data := _receive(server):
            if ending.is_set() and not self.gathered.is_set():
                with self._lock:
                    self._to_gather -= 1
                    if not self._to_gather:
                        self.gathered.set()
                self.gathered.wait(240)
            if losing.is_set():
                self.lost.set()
                if self._hang:
                    continue
                break
            if not _send(client, data):
                break
        if not losing.is_set() or not self._hang:
            _shut(client)


@contextmanager
def losing_commit(dsn: str, after: bytes, *, times: int = 1, hang: bool = False) -> Iterator[Proxy]:
    """Run a :class:`Proxy` to the server of ``dsn`` during the block."""
    proxy = Proxy(dsn, after, times=times, hang=hang)
    try:
        yield proxy
    finally:
        proxy.close()


def _receive(source: socket.socket) -> bytes:
    try:
        return source.recv(65536)
    except OSError:
        return b""


def _send(target: socket.socket, data: bytes) -> bool:
    try:
        target.sendall(data)
    except OSError:
        return False
    return True


def _shut(one: socket.socket) -> None:
    with suppress(OSError):
        one.shutdown(socket.SHUT_RDWR)
