"""On a cluster of two workers, with speculation: executors that die, tasks that run twice, limits that hold for all."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import psycopg
import pytest
from support import eventually
from support.lossy import losing_commit
from support.queues import combine_all, make_queue, one, values
from support.servers import embedded_only

from .cluster import CORES, SETTINGS, WORKERS, Cluster, executor_of, kill
from .frames import COUNTED, JDBC, PARTS, ROWS, Pause, writers
from .programs import Program

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), embedded_only, pytest.mark.slow]
SINKS = pytest.mark.parametrize("sink", [JDBC, "copy", "token"])
WRITTEN = {"jdbc": b"INSERT INTO", "copy": b"copy ", "token": b"copy "}  # what goes by when a task writes
LIMIT = {"jdbc": "numPartitions", "copy": "maxConnections", "token": "maxConnections"}


@pytest.fixture(scope="module")
def program(own_environment: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Program]:
    """A driver on the cluster."""
    directory = tmp_path_factory.mktemp("cluster")
    cluster = Cluster(directory)
    try:
        program = Program(directory / "driver", cluster.url, SETTINGS, executors=WORKERS)
        try:
            yield program
        finally:
            program.kill()
    finally:
        cluster.close()


@pytest.fixture
def pause(tmp_path: Path) -> Iterator[Pause]:
    pause = Pause(tmp_path)
    yield pause
    pause.go()


def counted(conn: psycopg.Connection) -> None:
    assert one(conn, "select pgcombine.backlog('wc')") == PARTS * ROWS
    combine_all(conn)
    assert values(conn) == COUNTED


@SINKS
def test_both_attempts_of_a_speculative_task_commit(
    program: Program, dsn: str, conn: psycopg.Connection, pause: Pause, sink: str
) -> None:
    """Part 1 waits until Spark runs it on the other worker, too; neither's commit is answered before the other's."""
    make_queue(conn)
    with losing_commit(dsn, WRITTEN[sink], times=0) as proxy:
        program.write(sink, proxy.dsn, pause=pause.directory, part=1)
        here = pause.wait(2)
        assert set(here) == {(1, 0), (1, 1)}
        assert len(set(here.values())) == WORKERS
        proxy.gather(2)
        pause.go()
        assert program.error() is None
        assert proxy.gathered.is_set()
        # a token that another attempt has used is noticed in the transaction, a second stage afterwards
        assert sorted(proxy.ends[:2]) == [b"COMMIT", b"ROLLBACK" if sink == "token" else b"COMMIT"]
    counted(conn)


@SINKS
def test_executor_is_killed_while_it_writes(
    program: Program, dsn: str, conn: psycopg.Connection, pause: Pause, sink: str
) -> None:
    """What started its Python processes dies first: else it ends them, mostly before they notice anything."""
    make_queue(conn)
    program.write(sink, dsn, pause=pause.directory, part=1)
    victim = pause.wait()[1, 0]
    eventually(lambda: writers(conn) > 0, what="rows are being written")
    for starter in psutil.Process(victim).children():
        starter.kill()
    kill(victim)
    eventually(lambda: writers(conn) == 0, what="the writer has noticed")
    pause.go()
    assert program.error() is None
    assert set(pause.arrived().values()) > {victim}  # its task was run again elsewhere
    counted(conn)


@SINKS
def test_executor_is_killed_when_a_task_has_committed(
    program: Program, dsn: str, conn: psycopg.Connection, sink: str
) -> None:
    make_queue(conn)
    with losing_commit(dsn, WRITTEN[sink], hang=True) as proxy:
        program.write(sink, proxy.dsn)
        assert proxy.lost.wait(240)
        victim = executor_of(proxy.owner)
        kill(victim)
        assert program.error() is None
    assert not psutil.pid_exists(victim)
    counted(conn)


@contextmanager
def watching(dsn: str) -> Iterator[list[int]]:
    """How many wrote at once, as often as that can be looked at."""
    seen: list[int] = []
    stop = threading.Event()

    def watch() -> None:
        with psycopg.connect(dsn, autocommit=True) as conn:
            while not stop.wait(0.01):
                seen.append(writers(conn))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        stop.set()
        thread.join()


@SINKS
def test_connections_are_limited_over_all_executors(
    program: Program, dsn: str, conn: psycopg.Connection, pause: Pause, sink: str
) -> None:
    make_queue(conn)
    limit = 2
    with watching(dsn) as seen:
        program.write(sink, dsn, pause=pause.directory, parts=8, **{LIMIT[sink]: limit})
        # all of the cluster is busy, but for JDBC's, whose partitions are merged
        here = pause.wait(limit if sink == "jdbc" else WORKERS * CORES)
        eventually(lambda: max(seen, default=0) >= limit, what="as many write as may")
        pause.go()
        assert program.error() is None
    assert len(set(here.values())) == WORKERS
    assert max(seen) == limit
    counted(conn)
