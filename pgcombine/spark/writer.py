"""The writing side of ``format("pgcombine")``.

Tasks COPY Arrow batches into a table, the stage, each attempt of a task in its own transaction. The driver then moves
all rows into the queue in one transaction; in the mode ``prepare`` another session moves them. For a front, each of
these transactions is one on each node. Only attempts that Spark reported as successful are applied, and only if no run
with the same run id was applied before. A batch of a stream has the run id ``stream:<query>:<batch>``.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING
from uuid import NAMESPACE_OID, UUID, uuid4, uuid5

import pyspark
from psycopg import sql
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from pgcombine.database.connect import connect, one
from pgcombine.errors import ConfigError, translated
from pgcombine.queue import status
from pgcombine.spark.columns import check_frame
from pgcombine.spark.copying import copy_batches
from pgcombine.spark.errors import brief
from pgcombine.spark.loads import NAME, Load
from pgcombine.spark.options import Options
from pgcombine.spark.target import Target

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:  # PySpark 4.0 lacks the class, so StreamWriter raises ConfigError
    DataSourceStreamArrowWriter = None

_KINDS = {"staged": "stage", "initialize": "values", "prepare": "stage"}


@dataclass
class Written(WriterCommitMessage):  # type: ignore[misc]
    """The result of a task.

    ``attempts`` has, by queue, the id of the task's transaction and the number of rows that it wrote. The shards of a
    front are several queues.
    """

    load: UUID
    run_id: str
    attempts: dict[str, tuple[str, int]] = field(default_factory=dict)


def attempts_at(queue: str, messages: list[WriterCommitMessage | None]) -> tuple[list[str], int]:
    """Return the ids of the transactions in which tasks wrote rows for the queue, and the number of these rows."""
    found = [message.attempts[queue] for message in messages if message is not None and queue in message.attempts]
    return [attempt for attempt, _ in found], sum(rows for _, rows in found)


@dataclass(frozen=True)
class Writing:
    """What the tasks get from the driver. ``keys`` are the queue's key columns."""

    conninfo: str
    options: Options
    keys: tuple[str, ...]

    @classmethod
    def of(cls, options: Options, schema: StructType, overwrite: bool) -> Writing:
        """Check the frame's columns against the queue, before any task runs.

        Raises ConfigError if the frame would overwrite the queue, and InvalidUpdateError if the frame doesn't fit the
        queue.
        """
        if overwrite:
            raise ConfigError(
                f'queue "{options.queue}" can\'t be overwritten: updates are only added. Write with .mode("append"), '
                'a stream with .outputMode("append"). Write the aggregates of a stream by '
                ".foreachBatch(pgcombine.spark.foreach_batch(queue, dsn)), to a queue whose combiner is last(at) or max"
            )
        if options.front:
            from pgcombine.spark.front import FrontWriting

            return FrontWriting.reached(options, schema)
        conninfo = Target.of(options.dsn).conninfo
        return cls(conninfo, options, fitting(conninfo, options.queue, schema, options.queue))

    def load(self, run_id: str, load: UUID) -> Load:
        return Load(self.conninfo, self.options.queue, run_id, _KINDS[self.options.mode], load)

    def begin(self, load: Load) -> bool:
        """Begin the load. Returns False if the run was applied already."""
        with closing(connect(self.conninfo, name=NAME)) as connection:
            return load.begin(connection) is not None

    def write(self, load: Load, batches: Iterator[pa.RecordBatch], *, join_only: bool) -> Written:
        """Write the rows of one task in one transaction. If there are none, or the run was applied, write nothing."""
        first = next((batch for batch in batches if batch.num_rows), None)
        if first is None:
            return Written(load.load, load.run_id)
        with closing(connect(self.conninfo, name=NAME)) as connection:
            table = load.begin(connection, join_only=join_only)
            if table is None:
                exhaust(batches)
                return Written(load.load, load.run_id)
            rows = chain([first], batches)
            with connection.transaction():
                (attempt,) = one(connection, "select pg_current_xact_id()")
                count = copy_batches(
                    connection, sql.Identifier("pgcombine", table), rows, queue=self.options.queue, keys=self.keys
                )
            return Written(load.load, load.run_id, {load.queue: (attempt, count)})

    def end(self, load: Load, messages: list[WriterCommitMessage | None]) -> None:
        """Apply the rows of all tasks. In the mode ``prepare``, store the attempts for a later transaction."""
        attempts, rows = attempts_at(load.queue, messages)
        if self.options.mode == "prepare":
            with closing(connect(load.conninfo, name=NAME)) as connection:
                load.prepare(connection, attempts, rows)
        else:
            outcome = load.end(attempts, rows, preaggregate=self.options.preaggregate)
            if not outcome.applied and self.options.run_id:
                say_skipped(load)


def fitting(conninfo: str, queue: str, schema: StructType, name: str) -> tuple[str, ...]:
    """Return the key columns of a queue.

    Raises InvalidUpdateError if the frame doesn't fit. Its message calls the queue ``name``.
    """
    with closing(connect(conninfo, name=NAME)) as connection, translated(queue=queue):
        columns = status.columns(connection, queue)
        check_frame(columns, schema, name)
    return tuple(column.name for column in columns if column.role == "key")


class BatchWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Writes a frame. The driver creates the writer, which begins the load. ``write`` runs in the tasks."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        if options.front and not options.run_id:
            raise ConfigError(
                'the option "front" needs "runId": the nodes commit one after the other, so if a job fails, run it '
                "again with the same run id"
            )
        self.writing = Writing.of(options, schema, overwrite)
        load = options.load or uuid4()
        self.load = self.writing.load(options.run_id or str(load), load)
        self.applied = not self.writing.begin(self.load)
        if self.applied:
            say_skipped(self.load)

    @brief()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task, unless the run was applied before."""
        if self.applied:
            exhaust(iterator)
            return Written(self.load.load, self.load.run_id)
        return self.writing.write(self.load, iterator, join_only=True)

    @brief()
    def commit(self, messages: list[WriterCommitMessage | None]) -> None:
        """Apply the rows of all tasks. In the mode ``prepare``, store the attempts for a later transaction."""
        if not self.applied:
            self.writing.end(self.load, messages)

    @brief()
    def abort(self, messages: list[WriterCommitMessage | None]) -> None:
        """Remove the staged rows. Applied rows stay."""
        if not self.applied:
            self.load.give_up()


class StreamWriter(DataSourceStreamArrowWriter or object):  # type: ignore[misc]
    """Writes the batches of a stream. Each batch is a run."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        if DataSourceStreamArrowWriter is None:
            raise ConfigError(
                f'writeStream.format("pgcombine") needs PySpark 4.1 or later, and this is {pyspark.__version__}: '
                "install a later one, or write the stream by foreachBatch(pgcombine.spark.foreach_batch(queue, dsn))"
            )
        if options.run_id:
            raise ConfigError('the option "runId" isn\'t for streams: the ids of query and batch are the run id')
        self.writing = Writing.of(options, schema, overwrite)

    @brief()
    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        """Write the rows of one task of the current batch."""
        from pyspark import TaskContext

        context = TaskContext.get()
        assert context is not None
        query, batch = (context.getLocalProperty(name) for name in ("sql.streaming.queryId", "streaming.sql.batchId"))
        if query is None or batch is None:
            raise ConfigError("the ids of query and batch are unknown here: write by foreachBatch instead")
        run_id = f"stream:{query}:{batch}"
        # a query that is started again has another job group, so it repeats its last batch as another load
        load = uuid5(NAMESPACE_OID, f"{context.getLocalProperty('spark.jobGroup.id')}:{run_id}")
        return self.writing.write(self.writing.load(run_id, load), iterator, join_only=False)

    @brief()
    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Apply the batch, unless it was applied before."""
        written = [message for message in messages if message is not None and message.attempts]
        if written:  # otherwise the batch is empty, or was applied before
            self.writing.end(self.writing.load(written[0].run_id, written[0].load), messages)

    @brief()
    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Remove the staged rows. Applied rows stay."""
        for message in messages:
            if message is not None:
                self.writing.load(message.run_id, message.load).give_up()
                break


def exhaust(batches: Iterator[pa.RecordBatch]) -> None:
    """Read all batches. Spark kills the Python process of a task that leaves some, and starting another one is slow."""
    for _ in batches:
        pass


def say_skipped(load: Load) -> None:
    """Print to the driver's stderr, its log, that the run was applied before: logging isn't configured here."""
    print(f"pgcombine: {load.skipped()}", file=sys.stderr, flush=True)
