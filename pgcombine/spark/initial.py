"""The initial load of an empty queue's values from a frame, in parallel."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pgcombine.spark.staged import staged

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def initialize(df: DataFrame, queue: str, dsn: str | None = None) -> None:
    """Load the rows of ``df``, one for each key, as the values of an empty queue. Observers don't see them as changes.

    ``dsn`` is the database; by default the environment names it (``PGCOMBINE_DSN``, else libpq's ``PG*`` variables).
    Tasks COPY in parallel into a table, the stage. One transaction moves the rows into the values. Rows that meet the
    queue's condition ``delete_when`` or ``expire_when`` are left out. Raises PgCombineError if the load fails, for
    example because the queue isn't empty or a key comes twice.
    """
    with staged(df, queue, dsn, initial=True) as rows:
        rows.commit()
