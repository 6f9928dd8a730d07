"""Wait for a condition that another process or session brings about, without a fixed delay."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

PAUSE = 0.02  # seconds between two polls


def eventually(look: Callable[[], T], *, timeout: float = 30.0, what: str = "") -> T:
    """Call ``look`` until it returns something true, and return that. Exceptions of ``look`` are not caught.

    Raises AssertionError with ``what`` and the last value after ``timeout`` seconds. The default is long, since only a
    failing test waits so long.
    """
    deadline = time.monotonic() + timeout
    while True:
        seen = look()
        if seen:
            return seen
        if time.monotonic() > deadline:
            name = what or getattr(look, "__name__", repr(look))
            raise AssertionError(f"not true within {timeout:g} s: {name}; last seen: {seen!r}")
        time.sleep(PAUSE)
