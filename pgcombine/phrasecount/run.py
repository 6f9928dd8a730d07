"""One run of phrasecount: scan the files, compare, count the differences, commit, combine.

A run that ends, at any moment and for any reason, has either committed its updates together with the documents'
state or changed nothing; the next run goes on from there. Two runs at once work one after the other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from pgcombine.database import Connection, connect
from pgcombine.errors import ConfigError
from pgcombine.phrasecount import files, state, verify
from pgcombine.phrasecount.report import Report, Step
from pgcombine.phrasecount.scan import SCANNED, Scan, Stored
from pgcombine.spark.errors import explained
from pgcombine.spark.stage import write_stage
from pgcombine.spark.startup import borrowed_session
from pgcombine.spark.target import Target, choose_sink
from pgcombine.worker import drain

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

MAX_BYTES = 64 * 1024 * 1024
_SCANNED = ("phrasecount", "scanned")
_DIFFERENCE = ("phrasecount", "difference")
_LOOPS = 4  # at most, that combine at once
_CHUNK_ROWS = 100  # rows of some 32 kB that a writer holds at once


@dataclass(frozen=True)
class Corpus:
    """What is counted: the files below ``root``, the first ``limit`` by path, of at most ``max_bytes`` each.

    ``root`` is as :func:`real_directory` gives it. Directories named in ``exclude`` aren't entered.
    """

    root: Path
    limit: int | None = None
    max_bytes: int = MAX_BYTES
    exclude: frozenset[str] = frozenset()

    def list(self) -> tuple[list[str], list[tuple[str, files.Problem]]]:
        """Paths below ``root``, whatever the limit, and the problems met."""
        return files.list_files(self.root, self.exclude)


@dataclass
class Figures:
    """What a run did. Times in seconds; ``phrases`` and ``top`` are over all directories."""

    directory: str
    documents: int = 0
    changed: int = 0
    added: int = 0
    edited: int = 0
    removed: int = 0
    problems: int = 0
    updates: int = 0
    left_out: int = 0
    phrases: int = 0
    passes: int = 0
    sink: str = ""
    sink_reason: str = ""
    seconds: float = 0.0
    session_seconds: float = 0.0
    step_seconds: dict[str, float] = field(default_factory=dict)
    top: list[tuple[str, int, int]] = field(default_factory=list)
    verified: verify.Verification | None = None


def count(
    dsn: str,
    corpus: Corpus,
    *,
    report: Report,
    sink: str | None = None,
    top: int = 10,
    recount: bool = False,
) -> Figures:
    """Count the phrases of a corpus in the database ``dsn``; returns when the updates are combined.

    ``sink`` is ``jdbc``, ``copy`` or None for the first that works; ``recount`` verifies all values afterwards.
    Raises ConfigError for a directory, sink or limit that can't be used, PgCombineError when Spark fails.
    """
    started = time.monotonic()
    target = Target.of(dsn)
    figures = Figures(str(corpus.root))
    with borrowed_session("pgcombine phrasecount") as spark:
        figures.session_seconds = time.monotonic() - started
        figures.sink, figures.sink_reason = choose_sink(spark, target, sink)
        run = _Run(dsn, spark, target, corpus, report, figures)
        with state.locked(dsn, report.waiting) as lock, closing(connect(dsn)) as work:
            run.work(lock, work)
        run.combine()
        if recount:
            with run.step("verifying", spark), state.locked(dsn, report.waiting), closing(connect(dsn)) as work:
                drain(dsn, state.QUEUE)
                paths, _ = corpus.list()
                figures.verified = verify.verify(spark, target, run.scanner, paths[: corpus.limit], work, figures.sink)
                state.clean(work)
    with closing(connect(dsn)) as connection:
        figures.phrases = state.phrases(connection)
        figures.top = state.top(connection, top)
    figures.seconds = time.monotonic() - started
    return figures


@dataclass
class _Run:
    dsn: str
    spark: SparkSession
    target: Target
    corpus: Corpus
    report: Report
    figures: Figures
    load: UUID = field(default_factory=uuid4)

    @property
    def directory(self) -> str:
        return str(self.corpus.root)

    @property
    def scanner(self) -> Scan:
        return Scan(self.target.conninfo, self.directory, self.corpus.max_bytes)

    def work(self, lock: Connection, work: Connection) -> None:
        """Everything up to the commit, which ``lock`` makes; ``work`` commits each step of the work tables."""
        state.ensure_queue(work)
        state.clean(work)
        paths = self.find(work)
        if paths:
            with self.step("reading files", self.spark):
                self.scan(paths)
        with self.step("comparing"):
            found = state.compare(work, self.load, self.directory)
        self.note_problems(work)
        if changes := found.live + found.dead:
            with self.step("counting phrases", self.spark):
                self.count(changes)
        with self.step("committing"):
            self.figures.updates, self.figures.left_out = state.apply(lock, self.load, self.directory)
            lock.commit()
        state.clean(work)
        self.figures.documents = found.documents
        self.figures.added, self.figures.edited, self.figures.removed = found.added, found.edited, found.removed
        self.figures.changed = found.added + found.edited + found.removed

    def find(self, work: Connection) -> list[str]:
        paths, problems = self.corpus.list()
        for path, problem in problems:
            self.report.problem(problem.kind, problem.detail, path)
        self.figures.problems = len(problems)
        state.list_work(work, self.load, paths, self.corpus.limit)
        if self.corpus.limit is None:
            if not paths:
                self.report.line(f"{self.directory} holds no files to count")
            return paths
        beyond, first = state.beyond_limit(work, self.load, self.directory)
        if beyond:
            raise ConfigError(
                f"--limit {self.corpus.limit} would take away {beyond} documents that an earlier run counted and that "
                f"are still there (the first is {first}): run without --limit, or with a higher one"
            )
        return paths[: self.corpus.limit]

    def scan(self, paths: list[str]) -> None:
        from pgcombine.phrasecount.counting import frame_of, slices

        frame = frame_of(self.spark, slices(self.spark, list(enumerate(paths))), self.scanner.files, SCANNED)
        write_stage(frame, _SCANNED, self.target, self.load, sink=self.figures.sink, batch=_CHUNK_ROWS)

    def count(self, changes: int) -> None:
        from pgcombine.phrasecount.counting import differences, frame_of, ranges

        parts = [(self.load, first, last) for first, last in ranges(self.spark, changes)]
        stored = Stored(self.target.conninfo)
        chunks = frame_of(self.spark, parts, stored.changed, "document long, sign int, tokens string")
        write_stage(differences(chunks), _DIFFERENCE, self.target, self.load, sink=self.figures.sink)

    def note_problems(self, work: Connection) -> None:
        for kind, detail, path in state.problems(work, self.load):
            self.figures.problems += 1
            self.report.problem(kind, detail, path)
        self.report.end_of_problems()

    def combine(self) -> None:
        with self.step("combining") as step, ThreadPoolExecutor() as loops:
            # each drains until nothing is pending; they share the buckets
            drains = [
                loops.submit(
                    drain, self.dsn, state.QUEUE, on_pass=lambda one: step.advance(one.updates, self.figures.updates)
                )
                for _ in range(min(_LOOPS, os.cpu_count() or 1))
            ]
            self.figures.passes = sum(one.result().passes for one in drains)

    @contextmanager
    def step(self, name: str, spark: SparkSession | None = None) -> Iterator[Step]:
        started = time.monotonic()
        with explained(), self.report.step(name, spark) as step:
            yield step
        self.figures.step_seconds[name] = time.monotonic() - started


def real_directory(directory: Path) -> Path:
    """The path that a directory's state goes by. Raises ConfigError if it is no directory."""
    if not directory.is_dir():
        what = "is not a directory" if directory.exists() else "does not exist"
        raise ConfigError(f"{directory} {what}: name a directory with text files")
    root = directory.resolve()
    try:
        str(root).encode()
    except UnicodeEncodeError:
        raise ConfigError(f"the name of {str(root)!a} is not UTF-8: rename it") from None
    return root
