"""Reports the progress of a run: lines on stderr, and progress bars if stderr is a terminal."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from pgcombine.phrasecount.files import DIRECTORY

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_POLL_SECONDS = 0.2


class Report:
    """Lines and progress bars on stderr. With ``names``, each file that isn't counted is named."""

    def __init__(self, *, names: bool = False) -> None:
        self._console = Console(stderr=True, highlight=False, markup=False, soft_wrap=True, emoji=False)
        self._names = names
        self._problems: dict[str, list[str]] = {}
        self._noted: set[tuple[str, str, str]] = set()

    def line(self, text: str) -> None:
        self._console.print(text.encode(errors="backslashreplace").decode())

    def waiting(self) -> None:
        self.line("waiting for another run of phrasecount in this database")

    def problem(self, kind: str, detail: str, path: str) -> None:
        """Record that a file or a directory can't be counted. A problem that was recorded before is ignored."""
        if (kind, detail, path) in self._noted:
            return
        self._noted.add((kind, detail, path))
        shown = path if path.isprintable() else ascii(path)
        self._problems.setdefault(kind, []).append(shown + (f" ({detail})" if detail else ""))

    def problems(self) -> None:
        """Print a line for each kind of problem recorded since the last call."""
        for number, (kind, shown) in enumerate(self._problems.items(), start=1):
            one, more = ("directory", "directories") if kind == DIRECTORY else ("file", "files")
            hint = "" if self._names or number < len(self._problems) else " (--verbose names them)"
            self.line(f"not counted: {len(shown):,} {one if len(shown) == 1 else more}: {kind}{hint}")
            for name in shown if self._names else ():
                self.line(f"  {name}")
        self._problems.clear()

    @contextmanager
    def step(self, name: str, spark: SparkSession | None = None) -> Iterator[Step]:
        """Show a step while the block runs. With ``spark`` the bar shows the tasks of Spark's active stages."""
        with Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            console=self._console,
            transient=True,
            disable=not self._console.is_terminal,
        ) as progress:
            step = Step(progress, name)
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


class Step:
    """The step in progress, with its bar."""

    def __init__(self, progress: Progress, name: str) -> None:
        self._progress = progress
        self._bar = progress.add_task(name, total=None)

    def advance(self, by: int, total: int) -> None:
        """Report that ``by`` more of ``total`` units are done."""
        self._progress.update(self._bar, advance=by, total=total)

    def show(self, completed: int, total: int) -> None:
        """Report that ``completed`` of ``total`` units are done."""
        self._progress.update(self._bar, completed=completed, total=total)


def _follow(spark: SparkSession, bar: Step, done: threading.Event) -> None:
    tracker = spark.sparkContext.statusTracker()
    while not done.wait(_POLL_SECONDS):
        stages = [info for stage in tracker.getActiveStageIds() if (info := tracker.getStageInfo(stage)) is not None]
        if stages:
            bar.show(sum(s.numCompletedTasks for s in stages), sum(s.numTasks for s in stages))
