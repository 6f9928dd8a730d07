"""Rows count exactly once after failures of a task, a commit, the server or the driver."""

from __future__ import annotations

import os
import random
import re
import signal
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support import eventually
from support.homes import SMALL, Filled
from support.lossy import losing_commit
from support.queues import combine_all, current, make_queue, one, values
from support.servers import embedded_only

from pgcombine.embedded import EmbeddedServer
from pgcombine.errors import PgCombineError

from .frames import (
    COPY_FIRST,
    LENGTH,
    PARTS,
    ROWS,
    SINKS,
    WORDS,
    WRITTEN,
    Event,
    Pause,
    counted,
    frame,
    once,
    write,
    writers,
)
from .programs import Program

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600)]
ENDING = """
    select count(*) from pg_stat_activity
    where query like '%end_load%' and wait_event_type = 'Lock' and datname = current_database()
    """
CONNECTED = """
    select count(*) from pg_stat_activity
    where application_name in ('pgcombine spark', 'PostgreSQL JDBC Driver') and state <> 'idle'
      and datname = current_database()
    """


@embedded_only
@SINKS
def test_rows_count_once_after_a_failed_task(
    spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path, sink: str
) -> None:
    def fail() -> None:
        raise ValueError("fails in the first attempt")

    make_queue(conn)
    write(sink, frame(spark, once(tmp_path, fail)), dsn)
    assert (tmp_path / "happened").exists()
    counted(conn)


@pytest.mark.wc
@embedded_only
@SINKS
def test_rows_count_once_after_an_unanswered_task_commit(
    spark: Any, dsn: str, conn: psycopg.Connection, sink: str
) -> None:
    with losing_commit(dsn, WRITTEN[sink]) as proxy:
        write(sink, frame(spark), proxy.dsn)
        assert proxy.lost.is_set()
    counted(conn)


@pytest.mark.wc
@embedded_only
@COPY_FIRST
def test_rows_count_once_after_an_unanswered_final_commit(
    spark: Any, dsn: str, conn: psycopg.Connection, sink: str
) -> None:
    with losing_commit(dsn, b"end_load", times=2) as proxy:
        write(sink, frame(spark), proxy.dsn)
        assert proxy.lost.is_set()
    counted(conn)


@pytest.mark.slow
@embedded_only
@COPY_FIRST
def test_rows_count_once_when_a_failed_job_runs_again(
    spark: Any, dsn: str, conn: psycopg.Connection, sink: str
) -> None:
    def fail(part: int, attempt: int) -> None:
        if part == 1:
            raise ValueError("fails for good")

    make_queue(conn)
    with pytest.raises(PgCombineError, match="fails for good"):
        write(sink, frame(spark, fail), dsn, "r")
    assert one(conn, "select pgcombine.backlog('wc')") == 0
    write(sink, frame(spark, parts=2), dsn, "r")
    write(sink, frame(spark, parts=8), dsn, "r")
    counted(conn)


@contextmanager
def own_server(home: Path) -> Iterator[tuple[EmbeddedServer, str]]:
    server = EmbeddedServer(home, settings=SMALL)
    try:
        yield server, server.start()
    finally:
        server.stop()


def crash(dsn: str) -> None:
    """Kill a session's process with SIGKILL, so that PostgreSQL ends all sessions and recovers."""
    with psycopg.connect(dsn, autocommit=True) as own, suppress(psycopg.OperationalError):
        os.kill(own.info.backend_pid, signal.SIGKILL)
        own.execute("select pg_sleep(60)")  # until the session has ended


@pytest.mark.slow
@pytest.mark.parametrize("how", ["crash", "fast"])
@COPY_FIRST
def test_rows_count_once_after_a_server_restart(
    spark: Any, tmp_path: Path, filled: Filled, sink: str, how: str
) -> None:
    """Staged rows survive a fast stop. A crash empties their table, which is unlogged."""
    pause = Pause(tmp_path, part=1)
    with own_server(filled(tmp_path / "home")) as (server, dsn):
        with psycopg.connect(dsn, autocommit=True) as conn:
            make_queue(conn)
            with ThreadPoolExecutor(1) as pool:
                job = pool.submit(lambda: write(sink, frame(spark, pause.event()), dsn, "r"))
                try:
                    eventually(lambda: pause.arrived() or job.done(), timeout=240, what="a task waits")
                    assert not job.done(), job.exception()
                    eventually(lambda: writers(conn) > 0, what="rows are being written")
                    if how == "crash":
                        crash(dsn)
                    else:
                        server.stop("fast")
                        server.start()
                finally:
                    pause.go()
                error = job.exception(timeout=240)
        if how == "fast":
            assert error is None
        else:
            assert isinstance(error, PgCombineError)
            assert re.search(r"crashed|lost|closed|terminat|connect|shut|reset|starting up|recovery", str(error))
        with psycopg.connect(dsn, autocommit=True) as conn:
            assert one(conn, "select pgcombine.backlog('wc')") == (PARTS * ROWS if how == "fast" else 0)
            write(sink, frame(spark), dsn, "r")
            write(sink, frame(spark), dsn, "r")
            counted(conn)


@pytest.mark.wc
@pytest.mark.slow
@embedded_only
@pytest.mark.parametrize(
    ("moment", "sink"),
    [
        ("in", "copy"),
        pytest.param("committed", "jdbc", marks=pytest.mark.jdbc),
    ],
)
def test_rows_count_once_after_a_killed_driver(
    spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path, sink: str, moment: str
) -> None:
    """The driver is killed while ``end_load`` runs, or before the answer to its commit."""
    lost = int(moment == "committed")
    with losing_commit(dsn, b"end_load", times=lost, hang=True) as proxy, psycopg.connect(dsn) as holder:
        if moment == "in":  # all rows are staged, and end_load waits for a lock to record the run
            holder.execute("lock table pgcombine.token in share mode")
        program = Program(tmp_path / "program")
        try:
            program.write(sink, proxy.dsn, "r")
            if moment == "in":
                eventually(lambda: one(conn, ENDING) == 1, timeout=240, what="end_load waits")
            else:
                assert proxy.lost.wait(240)
        finally:
            program.kill()
    eventually(lambda: one(conn, CONNECTED) == 0, what="the driver's sessions have ended")
    assert one(conn, "select pgcombine.backlog('wc')") == PARTS * ROWS * lost
    write(sink, frame(spark, parts=2), dsn, "r")
    counted(conn)


@pytest.mark.wc
@pytest.mark.slow
@embedded_only
def test_values_are_the_sums_of_what_each_source_said_last(
    spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path
) -> None:
    """Jobs replace what a source said, or take it back. Some are cancelled or fail, and of some the driver is killed.

    Then the source has said all that the job wrote, or what it said before.
    """
    chance = random.Random(44)
    said: dict[str, int] = {}  # the number of rows of each source; the frames' rows are always the same

    def wanted(said: dict[str, int]) -> dict[str, int]:
        return dict(Counter(f"w{n % WORDS}".ljust(LENGTH, "-") for total in said.values() for n in range(total)))

    def fail(part: int, attempt: int) -> None:
        raise ValueError("fails for good")

    def job_of(event: Event | None, total: int, source: str) -> None:
        write("copy", frame(spark, event, total=total), dsn, source=source)

    def begun() -> bool:
        return bool(one(conn, "select count(*) from pgcombine.spark_load") > loads)

    fates = ["whole", "whole", "whole", "fails", "cancelled", "cancelled", "killed"]
    chance.shuffle(fates)
    for number, fate in enumerate([*fates, "whole"]):
        source, total = chance.choice("ab"), chance.choice([4, 40, PARTS * ROWS, *[0] * (fate == "whole")])
        after = {**said, source: total}
        loads = one(conn, "select count(*) from pgcombine.spark_load")
        if fate == "killed":
            program = Program(tmp_path / str(number))
            try:
                program.write("copy", dsn, total=total, source=source)
                eventually(begun, timeout=240, what="the load has begun")
                time.sleep(chance.random())
            finally:
                program.kill()
            eventually(lambda: one(conn, CONNECTED) == 0, what="the driver's sessions have ended")
        else:
            with ThreadPoolExecutor(1) as pool:
                event = fail if fate == "fails" else None
                job = pool.submit(job_of, event, total, source)
                if fate == "cancelled":
                    eventually(lambda job=job: begun() or job.done(), timeout=240, what="the load has begun")
                    time.sleep(chance.random() / 2)
                    spark.sparkContext.cancelAllJobs()
                error = job.exception(timeout=240)
            assert fate == "cancelled" or (error is None) == (fate == "whole"), error
        there = current(conn)
        assert there in ([wanted(after)] if fate == "whole" else [wanted(said), wanted(after)]), (number, fate)
        said = after if there == wanted(after) else said
        if chance.random() < 0.5:
            combine_all(conn)
    combine_all(conn)
    assert values(conn) == wanted(said)
    assert conn.execute("select * from pgcombine.verify_contributions('wc')").fetchall() == []


@pytest.mark.wc
@pytest.mark.jdbc
@embedded_only
def test_concurrent_jobs_with_one_run_id_count_once(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    failures: list[BaseException] = []

    def job(sink: str) -> None:
        try:
            write(sink, frame(spark), dsn, "r")
        except BaseException as error:
            failures.append(error)

    jobs = [threading.Thread(target=job, args=(sink,)) for sink in ("jdbc", "copy")]
    for thread in jobs:
        thread.start()
    for thread in jobs:
        thread.join()
    assert failures == []
    counted(conn)
