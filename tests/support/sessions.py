"""Helpers for tests with several sessions: threads, workers, and waits for locks."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager

import psycopg
import pytest

from pgcombine.worker.worker import Worker
from support.wait import eventually


@contextmanager
def in_background(*calls: Callable[[], object]) -> Iterator[list[Future[object]]]:
    """Run each of ``calls`` in a thread during the block.

    The end of the block waits for the threads. If the block succeeds, its end raises the error of a call if there is
    one. If the block fails, the errors of calls that have ended by then are added to its error as notes.
    """
    with ThreadPoolExecutor(max_workers=len(calls)) as pool:
        futures = [pool.submit(call) for call in calls]
        try:
            yield futures
        except BaseException as error:
            for future in futures:
                if future.done() and (reason := future.exception()) is not None:
                    error.add_note(f"in the background: {reason!r}")
            raise
        for future in futures:
            future.result(timeout=120)


def waits(conn: psycopg.Connection, pid: int, *, timeout: float = 30) -> None:
    """Wait until the session ``pid`` waits for another session's lock. ``conn`` is in autocommit."""

    def waiting() -> bool:
        row = conn.execute("select cardinality(pg_blocking_pids(%s)) > 0", (pid,)).fetchone()
        return bool(row and row[0])

    eventually(waiting, timeout=timeout, what=f"session {pid} waits for a lock")


def worker_listens(conn: psycopg.Connection, queue: str = "wc", *, table: str | None = None) -> bool:
    """Whether an idle worker holds the idle lock of the queue, or of ``table``.

    ``conn`` is in autocommit.
    """
    row = conn.execute(
        "select not pg_try_advisory_xact_lock_shared(hashtext('pgcombine.idle'), %s::regclass::oid::integer)",
        (table or f"pgcombine.{queue}_updates",),
    ).fetchone()
    assert row is not None
    return bool(row[0])


@contextmanager
def workers(dsn: str, *queues: str, count: int = 1, **options: object) -> Iterator[Worker]:
    """Run a worker with ``count`` loops in this process during the block."""
    stop = threading.Event()
    worker = Worker(dsn, list(queues), concurrency=count, **options)
    with in_background(lambda: worker.run(stop)):
        try:
            yield worker
        finally:
            stop.set()


def warnings(caplog: pytest.LogCaptureFixture) -> list[str]:
    """The messages logged above INFO, without the warning that the tests' role is a superuser."""
    told = [record.getMessage() for record in caplog.records if record.levelno > logging.INFO]
    return [message for message in told if not message.startswith("worker.superuser")]
