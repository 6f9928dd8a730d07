"""Descriptions of a load's jobs, for Spark's UI."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_DESCRIPTION = "spark.job.description"


@contextmanager
def described(spark: SparkSession, queue: str, run_id: str | None = None) -> Iterator[None]:
    """Describe the Spark jobs of the block by the queue, and by the run or the stream's batch if there is one.

    Over Spark Connect this does nothing.
    """
    from pyspark.sql.utils import is_remote

    if is_remote():
        yield
        return
    context = spark.sparkContext
    before = context.getLocalProperty(_DESCRIPTION)
    batch = context.getLocalProperty("streaming.sql.batchId")
    of = f", run {run_id}" if run_id else f", batch {batch}" if batch else ""
    context.setLocalProperty(_DESCRIPTION, f'pgcombine: queue "{queue}"{of}')
    try:
        yield
    finally:
        context.setLocalProperty(_DESCRIPTION, before)
