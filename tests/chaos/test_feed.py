"""Consumers, workers and the server are killed, and the queue is rebucketed: no change is lost or repeated.

A consumer stores the changes of a batch and the batch's offset in one transaction. So if it is killed, the next
consumer begins with the first change that isn't stored. ``PGCOMBINE_TEST_CHAOS_SECONDS`` sets the length of the test.
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import psycopg
import pytest
from psycopg.types.json import Jsonb
from support import eventually, run_cli, start_cli
from support.queues import add, make_queue, one, values

from pgcombine import Feed
from pgcombine.errors import PgCombineError

from .kills import kill_server

F = Feed("f", queue="wc")
ROOT = Path(__file__).parents[2]
SEEN = "select word, old_n, new_n from public.seen order by id"


def consume(dsn: str) -> None:
    """Follow the feed, and store each batch with its offset, until this process or the server is killed."""
    with psycopg.connect(dsn, autocommit=True) as reader, psycopg.connect(dsn, autocommit=True) as store:
        after = one(store, "select after from public.consumer")
        for batch in F.read(reader, after=after, most=random.choice([1, 20, 1000]), follow=True):
            with store.transaction():
                for row in batch.rows:
                    store.execute(
                        "insert into public.seen (word, old_n, new_n) values (%s, %s, %s)",
                        (row["word"], row["old_n"], row["new_n"]),
                    )
                store.execute("update public.consumer set after = %s", (Jsonb(batch.after),))


@contextmanager
def consumer(dsn: str) -> Iterator[subprocess.Popen[bytes]]:
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.chaos.test_feed", dsn],
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT / "tests")},
        stderr=subprocess.DEVNULL,  # drops the traceback of a consumer whose server is killed
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


def grown(dsn: str, before: int) -> int:
    """Enqueue random updates until more than ``before`` changes are stored. Returns the number of stored changes."""
    found = 0

    def look() -> bool:
        nonlocal found
        with suppress(psycopg.OperationalError), psycopg.connect(dsn, autocommit=True) as conn:
            add(conn, {f"w{random.randrange(40)}": random.choice([1, 1, -1]) for _ in range(10)})
            found = one(conn, "select count(*) from public.seen")
        return found > before

    eventually(look)
    return found


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_consumers_lose_and_repeat_nothing_after_kill_9(home: Path) -> None:
    seconds = float(os.environ.get("PGCOMBINE_TEST_CHAOS_SECONDS", "20"))
    env: dict[str, object] = {"PGCOMBINE_HOME": home, "PGCOMBINE_DSN": None}
    dice = random.Random()
    dsn = run_cli("dsn", env=env).stdout.strip()
    try:
        with psycopg.connect(dsn, autocommit=True) as conn:
            make_queue(conn, buckets=16)
            F.create(conn)
            conn.execute("create table public.seen (id bigserial, word text, old_n bigint, new_n bigint)")
            conn.execute("create table public.consumer (after jsonb)")
            conn.execute("insert into public.consumer values ('{}')")
        until = time.monotonic() + seconds
        count = rounds = 0
        while time.monotonic() < until:
            rounds += 1
            with ExitStack() as running:  # its end kills the worker and the consumers
                running.enter_context(start_cli("worker", "wc", "--concurrency", 4, "--dsn", dsn))
                reader = running.enter_context(consumer(dsn))
                for _ in range(3):
                    count = grown(dsn, count)
                    if dice.random() < 0.5:
                        reader.kill()
                        reader = running.enter_context(consumer(dsn))
                    if dice.random() < 0.5:
                        with suppress(psycopg.Error, PgCombineError), psycopg.connect(dsn, autocommit=True) as conn:
                            conn.execute("select pgcombine.rebucket('wc', %s)", (dice.choice([4, 16, 32]),))
                if dice.random() < 0.5:
                    kill_server(home, env)
        assert rounds > 1
        assert run_cli("drain", "wc", "--dsn", dsn).returncode == 0
        with consumer(dsn), psycopg.connect(dsn, autocommit=True) as conn:
            eventually(lambda: one(conn, "select after = pgcombine_internal.feed_offset('f') from public.consumer"))
            chain: dict[str, int] = {}
            for word, old, new in conn.execute(SEEN):
                assert chain.get(word) == old
                chain[word] = new
            assert {word: n for word, n in chain.items() if n is not None} == values(conn)
            assert conn.execute("select * from pgcombine.verify('wc')").fetchall() == []
    finally:
        run_cli("server", "stop", env=env)


if __name__ == "__main__":
    consume(sys.argv[1])
