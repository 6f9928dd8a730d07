"""A stream for the tests: words of text files, counted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pgcombine.spark import foreach_batch


class Stream:
    """Counts words of the files in ``directory`` in the queue wc.

    ``sink`` is ``copy`` for the format pgcombine, ``jdbc`` for foreach_batch with the sink jdbc, and ``each`` for
    foreach_batch with the sink copy.
    """

    def __init__(self, spark: Any, dsn: str, directory: Path, sink: str, **options: str) -> None:
        self.spark, self.dsn, self.sink, self.options = spark, dsn, sink, options
        self.by = "jdbc" if sink == "jdbc" else "copy"  # the sink of foreach_batch
        self.files, self.checkpoint = directory / "files", directory / "checkpoint"
        self.files.mkdir(parents=True, exist_ok=True)
        self.number = 0

    def add(self, *lines: str) -> None:
        self.number += 1
        (self.files / f"{self.number}.txt").write_text("\n".join(lines) + "\n")

    def start(
        self, parts: int = 2, write: Callable[[Any, int], None] | None = None, where: str = "true", **options: str
    ) -> Any:
        """Begin to process the files that the stream hasn't processed."""
        lines = self.spark.readStream.text(str(self.files))
        words = lines.selectExpr("explode(split(value, ' ')) as word", "1L as n").where(where).repartition(parts)
        writer = words.writeStream.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True)
        if self.sink != "copy":
            writer = writer.foreachBatch(write or foreach_batch("wc", self.dsn, sink=self.by, **self.options))
        else:
            writer = writer.format("pgcombine").options(queue="wc", dsn=self.dsn, **self.options, **options)
        return writer.start()

    def run(self, parts: int = 2, write: Callable[[Any, int], None] | None = None, **options: str) -> None:
        """Process the files that the stream hasn't processed: the words for which ``where`` is true."""
        query = self.start(parts, write, **options)
        try:
            query.awaitTermination()
        finally:
            query.stop()

    def noted(self) -> list[str]:
        """Return the numbers of the batches that Spark has recorded as complete."""
        return sorted(file.name for file in (self.checkpoint / "commits").glob("[0-9]*"))

    def forget_commit(self, batch: int) -> None:
        """Delete Spark's record that the batch is complete, as if the driver had been killed before writing it."""
        for file in (self.checkpoint / "commits").glob(f"*{batch}*"):
            file.unlink()
