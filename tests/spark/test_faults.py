"""Whatever fails in the middle, every row counts once: both sinks, exact counts."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest
from support import eventually
from support.cli import environment
from support.lossy import losing_commit
from support.queues import combine_all, make_queue, one, values
from support.servers import embedded_only

from pgcombine import schema
from pgcombine.embedded import EmbeddedServer
from pgcombine.errors import PgCombineError

from .frames import COUNTED, PARTS, ROWS, frame, write

pytestmark = pytest.mark.spark
SINKS = pytest.mark.parametrize("sink", ["jdbc", "copy"])
DRIVER = Path(__file__).with_name("driver.py")
WRITTEN = {"jdbc": b"INSERT INTO", "copy": b"copy "}  # what goes by when a task writes


def once(directory: Path, act: Callable[[], None]) -> Callable[[int, int], None]:
    """An event that calls ``act`` in the first attempt at part 1."""
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


@embedded_only
@SINKS
def test_task_fails_once(spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path, sink: str) -> None:
    def fail() -> None:
        raise ValueError("fails in the first attempt")

    make_queue(conn)
    write(sink, frame(spark, once(tmp_path, fail)), dsn)
    assert (tmp_path / "happened").exists()
    counted(conn)


@embedded_only
@SINKS
def test_commit_of_a_task_is_ambiguous(spark: Any, dsn: str, conn: psycopg.Connection, sink: str) -> None:
    make_queue(conn)
    with losing_commit(dsn, WRITTEN[sink]) as proxy:
        write(sink, frame(spark), proxy.dsn)
        assert proxy.lost.is_set()
    counted(conn)


@embedded_only
@SINKS
def test_commit_of_the_run_is_ambiguous(spark: Any, dsn: str, conn: psycopg.Connection, sink: str) -> None:
    make_queue(conn)
    with losing_commit(dsn, b"end_load", times=2) as proxy:
        write(sink, frame(spark), proxy.dsn)
        assert proxy.lost.is_set()
    counted(conn)


@embedded_only
@SINKS
def test_failed_job_is_run_again_with_other_parts(spark: Any, dsn: str, conn: psycopg.Connection, sink: str) -> None:
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
    server = EmbeddedServer(home, version=18)
    try:
        dsn = server.start()
        schema.upgrade(dsn)
        yield server, dsn
    finally:
        server.stop()


@SINKS
def test_server_crashes_in_the_middle(spark: Any, home: Path, tmp_path: Path, sink: str) -> None:
    """The backend of a writer is killed -9: PostgreSQL restarts, and empties what isn't logged."""
    with own_server(home) as (_, dsn):
        with psycopg.connect(dsn, autocommit=True) as conn:
            make_queue(conn)

        def crash() -> None:
            import os
            import signal

            import psycopg

            with psycopg.connect(dsn, autocommit=True) as own:
                parts = "select count(*) from pg_stat_activity where application_name like 'pg%%' and pid <> %s"
                assert own.execute(parts, (own.info.backend_pid,)).fetchone()
                os.kill(own.info.backend_pid, signal.SIGKILL)

        with pytest.raises(PgCombineError, match=r"crashed|lost|closed|terminat|connect|shut|reset"):
            write(sink, frame(spark, once(tmp_path, crash)), dsn, "r")

        def answers() -> psycopg.Connection | None:
            try:
                return psycopg.connect(dsn, autocommit=True)
            except psycopg.OperationalError:
                return None

        conn = eventually(answers, what="the server is back")
        with conn:
            assert one(conn, "select pgcombine.backlog('wc')") == 0
            write(sink, frame(spark), dsn, "r")
            write(sink, frame(spark), dsn, "r")
            counted(conn)


class Driver:
    """A program that writes the frame as run r, in a process of its own, to be killed with all it has started."""

    def __init__(self, sink: str, dsn: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-W", "error", DRIVER, sink, dsn],
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )

    def kill(self) -> None:
        family = psutil.Process(self.process.pid)
        for process in [family, *family.children(recursive=True)]:
            with suppress(psutil.NoSuchProcess):
                process.kill()
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()


@embedded_only
@SINKS
@pytest.mark.parametrize("moment", ["in", "after"])
def test_driver_is_killed_around_the_final_commit(
    spark: Any, dsn: str, conn: psycopg.Connection, sink: str, moment: str
) -> None:
    make_queue(conn)
    ending = """
        select count(*) from pg_stat_activity
        where query like '%end_load%' and wait_event_type = 'Lock' and datname = current_database()
        """
    with losing_commit(dsn, b"end_load", hang=True) as proxy, psycopg.connect(dsn) as holder:
        if moment == "in":  # what is staged is there, and end_load waits to record the run
            holder.execute("lock table pgcombine.spark_run in share mode")
        driver = Driver(sink, proxy.dsn)
        try:
            if moment == "after":
                assert proxy.lost.wait(60)
            else:
                eventually(lambda: one(conn, ending) == 1, timeout=60)
        finally:
            driver.kill()
    gone = "select count(*) from pg_stat_activity where application_name = 'pgcombine spark' and state <> 'idle'"
    eventually(lambda: one(conn, gone + " and datname = current_database()") == 0)
    assert one(conn, "select pgcombine.backlog('wc')") == (PARTS * ROWS if moment == "after" else 0)
    write(sink, frame(spark, parts=2), dsn, "r")
    counted(conn)


@embedded_only
def test_two_jobs_with_one_run_id_at_once(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    make_queue(conn)
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
