"""A proxy before PostgreSQL that loses the answer to a commit: the server has committed, the client sees an error."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class Proxy:
    """Forwards connections to the server of ``dsn``; ``dsn`` of its own leads to it.

    On a connection on which ``after`` went by, the answer to the next COMMIT is lost and the connection closed:
    ``times`` times in all. ``lost`` is set at the first. With ``hang`` the connection stays open, unanswered.
    """

    def __init__(self, dsn: str, after: bytes, *, times: int = 1, hang: bool = False) -> None:
        parts = urlsplit(dsn)
        self._server = (parts.hostname, parts.port)
        self._after, self._times, self._hang = after, times, hang
        self._lock = threading.Lock()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._sockets: list[socket.socket] = []
        self.lost = threading.Event()
        user = parts.netloc.rpartition("@")[0]
        self.dsn = parts._replace(netloc=f"{user}@127.0.0.1:{self._listener.getsockname()[1]}").geturl()
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def close(self) -> None:
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
            losing = threading.Event()
            for target in (self._requests, self._answers):
                thread = threading.Thread(target=target, args=(client, server, losing), daemon=True)
                self._threads.append(thread)
                thread.start()

    def _requests(self, client: socket.socket, server: socket.socket, losing: threading.Event) -> None:
        seen = b""
        marked = False
        while data := _receive(client):
            seen = seen[-64:] + data
            marked = marked or self._after in seen
            if marked and b"COMMIT" in data:
                with self._lock:
                    if self._times:
                        self._times -= 1
                        losing.set()
            if not _send(server, data):
                break
        _shut(server)

    def _answers(self, client: socket.socket, server: socket.socket, losing: threading.Event) -> None:
        while data := _receive(server):
            if losing.is_set():
                self.lost.set()  # the server has answered, so it has committed
                if self._hang:
                    continue
                break
            if not _send(client, data):
                break
        if not losing.is_set() or not self._hang:
            _shut(client)


@contextmanager
def losing_commit(dsn: str, after: bytes, *, times: int = 1, hang: bool = False) -> Iterator[Proxy]:
    """A running proxy."""
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
