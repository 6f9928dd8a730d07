"""A coordinator is lost for good with its hints. Other servers have the acknowledged writes. A repair forwards these.

Before the repair, a reading that may lack such writes is incomplete.
"""

from __future__ import annotations

import threading
import uuid
from collections.abc import Mapping
from itertools import product

import pytest
from support import eventually, run_cli
from support.clusters import Cluster, Clusters, agreed, empty, hints, queue_on, repair, replay, replay_all
from support.queues import make_queue, one

from pgcombine import Replayer, ReplicatedQueue
from pgcombine.errors import ReplicaError
from pgcombine.handoff import operations, rebuilding, repairing
from pgcombine.handoff.connections import address, open_peer
from pgcombine.handoff.delivery import Hint, apply
from pgcombine.handoff.levels import Level
from pgcombine.handoff.replicated import new_token
from pgcombine.handoff.retained import drop_retained

KEPT = "select count(*) from pgcombine.handoff_retained"


def without(clusters: Clusters, lost: str) -> Clusters:
    """Remove the lost server's registration at the other servers, and return these servers."""
    others = {name: cluster for name, cluster in clusters.items() if name != lost}
    for cluster in others.values():
        with cluster.connect() as conn:
            if one(conn, "select count(*) from pgcombine.handoff_replica where name = %s", lost):
                assert not operations.remove(conn, lost, timeout=1)
    return others


def kept(clusters: Mapping[str, Cluster]) -> dict[str, int]:
    found = {}
    for name, cluster in clusters.items():
        found[name] = cluster.one(KEPT)
    return found


def dropped(cluster: Cluster) -> int:
    """Drop retained payloads that are no longer needed, even recent ones. Return their number."""
    cluster.execute("update pgcombine.handoff_retained set since = since - interval '1 minute'")
    with open_peer(cluster.name, cluster.direct, 5).connection as coordinator:
        return drop_retained(coordinator, 5)


@pytest.fixture
def survivors(clusters: Clusters) -> Clusters:
    """Servers b and c. Only b has the write w3, and only c has w4. The coordinator a is lost with its hints."""
    with queue_on(clusters, timeout=60) as queue:  # reconnecting to a server that was cut off takes a while
        queue.enqueue([("w0", 1)], level="ALL")
        for word, down in (("w3", "c"), ("w4", "b")):
            clusters[down].cut_off()
            receipt = queue.enqueue([(word, 1)], level="QUORUM")
            assert (receipt.acked, receipt.hinted) == (tuple(sorted({"a", "b", "c"} - {down})), (down,))
            clusters[down].proxy.heal()
    clusters["a"].cut_off()
    for cluster in clusters.values():
        cluster.combine()
    return {name: clusters[name] for name in "bc"}


def test_servers_forward_writes_of_a_lost_coordinator(survivors: Clusters, clusters: Clusters) -> None:
    """A rebuild would lose one write and is refused; a repair forwards both writes."""
    without(clusters, "a")
    with survivors["b"].connect() as conn, pytest.raises(ReplicaError) as refused:
        rebuilding.rebuild(conn, survivors["b"].direct, "c", ["b"])
    assert 'of server "c" are on none of its sources (b)' in str(refused.value)
    done = run_cli("replicas", "repair", "--dsn", survivors["b"].direct)
    assert (done.returncode, done.stdout) == (0, "compared b, c: b got 1, c got 1 writes\n"), done.stderr
    agreed(survivors, {"w0": 1, "w3": 1, "w4": 1})
    assert repair(survivors["c"]).delivered == {"b": 0, "c": 0}
    with queue_on(survivors) as queue:
        assert queue.get(["w3", "w4"]).values == {"w3": 1, "w4": 1}


@pytest.mark.slow
def test_reading_is_incomplete_before_the_repair(survivors: Clusters, clusters: Clusters) -> None:
    """The lost server doesn't answer the reader, or the reader doesn't name it, or an operator has removed it."""
    for level in ("ONE", "QUORUM"):
        with queue_on(clusters) as queue:
            reading = queue.get(["w3", "w4"], level=level)
        assert not reading.complete
        assert reading.unknown == ("a",)
        assert reading.lags == {"b": 1, "c": 1}
    with queue_on(survivors) as queue:
        reading = queue.get(["w3", "w4"], level="ALL")
        assert (reading.complete, reading.unknown, reading.lags) == (False, ("a",), {"b": 1, "c": 1})
        without(clusters, "a")
        reading = queue.get(["w3", "w4"], level="ALL")
        assert (reading.complete, reading.needs_repair) == (False, ("b", "c"))
        shown = run_cli("replicas", "ls", "--dsn", survivors["b"].direct).stdout
        assert 'this server, b, needs repair: server "a" was removed' in shown
        assert 'c needs repair: server "a" was removed' in shown
        repair(survivors["b"])
        combined(survivors)
        reading = queue.get(["w3", "w4"], level="ALL")
        assert (reading.complete, reading.unknown, reading.needs_repair) == (True, (), ())
        assert reading.values == {"w3": 1, "w4": 1}


def combined(clusters: Mapping[str, Cluster]) -> None:
    for cluster in clusters.values():
        cluster.combine()


@pytest.mark.slow
def test_empty_server_completes_no_reading(clusters: Clusters) -> None:
    """A new server with the name of the lost one has the queue but isn't rebuilt, so it may lack all writes."""
    with queue_on(clusters) as queue:
        queue.enqueue([("w0", 1)], level="ALL")
    replay_all(clusters)
    assert [dropped(clusters[name]) for name in "abc"] == [0, 1, 1]
    clusters["a"].cut_off()
    survivors = without(clusters, "a")
    assert repair(survivors["b"]).marked == []
    empty(clusters["a"])
    clusters["a"].run(make_queue)
    clusters["a"].proxy.heal()
    with queue_on(clusters) as queue:
        for name in ("nobody", "a", "b", "c"):  # the servers that removed the lost one don't register the new one
            if name != "nobody":
                with queue_on({name: clusters[name], **clusters}) as writer:
                    writer.enqueue([("w1", 1)], level="QUORUM")
                replay_all(clusters)
            for level in LEVELS:
                reading = queue.get(["w0"], level=level)
                assert (reading.values, "a" in reading.needs_repair) == ({"w0": 1}, True)
        with survivors["b"].connect() as conn:
            operations.add(conn, "a", address(clusters["a"].dsn))
            rebuilding.rebuild(conn, survivors["b"].direct, "a", ["b"])
        assert repair(survivors["b"]).marked == []
        for level in LEVELS:
            reading = queue.get(["w0"], level=level)
            assert (reading.values, reading.complete, reading.needs_repair) == ({"w0": 1}, True, ())


@pytest.mark.slow
def test_readers_count_a_late_write_of_a_lost_coordinator(survivors: Clusters, clusters: Clusters) -> None:
    """A client delivers a write to one server after the servers were compared. That server retains the payload, so
    readers know which servers lack the write."""
    with clusters["a"].connect() as conn:
        digest, shape, payload, coordinator = conn.execute(
            "select h.digest, h.shape, h.payload, s.id from pgcombine.handoff_hint h, pgcombine.handoff_server s "
            "where destination = 'c'"
        ).fetchone()
    without(clusters, "a")
    repair(survivors["b"])
    late = Hint(new_token(), "wc", shape, digest, None, 1, payload, list("abc"), 3, coordinator)
    peer = open_peer("b", survivors["b"].direct, 5)
    with peer.connection:
        assert apply(peer, [late], "a") == {late.token: "applied"}
    combined(survivors)
    with queue_on(survivors) as queue:
        reading = queue.get(["w3"], level="ALL")
        assert (reading.values, reading.lags, reading.complete) == ({"w3": 2}, {"b": 0, "c": 1}, True)
        survivors["b"].cut_off()
        reading = queue.get(["w3"], level="ONE")
        assert (reading.values, reading.complete) == ({"w3": 1}, False)
        survivors["b"].proxy.heal()
    assert repair(survivors["c"]).delivered == {"b": 0, "c": 1}
    agreed(survivors, {"w0": 1, "w3": 2, "w4": 1})


def test_payloads_are_dropped_when_all_servers_have_the_write(queue: ReplicatedQueue, clusters: Clusters) -> None:
    queue.enqueue([("w0", 1)], level="ALL")
    assert kept(clusters) == {"a": 0, "b": 1, "c": 1}
    clusters["c"].cut_off()
    queue.enqueue([("w1", 1)], level="QUORUM")
    assert kept(clusters)["b"] == 2
    assert dropped(clusters["b"]) == 0  # c doesn't answer, so both payloads stay
    clusters["c"].proxy.heal()
    assert dropped(clusters["b"]) == 1  # c has the first write
    replay_all(clusters)
    assert [dropped(clusters[name]) for name in "abc"] == [0, 1, 1]
    assert kept(clusters) == {"a": 0, "b": 0, "c": 0}


@pytest.mark.slow
def test_replayer_drops_retained_payloads(queue: ReplicatedQueue, clusters: Clusters) -> None:
    queue.enqueue([("w0", 1)], level="ALL")
    stop = threading.Event()
    replayers = [Replayer(cluster.direct, poll=0.1) for cluster in clusters.values()]
    threads = [threading.Thread(target=one.run, args=(stop,)) for one in replayers]
    for thread in threads:
        thread.start()
    try:
        eventually(lambda: kept(clusters) == {"a": 0, "b": 0, "c": 0})
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_last_hint_leaves_no_payload(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """When the last hint of a write is delivered, all servers have the write, so the last server retains nothing."""
    for name in "bc":
        clusters[name].cut_off()
    queue.enqueue([("w0", 1)], level="ONE")
    eventually(lambda: hints(clusters)["a"] == 2)
    clusters["b"].proxy.heal()
    replay(clusters, "a")
    assert kept(clusters) == {"a": 0, "b": 1, "c": 0}
    clusters["c"].proxy.heal()
    replay(clusters, "a")
    assert kept(clusters) == {"a": 0, "b": 1, "c": 0}


@pytest.mark.slow
def test_quota_limits_retained_payloads(clusters: Clusters) -> None:
    """A reached quota is reported. If the coordinator is lost, a repair names the writes that no server can forward."""
    for cluster in clusters.values():
        with cluster.connect() as conn:
            conn.execute("select pgcombine_internal.handoff_identify(%s)", (cluster.name,))
            conn.execute("update pgcombine.handoff_server set max_retained_bytes = 0")
    with queue_on(clusters) as queue:
        clusters["c"].cut_off()
        token = queue.enqueue([("w0", 1)], level="QUORUM").token
        clusters["c"].proxy.heal()
    assert kept(clusters) == {"a": 0, "b": 0, "c": 0}
    assert "quota of 0 bytes" in run_cli("replicas", "ls", "--dsn", clusters["b"].direct).stdout
    clusters["a"].cut_off()
    survivors = without(clusters, "a")
    done = run_cli("replicas", "repair", "--dsn", survivors["c"].direct)
    # c was unreachable when the other servers registered each other
    assert "knows no other server to compare with" in done.stderr
    done = run_cli("replicas", "repair", "--dsn", survivors["b"].direct)
    assert done.returncode == 1
    assert f"c lacks 1 write, such as {token}: no server retains its payload" in done.stderr
    with queue_on(survivors) as queue:
        reading = queue.get(["w0"], level="ALL")
        assert (reading.complete, reading.needs_repair) == (True, ("c",))  # b has all remaining writes
    survivors["b"].run(rebuilding.rebuild, survivors["b"].direct, "c", ["b"], force=True)
    assert repair(survivors["b"]).lacking == {}
    agreed(survivors, {"w0": 1})
    with queue_on(survivors) as queue:
        assert queue.get(["w0"], level="ALL").complete


@pytest.mark.slow
def test_silent_server_keeps_the_marks(survivors: Clusters, clusters: Clusters) -> None:
    without(clusters, "a")
    survivors["c"].cut_off()
    done = run_cli("replicas", "repair", "--dsn", survivors["b"].direct)
    assert done.returncode == 1
    assert "c wasn't compared" in done.stderr
    survivors["c"].proxy.heal()
    with queue_on(survivors) as queue:
        assert not queue.get(["w0"], level="ALL").complete
    assert repair(survivors["b"]).marked == []


def test_mark_made_during_a_repair_stays(survivors: Clusters, clusters: Clusters) -> None:
    without(clusters, "a")
    comparison = uuid.uuid4()
    with survivors["b"].connect() as conn:
        conn.execute("select pgcombine_internal.handoff_compare_begin(%s)", (comparison,))
        conn.execute("select pgcombine_internal.handoff_require_repair('c', 'something else', by_tokens => true)")
        left = conn.execute(
            "select pgcombine_internal.handoff_compare_end(%s, '{b,c}', '{}')", (comparison,)
        ).fetchall()
        assert left == [("c",)]
    assert repair(survivors["b"]).marked == []


def test_mark_that_needs_a_rebuild_is_not_replaced(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """If hints are truncated later, even during a rebuild, the mark still says that the server must be rebuilt."""
    queue.enqueue([("w0", 1)], level="ALL")
    with clusters["a"].connect() as conn:
        conn.execute("select pgcombine_internal.handoff_require_repair('c', 'updates that it refused were dropped')")
        conn.execute("select pgcombine_internal.handoff_repair_begin('c', 'host=c', %s)", (uuid.uuid4(),))
        conn.execute("select pgcombine_internal.handoff_require_repair('c', 'hints were truncated', by_tokens => true)")
        assert one(conn, "select by_tokens from pgcombine.handoff_replica where name = 'c'") is False
    assert repair(clusters["a"]).marked == ["c"]


def test_removal_of_a_server_without_hints_needs_no_repair(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """A server that answers isn't removed while it has hints for others. After the removal no server needs repair."""
    clusters["c"].cut_off()
    queue.enqueue([("w0", 1)], level="QUORUM")
    queue.close()
    with clusters["b"].connect() as conn, pytest.raises(ReplicaError):
        operations.remove(conn, "a")
    clusters["c"].proxy.heal()
    replay_all(clusters)
    done = run_cli("replicas", "rm", "a", "--yes", "--dsn", clusters["b"].direct)
    assert (done.returncode, "repair" in done.stdout) == (0, False), done
    survivors = {name: clusters[name] for name in "bc"}
    combined(survivors)
    with queue_on(survivors) as rest:
        assert rest.get(["w0"], level="ALL").complete


def test_removal_of_a_server_without_writes_needs_no_repair(queue: ReplicatedQueue, clusters: Clusters) -> None:
    queue.enqueue([("w0", 1)], level="ALL")
    with clusters["a"].connect() as conn:
        operations.add(conn, "z", "host=127.0.0.1 port=1 dbname=x user=x")
        assert not operations.remove(conn, "z", timeout=1)
        assert one(conn, "select count(*) from pgcombine.handoff where needs_repair is not null") == 0


@pytest.mark.slow
def test_copy_has_the_payloads_of_its_source(clusters: Clusters) -> None:
    """The coordinator a loses its hint for c and is rebuilt from b. Then b is lost, and a forwards the write to c."""
    with queue_on(clusters) as queue:
        clusters["c"].cut_off()
        queue.enqueue([("w3", 1)], level="QUORUM")
        clusters["c"].proxy.heal()
    with clusters["b"].connect() as conn:
        clusters["a"].execute("truncate pgcombine.handoff_hint")
        rebuilding.rebuild(conn, clusters["b"].direct, "a", ["b"])
    assert clusters["a"].one(KEPT) == 1
    clusters["b"].cut_off()
    survivors = without(clusters, "b")
    assert repair(survivors["a"]).delivered["c"] == 1
    agreed(survivors, {"w3": 1})


@pytest.mark.parametrize("known", ["", "a", "b"])
def test_rebuilt_server_repairs_without_a_writer(clusters: Clusters, known: str) -> None:
    """The rebuild registers the other servers at the rebuilt one, also if one of them is ``known`` there. So a repair
    and a drop of payloads can run there.
    """
    clusters["c"].cut_off()
    with queue_on(clusters) as queue:
        queue.enqueue([("w3", 1)], level="QUORUM")
    with clusters["a"].connect() as home:
        operations.truncate(home, "c", "it is lost")
        survivors = without(clusters, "c")
        assert repair(survivors["a"]).marked == []
        empty(clusters["c"])
        clusters["c"].proxy.heal()
        operations.add(home, "c", address(clusters["c"].dsn))
        if known:
            clusters["c"].run(operations.add, known, address(clusters[known].dsn))
        rebuilding.rebuild(home, clusters["a"].direct, "c", ["b"])
    assert repair(clusters["c"]) == repairing.Repaired(("c", "a", "b"), {"a": 0, "b": 0, "c": 0})
    assert kept(clusters) == {"a": 0, "b": 1, "c": 1}
    assert [dropped(clusters[name]) for name in "abc"] == [0, 1, 1]
    agreed(clusters, {"w3": 1})


@pytest.mark.slow
@pytest.mark.servers("abcde")
def test_repair_gives_each_survivor_its_keys(clusters: Clusters) -> None:
    """Each key is on three of five servers. Each survivor gets from the others the writes that it lacks."""
    rows = [(f"w{number}", 1) for number in range(50)]
    with queue_on(clusters, replicas=3) as queue:
        queue.enqueue(rows, level="ALL")
        for down in "bcde":
            clusters[down].cut_off()
            queue.enqueue(rows, level="QUORUM")
            clusters[down].proxy.heal()
        clusters["a"].cut_off()
        expected = queue.get([word for word, _ in rows], level="QUORUM")
        assert not expected.complete
    survivors = without(clusters, "a")
    assert sum(repair(survivors["b"]).delivered.values()) == 4
    combined(survivors)
    placed: dict[str, int] = {}
    for cluster in survivors.values():
        with cluster.connect() as conn:
            for word, n in conn.execute("select word, n from pgcombine.wc_values").fetchall():
                assert (cluster.name, word, n) == (cluster.name, word, 5)
                placed[word] = placed.get(word, 0) + 1
            holders = conn.execute(
                "select cardinality(array_remove(holders, 'a')) from pgcombine_internal.handoff_holders("
                "'wc', %s, '{a,b,c,d,e}', 3)",
                ('{"{' + ",".join(word for word, _ in rows) + '}"}',),
            ).fetchall()
    assert sum(placed.values()) == sum(count for (count,) in holders)
    with queue_on(clusters, replicas=3) as queue:  # hints for the lost server wait for an empty server of its name
        queue.enqueue(rows, level="QUORUM")
    for cluster in survivors.values():
        with cluster.connect() as conn:
            assert conn.execute(MARKED).fetchall() in ([], [("a",)])


@pytest.mark.slow
@pytest.mark.servers("abcde")
def test_removal_moves_no_key(clusters: Clusters) -> None:
    """The removal of a server doesn't change which servers hold a key.

    A server that gets a hint appends only the updates of its keys. An empty server with the name of the removed server
    gets the keys of that server.
    """
    rows = [(f"w{number}", 1) for number in range(50)]
    clusters["b"].cut_off()
    with queue_on(clusters, replicas=3) as queue:
        queue.enqueue(rows, level="QUORUM")
    clusters["e"].cut_off()
    others = without(clusters, "e")
    clusters["b"].proxy.heal()
    assert replay(others, "a")["delivered"] == 1
    assert repair(others["a"]).lacking == {}
    empty(clusters["e"])
    clusters["e"].proxy.heal()
    with clusters["a"].connect() as home:
        operations.add(home, "e", address(clusters["e"].dsn))
        rebuilding.rebuild(home, clusters["a"].direct, "e")
    assert repair(clusters["e"]).marked == []
    combined(clusters)
    placed: dict[str, set[str]] = {word: set() for word, _ in rows}
    for cluster in clusters.values():
        with cluster.connect() as conn:
            for word, n in conn.execute("select word, n from pgcombine.wc_values").fetchall():
                assert (cluster.name, word, n) == (cluster.name, word, 1)
                placed[word].add(cluster.name)
    statement = "select holders from pgcombine_internal.handoff_holders('wc', %s, '{a,b,c,d,e}', 3)"
    assert placed == {word: set(clusters["a"].one(statement, f'{{"{{{word}}}"}}')) for word in placed}


MARKED = """
    select name from pgcombine.handoff_replica where needs_repair is not null
    union all
    select name from pgcombine.handoff_server where needs_repair is not null
"""
LEVELS: list[Level] = ["ONE", "QUORUM", "ALL"]


@pytest.mark.slow
@pytest.mark.parametrize(("written", "lost"), [*product(LEVELS, [None, "a", "b"]), ("QUORUM", "c")])
def test_reading_sees_a_write_or_says_that_it_is_incomplete(
    clusters: Clusters, written: Level, lost: str | None
) -> None:
    """One server or none is lost after a write at one of the levels.

    The write is on as few servers as its level allows. A reading has the write or is incomplete. Once the lost server
    is removed and the others are repaired, readings have the write, unless only the lost server had it.
    """
    down = {"ONE": "bc", "QUORUM": "c", "ALL": ""}[str(written)]
    with queue_on(clusters) as queue:
        queue.enqueue([("w0", 1)], level="ALL")  # the servers register each other
        for name in down:
            clusters[name].cut_off()
        queue.enqueue([("w", 1)], level=written)
    for name in down:
        clusters[name].proxy.heal()
    combined(clusters)
    if lost is not None:
        clusters[lost].cut_off()
    holders = set("abc") - set(down) - {lost}
    with queue_on(clusters) as queue:
        for level in LEVELS if lost is None else LEVELS[:2]:
            reading = queue.get(["w"], level=level)
            assert reading.values == ({"w": 1} if holders else {})
            assert lost is None or not reading.complete
        if lost is None:  # readers may still avoid the servers that were unreachable
            eventually(lambda: queue.get(["w"], level="ONE").complete)
    if lost is None:
        return
    for name, cluster in clusters.items():
        with cluster.connect() as conn:
            if name != lost and one(conn, "select count(*) from pgcombine.handoff_hint where destination = %s", lost):
                operations.truncate(conn, lost, "it is lost")
    survivors = without(clusters, lost)
    repair(survivors["b" if lost == "a" else "a"])
    combined(survivors)
    with queue_on(survivors) as queue:
        for level in LEVELS:
            reading = queue.get(["w"], level=level)
            assert reading.values == ({"w": 1} if holders else {})
            assert reading.complete


@pytest.mark.slow
def test_payloads_are_dropped_after_a_server_failed(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """A replay from b to c fails. Then the caller itself delivers the write, so c stays suspect at b."""
    token = new_token()
    clusters["c"].cut_off()
    with queue_on(clusters, "bac") as other:
        other.enqueue([("w0", 1)], token, level="QUORUM")
        replay(clusters, "b")
        clusters["c"].proxy.heal()
        other.enqueue([("w0", 1)], token, level="ALL")
    eventually(lambda: not any(hints(clusters).values()))
    queue.enqueue([("w1", 1)], level="ALL")
    assert clusters["b"].one("select state from pgcombine.destination where name = 'c'") == "suspect"
    assert dropped(clusters["b"]) == 1
