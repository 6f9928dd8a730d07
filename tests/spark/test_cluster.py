"""Both sinks on a cluster of two workers: killed executors and speculative tasks don't change the counts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg
import pytest
from support import eventually
from support.lossy import losing_commit
from support.servers import embedded_only

from .cluster import SETTINGS, WORKERS, Cluster, executor_of, kill
from .frames import SINKS, WRITTEN, Pause, counted, writers
from .programs import Program

pytestmark = [pytest.mark.spark, pytest.mark.timeout(600), embedded_only, pytest.mark.slow]


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


@pytest.mark.wc
@SINKS
def test_both_attempts_of_a_speculative_task_commit(
    program: Program, dsn: str, conn: psycopg.Connection, pause: Pause, sink: str
) -> None:
    """Both workers run part 1. The proxy withholds the answers to the two commits until it has both."""
    with losing_commit(dsn, WRITTEN[sink], times=0) as proxy:
        program.write(sink, proxy.dsn, pause=pause.directory, part=1)
        here = pause.wait(2)
        assert set(here) == {(1, 0), (1, 1)}
        assert len(set(here.values())) == WORKERS
        proxy.gather(2)
        pause.go()
        assert program.error() is None
        assert proxy.gathered.is_set()
        assert proxy.ends[:2] == [b"COMMIT", b"COMMIT"]
    counted(conn)


@pytest.mark.wc
@SINKS
def test_rows_count_once_if_an_executor_is_killed_while_it_writes(
    program: Program, dsn: str, conn: psycopg.Connection, pause: Pause, sink: str
) -> None:
    """The processes that start the executor's Python processes are killed first, then the executor."""
    program.write(sink, dsn, pause=pause.directory, part=1)
    victim = pause.wait()[1, 0]
    eventually(lambda: writers(conn) > 0, what="rows are being written")
    for starter in psutil.Process(victim).children():
        starter.kill()
    kill(victim)
    eventually(lambda: writers(conn) == 0, what="the writing session has ended")
    pause.go()
    assert program.error() is None
    assert set(pause.arrived().values()) > {victim}  # the task ran again on another executor
    counted(conn)


@pytest.mark.wc
@SINKS
def test_rows_count_once_if_an_executor_is_killed_after_a_commit(
    program: Program, dsn: str, conn: psycopg.Connection, sink: str
) -> None:
    with losing_commit(dsn, WRITTEN[sink], hang=True) as proxy:
        program.write(sink, proxy.dsn)
        assert proxy.lost.wait(240)
        victim = executor_of(proxy.owner)
        kill(victim)
        assert program.error() is None
    assert not psutil.pid_exists(victim)
    counted(conn)
