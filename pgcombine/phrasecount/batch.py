"""A plain Spark batch job that counts the same as phrasecount, from scratch, and writes the counts into Parquet files.

``python -m pgcombine.phrasecount.batch DIR OUTPUT [EXCLUDED…]`` runs the job, and prints its durations and the number
of phrases as JSON. The benchmark compares phrasecount with this job.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from pgcombine.phrasecount import files
from pgcombine.phrasecount.corpus import MAX_BYTES
from pgcombine.phrasecount.session import borrowed_session
from pgcombine.phrasecount.tokens import Document


def read(batch: list[str]) -> Iterator[tuple[str, int, int, str]]:
    """Yield (document hash, number of the chunk, sign 1, chunk) for each chunk of the files that can be counted."""
    for path in batch:
        try:
            document = Document(files.decode(files.read_file(path, MAX_BYTES)))
        except files.Refused:
            continue
        chunks = list(document.chunks())
        for seq, chunk in enumerate(chunks):
            yield document.hash(), seq, 1, chunk


def main(root: str, output: str, exclude: frozenset[str]) -> dict[str, float]:
    """Write the phrase counts of the files below ``root`` to the Parquet directory ``output``.

    Returns the durations in seconds, and the number of phrases.
    """
    from pgcombine.phrasecount.counting import differences, frame_of, slices

    started = time.monotonic()
    with borrowed_session("plain batch") as spark:
        ready = time.monotonic()
        paths, _ = files.list_files(Path(root), exclude)
        batches = slices(spark, [os.path.join(root, path) for path in paths])
        chunks = frame_of(spark, batches, read, "document string, seq int, sign int, tokens string")
        differences(chunks.dropDuplicates(["document", "seq"])).write.parquet(output)
        done = time.monotonic()
        phrases = spark.read.parquet(output).count()
    return {"session_seconds": ready - started, "seconds": done - started, "phrases": phrases}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], sys.argv[2], frozenset(sys.argv[3:]))))
