"""Spark's own JDBC writer, set well, into the stage of a load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from pgcombine.errors import ConfigError
from pgcombine.spark.target import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DEFAULTS = {
    "reWriteBatchedInserts": "true",  # batches become inserts of many rows
    "batchsize": "10000",
    "isolationLevel": "READ_COMMITTED",
    "stringtype": "unspecified",  # text goes to uuid, jsonb and other columns as it is
}
_OURS = {"dbtable", "query", "url", "driver", "user", "password", "truncate", "createtableoptions"}


def fill(df: DataFrame, names: Sequence[str], table: str, target: Target, settings: Mapping[str, str]) -> None:
    """Write the columns ``names`` of ``df`` and each row's partition into a stage."""
    from pyspark.sql import functions as F

    assert target.url is not None
    staged = df.select(*(F.col(f"`{name}`") for name in names), F.spark_partition_id().alias("pgcombine_part"))
    writer = staged.write.mode("append").options(**settings)
    writer.jdbc(target.url, f'pgcombine."{table}"', properties=target.properties)


def settings_of(options: Mapping[str, object]) -> dict[str, str]:
    """The settings of Spark's writer: those given, else the defaults. ConfigError for one that can't be right."""
    given = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
    lower = {name.lower(): value for name, value in given.items()}
    if lower.get("isolationlevel", "").upper() == "NONE":
        raise ConfigError(
            "isolationLevel=NONE would commit each batch of a partition on its own, and a repeated task would write "
            "it again: leave it out"
        )
    if wrong := sorted(name for name in given if name.lower() in _OURS):
        raise ConfigError(f"{', '.join(wrong)} can't be given to write_jdbc: they follow from the queue and the DSN")
    return {**{name: value for name, value in DEFAULTS.items() if name.lower() not in lower}, **given}
