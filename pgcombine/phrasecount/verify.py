"""Recounts a directory from scratch, and finds the phrases whose recount differs from the value.

The recount reads the files again, and forms the phrases in Python (a run forms them in Spark's SQL). Spark joins the
recount with the values. Documents that only other directories have are read from the database. All files are read for
their hashes. Then one file of each document is read for its phrases. If that file has changed meanwhile, the task
fails.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pgcombine.phrasecount.database import Connection, query
from pgcombine.phrasecount.scan import Scan, Stored
from pgcombine.phrasecount.state import QUEUE
from pgcombine.spark import register

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

EXAMPLES = 5


@dataclass
class Verification:
    """The result of a recount: the numbers of documents and phrases recounted, and of phrases that differ.

    ``examples`` are some of the ``mismatches``: (phrase, docs, total, recounted docs, recounted total), with None where
    a side lacks the phrase.
    """

    documents: int
    phrases: int
    mismatches: int
    examples: list[tuple[str, int | None, int | None, int | None, int | None]] = field(default_factory=list)


def verify(spark: SparkSession, scan: Scan, paths: list[str], work: Connection) -> Verification:
    """Compare the values of queue ``phrases`` with a recount of ``paths`` and of other directories' documents.

    The caller holds the run's lock and has drained the queue.
    """
    from pyspark.sql import functions as F

    from pgcombine.phrasecount.counting import recounted

    register(spark)
    lines, documents = _lines(spark, scan, paths, work)
    recount = recounted(lines).withColumnsRenamed({"docs": "recounted_docs", "total": "recounted_total"})
    values = spark.read.format("pgcombine").options(queue=QUEUE, dsn=scan.conninfo).load()
    both = values.join(recount, "phrase", "full")
    same = F.expr("docs <=> recounted_docs and total <=> recounted_total")
    found = both.agg(F.count("recounted_docs"), F.count_if(~same)).first()
    assert found is not None
    phrases, mismatches = found
    examples = both.where(~same).orderBy("phrase").limit(EXAMPLES).collect() if mismatches else []
    return Verification(documents, phrases, mismatches, [tuple(row) for row in examples])


def _lines(spark: SparkSession, scan: Scan, paths: list[str], work: Connection) -> tuple[DataFrame, int]:
    """Return a frame of document numbers and lines of phrases, each document once, and the number of documents."""
    from pgcombine.phrasecount.counting import frame_of, slices

    schema = "document int, phrases string"
    batches = slices(spark, paths)
    seen = spark.sparkContext.parallelize(batches, max(1, len(batches))).flatMap(scan.documents)
    holder = {document: path for path, document in seen.collect()}
    stored = [
        document
        for (document,) in work.execute(query("other_documents"), {"directory": scan.directory})
        if document not in holder
    ]
    on_disk = [(number, path, document) for number, (document, path) in enumerate(holder.items())]
    elsewhere = list(enumerate(stored, start=len(on_disk)))
    lines = frame_of(spark, slices(spark, on_disk), scan.phrases, schema)
    if elsewhere:
        reader = Stored(scan.conninfo)
        lines = lines.union(frame_of(spark, slices(spark, elsewhere), reader.phrases, schema))
    return lines, len(on_disk) + len(elsewhere)
