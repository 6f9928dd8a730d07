"""The initial load of an empty queue's values from a frame, in parallel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgcombine.spark.errors import explained
from pgcombine.spark.jobs import described
from pgcombine.spark.target import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def initialize(df: DataFrame, queue: str, dsn: str | None = None) -> None:
    """Load the rows of ``df``, one for each key, as the values of an empty queue. Observers don't see them as changes.

    ``dsn`` is the database; by default the environment names it (``PGCOMBINE_DSN``, else libpq's ``PG*`` variables).
    Tasks COPY in parallel into a table, the stage. One transaction moves the rows into the values. Rows that meet the
    queue's condition ``delete_when`` or ``expire_when`` are left out. Raises PgCombineError if the load fails, for
    example because the queue isn't empty or a key comes twice.
    """
    from pgcombine.spark.startup import register

    register(df.sparkSession)
    with explained(), described(df.sparkSession, queue):
        writer = df.write.format("pgcombine").option("queue", queue).option("dsn", dsn or Target.of(None).conninfo)
        writer.option("mode", "initialize").mode("append").save()
