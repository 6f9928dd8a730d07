"""COPY of Arrow batches into a table."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg import sql

from pgcombine.database.connect import Connection
from pgcombine.errors import InvalidUpdateError, translated
from pgcombine.spark.columns import not_utf8

if TYPE_CHECKING:
    import pyarrow as pa


def copy_batches(
    connection: Connection,
    table: sql.Composable,
    batches: Iterable[pa.RecordBatch],
    *,
    queue: str,
    keys: Sequence[str],
) -> int:
    """COPY the batches into ``table``, as CSV. Returns the number of rows.

    Raises InvalidUpdateError for a row that doesn't fit the queue.
    """
    count = 0
    batches = iter(batches)
    first = next(batches, None)
    if first is None:
        return 0
    names = sql.SQL(", ").join(map(sql.Identifier, first.schema.names))
    statement = sql.SQL("copy {} ({}) from stdin (format csv)").format(table, names)
    with translated(queue=queue), connection.cursor() as cursor:
        try:
            with cursor.copy(statement) as stream:
                for batch in chain([first], batches):
                    refuse_unfit(batch, queue, keys)
                    stream.write(csv_of(batch))
                    count += batch.num_rows
        except (psycopg.DataError, psycopg.IntegrityError, psycopg.errors.ProgramLimitExceeded) as error:
            where = error.diag.context or error.diag.message_detail
            raise InvalidUpdateError(
                f'a row doesn\'t fit queue "{queue}": {error.diag.message_primary or error} ({where})',
                queue=queue,
                sqlstate=error.sqlstate,
            ) from error
    return count


def refuse_unfit(batch: pa.RecordBatch, queue: str, keys: Sequence[str]) -> None:
    """Raise InvalidUpdateError for a null key, and for text that isn't UTF-8."""
    _refuse_null_keys(batch, queue, keys)
    _refuse_broken_text(batch, queue)


def key_texts(batch: pa.RecordBatch, keys: Sequence[str]) -> list[str]:
    """Return the values of each key column as the text of a PostgreSQL array."""
    return [_array_text(_plain(batch.column(key)).cast("string").to_pylist()) for key in keys]


def csv_of(batch: pa.RecordBatch) -> memoryview:
    """Return the batch as CSV for COPY. Null is an empty field without quotes."""
    import pyarrow as pa
    from pyarrow import csv

    columns = [_plain(column) for column in batch.columns]
    buffer = io.BytesIO()
    csv.write_csv(
        pa.record_batch(columns, names=batch.schema.names),
        buffer,
        csv.WriteOptions(include_header=False, quoting_style="needed"),
    )
    return buffer.getbuffer()


def _plain(column: pa.Array) -> pa.Array:
    """Convert a column so that PostgreSQL reads the same values from the CSV that Arrow writes."""
    import pyarrow as pa

    kind = column.type
    if pa.types.is_list(kind):
        if pa.types.is_temporal(kind.value_type):  # as text, since Python's dates have fewer years
            in_utc = column.cast(pa.list_(_utc(kind.value_type)))
            texts = in_utc.cast(pa.list_(pa.string())).to_pylist()
            return pa.array([None if one is None else _array_text([*map(_era, one)]) for one in texts], pa.string())
        return pa.array([None if one is None else _array_text(one) for one in column.to_pylist()], pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([None if one is None else f"\\x{one.hex()}" for one in column.to_pylist()], pa.string())
    if pa.types.is_temporal(kind):
        column = column.cast(_utc(kind))
        if _before_christ(column):
            return pa.array([_era(one) for one in column.cast(pa.string()).to_pylist()], pa.string())
    return column


def _utc(kind: pa.DataType) -> pa.DataType:
    """Replace the zone of a timestamp's type by UTC. In other zones, Arrow's text lacks the seconds of old offsets."""
    import pyarrow as pa

    return pa.timestamp(kind.unit, "UTC") if pa.types.is_timestamp(kind) and kind.tz else kind


def _before_christ(column: pa.Array) -> bool:
    import pyarrow as pa
    import pyarrow.compute as pc

    days = pc.min(column.cast(pa.date32())).cast(pa.int32()).as_py()
    return days is not None and days < _FIRST_DAY


def _era(text: str | None) -> str | None:
    """Convert Arrow's text of a date or time for PostgreSQL, which writes 0001 BC for Arrow's year 0000."""
    if text is None or not text.startswith(("-", "0000-")):
        return text
    year, dash, rest = text.lstrip("-").partition("-")
    return f"{int(year) + 1:04}{dash}{rest} BC"


_FIRST_DAY = -719_162  # 0001-01-01, counted in days from 1970-01-01
_ELEMENT: dict[type, Callable[[Any], str]] = {
    bytes: lambda one: f'"\\\\x{one.hex()}"',
    bool: lambda one: "true" if one else "false",
    int: str,
    float: repr,
}


def _array_text(elements: list[Any]) -> str:
    def text(one: Any) -> str:
        if one is None:
            return "NULL"
        known = _ELEMENT.get(type(one))
        if known:
            return known(one)
        escaped = str(one).replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'

    return "{" + ",".join(map(text, elements)) + "}"


def _refuse_null_keys(batch: pa.RecordBatch, queue: str, keys: Sequence[str]) -> None:
    for name in keys:
        column = batch.column(name)
        if column.null_count:
            row = next(number for number in range(len(column)) if not column[number].is_valid)
            raise InvalidUpdateError(
                f'a row doesn\'t fit queue "{queue}": its key "{name}" is null: {batch.slice(row, 1).to_pylist()[0]}',
                queue=queue,
            )


def _refuse_broken_text(batch: pa.RecordBatch, queue: str) -> None:
    """Raise InvalidUpdateError for text that isn't UTF-8. Spark's strings can have any bytes."""
    import pyarrow as pa

    for name, column in zip(batch.schema.names, batch.columns, strict=True):
        try:
            column.validate(full=True)
        except pa.ArrowInvalid:
            texts = column.flatten() if pa.types.is_list(column.type) else column
            for content in texts.cast(pa.binary()).to_pylist():
                if content is not None and content.decode(errors="replace").encode() != content:
                    message = f'a row doesn\'t fit queue "{queue}": {not_utf8(name, content.hex().upper())}'
                    raise InvalidUpdateError(message, queue=queue) from None
            raise
