"""Locks between programs that end with them, however they end.

Both kinds are ``flock`` locks on a file of the home directory, so they hold across containers that share it,
and a program that was killed leaves none behind. The *alive* lock is inherited by the server and each of its
processes: it is free when, and only when, none of them is left, whatever a pid file says.
"""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from pgcombine.errors import ConfigError

POLL = 0.02  # seconds


@contextmanager
def exclusive(path: Path, *, timeout: float) -> Iterator[int]:
    """Hold the lock ``path``; gives its file descriptor, for a child to inherit.

    Raises ConfigError if others hold it for ``timeout`` seconds, OSError if the file can't be made.
    """
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    try:
        deadline = time.monotonic() + timeout
        while not _try(descriptor, fcntl.LOCK_EX):
            if time.monotonic() > deadline:
                raise ConfigError(
                    f"another program has held {path} for {timeout:g} s: it starts or stops the server; "
                    "see what it waits for"
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
        return not _try(descriptor, fcntl.LOCK_SH)  # shared: two that look don't see each other
    finally:
        os.close(descriptor)


def _try(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
