"""A rebuilt server equals its sources and counts each acknowledged write once, even if writers go on meanwhile.

Only a forced rebuild may lose writes. Further tests retry, drop or copy the updates that a server refused.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from uuid import uuid4

import pytest
from support import eventually, run_cli, start_cli
from support.clusters import Clusters, agreed, dsns, empty, hints, queue_on, replay, replay_all, tokens
from support.queues import combine_all, lose, one, values

from pgcombine import ReplicatedQueue
from pgcombine.errors import IndeterminateError, NotQuarantinedError, ReplicaError, ReplicationError, UnavailableError
from pgcombine.handoff import operations, rebuilding, repairing
from pgcombine.handoff.rebuilding import Rebuilt
from pgcombine.handoff.replicated import new_token
from pgcombine.handoff.verifying import compare

BLOCKED = "select count(*) from pg_locks where not granted and pid <> pg_backend_pid()"


def rebuild(clusters: Clusters, name: str, *sources: str, at: str = "a", **options: object) -> Rebuilt:
    return clusters[at].run(rebuilding.rebuild, clusters[at].direct, name, sources, **options)


def equal(clusters: Clusters, name: str, at: str = "a") -> None:
    found = clusters[at].run(compare, name)
    assert (found.lacking, found.surplus, found.conflicting) == ((), (), ())


def removed(clusters: Clusters, lost: str) -> None:
    for name, cluster in clusters.items():
        if name != lost:
            with cluster.connect() as conn, suppress(ReplicaError):  # the lost server may not be registered here
                operations.remove(conn, lost, timeout=1)


def written(queue: ReplicatedQueue, rows: list[tuple[str, int]]) -> None:
    """Write the rows, and retry until the write is acknowledged."""
    token = new_token()
    deadline = time.monotonic() + 60
    while True:
        try:
            queue.enqueue(rows, token, level="ONE")
            return
        except (IndeterminateError, UnavailableError):
            if time.monotonic() > deadline:
                raise


@contextmanager
def writing(clusters: Clusters, counts: dict[str, int]) -> Iterator[None]:
    """Run a writer during the block. The writer adds acknowledged updates to ``counts``."""
    stop = threading.Event()

    def write() -> None:
        number = 0
        with queue_on(clusters, level="ONE") as queue:
            while not stop.is_set():
                word = f"w{number % 7}"
                written(queue, [(word, 1)])
                counts[word] = counts.get(word, 0) + 1
                number += 1

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_server_without_its_hints_is_rebuilt(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """The server gets values, pending updates and tokens from another server, while a writer goes on."""
    queue.enqueue([("fluo", 1), ("w0", 1)], level="ALL")
    clusters["b"].combine()
    clusters["c"].cut_off()
    for _ in range(5):
        queue.enqueue([("fluo", 1)], level="QUORUM")
    eventually(lambda: hints(clusters) == {"a": 5, "b": 0, "c": 0})
    clusters["a"].run(operations.truncate, "c", "a test")
    clusters["c"].proxy.heal()
    counts = {"w0": 1}
    with writing(clusters, counts):
        eventually(lambda: counts.get("w6", 0) > 3)
        done = rebuild(clusters, "c", "b")
        so_far = counts["w6"]
        eventually(lambda: counts["w6"] > so_far + 3)
    assert (done.sources, done.queues, done.unreached, done.unrepaired) == (("b",), ("wc",), {}, [])
    assert done.values >= 2
    assert done.tokens >= 6
    replay_all(clusters)
    agreed(clusters, {"fluo": 6, **counts})
    equal(clusters, "c")
    for coordinator in "ab":
        assert clusters[coordinator].one("select needs_repair from pgcombine.handoff where destination = 'c'") is None


def test_empty_server_replaces_a_lost_one(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """The rebuild also creates the queue, and coordinators accept the new server without another command."""
    for number in range(20):
        queue.enqueue([(f"w{number % 3}", number)], level="ALL")
    queue.close()
    empty(clusters["c"])
    clusters["b"].combine()
    counts: dict[str, int] = {}
    with writing(clusters, counts):
        eventually(lambda: counts.get("w6", 0) > 3)
        rebuild(clusters, "c", "b")
    expected = {f"w{i}": sum(range(i, 20, 3)) for i in range(3)}
    for word, n in counts.items():
        expected[word] = expected.get(word, 0) + n
    replay_all(clusters)
    agreed(clusters, expected)
    equal(clusters, "c")


def test_server_from_an_older_backup_is_rebuilt(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """The server forgot writes, so it is paused. A write that the rebuild copies and that has a hint counts once."""
    queue.enqueue([("fluo", 1)], level="ALL")
    eventually(lambda: not any(hints(clusters).values()))
    queue.enqueue([("fluo", 10)], level="ALL")
    eventually(lambda: not any(hints(clusters).values()))
    clusters["c"].cut_off()
    queue.enqueue([("fluo", 100)], level="QUORUM")
    queue.close()
    with clusters["c"].connect() as conn:
        conn.execute("delete from pgcombine.handoff_token")
        lose(conn)
    clusters["c"].proxy.heal()
    replay(clusters)
    assert hints(clusters)["a"] == 1
    rebuild(clusters, "c")
    with clusters["a"].connect() as coordinator:
        told = coordinator.execute(
            "select state, needs_repair from pgcombine.handoff where destination = 'c'"
        ).fetchone()
        assert told == ("up", None)
    assert replay_all(clusters) == {"delivered": 0, "deduplicated": 1, "quarantined": 0}
    agreed(clusters, {"fluo": 111})


def test_rebuild_first_delivers_hints_to_the_source(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """A write has a hint for the source but none for the rebuilt server. The rebuilt server gets the write, too."""
    queue.enqueue([("fluo", 1)], level="ALL")
    for name in "bc":
        clusters[name].cut_off()
    queue.enqueue([("fluo", 10)], level="ONE")
    queue.close()
    with clusters["a"].connect() as coordinator:
        operations.truncate(coordinator, "c", "a test")
        operations.pause(coordinator, "b")
        for name in "bc":
            clusters[name].proxy.heal()
        with pytest.raises(ReplicationError):
            rebuild(clusters, "c", "b")
        assert "truncated" in one(coordinator, "select needs_repair from pgcombine.handoff where destination = 'c'")
        operations.resume(coordinator, "b")
    assert rebuild(clusters, "c", "b").unrepaired == []
    replay_all(clusters)
    agreed(clusters, {"fluo": 11})


@pytest.mark.parametrize("lossy", [False, True])
def test_rebuild_loses_writes_only_by_force(queue: ReplicatedQueue, clusters: Clusters, lossy: bool) -> None:
    """The coordinator is lost with its hints. Only the server to be rebuilt has one of the writes."""
    queue.enqueue([("fluo", 1)], level="ALL")
    clusters["b"].cut_off()
    kept = queue.enqueue([("fluo", 10)], level="QUORUM")
    assert kept.acked == ("a", "c")
    queue.close()
    clusters["b"].proxy.heal()
    clusters["a"].cut_off()
    removed(clusters, "a")
    with pytest.raises(ReplicaError, match=str(kept.token)):
        rebuild(clusters, "c", "b", at="b")
    assert clusters["b"].one("select repairing from pgcombine.handoff_replica where name = 'c'") is None
    with pytest.raises(ReplicaError, match='"c" needs repair itself, according to "c": server "a" was removed'):
        rebuild(clusters, "b", "c", at="c")
    if lossy:
        rebuild(clusters, "c", "b", at="b", force=True)
    else:
        assert rebuild(clusters, "b", "c", at="c", force=True).tokens == 2
    for name in "bc":
        assert clusters[name].one("select n from pgcombine.wc_current where word = 'fluo'") == (1 if lossy else 11)


@pytest.mark.slow
def test_killed_rebuild_can_be_run_again(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """While a rebuild runs, only other servers take writes. After a killed rebuild, the server still needs repair."""
    queue.enqueue([("fluo", 1)], level="ALL")
    clusters["c"].cut_off()
    queue.enqueue([("fluo", 10)], level="QUORUM")
    eventually(lambda: hints(clusters) == {"a": 1, "b": 0, "c": 0})
    clusters["a"].run(operations.truncate, "c", "a test")
    clusters["c"].proxy.heal()
    before = tokens(clusters["c"])
    arguments = ("replicas", "rebuild", "c", "--yes", "--from", "b", "--dsn", clusters["a"].direct)
    with clusters["c"].connect() as blocker, clusters["c"].connect() as watcher, blocker.transaction():
        blocker.execute("lock table pgcombine.wc_values in share mode")
        with start_cli(*arguments, env={"PGCOMBINE_HOME": None}) as rebuilder:
            eventually(
                lambda: one(watcher, "select count(*) from pg_locks where not granted and locktype = 'relation'")
            )
            with ReplicatedQueue({"c": clusters["c"].dsn}, "wc") as alone, pytest.raises(UnavailableError) as refused:
                alone.enqueue([("fluo", 1)])
            assert "this server is being rebuilt" in str(refused.value)
            # close(), at the end of the block, also waits for the delivery to c
            with ReplicatedQueue({name: cluster.dsn for name, cluster in clusters.items()}, "wc") as other:
                assert "c" not in other.enqueue([("fluo", 100)], level="QUORUM").acked
            rebuilder.kill()
            rebuilder.wait()
    assert tokens(clusters["c"]) == before
    assert "truncated" in clusters["a"].one("select needs_repair from pgcombine.handoff where destination = 'c'")
    done = run_cli(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("rebuilt: c from b: 1 queues, ")
    replay_all(clusters)
    agreed(clusters, {"fluo": 111})
    equal(clusters, "c")


def test_unreached_coordinator_delivers_nothing(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """A coordinator that the rebuild didn't reach delivers nothing to the server until the next rebuild."""
    queue.enqueue([("fluo", 1)], level="ALL")
    with ReplicatedQueue({n: clusters[n].dsn for n in "bac"}, "wc", level="ALL", timeout=4) as other:
        other.enqueue([("fluo", 10)])  # b coordinates this write
        clusters["c"].cut_off()
        other.enqueue([("fluo", 100)], level="QUORUM")
        eventually(lambda: hints(clusters) == {"a": 0, "b": 1, "c": 0})
    clusters["c"].proxy.heal()
    clusters["b"].cut_off()
    done = run_cli("replicas", "rebuild", "c", "--yes", "--dsn", clusters["a"].direct)
    assert done.returncode == 1
    assert 'server "b" doesn\'t answer, so writes that it had delivered to "c" may be missing' in done.stderr
    done = run_cli("replicas", "rebuild", "c", "--yes", "--force", "--json", "--dsn", clusters["a"].direct)
    assert done.returncode == 1
    assert 'server "c" gets nothing from servers that don\'t answer' in done.stderr
    assert list(json.loads(done.stdout)["unreached"]) == ["b"]
    clusters["b"].proxy.heal()
    assert replay(clusters, "b")["delivered"] == 0
    assert hints(clusters)["b"] == 1
    assert rebuild(clusters, "c").unreached == {}
    replay_all(clusters)
    agreed(clusters, {"fluo": 111})


@pytest.mark.slow
@pytest.mark.servers("abcde")
def test_token_without_its_keys_is_not_copied(clusters: Clusters) -> None:
    """A coordinator has the tokens of writes even if it holds none of their keys. A copy of such a token would make the
    rebuilt server ignore the write's updates as a duplicate."""
    with queue_on(clusters, replicas=3, level="ALL") as queue:
        receipts = [queue.enqueue([(f"w{number}", 1)]) for number in range(20)]
    replay_all(clusters)
    assert any({"b", "e"} <= set(receipt.acked) and "a" not in receipt.acked for receipt in receipts)
    empty(clusters["e"])
    rebuild(clusters, "e")
    assert clusters["e"].one("select count(*) from pgcombine.handoff_partial") == 0
    for name in "bcd":
        equal(clusters, "e", at=name)


@pytest.mark.slow
@pytest.mark.servers("abcde")
def test_server_with_some_keys_is_rebuilt(clusters: Clusters) -> None:
    """Three of five servers hold each key. The rebuild copies from several servers and counts each write once."""
    servers = dsns(clusters)
    counts: dict[str, int] = {}
    with ReplicatedQueue(servers, "wc", replicas=3, level="ALL", timeout=4) as queue:
        for number in range(30):
            rows = [(f"k{(number * 7 + i) % 60}", 1) for i in range(10)]
            queue.enqueue(rows)
            for word, n in rows:
                counts[word] = counts.get(word, 0) + n
        empty(clusters["e"])
        for name in "ab":
            clusters[name].combine()
        stop = threading.Event()

        rows = [(f"k{i}", 1) for i in range(0, 60, 3)]

        def write() -> None:
            while not stop.is_set():
                written(queue, rows)
                for word, n in rows:
                    counts[word] = counts.get(word, 0) + n

        thread = threading.Thread(target=write)
        thread.start()
        try:
            done = rebuild(clusters, "e")
        finally:
            stop.set()
            thread.join()
    assert len(done.sources) > 1
    assert done.unrepaired == []
    replay_all(clusters)
    held: dict[str, int] = dict.fromkeys(counts, 0)
    for cluster in clusters.values():
        with cluster.connect() as conn:
            combine_all(conn)
            for word, n in values(conn).items():
                assert (cluster.name, word, n) == (cluster.name, word, counts[word])
                held[word] += 1
            assert one(conn, "select count(*) from pgcombine.handoff_partial") == 0
    assert set(held.values()) == {3}
    for name in "bcde":
        equal(clusters, name)


def test_partial_write_is_completed_once(clusters: Clusters) -> None:
    """A server that has only some keys of a write appends the updates of the other keys once."""
    digest = "01890a5d-ac96-774b-bcce-b302099a8057"
    with clusters["a"].connect() as conn:
        conn.execute("select pgcombine_internal.handoff_handshake('a')")
        token = new_token()
        payload = '{"{fluo,spark,x,y}","{1,2,3,4}"}'
        query = one(conn, "select pgcombine_internal.handoff_slot_sql('wc')").replace("$1", "%s")
        slots = dict(conn.execute(query, (payload,)).fetchall())
        conn.execute("insert into pgcombine.handoff_partial values (%s, %s)", (token, [slots[2], slots[3]]))
        for status in ("applied", "duplicate"):
            found = conn.execute(
                "select status from pgcombine_internal.handoff_apply(null, 'wc', null, %s, %s, array[null::jsonb], %s)",
                ([token], [digest], [payload]),
            ).fetchall()
            assert found == [(status,)]
        combine_all(conn)
        assert values(conn) == {"fluo": 1, "y": 4}
        assert one(conn, "select count(*) from pgcombine.handoff_partial") == 0


def test_earlier_failure_does_not_pause_a_rebuilt_server(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """A replayer learns that the server lacks the queue, but can record this failure only after the rebuild."""
    queue.enqueue([("fluo", 1)], level="ALL")
    clusters["c"].cut_off()
    queue.enqueue([("fluo", 1)], level="QUORUM")
    eventually(lambda: hints(clusters)["a"] == 1)
    clusters["c"].proxy.heal()
    clusters["c"].execute("select pgcombine.drop_queue('wc', force => true)")
    late = threading.Thread(target=replay, args=(clusters, "a"))
    with clusters["a"].connect() as coordinator:
        with coordinator.transaction():
            coordinator.execute("select from pgcombine.destination_state where name = 'c' for update")
            coordinator.execute("select from pgcombine.handoff_replica where name = 'c' for update")
            late.start()
            eventually(lambda: one(coordinator, BLOCKED), what="the replayer waits to record the failure")
            end = "select pgcombine_internal.handoff_repair_end('c', %s, 1, %s, '{b}', '{}')"
            coordinator.execute(end, (uuid4(), uuid4()))
        late.join()
        assert one(coordinator, "select state from pgcombine.destination where name = 'c'") != "paused"


def test_source_that_needs_repair_is_refused(queue: ReplicatedQueue, clusters: Clusters) -> None:
    queue.enqueue([("fluo", 1)], level="ALL")
    clusters["b"].cut_off()
    queue.enqueue([("fluo", 10)], level="QUORUM")
    queue.close()
    clusters["a"].run(operations.truncate, "b", "a test")
    clusters["b"].proxy.heal()
    with pytest.raises(ReplicaError):
        rebuild(clusters, "c", "b")
    assert rebuild(clusters, "c", "b", force=True).unrepaired == ["a"]
    with pytest.raises(ReplicaError):
        rebuild(clusters, "c", "b")
    rebuild(clusters, "c")
    rebuild(clusters, "b", "c")
    replay_all(clusters)
    agreed(clusters, {"fluo": 11})


def test_rebuild_refuses_wrong_names(queue: ReplicatedQueue, clusters: Clusters) -> None:
    queue.enqueue([("fluo", 1)], level="ALL")
    for name, sources in (("x", ()), ("a", ()), ("c", ("c",))):
        with pytest.raises(ReplicaError, match=f'"{name}" (is not registered|can\'t be a source)'):
            rebuild(clusters, name, *sources)


def test_rebuild_keeps_a_queue_with_another_definition(queue: ReplicatedQueue, clusters: Clusters) -> None:
    queue.enqueue([("fluo", 1)], level="ALL")
    with clusters["c"].connect() as conn:
        combine_all(conn)
        conn.execute("select pgcombine.drop_queue('wc')")
        conn.execute("select pgcombine.create_queue('wc', '{word text}', '{n bigint max}')")
        with pytest.raises(ReplicationError):
            rebuild(clusters, "c")
        conn.execute("select pgcombine.drop_queue('wc')")
    rebuild(clusters, "c")
    agreed(clusters, {"fluo": 1})


@pytest.fixture
def refused(queue: ReplicatedQueue, clusters: Clusters) -> Clusters:
    """Server c refused two updates of one write. The updates are in the quarantine at a."""
    clusters["c"].execute("alter table pgcombine.wc_updates add constraint small check (n < 1000)")
    queue.enqueue([("fluo", 5000), ("ok", 1), ("spark", 6000)], level="QUORUM")
    queue.close()
    replay_all(clusters)
    assert clusters["c"].one("select count(*) from pgcombine.wc_pending") == 1
    return clusters


def test_refused_updates_are_retried(refused: Clusters) -> None:
    """A retry that fails returns the updates to the quarantine; a successful retry counts them once."""
    with refused["a"].connect() as coordinator, refused["c"].connect() as conn:
        token = one(coordinator, "select distinct token from pgcombine.handoff_quarantine")
        assert operations.retry_quarantined(coordinator, "c", token, 1) == 1
        with pytest.raises(NotQuarantinedError):
            operations.retry_quarantined(coordinator, "c", token, 1)
        replay_all(refused)
        held = operations.quarantined(coordinator, "c", 10)
        assert sorted(row["content"][0]["word"] for row in held) == ["fluo", "spark"]
        conn.execute("alter table pgcombine.wc_updates drop constraint small")
    done = run_cli("replicas", "quarantine", "retry", "c", "--all", "--dsn", refused["a"].direct)
    assert (done.returncode, done.stdout) == (0, "hinted again: 2 updates\n")
    replay_all(refused)
    for cluster in refused.values():
        with cluster.connect() as conn:
            combine_all(conn)
            assert values(conn) == {"fluo": 5000, "ok": 1, "spark": 6000}
    equal(refused, "c")


def test_repair_leaves_a_write_incomplete_while_a_coordinator_has_one_of_its_updates(refused: Clusters) -> None:
    """Only one of the two refused updates is in a quarantine. The repair appends the other one."""
    with refused["a"].connect() as coordinator, refused["c"].connect() as conn:
        token = one(coordinator, "select distinct token from pgcombine.handoff_quarantine")
        coordinator.execute("delete from pgcombine.handoff_quarantine where number = 3")
        conn.execute("alter table pgcombine.wc_updates drop constraint small")
        done = repairing.repair(coordinator, refused["a"].direct)
        assert list(done.lacking) == ["c"]
        assert list(done.lacking["c"]) == [token]
        combine_all(conn)
        assert values(conn) == {"ok": 1, "spark": 6000}
        operations.retry_quarantined(coordinator, "c")
        replay_all(refused)
        combine_all(conn)
        assert values(conn) == {"fluo": 5000, "ok": 1, "spark": 6000}


@pytest.mark.slow
def test_refused_updates_are_dropped_for_a_reason(refused: Clusters) -> None:
    token = str(refused["a"].one("select distinct token from pgcombine.handoff_quarantine"))
    dsn = ("--dsn", refused["a"].direct)
    for wrong in ((), (token, "--all")):
        assert run_cli("replicas", "quarantine", "drop", "c", *wrong, "--reason", "too much", *dsn).returncode == 2
    unexplained = run_cli("replicas", "quarantine", "drop", "c", "--all", "--reason", " ", "--yes", *dsn)
    assert "no reason is given" in unexplained.stderr
    done = run_cli("replicas", "quarantine", "drop", "c", token, "3", "--yes", "--reason", "too much", "--json", *dsn)
    assert json.loads(done.stdout) == {"server": "c", "state": "dropped", "updates": 1}
    assert "c needs repair: updates that it refused were dropped: too much" in run_cli("replicas", "ls", *dsn).stdout
    done = run_cli("replicas", "quarantine", "retry", "c", "--all", *dsn)
    assert (done.returncode, "first rebuild that server" in done.stderr) == (1, True)


def test_rebuild_copies_refused_updates(refused: Clusters) -> None:
    """The source has both updates that c refused. After the rebuild, none is quarantined or delivered for c."""
    with refused["a"].connect() as coordinator, refused["c"].connect() as conn:
        token = one(coordinator, "select distinct token from pgcombine.handoff_quarantine")
        operations.retry_quarantined(coordinator, "c", token, 1)
        conn.execute("alter table pgcombine.wc_updates drop constraint small")
        rebuild(refused, "c", "b")
        assert operations.quarantined(coordinator, "c", 10) == []
    assert replay_all(refused) == {"delivered": 0, "deduplicated": 0, "quarantined": 0}
    agreed(refused, {"fluo": 5000, "ok": 1, "spark": 6000})


def test_copy_inherits_refused_updates(refused: Clusters) -> None:
    """Server b, rebuilt from c, lacks the updates that c refused, so they are quarantined for b, too."""
    rebuild(refused, "b", "c")
    with refused["a"].connect() as coordinator, refused["c"].connect() as conn:
        assert [row["number"] for row in operations.quarantined(coordinator, "b", 10)] == [1, 3]
        conn.execute("alter table pgcombine.wc_updates drop constraint small")
        operations.retry_quarantined(coordinator, "b")
        operations.retry_quarantined(coordinator, "c")
    replay_all(refused)
    for cluster in refused.values():
        with cluster.connect() as conn:
            combine_all(conn)
            assert values(conn) == {"fluo": 5000, "ok": 1, "spark": 6000}
