"""A program that is a Spark driver until its input ends: ``python driver.py MASTER SETTINGS EXECUTORS``.

Each line of its input has the arguments of ``write`` as JSON. A call begins when ``EXECUTORS`` executors run.
At the end of a call the program prints ``{"error": null}``, or the text of a PgCombineError instead of ``null``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parent), str(Path(__file__).parents[1])]

import frames  # noqa: E402
from support import eventually  # noqa: E402

from pgcombine.errors import PgCombineError  # noqa: E402
from pgcombine.spark import session  # noqa: E402


def write(
    spark: Any, sink: str, dsn: str, run_id: str | None, pause: str | None, part: int | None, options: Any, **size: int
) -> None:
    event = frames.Pause(Path(pause), part).event() if pause else None
    frames.write(sink, frames.frame(spark, event, **size), dsn, run_id, **options)


def executors(spark: Any) -> int:
    return int(spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size()) - 1  # the status also counts the driver


if __name__ == "__main__":
    spark = session("driver", master=sys.argv[1], conf=json.loads(sys.argv[2]))
    for line in sys.stdin:
        call = json.loads(line)
        error = None
        eventually(lambda: executors(spark) >= int(sys.argv[3]), timeout=240, what="the executors are there")
        try:
            write(spark, **call)
        except PgCombineError as caught:
            error = str(caught)
        print(json.dumps({"error": error}), flush=True)
