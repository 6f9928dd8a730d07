"""Frames whose rows are made by tasks that do, or suffer, something on the way."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

ROWS = 400  # a part
WORDS = 50
PARTS = 4
COUNTED = {f"w{n}": PARTS * ROWS // WORDS for n in range(WORDS)}


def frame(spark: Any, event: Callable[[int, int], None] | None = None, parts: int = PARTS) -> Any:
    """``PARTS * ROWS`` rows in so many parts; ``event(part, attempt)`` is called in the middle of each part."""
    rows = PARTS * ROWS // parts

    def read(part: int) -> Iterator[tuple[str, int]]:
        from pyspark import TaskContext

        for number in range(part * rows, (part + 1) * rows):
            if event and number == part * rows + rows // 2:
                event(part, TaskContext.get().attemptNumber())
            yield f"w{number % 50}", 1

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "50")  # some are written before the event
    numbers = spark.sparkContext.parallelize(range(parts), parts)
    return spark.createDataFrame(numbers.flatMap(read), "word string, n bigint", verifySchema=False)


def write(sink: str, frame: Any, dsn: str, run_id: str | None = None) -> None:
    """Write a frame into queue wc by ``jdbc`` or ``copy``."""
    from pgcombine.spark import write_jdbc
    from pgcombine.spark.errors import explained

    if sink == "jdbc":
        write_jdbc(frame, "wc", dsn, run_id, batchsize=50)
        return
    options = {"queue": "wc", "dsn": dsn, **({"runId": run_id} if run_id else {})}
    with explained():
        frame.write.format("pgcombine").options(**options).mode("append").save()
