"""Writing a frame with Spark's JDBC writer into the stage of a load, which is a table for the load's rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

from pgcombine.errors import ConfigError, InvalidUpdateError
from pgcombine.queue.status import Column
from pgcombine.spark.columns import JULIAN, not_utf8
from pgcombine.spark.options import plain
from pgcombine.spark.target import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

DEFAULTS = {
    "reWriteBatchedInserts": "true",  # batches become inserts of many rows
    "batchsize": "10000",
    "isolationLevel": "READ_COMMITTED",
    "stringtype": "unspecified",  # the server converts text to the type of the column (uuid, jsonb, …)
}
_OTHERS = ("numPartitions", "queryTimeout", "runId", "preaggregate")
# in the message of a Spark error, this makes explained() raise InvalidUpdateError
_REFUSED = f"{InvalidUpdateError.__module__}.{InvalidUpdateError.__name__}: "
# settings of Spark's writer that a caller can't give
_OURS = {"dbtable", "query", "url", "driver", "user", "password", "truncate", "createtableoptions"}


def fill(df: DataFrame, columns: Sequence[Column], table: str, target: Target, settings: Mapping[str, str]) -> None:
    """Write the rows of ``df``, with the numbers of their partitions, into the stage ``table``."""
    from pyspark.sql import functions as F

    assert target.url is not None
    staged = _as_text(df, {column.name: column for column in columns})
    # "*", since names in a list would need quotes, and names that differ only by case would be ambiguous
    staged = staged.select("*", F.spark_partition_id().alias("pgcombine_part"))
    writer = staged.write.mode("append").options(**settings)
    writer.jdbc(target.url, f'pgcombine."{table}"', properties=target.properties)


def refuse_case(spark: SparkSession, columns: Sequence[Column], queue: str) -> None:
    """Raise ConfigError if Spark's writer would confuse two columns of the queue."""
    lower = [column.name.lower() for column in columns]
    alike = ", ".join(f'"{column.name}"' for column in columns if lower.count(column.name.lower()) > 1)
    if alike and spark.conf.get("spark.sql.caseSensitive") != "true":
        raise ConfigError(
            f'queue "{queue}" has {alike}, which Spark\'s JDBC writer takes for one column: set '
            'spark.sql.caseSensitive to "true", or use df.write.format("pgcombine")'
        )


def _as_text(df: DataFrame, columns: Mapping[str, Column]) -> DataFrame:
    """Return the frame, with text in place of what Java would change, and with the checks of :func:`_valid`.

    Java's dates and times before 1582-10-15 are of another calendar, and its times are in the zone of its machine, in
    which summer time may skip an hour. PostgreSQL would round a floating-point parameter for a column ``numeric``.
    Spark's writer doesn't support arrays of some types.
    """
    from pyspark.sql import types as t

    changed = (t.ArrayType, t.DateType, t.TimestampType, t.TimestampNTZType, t.FloatType, t.DoubleType)
    numbered = df.toDF(*(f"c{number}" for number in range(len(df.schema.fields))))
    chosen = []
    for field, given in zip(numbered.schema.fields, df.schema.fields, strict=True):
        one = _valid(numbered[field.name], given, key=columns[given.name].role == "key")
        chosen.append((_text(one, given.dataType) if isinstance(given.dataType, changed) else one).alias(given.name))
    return numbered.select(*chosen)


def _valid(one: Any, field: Any, *, key: bool) -> Any:
    """Return the column with checks: a null key, or text that isn't UTF-8, fails the task with a message."""
    from pyspark.sql import functions as F
    from pyspark.sql import types as t

    if key:
        null = F.lit(f'{_REFUSED}the key column "{field.name}" is null: leave such rows out')
        one = F.when(one.isNull(), F.raise_error(null)).otherwise(one)
    if isinstance(field.dataType, t.StringType):
        broken, wrong = ~F.is_valid_utf8(one), one
    elif isinstance(field.dataType, t.ArrayType) and isinstance(field.dataType.elementType, t.StringType):
        broken = F.exists(one, lambda e: ~F.is_valid_utf8(e))
        wrong = F.element_at(F.filter(one, lambda e: ~F.is_valid_utf8(e)), 1)
    else:
        return one
    before, after = f"{_REFUSED}{not_utf8(field.name, chr(0))}".split(chr(0))
    return F.when(broken, F.raise_error(F.concat(F.lit(before), F.hex(wrong), F.lit(after)))).otherwise(one)


def _text(one: Any, kind: Any) -> Any:
    from pyspark.sql import functions as F
    from pyspark.sql import types as t

    if isinstance(kind, t.ArrayType):
        quoted = F.transform(
            one, lambda e: F.coalesce(F.concat(F.lit('"'), _text(e, kind.elementType), F.lit('"')), F.lit("NULL"))
        )
        return F.concat(F.lit("{"), F.array_join(quoted, ","), F.lit("}"))
    if isinstance(kind, t.BinaryType):
        return F.concat(F.lit(r"\\x"), F.hex(one))
    if isinstance(kind, t.StringType):
        return F.replace(F.replace(one, F.lit("\\"), F.lit(r"\\")), F.lit('"'), F.lit(r"\""))
    if isinstance(kind, t.DateType):
        return _julian(one)
    if isinstance(kind, t.TimestampType):
        in_utc = F.expr("timestamp_ntz'1970-01-01 00:00:00'") + F.unix_micros(one) * F.expr(
            "interval '0.000001' second"
        )
        return F.concat(_text(in_utc, t.TimestampNTZType()), F.lit("Z"))
    if isinstance(kind, t.TimestampNTZType):
        return F.concat(_julian(one.cast("date")), F.lit(" "), F.substring_index(one.cast("string"), " ", -1))
    return one.cast("string")


def _julian(day: Any) -> Any:
    """Return a date as PostgreSQL reads it in all eras: J and its Julian day. Spark's year 0 is 1 BC."""
    from pyspark.sql import functions as F

    return F.concat(F.lit("J"), F.unix_date(day) + JULIAN)


def settings_of(options: Mapping[str, object]) -> dict[str, str]:
    """Return the settings of Spark's writer: the given ones, and the defaults of others.

    Known names are accepted in any case, with or without ``_``. An unknown name is passed on, since it may be a setting
    of the driver. Raises ConfigError for an unknown name that resembles a known one, and for a setting that can't be
    used.
    """
    known = {plain(name): name for name in (*DEFAULTS, *_OTHERS)}
    given = {}
    for name, value in options.items():
        near = get_close_matches(plain(name), known, n=1, cutoff=0.8)
        if near and near[0] != plain(name):
            raise ConfigError(f'write_jdbc has no option "{name}": did you mean "{known[near[0]]}"?')
        given[known.get(plain(name), name)] = str(value).lower() if isinstance(value, bool) else str(value)
    if given.get("isolationLevel", "").upper() == "NONE":
        raise ConfigError(
            "isolationLevel=NONE would commit each batch of a partition separately, and a repeated task would "
            "write its rows twice: leave out isolationLevel"
        )
    if wrong := sorted(name for name in given if name.lower() in _OURS):
        raise ConfigError(f"{', '.join(wrong)} can't be given to write_jdbc: leave out what pgcombine sets itself")
    return {**DEFAULTS, **given}
