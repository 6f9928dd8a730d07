"""What a run tells while it works: lines on stderr, and progress bars where that is a terminal."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Protocol

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

NAMED = 20  # files of one kind of problem that are named by default
_POLL_SECONDS = 0.2


class Step(Protocol):
    """Handle on the step under way."""

    def advance(self, by: int, total: int) -> None:
        """``by`` more of ``total`` units are done."""


class Report:
    """Lines and progress bars on stderr; names ``named`` files of each kind of problem, None: all of them."""

    def __init__(self, *, named: int | None = NAMED) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True, emoji=False)
        self._named = named
        self._problems: Counter[str] = Counter()
        self._told: set[tuple[str, str, str]] = set()

    def line(self, text: str) -> None:
        """One line of text."""
        self._console.print(text.encode(errors="backslashreplace").decode())

    def waiting(self) -> None:
        """Another run has the lock."""
        self.line("waiting for another run of phrasecount in this database")

    def problem(self, kind: str, detail: str, path: str) -> None:
        """A file can't be counted; told once, though a stream comes to it again and again."""
        if (kind, detail, path) in self._told:
            return
        self._told.add((kind, detail, path))
        self._problems[kind] += 1
        if self._named is None or self._problems[kind] <= self._named:
            shown = path if path.isprintable() else ascii(path)
            self.line(f"not counted: {shown}: {kind}" + (f" ({detail})" if detail else ""))

    def end_of_problems(self) -> None:
        """All problems were reported: say how many weren't named."""
        for kind, count in self._problems.items():
            if self._named is not None and count > self._named:
                more = " more" if self._named else ""
                self.line(f"not counted: {count - self._named:,}{more} files: {kind} (--verbose names them)")
        self._problems.clear()

    @contextmanager
    def step(self, name: str, spark: SparkSession | None = None) -> Iterator[Step]:
        """A step under way; with ``spark`` the bar shows the tasks of its active stages."""
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        ) as progress:
            step = _Bar(progress, name)
            if spark is None or progress.disable:
                yield step
                return
            done = threading.Event()
            follower = threading.Thread(target=_follow, args=(spark, step, done), name="progress", daemon=True)
            follower.start()
            try:
                yield step
            finally:
                done.set()
                follower.join()


class _Bar:
    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._bar = progress.add_task(name, total=None)

    def advance(self, by: int, total: int) -> None:
        self._progress.update(self._bar, advance=by, total=total)

    def show(self, completed: int, total: int) -> None:
        self._progress.update(self._bar, completed=completed, total=total)


def _follow(spark: SparkSession, bar: _Bar, done: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not done.wait(_POLL_SECONDS):
        stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage)) is not None]
        if stages:
            bar.show(sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages))
