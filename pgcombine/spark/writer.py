"""The writing side of ``format("pgcombine")``.

Tasks COPY Arrow batches into a table, the stage, each attempt of a task in its own transaction. The driver then moves
all rows into the queue in one transaction; with the option ``load`` another session moves them. For a front, each of
these transactions is one on each node. Only attempts that Spark reported as successful are applied, and only if no run
with the same run id was applied before. A batch of a stream has the run id ``stream:<query>:<batch>``.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING
from uuid import NAMESPACE_OID, uuid4, uuid5

import pyspark
from pyspark.sql.datasource import DataSourceArrowWriter, WriterCommitMessage

from pgcombine.errors import ConfigError
from pgcombine.spark.errors import brief
from pgcombine.spark.front import FrontWriting
from pgcombine.spark.options import Options
from pgcombine.spark.writing import Writing, Written, exhaust, say_skipped

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

try:
    from pyspark.sql.datasource import DataSourceStreamArrowWriter
except ImportError:  # PySpark 4.0 lacks the class, so StreamWriter raises ConfigError
    DataSourceStreamArrowWriter = None


def _writing(options: Options, schema: StructType, overwrite: bool) -> Writing:
    """Check the frame's columns against the queue, before any task runs.

    Raises ConfigError if the frame would overwrite the whole queue, and InvalidUpdateError if the frame doesn't fit the
    queue.
    """
    if overwrite and options.source is None:
        raise ConfigError(
            f'queue "{options.queue}" can\'t be overwritten as a whole: give .option("source", …) to replace what this '
            'source wrote before, or add with .mode("append"), a stream with .outputMode("append"). Write the '
            "aggregates of a stream by .foreachBatch(pgcombine.spark.foreach_batch(queue, dsn)), to a queue whose "
            "combiner is last(at) or max"
        )
    return (FrontWriting if options.front else Writing).reached(replace(options, overwrite=overwrite), schema)


class BatchWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """Writes a frame. The driver creates the writer, which begins the load. ``write`` runs in the tasks."""

    def __init__(self, options: Options, schema: StructType, overwrite: bool) -> None:
        if options.front and not options.run_id:
            raise ConfigError(
                'the option "front" needs "runId": the nodes commit one after the other, so if a job fails, run it '
                "again with the same run id"
            )
        if options.source is not None and not overwrite:
            raise ConfigError(
                'the option "source" replaces what the source wrote before: write with .mode("overwrite")'
            )
        self.writing = _writing(options, schema, overwrite)
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
        """Apply the rows of all tasks. With the option ``load``, store the attempts for a later transaction."""
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
        self.writing = _writing(options, schema, overwrite)

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
        written = sorted(filter(None, messages), key=lambda message: not message.attempts)
        if not written:
            return
        load = self.writing.load(written[0].run_id, written[0].load)
        # without attempts the batch is empty, which takes a source's contribution back, or it was applied before
        if written[0].attempts or (load.source is not None and not load.adds and self.writing.begin(load)):
            self.writing.end(load, messages)

    @brief()
    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:
        """Remove the staged rows. Applied rows stay."""
        for message in messages:
            if message is not None:
                self.writing.load(message.run_id, message.load).give_up()
                break
