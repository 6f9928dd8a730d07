"""``--follow``: phrasecount as a stream, which keeps the counts up to date as files appear, change and vanish.

A Structured Streaming query polls the directory. The query's offset is the directory's fingerprint
(:meth:`~pgcombine.phrasecount.corpus.Corpus.fingerprint`). Each new fingerprint makes a micro-batch, which is a run.
A run doesn't read a file again whose signature (:meth:`~pgcombine.phrasecount.corpus.Corpus.signatures`) is the same as
in the run before. Spark's own file source wouldn't do, since it reports new names, but no edits and deletions.

A run commits its updates together with the documents' state, and compares the files with that state. So the query needs
no checkpoint: after a kill the next start compares all files once. A run that fails with psycopg.Error or
PgCombineError is repeated with back-off. :data:`ATTEMPTS` such failures in a row end the stream with the error. Any
other error ends it at once, and so does a ConfigError, or a QueueError other than LoadError. If the search table's
database is down, the stream goes on, and the entries for the table wait.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psycopg
from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition

from pgcombine import PgCombineError
from pgcombine.errors import ConfigError, DestinationDownError, LoadError, QueueError
from pgcombine.phrasecount import state
from pgcombine.phrasecount.corpus import Corpus
from pgcombine.phrasecount.database import connect
from pgcombine.phrasecount.report import Report
from pgcombine.phrasecount.run import Figures, Run
from pgcombine.phrasecount.search import Search
from pgcombine.phrasecount.session import borrowed_session
from pgcombine.spark import explained

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

ATTEMPTS = 6
POLL_SECONDS = 1.0


class DirectorySource(DataSource):  # type: ignore[misc]
    """A stream of the directory's fingerprints."""

    @classmethod
    def name(cls) -> str:
        return "pgcombine_directory"

    def schema(self) -> str:
        return "fingerprint string"

    def streamReader(self, schema: StructType) -> DirectoryReader:
        return DirectoryReader(
            Corpus(Path(self.options["root"]), exclude=frozenset(json.loads(self.options["exclude"])))
        )


@dataclass
class Fingerprint(InputPartition):  # type: ignore[misc]
    """The only partition of a micro-batch. Its only row is the directory's fingerprint."""

    value: str


class DirectoryReader(DataSourceStreamReader):  # type: ignore[misc]
    """Polls the directory."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus

    def initialOffset(self) -> dict[str, str]:
        return {"fingerprint": ""}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, str]:
        return {"fingerprint": self.corpus.fingerprint()}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        return [Fingerprint(end["fingerprint"])]

    def read(self, partition: Any) -> Iterator[tuple[str]]:
        yield (partition.value,)


def follow(
    dsn: str,
    corpus: Corpus,
    *,
    report: Report,
    stop: threading.Event,
    on_run: Callable[[Figures], None],
    sink: str | None = None,
    search: Search | None = None,
    poll: float = POLL_SECONDS,
) -> int:
    """Keep the counts up to date with the files until ``stop`` is set. Returns the number of successful runs.

    A run in progress is finished first. ``on_run`` is called after the first successful run, and after each successful
    run that found a new, edited or deleted file. ``poll`` is the time between two polls of the directory, in seconds.
    The other parameters and the errors are as for :func:`~pgcombine.phrasecount.run.count`, but DestinationDownError
    isn't raised.
    """
    with borrowed_session("pgcombine phrasecount") as spark:
        stream = _Stream(dsn, spark, corpus, report, stop, on_run, sink, search)
        spark.dataSource.register(DirectorySource)
        source = spark.readStream.format(DirectorySource.name()).option("root", str(corpus.root))
        with explained():
            query = (
                source.option("exclude", json.dumps(sorted(corpus.exclude)))
                .load()
                .writeStream.foreachBatch(stream.batch)
                .trigger(processingTime=f"{round(poll * 1000)} milliseconds")
                .start()
            )
            while not stop.wait(0.1) and query.isActive:
                pass
            stream.end()
            error = None if query.isActive else query.exception()
            query.stop()
        if stream.failure is not None:
            raise stream.failure
        if error is not None:
            with explained():
                raise error
        return stream.runs


@dataclass
class _Stream:
    dsn: str
    spark: SparkSession
    corpus: Corpus
    report: Report
    stop: threading.Event
    on_run: Callable[[Figures], None]
    sink: str | None
    search: Search | None
    seen: dict[str, bytes] = field(default_factory=dict)
    runs: int = 0
    failure: BaseException | None = None
    _free: threading.Lock = field(default_factory=threading.Lock)

    def batch(self, _: DataFrame, __: int) -> None:
        """Make one run, and repeat it if it fails."""
        if not self._free.acquire(blocking=False):
            return  # end() holds the lock, so the stream has ended
        try:
            self._try()
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self._free.release()

    def end(self) -> None:
        """Wait for the run in progress, and let no other run begin."""
        self._free.acquire()

    def _try(self) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._run()
                return
            except (psycopg.Error, PgCombineError) as error:
                fatal = isinstance(error, (ConfigError, QueueError)) and not isinstance(error, LoadError)
                if fatal or (attempt == ATTEMPTS and not self.stop.is_set()):
                    raise
                reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
                self.report.line(f"a run failed: {reason}")
            if self.stop.wait(2**attempt / 4):
                return

    def _run(self) -> None:
        started = time.monotonic()
        figures = Figures(str(self.corpus.root), sink=self.sink or "")
        run = Run(self.dsn, lambda: self.spark, self.corpus, self.report, figures, self.search, self.sink, self.seen)
        run.work()
        try:
            run.deliver()
        except DestinationDownError as error:
            self.report.line(f"the search table isn't up to date: {error}")
        self.runs += 1
        if figures.changed or self.runs == 1:
            with closing(connect(self.dsn)) as connection:
                figures.phrases = state.phrases(connection)
            figures.seconds = time.monotonic() - started
            self.on_run(figures)
        self.report.problems()
