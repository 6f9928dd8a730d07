"""The log of an idle queue shrinks until each segment is smaller than 128 kB.

The parameter ``sees`` tells whether the schema's owner may see other roles' snapshots. If not, reclaiming deletes
combined updates instead of truncating segments.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from support.homes import SMALL, Filled
from support.queues import combine_all, lose, make_queue, one, values
from support.sessions import workers
from support.wait import eventually

from pgcombine.embedded import EmbeddedServer
from pgcombine.worker.drain import drain

SEGMENT = 128 * 1024  # bytes
SOME = "insert into pgcombine.wc_updates select 'w' || i %% 9, 1 from generate_series(1, %s) i"
STATEMENT = 5000  # number of updates that one statement inserts
SINGLE = "do $$ begin for i in 1..3000 loop insert into pgcombine.wc_updates values ('w', 1); commit; end loop; end $$"
SETTINGS = SMALL | {"autovacuum": "off"}


def largest(conn: psycopg.Connection, queue: str = "wc") -> int:
    """The size of the largest segment in bytes."""
    sizes = "select max(pg_relation_size(relid)) from pg_partition_tree(%s::regclass) where isleaf"
    return int(one(conn, sizes, f"pgcombine.{queue}_updates"))


def becomes_small(conn: psycopg.Connection, what: str, queue: str = "wc") -> None:
    began = time.monotonic()
    eventually(lambda: largest(conn, queue) < SEGMENT, what=f"each segment is small after {what}")
    print(f"after {what}: {time.monotonic() - began:.2f} s until each segment is smaller than 128 kB")


@contextmanager
def started(server: EmbeddedServer, sees: bool) -> Iterator[psycopg.Connection]:
    """Start the server. Grant the schema's owner the right to see other roles' sessions if ``sees``, else revoke it."""
    dsn = server.start()
    with (
        psycopg.connect(server.superuser_dsn(), autocommit=True) as admin,
        psycopg.connect(dsn, autocommit=True) as conn,
    ):
        right = "grant pg_read_all_stats to" if sees else "revoke pg_read_all_stats from"
        admin.execute(f"{right} pgcombine_owner")
        assert (one(conn, "select pgcombine_internal.oldest_snapshot()") is not None) == sees
        yield conn


@pytest.fixture(params=[True, False], ids=["truncating", "deleting"])
def sees(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


@pytest.fixture
def server(filled: Filled, tmp_path: Path) -> Iterator[EmbeddedServer]:
    server = EmbeddedServer(filled(tmp_path / "home"), settings=SETTINGS)
    yield server
    server.stop("immediate")


@pytest.mark.timeout(900)
@pytest.mark.parametrize("updates", [50_000, pytest.param(1_000_000, marks=pytest.mark.slow)])
def test_segments_shrink_after_a_load_and_after_a_crash(server: EmbeddedServer, sees: bool, updates: int) -> None:
    """The crash resets the statistics about deleted updates."""
    with started(server, sees) as conn:
        make_queue(conn)
        with workers(server.dsn(), "wc", poll=0.05):
            for _ in range(updates // STATEMENT):
                conn.execute(SOME, (STATEMENT,))
            eventually(lambda: sum(values(conn).values()) == updates, timeout=300, what="the updates are combined")
            becomes_small(conn, f"{updates} updates")
        conn.execute(SOME, (50_000,))
        combine_all(conn)
        lose(conn, "random() < 0.5")
    server.stop("immediate")
    with started(server, sees) as conn:
        assert largest(conn) > SEGMENT
        with workers(server.dsn(), "wc", poll=0.05):
            becomes_small(conn, "a crash")
        assert sum(values(conn).values()) == updates + 50_000


def test_segments_shrink_after_many_single_updates(server: EmbeddedServer, sees: bool) -> None:
    with started(server, sees) as conn:
        conn.execute("select pgcombine.create_queue('wc', '{word text}', '{n bigint sum}', buckets => 1)")
        bits = one(conn, "select segment_bits from pgcombine.queue")
        with workers(server.dsn(), "wc", poll=0.05):
            for _ in range(4):
                conn.execute(SINGLE)
                # use up transaction ids until the segment's round of ids ends
                conn.execute(
                    f"do $$ declare _round bigint := txid_current() >> {bits}; begin commit;"
                    f" while txid_current() >> {bits} = _round loop commit; end loop; end $$"
                )
            eventually(lambda: values(conn) == {"w": 4 * 3000}, what="the updates are combined")
            becomes_small(conn, "single updates")


def test_segments_shrink_after_a_drain(server: EmbeddedServer, sees: bool) -> None:
    """No worker runs, so ``drain`` itself reclaims the log."""
    with started(server, sees) as conn:
        make_queue(conn, buckets=2)
        conn.execute(SOME, (50_000,))
        drain(server.dsn(), "wc", timeout=60)
        becomes_small(conn, "a drain")


def test_segments_shrink_after_a_drain_beside_a_snapshot(server: EmbeddedServer, sees: bool) -> None:
    """Another session releases its snapshot a second after drain's first pass."""
    with started(server, sees) as conn, psycopg.connect(server.dsn()) as held:
        make_queue(conn, buckets=2)
        conn.execute(SOME, (50_000,))
        held.execute("set transaction isolation level repeatable read")
        held.execute("select from pgcombine.queue")
        release = threading.Timer(1, held.rollback)
        drain(server.dsn(), "wc", timeout=60, on_pass=lambda _: None if release.is_alive() else release.start())
        release.join()
        assert largest(conn) < SEGMENT
