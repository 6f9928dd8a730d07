"""Standbys and their promotion, wrong clocks, and full disks."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import urlsplit
from uuid import UUID

import psycopg
import pytest
from support import eventually
from support.clusters import Cluster, agreed, dsns, figures, hints, replay, replay_all, tokens
from support.queues import combine_all, one, values
from support.servers import images

from pgcombine import ReplicatedQueue, schema
from pgcombine.errors import ReplicaError, TokenExpiredError, UnavailableError
from pgcombine.handoff import operations

pytestmark = pytest.mark.slow

Clusters = dict[str, Cluster]


def token_of(offset: timedelta) -> UUID:
    """A token from a clock that is wrong by ``offset``."""
    moment = int((datetime.now(UTC) + offset).timestamp() * 1000)
    return UUID(int=moment << 80 | 0x7 << 76 | secrets.randbits(12) << 64 | 0x2 << 62 | secrets.randbits(62))


def test_standby_gets_no_hints(queue: ReplicatedQueue, clusters: Clusters, tmp_path: Path) -> None:
    """A standby is read-only, so hints for a server aren't delivered to its standby."""
    queue.enqueue([("fluo", 1)], level="ALL")
    with clusters["c"].standby(tmp_path / "standby") as standby:
        clusters["c"].proxy.target = urlsplit(standby.server).port or 0
        clusters["c"].proxy.cut()
        assert queue.enqueue([("fluo", 10)], level="QUORUM").acked == ("a", "b")
        eventually(lambda: hints({name: clusters[name] for name in "ab"}) == {"a": 1, "b": 0})
        assert replay({"a": clusters["a"]})["delivered"] == 0
        with clusters["a"].connect() as coordinator:
            assert 'server "c" is in recovery' in one(
                coordinator, "select reason from pgcombine.handoff where destination = 'c'"
            )
        with (
            ReplicatedQueue({"c": clusters["c"].dsn}, "wc") as alone,
            pytest.raises(UnavailableError, match="in recovery"),
        ):
            alone.enqueue([("fluo", 100)])
        clusters["c"].proxy.target = urlsplit(clusters["c"].server).port or 0
        clusters["c"].proxy.cut()
    replay_all(clusters)
    agreed(clusters, {"fluo": 11})


def test_standby_replaces_the_coordinator(clusters: Clusters, tmp_path: Path) -> None:
    """A promoted standby has the identity, the tokens and the hints of its former primary."""
    with ReplicatedQueue(dsns(clusters), "wc", level="ALL", timeout=4) as queue:
        queue.enqueue([("fluo", 1)])
        eventually(lambda: not any(hints(clusters).values()))
    with clusters["a"].standby(tmp_path / "standby") as standby:
        clusters["c"].proxy.refuse = True
        with ReplicatedQueue(dsns(clusters), "wc", timeout=4) as queue:
            token = queue.enqueue([("fluo", 10)]).token
        eventually(lambda: hints(clusters) == {"a": 1, "b": 0, "c": 0})
        before = tokens(clusters["a"])
        with standby.connect() as conn:
            eventually(lambda: one(conn, "select count(*) from pgcombine.hint") == 1 and tokens(standby) == before)
            clusters["a"].kill()
            assert one(conn, "select pg_promote()") is True
        clusters["a"].proxy.target = urlsplit(standby.server).port or 0
        clusters["c"].proxy.heal()
        servers = {"a": standby, "b": clusters["b"], "c": clusters["c"]}
        assert replay_all(servers) == {"delivered": 1, "deduplicated": 0, "quarantined": 0}
        with ReplicatedQueue(dsns(servers), "wc", level="ALL", timeout=4) as queue:
            assert queue.enqueue([("fluo", 10)], token).acked == ("a", "b", "c")
        replay_all(servers)
        agreed(servers, {"fluo": 11})


def test_clock_that_is_hours_wrong_does_no_harm(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """Tokens 23 hours ahead or 100 hours behind are accepted. Tokens two days ahead, or eight days old, are refused."""
    for hours in (-100, -5, 5, 23):
        token = token_of(timedelta(hours=hours))
        for _ in range(2):
            assert queue.enqueue([("fluo", 1)], token, level="ALL").acked == ("a", "b", "c")
    for days in (-8, 2):
        with pytest.raises(TokenExpiredError, match="check the clocks"):
            queue.enqueue([("fluo", 100)], token_of(timedelta(days=days)))
    replay_all(clusters)
    agreed(clusters, {"fluo": 4})


def test_server_refuses_hints_that_seem_too_old(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """A server with a short retention refuses an older hint. The hint is quarantined, and the server needs repair."""
    queue.enqueue([("fluo", 1)], level="ALL")
    with clusters["c"].connect() as conn, clusters["a"].connect() as coordinator:
        conn.execute("update pgcombine.handoff_server set retention = '1 hour'")
        token = token_of(timedelta(hours=-5))
        clusters["c"].proxy.refuse = True
        clusters["c"].proxy.cut()
        assert queue.enqueue([("fluo", 10)], token).acked == ("a", "b")
        queue.close()
        clusters["c"].proxy.heal()
        assert replay_all(clusters) == {"delivered": 0, "deduplicated": 0, "quarantined": 1}
        assert figures(clusters["a"])["c"][2] == 1
        (held,) = operations.quarantined(coordinator, "c", 10)
        assert (held["token"], held["number"], held["sqlstate"]) == (token, 0, "PC041")
        assert "too old" in one(coordinator, "select needs_repair from pgcombine.handoff where destination = 'c'")
        with pytest.raises(ReplicaError, match="first rebuild that server"):
            operations.retry_quarantined(coordinator, "c", token)
    agreed({name: clusters[name] for name in "ab"}, {"fluo": 11})
    assert len(tokens(clusters["c"])) == 1


@pytest.fixture(autouse=True)
def without_tls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Allow connections without TLS: the server in a container has no certificate, which a replayer demands."""
    monkeypatch.setenv("PGSSLMODE", "prefer")


@pytest.fixture
def cramped(clusters: Clusters) -> Iterator[tuple[Clusters, str]]:
    """Servers a and b, and the URI of a PostgreSQL 15 in a container. Its queue is on a disk of 8 MB."""
    from testcontainers.community.postgres import PostgresContainer

    container = PostgresContainer(
        images()["PGCOMBINE_TEST_IMAGE"], username="postgres", password="not-secret", dbname="postgres", driver=None
    ).with_tmpfs_mount("/small", "size=8m,mode=1777")
    file = Path(os.environ["PGPASSFILE"])
    before = file.read_text(encoding="utf-8")
    with container:
        dsn = container.get_connection_url()
        schema.upgrade(dsn)
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("copy (select 1) to program 'mkdir /small/table_space; cat > /dev/null'")
            conn.execute("create tablespace small location '/small/table_space'")
            conn.execute(
                "select pgcombine.create_queue('wc', '{word text}', '{n bigint sum}', buckets => 4, "
                "tablespaces => '{small}')"
            )
        host = urlsplit(dsn).hostname
        file.write_text(f"{host}:*:*:postgres:not-secret\n{before}", encoding="utf-8")
        try:
            yield {name: clusters[name] for name in "ab"}, dsn
        finally:
            file.write_text(before, encoding="utf-8")


def fits(conn: psycopg.Connection) -> bool:
    """Insert some bytes and return whether the disk had room for them."""
    try:
        conn.execute("insert into filler select repeat('x', 1000) from generate_series(1, 100)")
    except psycopg.errors.DiskFull:
        return False
    return True


@pytest.mark.docker
def test_servers_survive_a_full_disk(cramped: tuple[Clusters, str]) -> None:
    """Hints for a replica with a full disk wait. A write to a coordinator with a full disk goes to the next server."""
    others, dsn = cramped
    servers = {**dsns(others), "d": dsn}
    with psycopg.connect(dsn, autocommit=True) as conn, ReplicatedQueue(servers, "wc", timeout=4) as queue:
        queue.enqueue([("fluo", 1)], level="ALL")
        combine_all(conn)
        conn.execute("create table filler (x text) with (autovacuum_enabled = off) tablespace small")
        while fits(conn):
            pass
        rows = [(f"word{i}", 1) for i in range(5000)]
        assert queue.enqueue(rows, level="QUORUM").acked == ("a", "b")
        eventually(lambda: hints(others) == {"a": 1, "b": 0})
        assert replay({"a": others["a"]})["delivered"] == 0
        with others["a"].connect() as coordinator:
            state, reason = coordinator.execute(
                "select state, reason from pgcombine.handoff where destination = 'd'"
            ).fetchone() or ("", "")
            assert state in ("suspect", "down")
            assert "No space left on device" in reason
        with ReplicatedQueue({"d": dsn, **dsns(others)}, "wc", timeout=4) as first:
            assert "d" not in first.enqueue(rows, level="QUORUM").acked
        conn.execute("drop table filler")
        replay_all(others)
        combine_all(conn)
        assert values(conn) == {"fluo": 1, **dict.fromkeys((word for word, _ in rows), 2)}
        held = set(conn.execute("select token, digest from pgcombine.handoff_token").fetchall())
    agreed(others, {"fluo": 1, **dict.fromkeys((word for word, _ in rows), 2)})
    assert held == tokens(others["a"])
