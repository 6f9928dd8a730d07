"""Spark frames of phrase counts. This module imports PySpark."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import functions as F

from pgcombine.phrasecount.tokens import MAX_PHRASE_BYTES, WIDTH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
_PER_SLICE = 2000  # approximate limit of items in a slice


def slices(spark: SparkSession, items: Sequence[T]) -> list[list[T]]:
    """Distribute ``items`` over slices of about equal size: four for each core, more for many items, fewer for few."""
    count = _slices(spark, len(items))
    return [list(items[start::count]) for start in range(count)]


def ranges(spark: SparkSession, last: int) -> list[tuple[int, int]]:
    """Split the numbers from 1 to ``last`` into ranges: (first number, last number).

    There are as many ranges as :func:`slices` makes slices of ``last`` items.
    """
    count = _slices(spark, last)
    return [(last * part // count + 1, last * (part + 1) // count) for part in range(count)]


def frame_of(spark: SparkSession, work: Sequence[T], read: Callable[[T], Iterable[object]], schema: str) -> DataFrame:
    """Return a frame with the rows that ``read`` yields for each element of ``work``. Each element gets a partition."""
    rows = spark.sparkContext.parallelize(work, max(1, len(work))).flatMap(read)
    return spark.createDataFrame(rows, schema, verifySchema=False)


def differences(chunks: DataFrame) -> DataFrame:
    """Return updates (phrase, docs, total) from chunks (document, sign int, tokens string).

    The sign is 1 for a document that is added to the counts, and -1 for one that is removed.
    Phrases that are too long for a key, and phrases whose ``docs`` and ``total`` are 0, are left out.
    """
    words = F.split("tokens", " ")
    return (
        # All chunks of a document go to one partition: moving chunks is cheaper than moving their phrases.
        chunks.repartition("document")
        .select("document", "sign", words.alias("words"))
        .where(F.size("words") >= WIDTH)
        .select(
            "document",
            "sign",
            F.explode(
                F.expr(
                    f"transform(sequence(1, size(words) - {WIDTH - 1}), i -> array_join(slice(words, i, {WIDTH}), ' '))"
                )
            ).alias("phrase"),
        )
        .where(F.expr(f"octet_length(phrase) <= {MAX_PHRASE_BYTES}"))
        .groupBy("document", "sign", "phrase")
        .agg(F.count("*").alias("n"))
        .groupBy("phrase")
        .agg(F.sum("sign").cast("bigint").alias("docs"), F.expr("sum(sign * n)").alias("total"))
        .where("docs <> 0 or total <> 0")
    )


def _slices(spark: SparkSession, items: int) -> int:
    cores: int = spark.sparkContext.defaultParallelism
    return min(items, max(4 * cores, items // _PER_SLICE))


def recounted(lines: DataFrame) -> DataFrame:
    """Return counts (phrase, docs, total) from rows (document int, phrases string with one phrase a line)."""
    return (
        lines.where("phrases <> ''")
        .select("document", F.explode(F.split("phrases", "\n")).alias("phrase"))
        .groupBy("document", "phrase")
        .agg(F.count("*").alias("n"))
        .groupBy("phrase")
        .agg(F.count("*").alias("docs"), F.sum("n").alias("total"))
    )
