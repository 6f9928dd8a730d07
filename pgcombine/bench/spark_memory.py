"""The driver's memory while Spark writes.

Each measured program is a separate process, with its tasks in other processes (``local-cluster``). The figure is the
highest of the sampled sums of resident memory over the driver's processes: the program and its descendants, without
Spark's executors and their children. A program that fails raises PgCombineError.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING

from pgcombine.errors import PgCombineError

if TYPE_CHECKING:
    from psutil import Process

SINKS = ("write_jdbc", "pgcombine")
TIMES = 10  # the second write of each sink has this many times as many rows as the first
_SAMPLE_SECONDS = 0.05


def driver_memory(
    database: Callable[[], AbstractContextManager[str]], *, rows: int, keys: int
) -> dict[str, dict[int, int]]:
    """Return the peak bytes by sink and number of rows: ``rows``, and ten times as many.

    ``database`` is called for each program, and returns a context with the DSN of a new database that has pgcombine's
    schema. Raises PgCombineError if a program fails.
    """
    found: dict[str, dict[int, int]] = {}
    for sink in SINKS:
        for number in (rows, TIMES * rows):
            with database() as dsn:
                found.setdefault(sink, {})[number] = peak(sink, dsn, number, keys)
    return found


def peak(sink: str, dsn: str, rows: int, keys: int) -> int:
    """Return the driver's peak memory in bytes while ``rows`` are written into a new queue in the database."""
    import psutil

    command = [sys.executable, "-P", "-m", "pgcombine.bench.spark_memory", sink, str(rows), str(keys)]
    highest = 0
    with subprocess.Popen(command, stdout=sys.stderr, env={**os.environ, "PGCOMBINE_DSN": dsn}) as program:
        root = psutil.Process(program.pid)
        try:
            while program.poll() is None:
                highest = max(highest, sum(map(_resident, _family(root))))
                time.sleep(_SAMPLE_SECONDS)
        except BaseException:
            program.kill()
            raise
    if program.returncode:
        raise PgCombineError(f"the program that writes {rows:,} rows by {sink} ended with status {program.returncode}")
    return highest


def _family(root: Process) -> list[Process]:
    """Return the process and its descendants, without Spark's executors and their children."""
    import psutil

    try:
        if any("CoarseGrainedExecutorBackend" in word for word in root.cmdline()):
            return []
        return [root, *(one for child in root.children() for one in _family(child))]
    except psutil.NoSuchProcess:
        return []


def _resident(process: Process) -> int:
    import psutil

    try:
        return int(process.memory_info().rss)
    except psutil.NoSuchProcess:
        return 0


def _main(sink: str, rows: int, keys: int) -> None:
    """Run the measured program."""
    from pathlib import Path

    import pyspark

    from pgcombine.database.connect import connect, one
    from pgcombine.spark.staged import write_jdbc
    from pgcombine.spark.startup import session

    os.environ["SPARK_HOME"] = str(Path(pyspark.__file__).parent)  # Spark starts the executors from this directory
    dsn = os.environ["PGCOMBINE_DSN"]
    with connect(dsn) as connection:
        connection.execute("select pgcombine.create_queue('bench', '{word text}', '{n bigint sum}')")
        spark = session("pgcombine bench", master="local-cluster[1,2,1024]")
        frame = spark.range(rows, numPartitions=8).selectExpr(f"concat('w', id % {keys}) as word", "1L as n")
        if sink == "write_jdbc":
            write_jdbc(frame, "bench", dsn)
        else:
            frame.write.format("pgcombine").options(queue="bench", dsn=dsn).mode("append").save()
        (written,) = one(connection, "select pgcombine.backlog('bench')")
    spark.stop()
    if written != rows:
        raise PgCombineError(f"{sink} wrote {written} of {rows} rows")


if __name__ == "__main__":
    _main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
