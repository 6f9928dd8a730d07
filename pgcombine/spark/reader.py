"""The reading of a queue's values by ``format("pgcombine")``. Each task reads one partition, in one snapshot.

Pending updates aren't included. If there are some, and the role may see them, a line on the driver's stderr says so.
The frame has all columns, or those of the option ``columns`` or of ``.schema(…)``. The option ``where`` is a condition
in SQL, which the server applies. Spark applies the conditions of ``df.where``: up to Spark 4.3, a filter that a Python
source has accepted would also apply to other frames that were made from the same frame. If a column's Spark type can't
hold a value, such as an infinite date, :class:`QueueError` is raised. ``.schema(…)`` with ``string`` for the column
reads it as text.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql
from pyspark.sql.datasource import DataSourceReader, InputPartition

from pgcombine.database.connect import Connection, connect, one
from pgcombine.errors import (
    ConfigError,
    InvalidDefinitionError,
    OperationalError,
    PgCombineError,
    QueueError,
    first_line,
    translated,
)
from pgcombine.queue.status import columns
from pgcombine.spark.columns import arrow_type, spark_type
from pgcombine.spark.errors import brief
from pgcombine.spark.loads import NAME
from pgcombine.spark.options import Options
from pgcombine.spark.target import Target

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

_BATCH_ROWS = 10_000
_PENDING = (
    "select exists (select from pgcombine.bucket b"
    " where b.queue = %s and pgcombine_internal.pending(b.queue, b.bucket))"
)
_TEXT = {"string": "::text", "array<string>": "::text[]"}
_AS_TEXT = ': read the column as text, by .schema("… string"), or leave those rows out by the option "where"'


@dataclass
class Partition(InputPartition):  # type: ignore[misc]
    """A part of the values, or of a feed's changes: the rows of ``relation`` that meet ``condition``. Both are SQL."""

    relation: str
    condition: str


def schema_of(options: Options) -> StructType:
    """Return the schema of the queue's values, or of the feed's changes.

    Raises QueueNotFoundError or FeedNotFoundError if there is no such queue or feed, and InvalidDefinitionError for an
    unknown column.
    """
    from pyspark.sql.types import StructField, StructType

    with closing(connect(options.dsn, name=NAME)) as connection:
        there = _types(connection, options)
    names = options.columns or tuple(there)
    _require(names, there, options)
    return StructType([StructField(name, there[name]) for name in names])


def _types(connection: Connection, options: Options) -> dict[str, DataType]:
    """Return the Spark type of each column of the queue's values, or of the feed's changes."""
    from pyspark.sql import types as t

    if not options.feed:
        return {column.name: spark_type(column) for column in columns(connection, options.queue)}
    with translated():
        (queue,) = one(connection, "select (pgcombine_internal.require_feed(%s)).queue", options.feed)
    there = columns(connection, queue)
    return {
        "_bucket": t.IntegerType(),
        "_sequence": t.LongType(),
        "_change_type": t.StringType(),
        "_commit_version": t.LongType(),
        "_commit_timestamp": t.TimestampType(),
        **{column.name: spark_type(column) for column in there if column.role == "key"},
        **{f"old_{column.name}": spark_type(column) for column in there if column.role == "value"},
        **{f"new_{column.name}": spark_type(column) for column in there if column.role == "value"},
    }


def _require(names: Iterable[str], there: Iterable[str], options: Options) -> None:
    for name in names:
        if name not in there:
            raise InvalidDefinitionError(
                f'{_subject(options)} has no column "{name}"; its columns: {", ".join(there)}',
                queue=options.queue or None,
            )


def _subject(options: Options) -> str:
    return f'feed "{options.feed}"' if options.feed else f'queue "{options.queue}"'


class RowsReader:
    """The common base of the readers: it reads the rows of a part."""

    def __init__(self, options: Options, schema: StructType) -> None:
        self.queue = options.queue or None
        self.subject = _subject(options)
        self.conninfo = Target.of(options.dsn).conninfo
        self.schema = schema
        with closing(connect(self.conninfo, name=NAME)) as connection:
            _require(schema.fieldNames(), _types(connection, options), options)
        self.where = options.where

    def read(self, partition: Any) -> Iterator[pa.RecordBatch]:
        """Read the rows of one part, in batches.

        Raises QueueError for a value that the column's Spark type can't hold, and if a table of the part is gone or was
        replaced after the read was planned.
        """
        with brief():
            yield from self._batches(partition)

    def _batches(self, partition: Any) -> Iterator[pa.RecordBatch]:
        import pyarrow as pa

        schema = pa.schema([(field.name, arrow_type(field.dataType)) for field in self.schema.fields])
        names = self.schema.fieldNames()
        with (
            closing(connect(self.conninfo, name=NAME, autocommit=False)) as connection,
            connection.cursor("pgcombine_values") as cursor,
        ):
            connection.execute("set timezone = 'UTC'")
            with self._explained():
                cursor.execute(self._select(partition, names))
            while rows := self._fetch(cursor):
                filled = zip(zip(*rows, strict=True), schema, strict=True)
                yield pa.record_batch([self._array(one, field) for one, field in filled], schema=schema)

    def _fetch(self, cursor: psycopg.ServerCursor[Any]) -> list[tuple[Any, ...]]:
        with self._explained():
            return cursor.fetchmany(_BATCH_ROWS)

    @contextmanager
    def _explained(self) -> Iterator[None]:
        """Raise an error of pgcombine in place of any error of the statement that reads, which has the user's SQL."""
        try:
            with translated(queue=self.queue):
                yield
        except psycopg.Error as error:
            kind: type[PgCombineError] = ConfigError if self.where else QueueError
            message = first_line(error)
            if hint := error.diag.message_hint:
                message += f" ({hint})"
            if isinstance(error, psycopg.errors.UndefinedTable):  # the queue's table, or one that the condition names
                kind = QueueError
                message += (
                    f": if that is a table of {self.subject}, the queue was rebucketed or dropped after this read was "
                    "planned: read again, with a new frame (spark.read … load())"
                )
            elif isinstance(error, psycopg.OperationalError):
                kind = OperationalError
            if self.where and error.sqlstate:
                message += f'; check the option "where" ({" ".join(self.where.split())})'
            raise kind(message, queue=self.queue, sqlstate=error.sqlstate) from error

    def _array(self, values: Sequence[Any], field: pa.Field) -> pa.Array:
        import pyarrow as pa

        try:
            return pa.array(values, type=field.type)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            shown = next((one for one in values if not _fits(one, field.type)), None)
            raise QueueError(
                f'{self.subject} holds {shown!s:.100} in column "{field.name}", which Spark\'s type '
                f"{self.schema[field.name].dataType.simpleString()} can't hold{_AS_TEXT}",
                queue=self.queue,
            ) from error

    def _select(self, partition: Any, names: Sequence[str]) -> sql.Composed:
        chosen = sql.SQL(", ").join(self._expression(name) for name in names)
        # this is the user's own SQL, and runs with the user's rights
        where = sql.SQL(f" and ({self.where}\n)" if self.where else "")
        return sql.SQL("select {} from {} where {}{}").format(
            chosen, sql.SQL(partition.relation), sql.SQL(partition.condition), where
        )

    def _expression(self, name: str) -> sql.Composable:
        """Return the SQL for a column, with a cast to text if the column is a string in the frame's schema."""
        cast = _TEXT.get(self.schema[name].dataType.simpleString(), "")
        return sql.SQL(f"{{}}{cast}").format(sql.Identifier(name))


class ValuesReader(RowsReader, DataSourceReader):  # type: ignore[misc]
    """Reads a queue's values."""

    @brief()
    def partitions(self) -> Sequence[InputPartition]:
        """Return one part for each physical partition of the values."""
        with translated(queue=self.queue), closing(connect(self.conninfo, name=NAME)) as connection:
            rows = connection.execute("select * from pgcombine_internal.values_tables(%s)", (self.queue,)).fetchall()
            self._say_pending(connection)
        return [Partition(relation, condition) for relation, condition in rows]

    def _say_pending(self, connection: Connection) -> None:
        """Print a line to the driver's stderr, which is its log, if the queue has pending updates."""
        with suppress(psycopg.errors.InsufficientPrivilege):  # the role may read only the values
            if one(connection, _PENDING, self.queue)[0]:
                print(
                    f'pgcombine: queue "{self.queue}" has pending updates, which are not in this frame: a worker '
                    f"combines them, or pgcombine drain {self.queue}",
                    file=sys.stderr,
                    flush=True,
                )


def _fits(value: Any, given: pa.DataType) -> bool:
    import pyarrow as pa

    try:
        pa.array([value], type=given)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):
        return False
    return True
