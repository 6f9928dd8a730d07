"""Spark frames of phrase counts. Imports PySpark: for use where a session runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, TypeVar

from pyspark.sql import functions as F

from pgcombine.phrasecount.tokens import MAX_PHRASE_BYTES, WIDTH

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

T = TypeVar("T")
_PER_SLICE = 2000


def slices(spark: SparkSession, items: Sequence[T]) -> list[list[T]]:
    """``items`` dealt out evenly, several slices for each core and none too long."""
    count = _slices(spark, len(items))
    return [list(items[start::count]) for start in range(count)]


def ranges(spark: SparkSession, last: int) -> list[tuple[int, int]]:
    """The numbers 1 to ``last`` as ranges (first, last), as many as there would be slices."""
    count = _slices(spark, last)
    return [(last * part // count + 1, last * (part + 1) // count) for part in range(count)]


def frame_of(spark: SparkSession, work: Sequence[T], read: Callable[[T], Iterable[object]], schema: str) -> DataFrame:
    """A frame with the rows that ``read`` yields for each element of ``work``, one partition each."""
    rows = spark.sparkContext.parallelize(work, max(1, len(work))).flatMap(read)
    return spark.createDataFrame(rows, schema, verifySchema=False)


def differences(chunks: DataFrame) -> DataFrame:
    """Updates (phrase, docs, total) from chunks (document long, sign int, tokens string).

    Phrases too long to be a key are left out.
    """
    words = F.split("tokens", " ")
    return (
        # All chunks of a document in one partition: moving them is cheaper than moving their phrases.
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
    """Counts (phrase, docs, total) from lines (document int, phrases string: one a line)."""
    return (
        lines.where("phrases <> ''")
        .select("document", F.explode(F.split("phrases", "\n")).alias("phrase"))
        .groupBy("document", "phrase")
        .agg(F.count("*").alias("n"))
        .groupBy("phrase")
        .agg(F.count("*").alias("docs"), F.sum("n").alias("total"))
    )
