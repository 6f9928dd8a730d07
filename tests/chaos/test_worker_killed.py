"""Updates count once after kills of workers at random moments."""

from __future__ import annotations

import random
import threading
from collections import Counter
from contextlib import ExitStack

import psycopg
import pytest
from support import eventually, start_cli
from support.queues import add, make_queue, values
from support.servers import embedded_only
from support.sessions import in_background

from pgcombine.worker.drain import drain

ROUNDS = 3


@pytest.mark.slow
@embedded_only
def test_updates_count_once_after_kill_9(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=4)
    stop = threading.Event()
    dice = random.Random()

    def load() -> Counter[str]:
        done: Counter[str] = Counter()
        with psycopg.connect(dsn, autocommit=True) as mine:
            while not stop.is_set():
                words = [f"w{dice.randrange(200)}" for _ in range(50)]
                add(mine, [(word, 1) for word in words])
                done.update(words)
        return done

    with in_background(load) as (loaded,):
        try:
            for number in range(ROUNDS):
                with ExitStack() as stack:
                    start = ("worker", "wc", "--concurrency", 2, "--dsn", dsn)
                    process = stack.enter_context(start_cli(*start))
                    before = sum(values(conn).values())
                    eventually(lambda before=before: sum(values(conn).values()) > before, what="at work")
                    # run a random number of statements, so that the kill comes at a random moment
                    for _ in range(dice.randrange(1, 40)):
                        conn.execute("select 1")
                    process.kill()
                    assert process.wait(timeout=30) == -9, number
        finally:
            stop.set()
    drain(dsn, "wc", timeout=60)
    assert values(conn) == loaded.result()
