"""Sessions write through a front while servers of the front and of nodes crash and shards move. Totals stay exact.

``PGCOMBINE_TEST_CHAOS_SECONDS`` sets the number of crashes. ``pgcombine/docs/shards.md`` explains fronts and shards.
"""

from __future__ import annotations

import os
import random
import threading
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from functools import partial

import psycopg
import pytest
from psycopg.types.json import Jsonb
from support.fronts import connected, make_front
from support.queues import one
from support.servers import SETTINGS, Server, container
from support.wait import eventually

from pgcombine.database.connect import connect
from pgcombine.errors import PgCombineError
from pgcombine.shard.moving import move_shard

WRITERS = 8
SHARDS = 6
WORDS = [f"w{i}" for i in range(60)]
KILLS = int(os.environ.get("PGCOMBINE_TEST_CHAOS_SECONDS", "20"))
CHECKPOINTER = "select pid from pg_stat_activity where backend_type = 'checkpointer'"


@pytest.fixture
def databases() -> Iterator[list[str]]:
    """Yields the URIs of a front's database and of three nodes, each on a server of its own."""
    with ExitStack() as stack:
        servers = [Server(f"own-{number}", stack.enter_context(container(SETTINGS))) for number in range(4)]
        yield [stack.enter_context(server.migrated()) for server in servers]


def crash(dsn: str) -> None:
    """Kill the server's checkpointer with SIGKILL. The server then ends all sessions, and recovers."""
    with suppress(psycopg.Error), connected(dsn) as conn:
        conn.execute(f"copy (select 1) to program 'kill -9 {one(conn, CHECKPOINTER)}'".encode())


@pytest.mark.docker
@pytest.mark.slow
def test_totals_are_exact_beside_crashes_and_moves(databases: list[str]) -> None:
    front, *nodes = databases
    with connected(front) as conn:
        make_front(conn, nodes, shards=SHARDS)
    stop = threading.Event()
    acknowledged = Counter[int]()
    moves = Counter[str]()

    def write(writer: int) -> Counter[str]:
        """Write until the end. A failed write is repeated with its token until it is acknowledged."""
        chance = random.Random(writer)
        written = Counter[str]()
        while not stop.is_set():
            words = chance.choices(WORDS, k=5)
            updates = Jsonb([{"word": word, "n": 1} for word in words])
            done = False
            while not done:
                with suppress(psycopg.Error, PgCombineError), closing(connect(front)) as conn:
                    call = "select pgcombine.enqueue_once('wc', %s, %s)"
                    conn.execute(call, (f"{writer} {acknowledged[writer]}", updates))
                    done = True
            acknowledged[writer] += 1
            written.update(words)
        return written

    def move() -> None:
        """Move shards until the end. A failed move is repeated until it succeeds."""
        chance = random.Random(77)
        while not stop.is_set():
            shard, node = chance.randrange(SHARDS), f"n{chance.randrange(len(nodes))}"
            done = False
            while not done:
                moves["tried"] += 1
                with suppress(psycopg.Error, PgCombineError):
                    move_shard(front, "wc", shard, node)
                    done = True
            moves["done"] += 1

    def went_on(writes: int, moved: int) -> bool:
        return acknowledged.total() > writes and moves["done"] > moved

    chance = random.Random(7)
    with ThreadPoolExecutor() as pool:
        mover = pool.submit(move)
        writers = [pool.submit(write, writer) for writer in range(WRITERS)]
        try:
            for _ in range(KILLS):
                writes, moved = acknowledged.total() + 50, moves["done"]
                eventually(partial(went_on, writes, moved), timeout=120)
                crash(chance.choice(databases))
        finally:
            stop.set()
        written = sum((writer.result(300) for writer in writers), Counter[str]())
        mover.result(300)
    print(f"{acknowledged.total()} writes acknowledged, {KILLS} crashes, {dict(moves)}")
    with closing(connect(front)) as conn:
        found = eventually(lambda: dict(conn.execute("select word, n from pgcombine.wc_current").fetchall()))
        places = dict(conn.execute("select shard, node from pgcombine.front_shard").fetchall())
        assert conn.execute("select node, problem from pgcombine.check_front('wc')").fetchall() == []
    assert found == dict(written)
    for number, dsn in enumerate(nodes):
        with closing(connect(dsn)) as conn:
            there = {queue for (queue,) in conn.execute("select queue from pgcombine.queue").fetchall()}
        assert there == {f"wc_{shard:02}" for shard, node in places.items() if node == f"n{number}"}
