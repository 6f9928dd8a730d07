"""Locks between programs: ``flock`` locks on files of the home directory.

A lock also excludes programs in other containers that share the directory. A lock ends when the last process that holds
it or has inherited it closes the file or ends, also if the process is killed. The processes of a server that pgcombine
starts inherit the lock *alive*. So *alive* is held as long as such a process is left.
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

    Raises OperationalError if others hold it for ``timeout`` seconds, and OSError if the file can't be opened.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + timeout
        while not _try(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise OperationalError(
                    f"another program, such as one that starts the server, has held the lock {path} for {timeout:g} s: "
                    "check which one, and why it takes so long"
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
        # With an exclusive lock, two checks at the same time would see each other as holders.
        return not _try(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
