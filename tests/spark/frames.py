"""Frames whose tasks call an event while they make rows. An event is a function that may raise an error or wait."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support import eventually
from support.queues import combine_all, one, values

from pgcombine.spark import write_jdbc
from pgcombine.spark.errors import explained

JDBC = pytest.param("jdbc", marks=pytest.mark.jdbc)  # the sink jdbc as a parameter, with its mark
SINKS = pytest.mark.parametrize("sink", [JDBC, "copy"])
# for tests of code that both sinks share: the test with jdbc is slow
COPY_FIRST = pytest.mark.parametrize("sink", [pytest.param("jdbc", marks=[pytest.mark.jdbc, pytest.mark.slow]), "copy"])
ROWS = 400  # rows in a part, if a frame has PARTS parts
WORDS = 50
PARTS = 4
LENGTH = 2000  # bytes of a word; long, so that rows reach the writer before the part ends
COUNTED = {f"w{n}".ljust(LENGTH, "-"): PARTS * ROWS // WORDS for n in range(WORDS)}
WRITTEN = {"jdbc": b"INSERT INTO", "copy": b"copy "}  # the statement by which a proxy recognizes a writing task
Event = Callable[[int, int], None]


def frame(spark: Any, event: Event | None = None, parts: int = PARTS, total: int = PARTS * ROWS) -> Any:
    """Return a frame of ``total`` rows in ``parts`` parts.

    Before the last quarter of its rows, each part calls ``event(part, attempt)``.
    """
    rows = total // parts

    def read(part: int) -> Iterator[tuple[str, int]]:
        from pyspark import TaskContext

        for number in range(part * rows, (part + 1) * rows):
            if event and number == part * rows + rows * 3 // 4:
                event(part, TaskContext.get().attemptNumber())
            yield f"w{number % WORDS}".ljust(LENGTH, "-"), 1

    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "20")
    numbers = spark.sparkContext.parallelize(range(parts), parts)
    return spark.createDataFrame(numbers.flatMap(read), "word string, n bigint", verifySchema=False)


def write(sink: str, frame: Any, dsn: str, run_id: str | None = None, **given: object) -> None:
    """Write a frame into the queue wc by the sink ``jdbc`` or ``copy``. ``given`` are options by the sink's names.

    With a ``source``, the frame replaces what this source wrote.
    """
    if sink == "jdbc":
        write_jdbc(frame, "wc", dsn, run_id, **{"batchsize": 20, **given})
        return
    options = {"queue": "wc", "dsn": dsn, **({"runId": run_id} if run_id else {}), **given}
    with explained():
        frame.write.format("pgcombine").options(**options).mode("overwrite" if "source" in given else "append").save()


def once(directory: Path, act: Callable[[], None]) -> Callable[[int, int], None]:
    """Return an event that calls ``act`` once, in the first attempt at part 1."""
    mark = str(directory / "happened")

    def event(part: int, attempt: int) -> None:
        import os

        if part == 1 and not os.path.exists(mark):
            os.close(os.open(mark, os.O_CREAT))
            act()

    return event


def counted(conn: psycopg.Connection) -> None:
    assert one(conn, "select pgcombine.backlog('wc')") == PARTS * ROWS
    combine_all(conn)
    assert values(conn) == COUNTED


def writers(conn: psycopg.Connection) -> int:
    """Return the number of sessions in which a sink is writing rows."""
    row = conn.execute(
        """
        select count(*) from pg_stat_activity
        where datname = current_database()
          and (query like 'copy %' and state = 'active'
               or query like 'INSERT INTO %' and state in ('active', 'idle in transaction'))
        """
    ).fetchone()
    assert row is not None
    return int(row[0])


class Pause:
    """Makes an event at which the tasks of ``part`` (None: of all parts) wait for ``go``.

    Test and tasks communicate by files in ``directory``. A task writes there the process id of its executor.
    """

    def __init__(self, directory: Path, part: int | None = None) -> None:
        self.directory, self.part = directory, part

    def event(self) -> Event:
        directory, only = str(self.directory), self.part

        def event(part: int, attempt: int) -> None:
            import os
            import time

            import psutil

            if only is not None and part != only:
                return
            executor = next(process.pid for process in psutil.Process().parents() if process.name() == "java")
            mark = os.path.join(directory, f"{part}-{attempt}")
            with open(f"{mark}.new", "w") as file:
                file.write(str(executor))
            os.rename(f"{mark}.new", mark)
            deadline = time.monotonic() + 240
            while not os.path.exists(os.path.join(directory, "go")):
                if time.monotonic() > deadline:
                    raise TimeoutError("the test hasn't called go() within 240 s")
                time.sleep(0.02)

        return event

    def arrived(self) -> dict[tuple[int, int], int]:
        """Return the executor's process id by part and attempt, for each task that has reached the event."""
        found = [file for file in self.directory.iterdir() if "-" in file.name and not file.suffix]
        return {(int(part), int(n)): int(file.read_text()) for file in found for part, n in [file.name.split("-")]}

    def wait(self, tasks: int = 1) -> dict[tuple[int, int], int]:
        """Wait until at least ``tasks`` tasks have reached the event. Returns ``arrived``."""

        def enough() -> dict[tuple[int, int], int]:
            here = self.arrived()
            return here if len(here) >= tasks else {}

        return eventually(enough, timeout=240, what=f"{tasks} tasks wait")

    def go(self) -> None:
        """Let waiting and later tasks go on."""
        (self.directory / "go").touch()
