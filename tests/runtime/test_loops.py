"""The first error ends all loops that run together, also nested ones; errors after a stop are dropped."""

from __future__ import annotations

import threading
from functools import partial

import pytest

from pgcombine.runtime.loops import run_together


def waits(stop: threading.Event) -> None:
    stop.wait()


def waits_and_fails(stop: threading.Event) -> None:
    stop.wait()
    raise RuntimeError("afterwards")


def fails(stop: threading.Event) -> None:
    raise ValueError("first")


def inner(stop: threading.Event) -> None:
    run_together([fails, waits_and_fails, waits], stop, "inner")


@pytest.mark.parametrize("loops", [[fails, waits], [inner, waits], [waits, waits_and_fails, inner]])
def test_first_error_ends_all_loops(loops: list[object]) -> None:
    stop = threading.Event()
    with pytest.raises(ValueError, match="first"):
        run_together(loops, stop, "outer")  # type: ignore[arg-type]
    assert stop.is_set()


def test_errors_after_a_stop_are_dropped() -> None:
    stop = threading.Event()
    stop.set()
    nested = partial(run_together, [waits_and_fails], name="inner")
    run_together([waits_and_fails, lambda stop: nested(stop=stop)], stop, "outer")
