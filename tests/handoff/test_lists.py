"""Writers with different lists of servers, and a server that is removed while writers still name it."""

from __future__ import annotations

import random
from contextlib import ExitStack

import psycopg
import pytest
from support import eventually
from support.clusters import Cluster, Clusters, agreed, empty, hints, queue_on, replay, replay_all
from support.queues import make_queue, one

from pgcombine.errors import IndeterminateError, ReplicaError, UnavailableError
from pgcombine.handoff import operations, rebuilding, repairing
from pgcombine.handoff.connections import address, open_peer
from pgcombine.handoff.replicated import new_token
from pgcombine.handoff.retained import drop_retained


@pytest.fixture
def registered(clusters: Clusters) -> Clusters:
    """Each server knows the others."""
    for name, cluster in clusters.items():
        with cluster.connect() as conn:
            conn.execute("select pgcombine_internal.handoff_identify(%s)", (name,))
            for other in clusters.keys() - {name}:
                operations.add(conn, other, address(clusters[other].dsn))
    return clusters


@pytest.fixture
def newcomer(registered: Clusters) -> Clusters:
    """All servers have a write. Then c is removed at the others and loses all, but gets the empty queue again."""
    with queue_on(registered, "abc") as queue:
        queue.enqueue([("x", 1)], level="ALL")
    for name in "ab":
        registered[name].run(operations.remove, "c", timeout=1)
    empty(registered["c"])
    registered["c"].run(make_queue)
    return registered


def complete_or_says_so(clusters: Clusters, expected: int) -> bool:
    with queue_on(clusters, "abc") as queue:
        found = queue.get(["x"], level="ALL")
    assert not found.complete or found.values == {"x": expected}, found
    return found.complete


@pytest.mark.parametrize("known", [True, False])
@pytest.mark.parametrize("lists", ["bc", "cb", "b", "c"])
def test_reading_knows_writes_of_a_writer_with_an_old_list(registered: Clusters, lists: str, known: bool) -> None:
    """A server that the writer doesn't name gets hints. ``known``: others have named that server before."""
    total = 0
    with queue_on(registered, "abc") as new, queue_on(registered, lists) as old:
        if known:
            new.enqueue([("x", 1)], level="ALL")
            total += 1
        old.enqueue([("x", 1)], level="ALL")
        total += 1
        complete_or_says_so(registered, total)
        new.enqueue([("x", 1)], level="ALL")  # the next write of a new list hides nothing
        total += 1
        complete_or_says_so(registered, total)
    done = registered["b"].run(repairing.repair, registered["b"].direct)
    if known:
        replay_all(registered)
        assert complete_or_says_so(registered, total)
        agreed(registered, {"x": total})
    else:  # a server that nobody had named may need to be rebuilt
        assert set(done.lacking) <= set(done.marked)
        complete_or_says_so(registered, total)


@pytest.mark.parametrize("how", ["repair", "replay"])
def test_empty_coordinator_leaves_no_server_out(newcomer: Clusters, how: str) -> None:
    """The servers a and b know each other. A writer names only b and an empty server c, which doesn't know a."""
    with queue_on(newcomer, "cb") as old:
        old.enqueue([("x", 1)], level="ALL")
    if how == "repair":
        done = newcomer["b"].run(repairing.repair, newcomer["b"].direct)
        assert "a" not in done.lacking
    else:
        newcomer["b"].execute("update pgcombine.handoff_retained set since = since - interval '1 minute'")
        with open_peer("b", newcomer["b"].direct, 5).connection as connection:
            drop_retained(connection, 5)  # as the replayer does every few seconds
    agreed({name: newcomer[name] for name in "ab"}, {"x": 2})


@pytest.mark.parametrize("how", ["large", "late"])
def test_reading_isnt_complete_without_a_write_for_an_unnamed_server(newcomer: Clusters, how: str) -> None:
    """A write from an empty coordinator comes without a payload, or after the writer has named the third server."""
    if how == "late":
        newcomer["b"].cut_off()
    with queue_on(newcomer, "cb") as queue:
        queue.enqueue([("x", 1)] * (3000 if how == "large" else 1), level="ONE" if how == "late" else "ALL")
    newcomer["b"].proxy.heal()
    with queue_on(newcomer, "cab", timeout=60) as queue:
        queue.enqueue([("x", 1)], level="ALL")
    replay_all(newcomer)
    newcomer["b"].run(operations.add, "c", address(newcomer["c"].dsn))
    newcomer["b"].run(rebuilding.rebuild, newcomer["b"].direct, "c", ["b"])
    replay_all(newcomer)
    complete_or_says_so(newcomer, 3002 if how == "large" else 3)


def test_rebuild_clears_what_an_empty_server_thought_of_the_others(newcomer: Clusters) -> None:
    """Writers name the empty server c with a, and later with b, too. For c, b is a new server."""
    for names in ("ca", "cab"):
        with queue_on(newcomer, names) as queue:
            queue.enqueue([("x", 1)], level="ALL")
    assert "b" in newcomer["c"].run(repairing.repair, newcomer["c"].direct).marked
    newcomer["a"].run(operations.add, "c", address(newcomer["c"].dsn))
    newcomer["a"].run(rebuilding.rebuild, newcomer["a"].direct, "c", ["a"])
    replay_all(newcomer)
    done = newcomer["b"].run(repairing.repair, newcomer["b"].direct)
    assert (done.lacking, done.marked) == ({}, [])
    agreed(newcomer, {"x": 3})


@pytest.mark.parametrize("seed", range(2))
def test_random_writers_with_different_lists_agree_at_the_end(registered: Clusters, seed: int) -> None:
    """Reads that say ``complete`` have all acknowledged writes."""
    chance = random.Random(seed)
    total = 0
    with ExitStack() as stack:
        queues = [stack.enter_context(queue_on(registered, names)) for names in ("abc", "bc", "ca", "b", "cba")]
        queues[0].enqueue([("x", 1)], level="ALL")
        total += 1
        for _ in range(12):
            cut = chance.choice([None, "a", "b", "c"])
            if cut:
                registered[cut].cut_off()
            token = new_token()
            queue = chance.choice(queues)
            try:
                queue.enqueue([("x", 1)], token, level="ONE")
                total += 1
                doubtful = False
            except UnavailableError:
                doubtful = False
            except IndeterminateError:
                doubtful = True
            for cluster in registered.values():
                cluster.proxy.heal()
            if doubtful:
                queue.enqueue([("x", 1)], token, level="ONE")
                total += 1
            complete_or_says_so(registered, total)
    replay_all(registered)
    assert not registered["b"].run(repairing.repair, registered["b"].direct).lacking
    agreed(registered, {"x": total})


def servers(cluster: Cluster) -> set[str]:
    return {row["name"] for row in cluster.run(operations.ls)}


def test_removal_is_not_undone_by_writers(registered: Clusters) -> None:
    """Nor by the replayers of servers that still know the removed one."""
    with queue_on(registered, "cab") as queue:
        queue.enqueue([("x", 1)], level="ALL")
        eventually(lambda: not any(hints(registered).values()))
        registered["a"].stop()
        try:
            registered["b"].run(operations.remove, "a", timeout=1.0)
            queue.enqueue([("x", 1)], level="QUORUM")
            replay({name: registered[name] for name in "bc"}, "c")
            assert servers(registered["b"]) == {"c"}
            with registered["c"].connect() as conn:
                operations.truncate(conn, "a", "lost")
                operations.remove(conn, "a", timeout=1.0)
            queue.enqueue([("x", 1)], level="QUORUM")
            with pytest.raises(IndeterminateError):
                queue.enqueue([("x", 1)], level="ALL")
            assert (servers(registered["b"]), servers(registered["c"])) == ({"c"}, {"b"})
        finally:
            registered["a"].start()
    with registered["b"].connect() as conn:  # an operator registers the server again, which then needs repair
        operations.add(conn, "a", address(registered["a"].dsn))
        assert one(conn, "select needs_repair from pgcombine.handoff_replica where name = 'a'")
    assert servers(registered["b"]) == {"a", "c"}
    complete_or_says_so(registered, 4)


def test_repair_marks_a_server_that_lacks_a_write_of_a_lost_payload(registered: Clusters) -> None:
    with queue_on(registered, "bc") as queue:
        queue.enqueue([("x", 1)], level="ALL")
        eventually(lambda: hints(registered)["b"] <= 1, what="delivered to c")
    for name in "bc":  # as if the payload was dropped everywhere
        with registered[name].connect() as conn:
            conn.execute("delete from pgcombine.handoff_hint")
            conn.execute("delete from pgcombine.handoff_retained")
    with registered["b"].connect() as conn:
        done = repairing.repair(conn, registered["b"].direct)
        assert list(done.lacking) == ["a"]
        assert done.marked == ["a"]
        assert one(conn, "select needs_repair from pgcombine.handoff_replica where name = 'a'")
    with queue_on(registered, "abc") as queue:
        found = queue.get(["x"], level="ALL")
    assert "a" in found.needs_repair
    assert found.values == {"x": 1}


def test_whole_refused_write_that_two_coordinators_retry_counts_once(registered: Clusters) -> None:
    """The server at which the token stands for other updates gets the write once, by a token of the retry."""
    token = None
    with queue_on(registered, "c") as only:
        token = only.enqueue([("other", 1)]).token
    registered["c"].execute("delete from pgcombine.handoff_hint")
    for name in "ab":
        with queue_on(registered, f"{name}c") as queue:
            queue.enqueue([("x", 1)], token=token, level="ONE")
    replay_all(registered)
    retried = 0
    for name in "ab":
        with registered[name].connect() as conn:
            assert one(conn, "select count(*) from pgcombine.handoff_quarantine where destination = 'c'") == 1
            conn.execute("update pgcombine.handoff_replica set needs_repair = null")
            retried += operations.retry_quarantined(conn, "c")
    assert retried == 2
    replay_all(registered)
    with registered["c"].connect() as conn:
        assert dict(conn.execute("select word, n from pgcombine.wc_current").fetchall()) == {"other": 1, "x": 1}
        with pytest.raises((ReplicaError, psycopg.Error)):
            operations.retry_quarantined(conn, "nowhere")
