"""What wakes an idle export worker before its next poll."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from support.exports import impatient, make_exported, state
from support.queues import combine, one
from support.sessions import in_background, worker_listens
from support.wait import eventually

from pgcombine import Entry, ExportWorker
from pgcombine.database.sqlfiles import query

CHANGES = "pgcombine.wc_changes"
NEVER = 3600.0  # seconds between two polls


class Receiver:
    """Keeps the words of delivered entries. Raises ConnectionRefusedError while ``down`` is true."""

    def __init__(self) -> None:
        self.down = False
        self.words: list[str] = []
        self.attempts = 0

    def __call__(self, entries: list[Entry]) -> None:
        self.attempts += 1
        if self.down:
            raise ConnectionRefusedError("down")
        self.words += [entry.key for entry in entries]


@pytest.fixture
def receiver() -> Receiver:
    return Receiver()


@contextmanager
def running(dsn: str, receiver: Receiver, count: int = 1) -> Iterator[None]:
    stop = threading.Event()
    worker = ExportWorker(dsn, "search", receiver, poll=NEVER, concurrency=count)
    with in_background(lambda: worker.run(stop)):
        try:
            yield
        finally:
            stop.set()


def change(conn: psycopg.Connection, word: str) -> None:
    combine(conn, {word: 1})


@pytest.mark.parametrize("count", [1, 3])
def test_change_wakes_an_idle_export_worker(conn: psycopg.Connection, dsn: str, receiver: Receiver, count: int) -> None:
    make_exported(conn)
    with running(dsn, receiver, count):
        for number in range(5):
            eventually(lambda: worker_listens(conn, table=CHANGES))
            change(conn, f"w{number}")
            eventually(lambda: len(receiver.words) == number + 1, what="the entry was delivered")  # noqa: B023
    assert receiver.words == [f"w{number}" for number in range(5)]


def test_only_a_sleeping_worker_is_notified(conn: psycopg.Connection, dsn: str) -> None:
    make_exported(conn)
    with psycopg.connect(dsn, autocommit=True) as listener:
        listener.execute('listen "pgcombine.changes wc"')
        change(conn, "a")
        assert list(listener.notifies(timeout=0)) == []
        with psycopg.connect(dsn, autocommit=True) as sleeper:
            assert one(sleeper, "select pgcombine_internal.take_idle_lock(%s::regclass)", CHANGES) == "taken"
            change(conn, "a")
        eventually(lambda: list(listener.notifies(timeout=0)), what="a sleeping worker is notified")


def test_resumed_destination_and_retried_entries_wake_the_worker(
    conn: psycopg.Connection, dsn: str, receiver: Receiver
) -> None:
    make_exported(conn)
    conn.execute("select pgcombine.pause_export('search')")
    change(conn, "paused")
    with running(dsn, receiver):
        conn.execute("select pgcombine.resume_export('search')")
        eventually(lambda: receiver.words == ["paused"])
        eventually(lambda: worker_listens(conn, table=CHANGES))
        conn.execute(
            query("export_refused").encode(),
            ("search", 0, "no", '{"word": "back", "new_n": 1, "seq": 1000}'),
        )
        conn.execute("select pgcombine_internal.export_release('search', 1000, true)")
        eventually(lambda: receiver.words == ["paused", "back"])


def test_worker_retries_an_unreachable_destination_after_its_back_off(
    conn: psycopg.Connection, dsn: str, receiver: Receiver
) -> None:
    """The worker retries when the back-off ends, and doesn't wait for the next poll."""
    make_exported(conn)
    impatient(conn, backoff="10 ms", longest_backoff="50 ms")
    receiver.down = True
    with running(dsn, receiver):
        change(conn, "a")
        eventually(lambda: state(conn) == "down")
        receiver.down = False
        eventually(lambda: receiver.words == ["a"])
    assert state(conn) == "up"


def test_change_does_not_end_a_back_off(conn: psycopg.Connection, dsn: str, receiver: Receiver) -> None:
    make_exported(conn)
    conn.execute(
        "update pgcombine.destination_state set state = 'down', failures = 9, retry_at = now() + interval '1 hour'"
    )
    with running(dsn, receiver):
        for word in ("a", "b"):
            change(conn, word)
            time.sleep(0.2)  # enough for an attempt, if the worker made one
        assert receiver.attempts == 0
        conn.execute("select pgcombine.resume_export('search')")
        eventually(lambda: sorted(receiver.words) == ["a", "b"])
