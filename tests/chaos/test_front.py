"""Sessions write through a front while servers of the front and of nodes crash and shards move. Totals stay exact.

``PGCOMBINE_TEST_CHAOS_SECONDS`` sets the number of crashes. ``pgcombine/docs/shards.md`` explains fronts and shards.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from functools import partial

import psycopg
import pytest
from psycopg.types.json import Jsonb
from support.audit import Ledger, Run, differences, seconds
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
    run, ledger = Run(0, ["all crashes", "written", "moved"], more=3600), Ledger()

    def persist(figure: str, call: Callable[[], object]) -> None:
        """Repeat the call until it succeeds, and count it."""
        while True:
            with suppress(psycopg.Error, PgCombineError):
                call()
                return run.count(figure)
            run.count(f"{figure} in vain")

    def enqueue(token: str, updates: Jsonb) -> None:
        with closing(connect(front)) as conn:
            conn.execute("select pgcombine.enqueue_once('wc', %s, %s)", (token, updates))

    def write(chance: random.Random) -> None:
        while not run.over:
            words, token = chance.choices(WORDS, k=5), str(chance.getrandbits(60))
            updates = Jsonb([{"word": word, "n": 1} for word in words])
            persist("written", partial(enqueue, token, updates))
            ledger.acknowledge((word, 1) for word in words)

    def move(chance: random.Random) -> None:
        while not run.over:
            to = f"n{chance.randrange(len(nodes))}"
            persist("moved", partial(move_shard, front, "wc", chance.randrange(SHARDS), to))

    def went_on(written: int, moved: int) -> bool:
        return bool(run.wrong) or (run.figures["written"] > written and run.figures["moved"] > moved)

    def disturb(chance: random.Random) -> None:
        for _ in range(int(seconds(20))):
            eventually(partial(went_on, run.figures["written"] + 50, run.figures["moved"]), timeout=120)
            crash(chance.choice(databases))
        run.count("all crashes")

    run.run(*[write] * WRITERS, move, disturb)
    run.succeeded()
    with closing(connect(front)) as conn:
        found = eventually(lambda: dict(conn.execute("select word, n from pgcombine.wc_current").fetchall()))
        places = dict(conn.execute("select shard, node from pgcombine.front_shard").fetchall())
        assert conn.execute("select node, problem from pgcombine.check_front('wc')").fetchall() == []
    assert list(differences("wc_current", ledger.sums, found)) == []
    for number, dsn in enumerate(nodes):
        with closing(connect(dsn)) as conn:
            there = {queue for (queue,) in conn.execute("select queue from pgcombine.queue").fetchall()}
        assert there == {f"wc_{shard:02}" for shard, node in places.items() if node == f"n{number}"}
