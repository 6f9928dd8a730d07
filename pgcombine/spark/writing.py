"""What a write to a queue is for Spark's tasks and for the driver. :mod:`pgcombine.spark.front` has that to a front."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING
from uuid import UUID

from psycopg import sql
from pyspark.sql.datasource import WriterCommitMessage

from pgcombine.database.connect import connect, one
from pgcombine.errors import translated
from pgcombine.queue import status
from pgcombine.spark.columns import check_frame
from pgcombine.spark.copying import copy_batches
from pgcombine.spark.loads import NAME, Load
from pgcombine.spark.options import Options
from pgcombine.spark.target import Target

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType


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
    def reached(cls, options: Options, schema: StructType) -> Writing:
        """Connect to the queue's database, and check the frame's columns."""
        conninfo = Target.of(options.dsn).conninfo
        return cls(conninfo, options, fitting(conninfo, options.queue, schema, options.queue))

    def load(self, run_id: str, load: UUID) -> Load:
        source, whole = self.options.source, self.options.overwrite
        return Load(self.conninfo, self.options.queue, run_id, load=load, source=source, whole=whole)

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
        """Apply the rows of all tasks. With the option ``load``, store the attempts for a later transaction."""
        attempts, rows = attempts_at(load.queue, messages)
        if self.options.load is not None:
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


def exhaust(batches: Iterator[pa.RecordBatch]) -> None:
    """Read all batches. Spark kills the Python process of a task that leaves some, and starting another one is slow."""
    for _ in batches:
        pass


def say_skipped(load: Load) -> None:
    """Print to the driver's stderr, its log, that the run was applied before: logging isn't configured here."""
    print(f"pgcombine: {load.skipped()}", file=sys.stderr, flush=True)
