"""The check of a frame's columns against a queue's columns, and the Spark types for reading a queue's columns.

Columns match by their exact names. A frame needs the key columns. A value column that it lacks takes its default. The
sizes of numbers aren't compared: the write of a value that is too large fails. A decimal type doesn't fit if
it has more digits after the point than the column has, since PostgreSQL would round its values silently. A column whose
type has no counterpart in Spark (uuid, jsonb, enums, …) takes text. An array column takes an array or text.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from pgcombine.errors import ConfigError, InvalidUpdateError
from pgcombine.queue.status import Column

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import DataType, StructType

JULIAN = 2_440_588  # the Julian day of 1970-01-01
_INTEGERS = {"smallint", "integer", "bigint"}


def check_frame(columns: list[Column], schema: StructType, queue: str) -> list[str]:
    """Return the names of the frame's columns. Raises InvalidUpdateError if they don't fit the queue."""
    there = {column.name: column for column in columns}
    names: list[str] = schema.fieldNames()
    wrong = []
    if extra := [name for name in dict.fromkeys(names) if name not in there]:
        wrong.append(f"it has {_listed(extra)}, which isn't in the queue (its columns: {_listed(there)})")
    if missing := [column.name for column in columns if column.role == "key" and column.name not in names]:
        wrong.append(f"it lacks the key column {_listed(missing)}")
    if twice := [name for name in there if names.count(name) > 1]:
        wrong.append(f"it has {_listed(twice)} more than once")
    for field in schema.fields:
        column = there.get(field.name)
        if column and not _fits(field.dataType, column):
            wrong.append(f'"{field.name}" is {field.dataType.simpleString()}, but {column.type} in the queue')
        elif column and column.scale is not None and _scale(field.dataType) > column.scale:
            wrong.append(
                f'"{field.name}" is {field.dataType.simpleString()}, and {column.type} in the queue would round it to '
                f"{column.scale} digits after the point: round or cast it in the job"
            )
    if wrong:
        raise InvalidUpdateError(f'the frame doesn\'t fit queue "{queue}": {"; ".join(wrong)}', queue=queue)
    return names


def not_utf8(column: str, content: str) -> str:
    """Return what a message says about text that isn't UTF-8. ``content`` is the text's bytes in hexadecimal."""
    return (
        f'column "{column}" holds text that isn\'t UTF-8, the bytes {content}: decode it in the job (decode), '
        "or repair it (make_valid_utf8)"
    )


def spark_type(column: Column) -> DataType:
    """Return the Spark type for reading a column. Types that aren't listed here are read as StringType."""
    from pyspark.sql import types as t

    simple: dict[str, Callable[[], DataType]] = {
        "smallint": t.ShortType,
        "integer": t.IntegerType,
        "bigint": t.LongType,
        "real": t.FloatType,
        "double precision": t.DoubleType,
        "boolean": t.BooleanType,
        "date": t.DateType,
        "timestamp without time zone": t.TimestampNTZType,
        "timestamp with time zone": t.TimestampType,
        "bytea": t.BinaryType,
    }
    if column.base == "numeric":
        one: DataType = t.DecimalType(*(_numeric(column.type) or (38, 18)))
    else:
        one = simple.get(column.base, t.StringType)()
    return t.ArrayType(one) if column.is_array else one


def arrow_type(given: Any) -> pa.DataType:
    """Return the Arrow type for values of a Spark type. Raises ConfigError for a type that isn't listed here."""
    import pyarrow as pa
    from pyspark.sql import types as t

    if isinstance(given, t.ArrayType):
        return pa.list_(arrow_type(given.elementType))
    if isinstance(given, t.DecimalType):
        return pa.decimal128(given.precision, given.scale)
    types: dict[type, Callable[[], pa.DataType]] = {
        t.StringType: pa.string,
        t.ByteType: pa.int8,
        t.ShortType: pa.int16,
        t.IntegerType: pa.int32,
        t.LongType: pa.int64,
        t.FloatType: pa.float32,
        t.DoubleType: pa.float64,
        t.BooleanType: pa.bool_,
        t.DateType: pa.date32,
        t.TimestampType: lambda: pa.timestamp("us", tz="UTC"),
        t.TimestampNTZType: lambda: pa.timestamp("us"),
        t.BinaryType: pa.binary,
    }
    if type(given) not in types:
        raise ConfigError(f"a queue's column can't be read as {given.simpleString()}: cast it after load()")
    return types[type(given)]()


def _fits(given: Any, column: Column) -> bool:
    from pyspark.sql import types as t

    if isinstance(given, t.ArrayType):
        return column.is_array and _element_fits(given.elementType, column.base)
    if column.is_array:
        return isinstance(given, t.StringType)
    return _element_fits(given, column.base)


def _element_fits(given: Any, base: str) -> bool:
    from pyspark.sql import types as t

    if base in _INTEGERS:
        return isinstance(given, t.IntegralType) or (isinstance(given, t.DecimalType) and given.scale == 0)
    taken: dict[str, type | tuple[type, ...]] = {
        "money": (t.IntegralType, t.DecimalType),
        **dict.fromkeys(("numeric", "real", "double precision"), t.NumericType),
        "boolean": t.BooleanType,
        "date": t.DateType,
        "timestamp without time zone": (t.TimestampNTZType, t.DateType),
        "timestamp with time zone": t.TimestampType,
        "bytea": t.BinaryType,
    }
    return isinstance(given, taken.get(base, (t.StringType, t.CharType, t.VarcharType)))


def _scale(given: Any) -> float:
    """Return the digits after the point of a decimal or integer type, or of an array of it. Others have -inf."""
    from pyspark.sql import types as t

    if isinstance(given, t.ArrayType):
        return _scale(given.elementType)
    if isinstance(given, t.DecimalType):
        return float(given.scale)
    return 0 if isinstance(given, t.IntegralType) else -math.inf


def _numeric(type_name: str) -> tuple[int, int] | None:
    """Return precision and scale of ``numeric(p,s)``, or None if the type has none or they don't fit DecimalType."""
    inside = type_name.partition("(")[2].partition(")")[0].split(",")
    if not inside[0]:
        return None
    precision, scale = int(inside[0]), int(inside[1]) if len(inside) > 1 else 0
    return (precision, scale) if 0 <= scale <= precision <= 38 else None


def _listed(names: Any) -> str:
    return ", ".join(f'"{name}"' for name in names)
