"""A TCP proxy in this process, which can lose bytes, cut connections and refuse new ones."""

from __future__ import annotations

import contextlib
import selectors
import socket
import threading
from collections.abc import Iterator
from urllib.parse import urlsplit


@contextlib.contextmanager
def through_proxy(dsn: str) -> Iterator[tuple[Proxy, str]]:
    """Run a proxy to the port of ``dsn`` on 127.0.0.1 during the block. Yields the proxy and a URI through it."""
    parts = urlsplit(dsn)
    proxy = Proxy(parts.port or 5432)
    try:
        yield proxy, parts._replace(netloc=f"{parts.netloc.rpartition('@')[0]}@127.0.0.1:{proxy.port}").geturl()
    finally:
        proxy.close()


class Proxy:
    """Listens on ``port`` of 127.0.0.1 and forwards each connection to the port ``target`` of 127.0.0.1.

    While ``to_server`` or ``to_client`` is False, bytes in that direction are lost. While ``refuse`` is True, new
    connections are closed. When a client sends the bytes ``lose_reply_to``, later answers on its connection are lost.
    """

    def __init__(self, target: int) -> None:
        self.target = target
        self.to_server = self.to_client = True
        self.refuse = False
        self.lose_reply_to: bytes | None = None
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._links: set[socket.socket] = set()
        self._mute: set[socket.socket] = set()
        self._lock = threading.Lock()
        threading.Thread(target=self._accept, daemon=True, name=f"proxy-{self.port}").start()

    def heal(self) -> None:
        """End all faults, and cut all connections, since some may have lost bytes."""
        self.to_server = self.to_client = True
        self.refuse = False
        self.lose_reply_to = None
        self.cut()

    def black_hole(self) -> None:
        """Lose all bytes in both directions. Connections stay open."""
        self.to_server = self.to_client = False

    def cut(self) -> None:
        with self._lock:
            links = list(self._links)
        for link in links:
            with contextlib.suppress(OSError):
                link.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        with client:
            if self.refuse:
                return
            try:
                server = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                return
            with server, selectors.DefaultSelector() as selector:
                with self._lock:
                    self._links |= {client, server}
                try:
                    selector.register(client, selectors.EVENT_READ, server)
                    selector.register(server, selectors.EVENT_READ, client)
                    while True:
                        for key, _ in selector.select():
                            source, sink = key.fileobj, key.data
                            assert isinstance(source, socket.socket)
                            data = source.recv(1 << 16)
                            if not data:
                                return
                            if source is client:
                                if self.lose_reply_to is not None and self.lose_reply_to in data:
                                    self._mute.add(client)
                                if self.to_server:
                                    sink.sendall(data)
                            elif self.to_client and client not in self._mute:
                                sink.sendall(data)
                except OSError:
                    return
                finally:
                    with self._lock:
                        self._links -= {client, server}
                        self._mute.discard(client)
