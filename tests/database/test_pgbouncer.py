"""Producers and workers through PgBouncer in transaction mode: exact totals, and no session state on its connections.

PgBouncer may run each transaction of a client on another server connection, which other clients use in between. Session
state (LISTEN, advisory locks, SET) would get lost for the client that set it, and affect others.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Iterator

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy import orm
from support import run_cli
from support.pgbouncer import left_behind, pgbouncer
from support.queues import current, one, values
from support.sessions import in_background, worker_listens, workers
from support.wait import eventually

from pgcombine import schema
from pgcombine.database.connect import connect
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.runtime.wakeup import QueueListener
from pgcombine.worker.drain import drain

SERVERS = 3  # server connections of PgBouncer
WC = CombineQueue("wc")


@pytest.fixture
def pooled(dsn: str) -> Iterator[str]:
    """The URI of the test's database through PgBouncer."""
    with pgbouncer(dsn, servers=SERVERS) as pooled:
        yield pooled


def test_session_state_is_detected(pooled: str) -> None:
    with psycopg.connect(pooled, autocommit=True) as connection:
        connection.execute("select pg_advisory_lock(1)")
        connection.execute("listen wc")
        connection.execute("set work_mem = '1MB'")
    assert {what for what, _ in left_behind(pooled, SERVERS)} == {"advisory lock", "listen", "set"}


def test_pooler_is_detected(dsn: str, pooled: str) -> None:
    for _ in range(20):
        with connect(pooled) as connection:
            assert not QueueListener(connection, None, poll=1).listens
    with connect(dsn) as connection:
        assert QueueListener(connection, None, poll=1).listens


@pytest.mark.wc
def test_totals_are_exact_and_no_session_state_is_left(conn: psycopg.Connection, pooled: str) -> None:
    committed: Counter[str] = Counter()

    def produce(seed: int) -> Counter[str]:
        chance = random.Random(seed)
        own: Counter[str] = Counter()
        # By default psycopg prepares repeated statements. CombineQueue prevents that for the statements it runs.
        with psycopg.connect(pooled) as connection:
            for _ in range(60):
                rows = [(f"w{chance.randrange(40)}", chance.choice((1, 2, -1))) for _ in range(chance.randrange(1, 12))]
                WC.enqueue(connection, rows)
                if chance.random() < 0.2:
                    connection.rollback()
                    continue
                WC.get(connection, [rows[0][0]])
                connection.commit()
                for word, n in rows:
                    own[word] += n
        return own

    with workers(pooled, "wc", count=2, poll=0.05) as worker:
        with in_background(*(lambda seed=seed: committed.update(produce(seed)) for seed in range(4))):
            pass
        eventually(lambda: one(conn, "select pgcombine.backlog('wc')") == 0, what="the worker has combined all")
    assert worker.totals.passes > 0
    assert values(conn) == {word: n for word, n in committed.items() if n}
    assert left_behind(pooled, SERVERS) == []


@pytest.mark.wc
def test_json_and_sqlalchemy_work_through_the_pooler(conn: psycopg.Connection, pooled: str) -> None:
    engine = sa.create_engine(
        pooled.replace("postgresql://", "postgresql+psycopg://", 1), connect_args={"prepare_threshold": None}
    )
    for _ in range(10):
        with orm.Session(engine) as session, session.begin():
            WC.enqueue(session, [("fluo", 1)])
            session.execute(sa.text('select pgcombine.enqueue(\'wc\', \'[{"word": "spark", "n": 2}]\')'))
    engine.dispose()
    assert current(conn) == {"fluo": 10, "spark": 20}
    assert drain(pooled, "wc", timeout=60).updates == 20
    assert values(conn) == {"fluo": 10, "spark": 20}
    assert left_behind(pooled, SERVERS) == []


@pytest.mark.wc
def test_producers_through_the_pooler_wake_a_worker_that_is_not(
    dsn: str, conn: psycopg.Connection, pooled: str
) -> None:
    with workers(dsn, "wc", poll=600):
        eventually(lambda: worker_listens(conn), what="the worker listens")
        with psycopg.connect(pooled) as connection:
            WC.enqueue(connection, [("fluo", 1)])
        eventually(lambda: values(conn) == {"fluo": 1}, what="a notification woke the worker")
    assert left_behind(pooled, SERVERS) == []


@pytest.mark.wc
@pytest.mark.slow
def test_wait_works_through_the_pooler(conn: psycopg.Connection, pooled: str) -> None:
    """Each kind of wait through PgBouncer returns after the caller's updates are combined, and frees its connection."""

    def by_python() -> None:
        with psycopg.connect(pooled) as connection:
            WC.enqueue(connection, [("fluo", 1)])
            connection.commit()
            WC.wait(connection, timeout=60)
            assert WC.backlog(connection) == 0

    async def asynchronously() -> None:
        async with await psycopg.AsyncConnection.connect(pooled) as connection:
            await WC.enqueue(connection, [("fluo", 1)])
            await connection.commit()
            await WC.wait(connection, timeout=60)

    def by_sql() -> None:
        with psycopg.connect(pooled, autocommit=True) as connection:
            connection.execute("insert into pgcombine.wc_updates values ('fluo', 1)")
            connection.execute("call pgcombine.wait('wc', timeout => '60 s')")

    def by_command() -> None:
        updates = run_cli("enqueue", "wc", "-", "--dsn", pooled, input='{"word": "fluo", "n": 1}\n')
        assert updates.returncode == 0, updates.stderr
        waited = run_cli("wait", "wc", "--timeout", 60, "--dsn", pooled)
        assert (waited.returncode, waited.stdout) == (0, "combined: wc\n"), waited.stderr

    ways = [by_python, lambda: asyncio.run(asynchronously()), by_sql, by_command]
    with workers(pooled, "wc", poll=0.05):
        for n, way in enumerate(ways, 1):
            way()
            assert values(conn) == {"fluo": n}
        # each waiting caller keeps a server connection of PgBouncer; one is left for the worker
        with in_background(*[by_sql] * (SERVERS - 1)):
            pass
        assert values(conn) == {"fluo": len(ways) + SERVERS - 1}
    late = run_cli("wait", "wc", "--timeout", 0.1, "--dsn", pooled)
    assert late.returncode == 0
    WC.enqueue(conn, [("fluo", 1)])
    late = run_cli("wait", "wc", "--timeout", 0.1, "--dsn", pooled)
    assert (late.returncode, len(late.stderr.splitlines())) == (1, 1)
    assert "check that workers run" in late.stderr
    assert left_behind(pooled, SERVERS) == []


def test_schema_and_queues_are_made_through_the_pooler(empty_dsn: str) -> None:
    with pgbouncer(empty_dsn, servers=SERVERS) as pooled:
        schema.upgrade(pooled)
        schema.check(pooled)
        queue = CombineQueue("wc", key=["word text"], value=["n bigint sum"], delete_when="n = 0", buckets=4)
        with connect(pooled) as connection:
            queue.create(connection)
            queue.enqueue(connection, [("fluo", 1)])
            drain(pooled, "wc", timeout=60)
            assert values(connection) == {"fluo": 1}
            queue.drop(connection)
            queue.create(connection)
        # the command drops the queue in several transactions
        dropped = run_cli("queue", "drop", "wc", "--yes", "--dsn", pooled)
        assert dropped.returncode == 0, dropped.stderr
        assert left_behind(pooled, SERVERS) == []
