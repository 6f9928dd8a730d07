"""Write a frame to a stage table in the database, so that exactly one attempt at each partition counts.

Spark runs a partition again after a failure, and a client that saw an error may have committed all the same:
writers alone can't write once. So a stage has beside the frame's columns

    load     uuid     names this writing; rows of another load are left-overs
    part     integer  the frame's partition
    attempt  xid8     default pg_current_xact_id()

and a partition is written in one transaction, so that ``attempt`` tells the attempts apart. The reader takes,
for each part of its load, the rows of the lowest attempt. All attempts at a part write equal rows.

Two writers: ``jdbc`` is Spark's own, ``copy`` a psycopg COPY in the tasks. Values arrive as text, numbers and
null; both convert in the server.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any
from uuid import UUID

import psycopg
from psycopg import sql
from pyspark.sql.datasource import DataSource, DataSourceArrowWriter, WriterCommitMessage

from pgcombine.spark.target import Target

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_BATCH_ROWS = 10_000


def write_stage(
    frame: DataFrame,
    table: tuple[str, str],
    target: Target,
    load: UUID,
    *,
    sink: str,
    batch: int = _BATCH_ROWS,
) -> None:
    """Write ``frame`` to the stage ``table`` (schema, name) as ``load``; on return all parts are committed.

    ``batch`` rows are held in memory at once by the JDBC writer: give fewer for wide rows.
    Raises what Spark raises when a task failed for good; the stage then holds rows that nobody must read.
    """
    from pyspark.sql import functions as F

    staged = frame.select("*", F.lit(str(load)).alias("load"), F.spark_partition_id().alias("part"))
    name = ".".join(f'"{part}"' for part in table)
    if sink == "copy":
        frame.sparkSession.dataSource.register(StageSource)
        (
            staged.write.format(StageSource.name())
            .option("table", ".".join(table))
            # Spark redacts options of this name in plans and logs
            .option("secret", target.conninfo)
            .mode("append")
            .save()
        )
    else:
        assert target.url is not None
        (
            staged.write.mode("append")
            # batches become multi-row inserts; text goes to uuid columns as it is
            .option("reWriteBatchedInserts", "true")
            .option("stringtype", "unspecified")
            .option("batchsize", str(batch))
            .option("isolationLevel", "READ_COMMITTED")  # NONE would commit each batch on its own
            .jdbc(target.url, name, properties=target.properties)
        )


class StageSource(DataSource):  # type: ignore[misc]
    """Spark data source behind the ``copy`` writer. Internal: use :func:`write_stage`."""

    @classmethod
    def name(cls) -> str:
        return "pgcombine_stage"

    def writer(self, schema: StructType, overwrite: bool) -> StageWriter:
        return StageWriter(dict(self.options), schema.fieldNames())


class StageWriter(DataSourceArrowWriter):  # type: ignore[misc]
    """One COPY, and so one transaction, for a partition."""

    def __init__(self, options: dict[str, str], columns: list[str]) -> None:
        self.conninfo = options["secret"]
        self.table = options["table"].split(".")
        self.columns = columns

    def write(self, iterator: Iterator[pa.RecordBatch]) -> WriterCommitMessage:
        copy = sql.SQL("copy {} ({}) from stdin (format csv)").format(
            sql.Identifier(*self.table), sql.SQL(", ").join(map(sql.Identifier, self.columns))
        )
        with (
            psycopg.connect(self.conninfo) as connection,
            connection.cursor() as cursor,
            cursor.copy(copy) as stream,
        ):
            for batch in iterator:
                stream.write(_csv(batch))
        return WriterCommitMessage()


def _csv(batch: pa.RecordBatch) -> Any:
    """The batch as CSV: text quoted, null empty, as COPY reads it."""
    from pyarrow import csv

    buffer = io.BytesIO()
    csv.write_csv(batch, buffer, csv.WriteOptions(include_header=False, quoting_style="needed"))
    return buffer.getbuffer()
