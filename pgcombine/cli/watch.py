"""Polls the database until Ctrl-C, for the option ``--watch``.

On a terminal each result replaces the previous one, and sparklines show the last results. Otherwise, and with
``--json``, each result is printed as lines of text or as one line of JSON. A lost connection is reported and opened
again. Ctrl-C and SIGTERM end the watch. If the first connection fails, the command fails.
"""

from __future__ import annotations

import math
import sys
import time
from collections import defaultdict, deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import psycopg
from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.text import Text

from pgcombine.cli.loops import interrupted_by_signal
from pgcombine.cli.options import echo, note, open_database, print_json
from pgcombine.database.connect import Connection
from pgcombine.errors import ConnectError, first_line

SHORTEST_SECONDS = 0.1
WIDTH = 20  # figures in a sparkline
_BARS, _PLAIN_BARS = " ▁▂▃▄▅▆▇█", " .:-=+*#@"


@dataclass
class Shown:
    """The result of one poll: as data for JSON, as parts of a terminal's screen, and as fields of lines of text."""

    data: Mapping[str, Any]
    parts: Sequence[RenderableType]
    lines: Sequence[Mapping[str, Any]]


class History:
    """The latest figures by name, for sparklines."""

    def __init__(self, width: int = WIDTH) -> None:
        self._figures: dict[tuple[str, ...], deque[float]] = defaultdict(lambda: deque(maxlen=width))
        self._bars = _BARS if _can_show(_BARS) else _PLAIN_BARS

    def line(self, *name: str, figure: float) -> str:
        """Add a figure, and return the sparkline of the latest figures of this name. The oldest is on the left."""
        figures = self._figures[name]
        figures.append(figure if math.isfinite(figure) else 0.0)
        top = max(figures)
        steps = len(self._bars) - 1
        return "".join(self._bars[math.ceil(one / top * steps) if top > 0 else 0] for one in figures).rjust(WIDTH)


def watch(dsn: str | None, every: float, poll: Callable[[Connection], Shown], *, as_json: bool) -> None:
    """Call ``poll`` every ``every`` seconds, and show what it returns, until Ctrl-C or SIGTERM."""
    with interrupted_by_signal():
        connection = open_database(dsn)
        try:
            with _screen(every, as_json) as screen:
                while True:
                    began = time.monotonic()
                    try:
                        if connection.closed:
                            connection = open_database(dsn, timeout=0)
                        screen.show(poll(connection))
                    except (psycopg.OperationalError, ConnectError) as error:
                        screen.lost(first_line(error))
                    time.sleep(max(0.0, max(every, SHORTEST_SECONDS) - (time.monotonic() - began)))
        finally:
            connection.close()


class _Lines:
    def __init__(self, as_json: bool) -> None:
        self._as_json = as_json
        self._lost = False

    def show(self, shown: Shown) -> None:
        self._lost = False
        at = _now()
        if self._as_json:
            print_json({"at": at, **shown.data})
        else:
            for line in shown.lines:
                echo(f"{at} " + " ".join(f"{name}={_plain(figure)}" for name, figure in line.items()))
        sys.stdout.flush()

    def lost(self, reason: str) -> None:
        if not self._lost:
            note(f"no figures: {reason}; trying again")
        self._lost = True


class _Screen:
    def __init__(self, live: Live, every: float) -> None:
        self._live = live
        self._every = every
        self._parts: Sequence[RenderableType] = ()

    def show(self, shown: Shown) -> None:
        self._parts = shown.parts
        self._draw(Text(f"{_now()}, every {self._every:g} s; Ctrl-C ends it\n", style="dim"))

    def lost(self, reason: str) -> None:
        self._draw(Text(f"{_now()}: no figures: {reason}; trying again. These are old:\n", style="bold red"))

    def _draw(self, head: Text) -> None:
        self._live.update(Group(head, *self._parts), refresh=True)


@contextmanager
def _screen(every: float, as_json: bool) -> Iterator[_Lines | _Screen]:
    if as_json or not sys.stdout.isatty():
        yield _Lines(as_json)
        return
    console = Console(markup=False, highlight=False, emoji=False)
    with Live(console=console, screen=True, auto_refresh=False) as live:
        yield _Screen(live, every)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")


def _plain(figure: Any) -> str:
    if isinstance(figure, float):
        return f"{figure:.3f}".rstrip("0").rstrip(".")
    return "" if figure is None else str(figure).lower() if isinstance(figure, bool) else str(figure)


def _can_show(text: str) -> bool:
    try:
        text.encode(sys.stdout.encoding or "ascii")
    except UnicodeEncodeError:
        return False
    return True
