"""Spark frames of phrase counts. This module imports PySpark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import functions as F

from pgcombine.phrasecount.tokens import summed

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
_PER_SLICE = 2000  # approximate limit of items in a slice
_BATCH_PHRASES = 25_000  # number of phrases that a task holds in memory


def slices(spark: SparkSession, items: Sequence[T]) -> list[list[T]]:
    """Distribute ``items`` over slices of about equal size: four for each core, more for many items, fewer for few."""
    count = min(len(items), max(4 * spark.sparkContext.defaultParallelism, len(items) // _PER_SLICE))
    return [list(items[start::count]) for start in range(count)]


def counted(spark: SparkSession, counts: Sequence[Callable[[], Iterable[tuple[int, Counter[str]]]]]) -> DataFrame:
    """Return numbers (phrase, docs, total), whose sums are the counts of the phrases.

    ``counts`` has a function for each task. It yields the signs and the phrases of documents.
    """

    import pyarrow as pa

    def count(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            for number in batch.column(0).to_pylist():
                for docs, total in summed(counts[number](), _BATCH_PHRASES):
                    columns = list(docs), list(docs.values()), list(total.values())
                    yield pa.record_batch([*map(pa.array, columns, types)], names)

    names, types = ["phrase", "docs", "total"], [pa.string(), pa.int64(), pa.int64()]
    parts = spark.range(len(counts), numPartitions=max(1, len(counts)))
    return parts.mapInArrow(count, "phrase string, docs long, total long")


def differences(numbers: DataFrame) -> DataFrame:
    """Return updates (phrase, docs, total), one for each phrase, but none if both numbers are 0."""
    sums = numbers.groupBy("phrase").agg(F.sum("docs").alias("docs"), F.sum("total").alias("total"))
    return sums.where("docs <> 0 or total <> 0")
