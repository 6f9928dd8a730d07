"""Recounts a directory from scratch, and finds the phrases whose recount differs from the value.

Spark joins the recount with the values. Documents that only other directories have are read from the database. All
files are read for their hashes. Then one file of each document is read for its phrases. If that file has changed
meanwhile, the task fails.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
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

    register(spark)
    recount, documents = _recount(spark, scan, paths, work)
    recount = recount.withColumnsRenamed({"docs": "recounted_docs", "total": "recounted_total"})
    values = spark.read.format("pgcombine").options(queue=QUEUE, dsn=scan.conninfo).load()
    both = values.join(recount, "phrase", "full")
    same = F.expr("docs <=> recounted_docs and total <=> recounted_total")
    found = both.agg(F.count("recounted_docs"), F.count_if(~same)).first()
    assert found is not None
    phrases, mismatches = found
    examples = both.where(~same).orderBy("phrase").limit(EXAMPLES).collect() if mismatches else []
    return Verification(documents, phrases, mismatches, [tuple(row) for row in examples])


def _recount(spark: SparkSession, scan: Scan, paths: list[str], work: Connection) -> tuple[DataFrame, int]:
    """Return a frame of phrases with their counts over all documents, and the number of documents."""
    from pgcombine.phrasecount.counting import counted, differences, slices

    batches = slices(spark, paths)
    seen = spark.sparkContext.parallelize(batches, max(1, len(batches))).flatMap(scan.documents)
    holder = {document: path for path, document in seen.collect()}
    stored = [
        document
        for (document,) in work.execute(query("other_documents"), {"directory": scan.directory})
        if document not in holder
    ]
    on_disk = slices(spark, [(path, document) for document, path in holder.items()])
    elsewhere = slices(spark, stored)
    counts = [partial(scan.counted, part) for part in on_disk]
    counts += [partial(Stored(scan.conninfo).counted, part) for part in elsewhere]
    return differences(counted(spark, counts)), len(holder) + len(stored)
