"""The addresses of the server: a free TCP port of 127.0.0.1, and a directory for its Unix socket."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import socket
import stat
import struct
import tempfile
from pathlib import Path

from pgcombine.embedded.account import Account

HOST = "127.0.0.1"
# Operating systems normally use higher ports for outgoing connections. So a server's port is usually still free when
# the server is started again.
PORTS = range(20000, 32000)
SSL_REQUEST = struct.pack("!ii", 8, 80877103)  # a message that a server answers, with one byte, before any log-in
SOCKET_PATH_BYTES = 107  # length of sun_path without the zero byte at its end; macOS has 103


def port_is_free(port: int) -> bool:
    """Whether a server could listen on ``port`` of 127.0.0.1."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # as PostgreSQL does
        try:
            sock.bind((HOST, port))
            sock.listen(1)
        except OSError:
            return False
    return True


def free_port() -> int:
    """Return a free port of 127.0.0.1. Another program can take the port at any time."""
    for port in random.SystemRandom().sample(PORTS, 100):
        if port_is_free(port):
            return port
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as sock:
        sock.bind((HOST, 0))
        return int(sock.getsockname()[1])


def answers(port: int) -> bool:
    """Whether a PostgreSQL server answers on ``port`` of 127.0.0.1.

    An open connection isn't enough: the system still accepts connections for a server that is being killed.
    """
    try:
        with socket.create_connection((HOST, port), timeout=5) as sock:
            sock.sendall(SSL_REQUEST)
            return len(sock.recv(1)) == 1
    except OSError:
        return False


def socket_directory(preferred: Path, account: Account) -> Path | None:
    """Return a directory that takes a Unix socket and that only the account may use. Old sockets in it are removed.

    This is ``preferred`` if it takes a socket and the account is this process's own. Otherwise it is a directory in
    the system's directory for temporary files, or in /tmp. Its name is made from ``preferred``. Returns None if none of
    these directories works.
    """
    digest = hashlib.sha256(os.fsencode(preferred)).hexdigest()[:16]
    places = [Path(temporary, f"pgcombine-{digest}") for temporary in (tempfile.gettempdir(), "/tmp")]
    if account.uid is None:  # another account may be unable to enter the home
        places.insert(0, preferred)
    return next((place for place in places if _takes_socket(place, account)), None)


def _takes_socket(directory: Path, account: Account) -> bool:
    if len(os.fsencode(directory / ".s.PGSQL.65535.lock")) > SOCKET_PATH_BYTES - 4:
        return False
    owner = os.geteuid() if account.uid is None else account.uid
    try:
        with contextlib.suppress(FileExistsError):
            directory.mkdir(mode=0o700)
            account.give(directory)
        found = directory.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != owner or found.st_mode & 0o077:
            return False  # another user may have created the directory in /tmp
        for left in directory.glob(".s.PGSQL.*"):
            left.unlink()
        probe = directory / ".s.probe"
        probe.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:  # some file systems have no sockets
            sock.bind(str(probe))
        probe.unlink()
    except OSError:
        return False
    return True
