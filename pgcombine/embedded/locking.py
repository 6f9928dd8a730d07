"""Locks between programs. A lock ends with its program, even if the program is killed.

A lock is an ``flock`` lock on a file of the home directory. So it also excludes programs in other containers that share
the directory. A server that pgcombine starts inherits the lock *alive*, and so does each process of the server. So
*alive* is held as long as a process of such a server is left. A lock that isn't free in time raises OperationalError.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgcombine.errors import OperationalError

POLL = 0.02  # seconds


@contextmanager
def exclusive(path: Path, *, timeout: float) -> Iterator[int]:
    """Hold the lock ``path`` during the block. Yields its file descriptor, which a child may inherit.

    Raises OperationalError if others hold it for ``timeout`` seconds, and OSError if the file can't be created.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + timeout
        while not _try(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise OperationalError(
                    f"another program, which starts or stops the server, has held {path} for {timeout:g} s: "
                    "check why it takes so long"
                )
            time.sleep(POLL)
        yield descriptor
    finally:
        os.close(descriptor)


def held(path: Path) -> bool:
    """Whether a program holds the lock ``path``."""
    try:
        descriptor = os.open(path, os.O_RDONLY)
    except FileNotFoundError:
        return False
    try:
        # The lock is shared: an exclusive one would make two checks at the same time see each other as holders.
        return not _try(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
