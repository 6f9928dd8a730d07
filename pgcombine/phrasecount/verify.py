"""Recount a directory from scratch and compare all values, both ways.

The recount reads the files again, forms the phrases in Python (the run does so in Spark's SQL) and uses nothing
that the run stored about this directory. Documents that only other directories hold are taken as stored.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING
from uuid import uuid4

from pgcombine.database import Connection
from pgcombine.phrasecount.scan import Scan, Stored
from pgcombine.spark.stage import write_stage
from pgcombine.spark.target import Target
from pgcombine.sqlfiles import query

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXAMPLES = 5


@dataclass
class Verification:
    """``documents`` and ``phrases`` were recounted; ``mismatches`` phrases differ, some are ``examples``:
    (phrase, docs, total, recounted docs, recounted total), None where a side lacks the phrase."""

    documents: int
    phrases: int
    mismatches: int
    examples: list[tuple[str, int | None, int | None, int | None, int | None]] = field(default_factory=list)


def verify(
    spark: SparkSession, target: Target, scan: Scan, paths: list[str], work: Connection, sink: str
) -> Verification:
    """Compare ``pgcombine.phrases_values`` with a recount of ``paths`` and of other directories' documents.

    To be called with the run's lock held and the queue drained.
    """
    from pgcombine.phrasecount.counting import recounted

    lines, documents = _lines(spark, scan, paths, work)
    load = uuid4()
    write_stage(recounted(lines), ("phrasecount", "difference"), target, load, sink=sink)
    work.execute("analyze phrasecount.difference")
    found = work.execute(query("phrasecount_mismatches"), {"load": load, "examples": EXAMPLES}).fetchall()
    counted = work.execute("select count(*) from phrasecount.difference_once where load = %s", (load,)).fetchone()
    assert counted is not None
    return Verification(
        documents=documents,
        phrases=int(counted[0]),
        mismatches=found[0][-1] if found else 0,
        examples=[row[:-1] for row in found],
    )


def _lines(spark: SparkSession, scan: Scan, paths: list[str], work: Connection) -> tuple[DataFrame, int]:
    """The phrases of all documents, each once: (document number, phrases one a line), and how many they are."""
    from pgcombine.phrasecount.counting import frame_of, slices

    schema = "document int, phrases string"
    batches = slices(spark, paths)
    seen = spark.sparkContext.parallelize(batches, max(1, len(batches))).flatMap(scan.documents)
    holder = {document: path for path, document in seen.toLocalIterator()}
    stored = [
        document
        for (document,) in work.execute(query("phrasecount_other_documents"), {"directory": scan.directory})
        if document not in holder
    ]
    on_disk = [(number, path, document) for number, (document, path) in enumerate(holder.items())]
    elsewhere = list(enumerate(stored, start=len(on_disk)))
    lines = frame_of(spark, slices(spark, on_disk), scan.phrases, schema)
    if elsewhere:
        reader = Stored(scan.conninfo)
        lines = lines.union(frame_of(spark, slices(spark, elsewhere), reader.phrases, schema))
    return lines, len(on_disk) + len(elsewhere)
