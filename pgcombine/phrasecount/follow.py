"""``--follow``: phrasecount as a stream, which takes up new, changed and deleted files as they come.

A Structured Streaming query whose source is the directory, polled: its offset is a fingerprint of all files' names,
sizes and times, and each change of it makes a micro-batch, which is a whole run that reads only the files that look
other than before. Spark's own file source isn't used: it tells of new names alone, hides those that begin with ``_`` or
``.``, and never notices an edit or a deletion.

*Exactly once.* The truth is in the database: a run commits the updates together with the documents' state, and what it
does follows from comparing the files with that state. So the query has no checkpoint that would have to agree with it.
Killed at any moment and started again, it compares everything once, and goes on; a run that had committed finds nothing
left to do. Runs and streams over any directories may share a database.

*Failures.* A run that fails (the server restarts) changes nothing and is repeated with back-off; what fails
:data:`ATTEMPTS` times in a row, or for the configuration, ends the stream. The search table's database may be away:
what it misses waits.
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

from pgcombine.database.connect import connect
from pgcombine.errors import (
    ConfigError,
    ConnectError,
    DestinationDown,
    LoadError,
    PgCombineError,
    QueueError,
    SchemaError,
)
from pgcombine.phrasecount import state
from pgcombine.phrasecount.corpus import Corpus
from pgcombine.phrasecount.report import Report
from pgcombine.phrasecount.run import Figures, Run
from pgcombine.phrasecount.search import Search
from pgcombine.spark.errors import explained
from pgcombine.spark.startup import borrowed_session
from pgcombine.spark.target import Target, choose_sink

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import StructType

ATTEMPTS = 6
POLL_SECONDS = 1.0


class DirectorySource(DataSource):  # type: ignore[misc]
    """A stream with one row, the directory's fingerprint, each time that it changes."""

    @classmethod
    def name(cls) -> str:
        """The format's name."""
        return "pgcombine_directory"

    def schema(self) -> str:
        """The fingerprint."""
        return "fingerprint string"

    def streamReader(self, schema: StructType) -> DirectoryReader:
        """For ``spark.readStream``."""
        return DirectoryReader(
            Corpus(Path(self.options["root"]), exclude=frozenset(json.loads(self.options["exclude"])))
        )


@dataclass
class Fingerprint(InputPartition):  # type: ignore[misc]
    """The only row of a batch."""

    value: str


class DirectoryReader(DataSourceStreamReader):  # type: ignore[misc]
    """Polls the directory."""

    def __init__(self, corpus: Corpus) -> None:
        self.corpus = corpus

    def initialOffset(self) -> dict[str, str]:
        """Nothing was seen."""
        return {"fingerprint": ""}

    def latestOffset(self, start: Any = None, limit: Any = None) -> dict[str, str]:
        """The directory as it is."""
        return {"fingerprint": self.corpus.fingerprint()}

    def partitions(self, start: dict[str, str], end: dict[str, str]) -> Sequence[InputPartition]:
        """One."""
        return [Fingerprint(end["fingerprint"])]

    def read(self, partition: Any) -> Iterator[tuple[str]]:
        """The row."""
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
    """Keep the counts up to date with the files until ``stop`` is set; how many runs there were.

    A run that is under way is finished first. ``on_run`` is told of the first run and of each that changed something;
    ``poll`` is the time between two looks at the directory, in seconds. Other parameters, and what is raised, as for
    :func:`~pgcombine.phrasecount.run.count`.
    """
    target = Target.of(dsn)
    with borrowed_session("pgcombine phrasecount") as spark:
        chosen = choose_sink(spark, target, sink)
        stream = _Stream(dsn, spark, target, corpus, report, stop, on_run, chosen, search)
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
    target: Target
    corpus: Corpus
    report: Report
    stop: threading.Event
    on_run: Callable[[Figures], None]
    sink: tuple[str, str]
    search: Search | None
    seen: dict[str, bytes] = field(default_factory=dict)
    runs: int = 0
    failure: BaseException | None = None
    _free: threading.Lock = field(default_factory=threading.Lock)

    def batch(self, _: DataFrame, __: int) -> None:
        """A micro-batch: one run, tried again where it fails."""
        if not self._free.acquire(blocking=False):
            return  # it ended
        try:
            self._try()
        except BaseException as error:
            self.failure = error
            raise
        finally:
            self._free.release()

    def end(self) -> None:
        """Wait for the run that is under way, and let no other one begin."""
        self._free.acquire()

    def _try(self) -> None:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                self._run()
                return
            except (psycopg.Error, PgCombineError) as error:
                fatal = isinstance(error, (ConfigError, QueueError, SchemaError)) and not isinstance(
                    error, (ConnectError, LoadError)
                )
                if fatal or (attempt == ATTEMPTS and not self.stop.is_set()):
                    raise
                reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
                self.report.line(f"a run failed, and changed nothing: {reason}")
            if self.stop.wait(2**attempt / 4):
                return

    def _run(self) -> None:
        started = time.monotonic()
        figures = Figures(str(self.corpus.root), sink=self.sink[0], sink_reason=self.sink[1])
        run = Run(self.dsn, self.spark, self.target, self.corpus, self.report, figures, self.search, self.seen)
        run.work()
        try:
            run.deliver()
        except DestinationDown as error:
            self.report.line(f"the search table isn't up to date: {error}")
        self.runs += 1
        if figures.changed or self.runs == 1:
            with closing(connect(self.dsn)) as connection:
                figures.phrases = state.phrases(connection)
            figures.seconds = time.monotonic() - started
            self.on_run(figures)
        self.report.problems()
