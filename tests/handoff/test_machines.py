"""Standbys and their promotion, and wrong clocks."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from support import eventually
from support.clusters import Clusters, agreed, figures, hints, queue_on, replay, replay_all, token_of, tokens
from support.queues import one

from pgcombine import ReplicatedQueue
from pgcombine.errors import ReplicaError, TokenExpiredError, UnavailableError
from pgcombine.handoff import operations

pytestmark = pytest.mark.slow


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
            pytest.raises(UnavailableError),
        ):
            alone.enqueue([("fluo", 100)])
        clusters["c"].proxy.target = urlsplit(clusters["c"].server).port or 0
        clusters["c"].proxy.cut()
    replay_all(clusters)
    agreed(clusters, {"fluo": 11})


def test_standby_replaces_the_coordinator(clusters: Clusters, tmp_path: Path) -> None:
    """A promoted standby has the identity, the tokens and the hints of its former primary."""
    with queue_on(clusters, level="ALL") as queue:
        queue.enqueue([("fluo", 1)])
        eventually(lambda: not any(hints(clusters).values()))
    with clusters["a"].standby(tmp_path / "standby") as standby:
        clusters["c"].proxy.refuse = True
        with queue_on(clusters) as queue:
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
        with queue_on(servers, level="ALL") as queue:
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
        with pytest.raises(TokenExpiredError):
            queue.enqueue([("fluo", 100)], token_of(timedelta(days=days)))
    replay_all(clusters)
    agreed(clusters, {"fluo": 4})


def test_server_refuses_hints_that_seem_too_old(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """A server with a short retention refuses an older hint. The hint is quarantined, and the server needs repair."""
    queue.enqueue([("fluo", 1)], level="ALL")
    with clusters["c"].connect() as conn, clusters["a"].connect() as coordinator:
        conn.execute("update pgcombine.handoff_server set retention = '1 hour'")
        token = token_of(timedelta(hours=-5))
        clusters["c"].cut_off()
        assert queue.enqueue([("fluo", 10)], token).acked == ("a", "b")
        queue.close()
        clusters["c"].proxy.heal()
        assert replay_all(clusters) == {"delivered": 0, "deduplicated": 0, "quarantined": 1}
        assert figures(clusters["a"])["c"][2] == 1
        (held,) = operations.quarantined(coordinator, "c", 10)
        assert (held["token"], held["number"], held["sqlstate"]) == (token, 0, "PC041")
        assert "too old" in one(coordinator, "select needs_repair from pgcombine.handoff where destination = 'c'")
        with pytest.raises(ReplicaError):
            operations.retry_quarantined(coordinator, "c", token)
    agreed({name: clusters[name] for name in "ab"}, {"fluo": 11})
    assert len(tokens(clusters["c"])) == 1
