"""A fake server that asks whoever logs in for the password, as an impostor at another server's address would."""

from __future__ import annotations

import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

SECRET = "not-to-be-told"


def message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


CLEARTEXT = message(b"R", struct.pack("!I", 3))
MD5 = message(b"R", struct.pack("!I", 5) + b"salt")
WELCOME = message(b"R", struct.pack("!I", 0)) + message(b"Z", b"I")
ASKED = {"cleartext": CLEARTEXT, "md5": MD5, "nothing": WELCOME}


@contextmanager
def impostor(asks: bytes) -> Iterator[tuple[int, list[bytes]]]:
    """A fake server without TLS that answers a startup with ``asks``. Yields its port and the messages it gets."""
    told: list[bytes] = []
    end = threading.Event()

    def serve(connection: socket.socket) -> None:
        with connection, suppress(OSError):
            connection.settimeout(10)
            first = connection.recv(8)
            while first[4:] in (struct.pack("!I", 80877103), struct.pack("!I", 80877104)):  # SSL or GSS
                connection.sendall(b"N")
                first = connection.recv(8)
            told.append(first + connection.recv(65536))
            connection.sendall(asks)
            while received := connection.recv(65536):
                told.append(received)

    with socket.create_server(("127.0.0.1", 0)) as listening:
        listening.settimeout(0.05)

        def accept() -> None:
            while not end.is_set():
                with suppress(TimeoutError):
                    serve(listening.accept()[0])

        thread = threading.Thread(target=accept)
        thread.start()
        try:
            yield listening.getsockname()[1], told
        finally:
            end.set()
            thread.join()
