"""One run of phrasecount: scan the files, compare, count the differences, commit, combine, deliver.

A run commits its updates together with the documents' state. A run that ends before this commit changes neither. The
next run continues from the committed state. Of two concurrent runs, one waits until the other has committed or failed.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from pgcombine import drain
from pgcombine.errors import ConfigError
from pgcombine.phrasecount import state, verify
from pgcombine.phrasecount.corpus import Corpus
from pgcombine.phrasecount.database import Connection, connect, resolved
from pgcombine.phrasecount.report import Report, Step
from pgcombine.phrasecount.scan import Scan, Stored
from pgcombine.phrasecount.search import SEARCHING, Search
from pgcombine.phrasecount.session import borrowed_session
from pgcombine.spark import explained, staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LOOPS = 4  # the largest number of threads that combine


@dataclass
class Figures:
    """The figures of a run. Times are in seconds. ``phrases`` and ``top`` are over all directories.

    ``delivered`` is the number of entries delivered to the search table. None means that the run didn't deliver.
    ``sink`` is ``jdbc`` or ``copy``, whichever the caller chose or the run used. It is empty if the caller chose none
    and the run neither added nor removed a document.
    """

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
    delivered: int | None = None
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
    search: Search | None = None,
) -> Figures:
    """Count the phrases of a corpus in the database ``dsn``. Returns when the updates are combined and delivered.

    ``sink`` is ``jdbc``, ``copy`` or None for the first of these that works. ``top`` is the number of phrases in
    ``Figures.top``. With ``recount`` the values are verified afterwards. ``search`` is the search table to keep up to
    date. None means that nothing is delivered. Files that weren't counted are recorded in ``report``. Among others,
    raises ConfigError for an unusable sink or limit, PgCombineError if Spark fails, and DestinationDownError if all is
    counted but the search table's database is down.
    """
    started = time.monotonic()
    figures = Figures(str(corpus.root), sink=sink or "", sink_reason="as asked for" if sink else "")
    with borrowed_session("pgcombine phrasecount") as spark:
        figures.session_seconds = time.monotonic() - started
        run = Run(dsn, spark, corpus, report, figures, search)
        run.work()
        if recount:
            with run.step("verifying", spark), state.locked(dsn, report.waiting), closing(connect(dsn)) as work:
                drain(dsn, state.QUEUE)
                paths, _ = corpus.list()
                figures.verified = verify.verify(spark, run.scanner, paths[: corpus.limit], work)
    run.deliver()
    with closing(connect(dsn)) as connection:
        figures.phrases = state.phrases(connection)
        figures.top = state.top(connection, top)
    figures.seconds = time.monotonic() - started
    return figures


@dataclass
class Run:
    """One run, with its steps. ``seen`` has the signatures, by path, of files that an earlier run counted.

    :meth:`Corpus.signatures` makes them. A file that has a stored document, and whose signature is still the same,
    isn't read again.
    """

    dsn: str
    spark: SparkSession
    corpus: Corpus
    report: Report
    figures: Figures
    search: Search | None = None
    seen: dict[str, bytes] = field(default_factory=dict)
    load: UUID = field(default_factory=uuid4)

    @cached_property
    def tasks_dsn(self) -> str:
        """The connection string with which Spark's tasks reach the database."""
        return resolved(self.dsn)

    @property
    def directory(self) -> str:
        return str(self.corpus.root)

    @property
    def scanner(self) -> Scan:
        return Scan(self.tasks_dsn, self.directory, self.corpus.max_bytes, self.load)

    def work(self) -> None:
        """Bring the counts up to date with the files."""
        with state.locked(self.dsn, self.report.waiting) as lock, closing(connect(self.dsn)) as work:
            self._work(lock, work)
        self._combine()

    def deliver(self) -> None:
        """Bring the search table up to date with the counts."""
        if self.search is None:
            return
        with self.step(SEARCHING):
            self.search.keep()
            self.figures.delivered = self.search.deliver(self.report)

    def _work(self, lock: Connection, work: Connection) -> None:
        """Run the steps up to the commit in the transaction of ``lock``; ``work`` is for the work tables."""
        state.ensure_queue(work)
        state.clean(work)
        paths = self._find(work)
        # computed before any file is read, so that a file that changes later is read again by the next run
        signatures = list(self.corpus.signatures(paths))
        unread = self._unread(paths, signatures, work)
        if unread:
            with self.step("reading files", self.spark):
                self._scan(unread)
        with self.step("comparing"):
            found = state.compare(work, self.load, self.directory)
        problems = self._note_problems(work)
        if changes := found.live + found.dead:
            self._count(changes, lock)
        else:
            with self.step("committing"):
                self._commit(lock)
        state.clean_after(lock, work)
        self.seen.clear()
        self.seen.update(
            (path, one) for path, one in zip(paths, signatures, strict=True) if one is not None and path not in problems
        )
        self.figures.documents, self.figures.left_out = found.documents, found.left_out
        self.figures.added, self.figures.edited, self.figures.removed = found.added, found.edited, found.removed
        self.figures.changed = found.added + found.edited + found.removed

    def _find(self, work: Connection) -> list[str]:
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
                f"--limit {self.corpus.limit} would remove the counts of {beyond} documents that an earlier run "
                f"counted and that are still there (the first is {first}): run without --limit, or with a higher one"
            )
        return paths[: self.corpus.limit]

    def _unread(self, paths: list[str], signatures: list[bytes | None], work: Connection) -> list[tuple[int, str]]:
        """Return the files to read, with their numbers: all except stored files with the same signature in ``seen``."""
        if not self.seen:
            return list(enumerate(paths))
        stored = state.stored(work, self.load, self.directory)
        return [
            (n, path)
            for n, (path, signature) in enumerate(zip(paths, signatures, strict=True))
            if n not in stored or signature is None or self.seen.get(path) != signature
        ]

    def _scan(self, paths: list[tuple[int, str]]) -> None:
        from pgcombine.phrasecount.counting import slices

        parts = slices(self.spark, paths)
        self.spark.sparkContext.parallelize(parts, len(parts)).flatMap(self.scanner.files).sum()

    def _count(self, changes: int, lock: Connection) -> None:
        """Stage the updates. Then one commit enqueues them and changes the documents' state."""
        from pgcombine.phrasecount.counting import differences, frame_of, ranges

        parts = [(self.load, first, last) for first, last in ranges(self.spark, changes)]
        stored = Stored(self.tasks_dsn)
        chunks = frame_of(self.spark, parts, stored.changed, "document long, sign int, tokens string")
        with ExitStack() as stack:
            with self.step("counting phrases", self.spark):
                rows = self._stage(differences(chunks), stack)
            with self.step("committing"):
                self.figures.updates = rows.apply(lock).updates
                self._commit(lock)

    def _stage(self, updates: DataFrame, stack: ExitStack) -> Any:
        """Stage the updates by the chosen sink. If none is chosen, try JDBC first, then COPY."""
        figures = self.figures
        if not figures.sink:
            try:
                rows = stack.enter_context(staged(updates, state.QUEUE, self.tasks_dsn, sink="jdbc"))
            except ConfigError as error:
                figures.sink, figures.sink_reason = "copy", str(error)
            else:
                figures.sink, figures.sink_reason = "jdbc", "its driver is there"
                return rows
        return stack.enter_context(staged(updates, state.QUEUE, self.tasks_dsn, sink=figures.sink))

    def _commit(self, lock: Connection) -> None:
        state.apply(lock, self.load, self.directory)
        lock.commit()

    def _note_problems(self, work: Connection) -> set[str]:
        paths = set()
        for kind, detail, path in state.problems(work, self.load):
            paths.add(path)
            self.report.problem(kind, detail, path)
        self.figures.problems += len(paths)
        return paths

    def _combine(self) -> None:
        with self.step("combining") as step, ThreadPoolExecutor() as loops:
            # each thread drains until nothing is pending; the threads share the buckets
            drains = [
                loops.submit(
                    drain, self.dsn, state.QUEUE, on_pass=lambda one: step.advance(one.updates, self.figures.updates)
                )
                for _ in range(min(_LOOPS, os.cpu_count() or 1))
            ]
            self.figures.passes = sum(one.result().passes for one in drains)

    @contextmanager
    def step(self, name: str, spark: SparkSession | None = None) -> Iterator[Step]:
        """Run the block as a step. If it succeeds, its time goes into the figures. Spark's errors become one line."""
        started = time.monotonic()
        with explained(), self.report.step(name, spark) as step:
            yield step
        self.figures.step_seconds[name] = time.monotonic() - started
