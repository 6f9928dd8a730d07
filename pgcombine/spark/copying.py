"""COPY of Arrow batches into a table."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from psycopg import sql

from pgcombine.database.connect import Connection
from pgcombine.errors import InvalidUpdateError, translated
from pgcombine.spark.columns import JULIAN, not_utf8
from pgcombine.spark.loads import refused

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
    with (
        translated(queue=queue),
        connection.cursor() as cursor,
        refused(queue, context=True),
        cursor.copy(statement) as stream,
    ):
        for batch in chain([first], batches):
            refuse_unfit(batch, queue, keys)
            stream.write(csv_of(batch))
            count += batch.num_rows
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
            return pa.array([None if one is None else _array_text(one) for one in _julian(column)], pa.string())
        if pa.types.is_floating(kind.value_type):  # as text, since Python has only numbers of double precision
            column = column.cast(pa.list_(pa.string()))
        return pa.array([None if one is None else _array_text(one) for one in column.to_pylist()], pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return pa.array([None if one is None else f"\\x{one.hex()}" for one in column.to_pylist()], pa.string())
    if pa.types.is_temporal(kind):
        if not _ordinary(column):
            return pa.array(_julian(column), pa.string())
        if pa.types.is_timestamp(kind) and kind.tz:  # in other zones, Arrow's text lacks the seconds of old offsets
            return column.cast(pa.timestamp(kind.unit, "UTC"))
    return column


def _ordinary(column: pa.Array) -> bool:
    """Whether all dates are from the year 1 to the year 9999, for which Arrow writes what PostgreSQL reads."""
    import pyarrow as pa
    import pyarrow.compute as pc

    ends = pc.min_max(column.cast(pa.date32()))
    first, last = (ends[name].cast(pa.int32()).as_py() for name in ("min", "max"))
    return first is None or (first >= _FIRST_DAY and last <= _LAST_DAY)


def _julian(column: pa.Array) -> list[Any]:
    """Return dates and times as PostgreSQL reads them in all eras: J and the Julian day. Lists give lists."""
    import pyarrow as pa
    import pyarrow.compute as pc

    kind = column.type
    if pa.types.is_list(kind):
        flat = iter(_julian(column.flatten()))
        lengths = pc.list_value_length(column).to_pylist()
        return [None if length is None else list(islice(flat, length)) for length in lengths]
    if pa.types.is_date(kind):
        days = column.cast(pa.date32()).cast(pa.int32()).to_pylist()
        return [None if day is None else f"J{day + JULIAN}" for day in days]

    def text(moment: int) -> str:
        day, rest = divmod(moment, 86_400_000_000)
        second, micros = divmod(rest, 1_000_000)
        time = f"{second // 3600:02}:{second // 60 % 60:02}:{second % 60:02}.{micros:06}"
        return f"J{day + JULIAN} {time}{'Z' if kind.tz else ''}"

    moments = column.cast(pa.timestamp("us", kind.tz)).cast(pa.int64()).to_pylist()
    return [None if moment is None else text(moment) for moment in moments]


# days from 1970-01-01 to 0001-01-01 and to 9999-12-31
_FIRST_DAY, _LAST_DAY = -719_162, 2_932_896
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
