"""Threads that start, stop and fail together."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

Loop = Callable[[threading.Event], object]

_FIRST = "_pgcombine_first"  # the attribute that marks an error that made run_together end its loops


def run_together(loops: Sequence[Loop], stop: threading.Event, name: str) -> None:
    """Run each loop in a thread, and return when all have ended. The loops end when ``stop`` is set.

    If a loop raises, ``stop`` is set for the others, and the error is raised at the end. Errors that loops raise after
    ``stop`` is set are dropped. A loop may itself call this function with the same ``stop``: the error that this inner
    call raises isn't dropped.
    """
    failures: list[BaseException] = []

    def guard(loop: Loop) -> None:
        try:
            loop(stop)
        except BaseException as error:
            if not stop.is_set() or hasattr(error, _FIRST):
                setattr(error, _FIRST, True)
                failures.append(error)
            stop.set()

    threads = [
        threading.Thread(target=guard, args=(loop,), name=f"{name}-{number}") for number, loop in enumerate(loops)
    ]
    for thread in threads:
        thread.start()
    try:
        for thread in threads:
            thread.join()
    except BaseException:  # Ctrl-C in a program without handlers: otherwise the loops would go on, and so the program
        stop.set()
        raise
    if failures:
        raise failures[0]
