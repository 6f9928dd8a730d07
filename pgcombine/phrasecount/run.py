"""One run of phrasecount: scan the files, compare, count the differences, commit, combine, deliver.

This process compares the stored hashes of files with the files. It reads and counts up to :data:`SMALL` bytes of new
text. More is read and counted by Spark, and so is everything if the caller chose a sink.
A run commits its updates together with the documents' state. A run that ends before this commit changes neither. The
next run continues from the committed state. Of two concurrent runs, one waits until the other has committed or failed.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import TYPE_CHECKING
from uuid import UUID, uuid4

from pgcombine import CombineQueue, drain
from pgcombine.errors import ConfigError
from pgcombine.phrasecount import files, state, verify
from pgcombine.phrasecount.corpus import Corpus
from pgcombine.phrasecount.database import Connection, connect, resolved
from pgcombine.phrasecount.report import Report, Step
from pgcombine.phrasecount.scan import Scan, Stored
from pgcombine.phrasecount.search import SEARCHING, Search
from pgcombine.phrasecount.session import borrowed_session
from pgcombine.phrasecount.tokens import summed
from pgcombine.spark import explained, staged

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SMALL = 4 * 1024 * 1024
_NAME = "pgcombine phrasecount"
_LOOPS = 4  # the largest number of threads that combine


@dataclass
class Figures:
    """The figures of a run. Times are in seconds. ``phrases`` and ``top`` are over all directories.

    ``delivered`` is the number of entries delivered to the search table. None means that the run didn't deliver.
    ``sink`` is ``jdbc`` or ``copy``, whichever the caller chose or Spark used. It is empty if there is neither.
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
    seconds: float = 0.0
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

    ``sink`` is the one by which Spark writes, ``jdbc`` or ``copy``. None means that a small difference is counted
    without Spark, and a larger one with ``copy``. ``top`` is the number of phrases in ``Figures.top``. With ``recount``
    the values are verified afterwards. ``search`` is the search table to keep up to date. None means that nothing is
    delivered. Files that weren't counted are recorded in ``report``. Among others, raises ConfigError for an unusable
    sink or limit, PgCombineError if Spark fails, and DestinationDownError if all is counted but the search table's
    database is down.
    """
    started = time.monotonic()
    figures = Figures(str(corpus.root), sink=sink or "")
    with ExitStack() as stack:
        run = Run(dsn, lambda: stack.enter_context(borrowed_session(_NAME)), corpus, report, figures, search, sink)
        run.work()
        if recount:
            spark = run.spark
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
    """One run, with its steps. ``start`` returns a Spark session, and is called once if Spark is needed.

    ``seen`` has the signatures, by path, of files that an earlier run counted. :meth:`Corpus.signatures` makes them. A
    file that has a stored document, and whose signature is still the same, isn't read again.
    """

    dsn: str
    start: Callable[[], SparkSession]
    corpus: Corpus
    report: Report
    figures: Figures
    search: Search | None = None
    sink: str | None = None
    seen: dict[str, bytes] = field(default_factory=dict)
    load: UUID = field(default_factory=uuid4)

    @cached_property
    def spark(self) -> SparkSession:
        with self.step("starting Spark"):
            return self.start()

    @property
    def small(self) -> int:
        """The size of the text that this process reads or counts without Spark."""
        return SMALL if self.sink is None else 0

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
        created = state.ensure_queue(work)
        state.clean(work)
        paths = self._find(work)
        # computed before any file is read, so that a file that changes later is read again by the next run
        signatures = list(self.corpus.signatures(paths))
        with self.step("reading files"):
            unread = self._unread(paths, signatures, work)
            del unread[: self.scanner.files(unread, self.small)]
        if unread:
            self._scan(unread)
        with self.step("comparing"):
            found = state.compare(work, self.load, self.directory)
        problems = self._note_problems(work)
        if found.bytes <= self.small:
            self._count(found, lock)
        else:
            self._count_with_spark(found, lock, initial=created)
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
        """Return the files to read, with their numbers: all except stored files with the same content."""
        known = state.known(work, self.directory)
        return [
            (n, path)
            for n, (path, signature) in enumerate(zip(paths, signatures, strict=True))
            if path not in known or not self._is_same(path, signature, known[path])
        ]

    def _is_same(self, path: str, signature: bytes | None, content_hash: bytes) -> bool:
        if signature is not None and self.seen.get(path) == signature:
            return True
        try:
            content = files.read_file(os.path.join(self.directory, path), self.corpus.max_bytes)
        except files.Refused:
            return False
        return hashlib.sha256(content).digest() == content_hash

    def _scan(self, paths: list[tuple[int, str]]) -> None:
        from pgcombine.phrasecount.counting import counted, slices

        with self.step("reading files in Spark", self.spark):
            # not an RDD, since its tasks would run in Python processes of their own, beside those that count
            counted(self.spark, [partial(self.scanner.read, part) for part in slices(self.spark, paths)]).collect()

    def _count(self, found: state.Comparison, lock: Connection) -> None:
        """Count the differences. One commit enqueues them and changes the documents' state."""
        with self.step("counting phrases"):
            ((docs, total),) = summed(Stored(self.dsn).changed(self.load, found.positions))
            rows = [(phrase, docs[phrase], n) for phrase, n in total.items() if docs[phrase] or n]
        with self.step("committing"):
            self.figures.updates = CombineQueue(state.QUEUE).enqueue(lock, rows)
            self._commit(lock)

    def _count_with_spark(self, found: state.Comparison, lock: Connection, *, initial: bool) -> None:
        """Stage the differences. One commit enqueues them, or makes them values, and changes the documents' state."""
        from pgcombine.phrasecount.counting import counted, differences, slices

        changed = partial(Stored(self.tasks_dsn).changed, self.load)
        counts = [partial(changed, positions) for positions in slices(self.spark, found.positions)]
        self.figures.sink = self.sink or "copy"
        with ExitStack() as stack:
            with self.step("counting phrases", self.spark):
                numbers = counted(self.spark, counts)
                load = staged(
                    numbers if initial else differences(numbers),
                    state.QUEUE,
                    self.tasks_dsn,
                    sink=self.figures.sink,
                    preaggregate=initial,
                    initial=initial,
                )
                rows = stack.enter_context(load)
            with self.step("committing"):
                self.figures.updates = rows.apply(lock).updates
                self._commit(lock)

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
        with explained() if spark else nullcontext(), self.report.step(name, spark) as step:
            yield step
        self.figures.step_seconds[name] = time.monotonic() - started
