"""A reading that says that it is ``complete`` has the acknowledged updates of its keys."""

from __future__ import annotations

import shutil
import uuid
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from support import eventually, run_cli
from support.clusters import Cluster, Clusters, agreed, dsns, hints, queue_on, repair, replay, replay_all
from support.queues import combine_all, make_queue, one
from support.states import raises_state

from pgcombine import ReplicatedQueue
from pgcombine.errors import QueueMismatchError
from pgcombine.handoff import operations, rebuilding
from pgcombine.handoff.connections import open_peer
from pgcombine.handoff.delivery import Hint, apply
from pgcombine.handoff.reading import Reading
from pgcombine.handoff.retained import drop_retained

LEVELS = ("ALL", "QUORUM", "ONE")  # ALL first, since a reading at ALL also asks servers that failed a moment ago
ALL = {"good": 1, "bad": 1}


def readings(clusters: Mapping[str, Cluster], words: list[str]) -> Iterator[Reading]:
    with queue_on(clusters) as queue:
        for level in LEVELS:
            yield queue.get(words, level=level)


def refuse_bad(cluster: Cluster) -> None:
    with cluster.connect() as conn:
        conn.execute(
            "create function public.refuse() returns trigger language plpgsql as "
            "$$ begin if new.word = 'bad' then raise 'no bad words'; end if; return new; end $$"
        )
        conn.execute(
            "create trigger refuse before insert on pgcombine.wc_updates for each row execute function public.refuse()"
        )


def take_bad(cluster: Cluster) -> None:
    cluster.execute("drop trigger refuse on pgcombine.wc_updates")


@pytest.fixture
def refused(clusters: Clusters) -> Clusters:
    """Server a has refused one update of a write whose coordinator was b."""
    refuse_bad(clusters["a"])
    with queue_on(clusters, "bac") as queue:
        queue.enqueue([("good", 1), ("bad", 1)], level="QUORUM")
    replay_all(clusters)
    return clusters


# These tests are about updates that a server refuses.


def test_server_lacks_an_update_that_it_refused(refused: Clusters) -> None:
    for reading in readings(refused, ["good", "bad"]):
        assert (reading.values, reading.complete) == (ALL, True)
        assert reading.lags == {"a": 1, "b": 0, "c": 0}
    for other in "bc":
        done = run_cli("replicas", "verify", "a", "--dsn", refused[other].direct)
        if other == "b":
            assert done.returncode == 1
            assert "a has refused updates of" in done.stdout
    refused["c"].cut_off()
    with queue_on(refused, "abc") as queue:
        at_one = queue.get(["good", "bad"], level="ONE")
    assert (at_one.values, at_one.complete) == (ALL, False)
    refused["b"].cut_off()
    refused["c"].proxy.heal()
    with queue_on(refused, "a") as queue:
        reading = queue.get(["good", "bad"], level="ONE")
        assert (reading.values, reading.complete, reading.lags) == ({"good": 1}, False, {"a": 1})
    refused["b"].proxy.heal()
    take_bad(refused["a"])
    assert refused["b"].run(operations.retry_quarantined, "a") == 1
    assert next(readings(refused, ["bad"])).lags == {"a": 1, "b": 0, "c": 0}
    replay_all(refused)
    refused["b"].combine()
    for reading in readings(refused, ["good", "bad"]):
        assert (reading.values, reading.complete, reading.lags) == (ALL, True, {"a": 0, "b": 0, "c": 0})
    assert run_cli("replicas", "verify", "a", "--dsn", refused["b"].direct).returncode == 0


def test_refused_update_is_known_after_its_coordinator_is_lost(refused: Clusters) -> None:
    """The server itself stores the updates that it refused, so a repair can retry them."""
    refused["b"].cut_off()
    left = {name: refused[name] for name in "ac"}
    for cluster in left.values():
        with cluster.connect() as conn:
            if one(conn, "select count(*) from pgcombine.handoff_replica where name = 'b'"):
                operations.remove(conn, "b", timeout=1)
            elif cluster.name == "a":
                raise AssertionError("a doesn't know b")
    left["a"].run(operations.add, "c", dsns(refused)["c"].replace(f":{refused['c'].password}@", "@"))
    done = run_cli("replicas", "repair", "--dsn", left["a"].direct)
    assert done.returncode == 1
    assert "a lacks 1 write," in done.stderr
    assert "no bad words" in done.stderr
    for reading in readings(left, ["good", "bad"]):
        assert (reading.values, reading.lags["a"], reading.needs_repair) == (ALL, 1, ("a",))
    assert "this server, a, has refused 1 updates" in run_cli("replicas", "ls", "--dsn", left["a"].direct).stdout
    take_bad(left["a"])
    assert run_cli("replicas", "repair", "--dsn", left["a"].direct).returncode == 0
    for reading in readings(left, ["good", "bad"]):
        assert (reading.values, reading.complete, reading.lags) == (ALL, True, {"a": 0, "c": 0})
    agreed({"a": left["a"]}, ALL)


def test_update_refused_through_two_coordinators_counts_once(refused: Clusters) -> None:
    """A caller retried through a second coordinator, so both coordinators have the refused update in quarantine."""
    with refused["b"].connect() as b, refused["c"].connect() as c:
        row = b.execute("select to_jsonb(q) from pgcombine.handoff_quarantine q").fetchone()
        c.execute(
            "select pgcombine_internal.handoff_register('a', %s)",
            (dsns(refused)["a"].replace(f":{refused['a'].password}@", "@"),),
        )
        c.execute(
            "insert into pgcombine.handoff_quarantine "
            "select * from jsonb_populate_record(null::pgcombine.handoff_quarantine, %s)",
            (psycopg.types.json.Jsonb(row[0] if row else None),),
        )
        take_bad(refused["a"])
        assert operations.retry_quarantined(b, "a") == operations.retry_quarantined(c, "a") == 1
    assert replay_all(refused)["quarantined"] == 0
    with refused["a"].connect() as conn:
        combine_all(conn)
        assert dict(conn.execute("select * from pgcombine.wc_values").fetchall()) == ALL


def test_copy_lacks_what_its_source_refused(refused: Clusters) -> None:
    refused["b"].run(rebuilding.rebuild, refused["b"].direct, "c", ["a"])
    for reading in readings(refused, ["good", "bad"]):
        assert (reading.values, reading.complete) == (ALL, True)
        assert reading.lags == {"a": 1, "b": 0, "c": 1}
    take_bad(refused["a"])
    with refused["b"].connect() as conn:
        operations.retry_quarantined(conn, "a")
        operations.retry_quarantined(conn, "c")
    replay_all(refused)
    for reading in readings(refused, ["good", "bad"]):
        assert (reading.values, reading.complete, reading.lags) == (ALL, True, dict.fromkeys("abc", 0))


# These tests are about hints that can't be delivered.


BROKEN = {
    "another definition": f"shape = '{uuid.UUID(int=1)}'",
    "a token of the future": "token = 'ffff22e2-79b0-7cc3-98c4-dc0c0c07398f'",
    "no queue": "queue = 'gone'",
    "no integers": """payload = '{"{bad}","{x}"}'""",
}


@pytest.mark.parametrize(
    "change",
    [
        pytest.param(change, id=what, marks=[pytest.mark.slow] * what.startswith("no "))
        for what, change in BROKEN.items()
    ],
)
def test_broken_hint_holds_up_no_other(clusters: Clusters, change: str) -> None:
    """The server gets the other hints, even one of another queue, and isn't paused.

    Readings count the broken hint in the server's lag, unless the hint names a queue that doesn't exist.
    """
    with queue_on(clusters) as queue:
        queue.enqueue([("first", 1)], level="ALL")
        clusters["b"].cut_off()
        queue.enqueue([("bad", 1)], level="QUORUM")
        clusters["a"].execute(psycopg.sql.SQL("update pgcombine.handoff_hint set {}").format(psycopg.sql.SQL(change)))
        queue.enqueue([("good", 1)], level="QUORUM")
    clusters["b"].proxy.heal()
    with ReplicatedQueue(dsns(clusters), "other", timeout=4.0) as queue:
        for cluster in clusters.values():
            cluster.run(make_queue, "other")
        clusters["b"].cut_off()
        queue.enqueue([("good", 1)], level="QUORUM")
        clusters["b"].proxy.heal()
        replay(clusters, "a")
        replay(clusters, "a")
        assert hints(clusters) == {"a": 0, "b": 0, "c": 0}
        with clusters["a"].connect() as conn:
            state = "select state, quarantined from pgcombine.handoff where destination = 'b'"
            assert conn.execute(state).fetchone() == ("up", 1)
        assert queue.get(["good"], level="ALL").lags == {"a": 0, "b": 0, "c": 0}
    with clusters["b"].connect() as conn:
        assert one(conn, "select count(*) from pgcombine.wc_pending") == 2
        assert one(conn, "select count(*) from pgcombine.other_pending") == 1
    if "queue" not in change:
        for reading in readings(clusters, ["bad", "good"]):
            assert (reading.values, reading.complete, reading.lags["b"]) == ({"bad": 1, "good": 1}, True, 1)
    shown = run_cli("replicas", "show", "b", "--dsn", clusters["a"].direct)
    assert shown.returncode == 0, shown.stderr
    assert clusters["a"].run(operations.drop_quarantined, "b", "a test") == 1


# These tests are about servers that were restored from an older backup.


@contextmanager
def backup(cluster: Cluster, directory: Path) -> Iterator[None]:
    """Save a server's files before the block, and restore them after the block. The server's identity stays."""
    files, saved = cluster.embedded.home / "postgres", directory / "backup"
    cluster.stop()
    shutil.copytree(files, saved, symlinks=True)
    cluster.start()
    yield
    cluster.stop()
    shutil.rmtree(files)
    shutil.copytree(saved, files, symlinks=True)
    cluster.start()


def some_writes(clusters: Clusters, coordinator: str, n: int, times: int) -> None:
    with queue_on(clusters, f"{coordinator}abc") as queue:
        for _ in range(times):
            queue.enqueue([("x", n)], level="ALL")
        eventually(lambda: not any(hints(clusters).values()))


@pytest.mark.parametrize("coordinator", ["b", "a"], ids=["of others", "its own"])
def test_first_reading_finds_a_server_that_forgot_writes(clusters: Clusters, coordinator: str, tmp_path: Path) -> None:
    """Nothing is delivered between the restore and the readings.

    The other servers know which writes the restored server acknowledged, or sent as a coordinator.
    """
    some_writes(clusters, coordinator, 4, 5)
    with backup(clusters["a"], tmp_path):
        some_writes(clusters, coordinator, 5, 3)
    for reading in readings(clusters, ["x"]):
        assert (reading.values, reading.complete, reading.needs_repair) == ({"x": 35}, False, ("a",))
        assert reading.lags["a"] > 0
    clusters["b"].run(rebuilding.rebuild, clusters["b"].direct, "a", ["b"])
    for reading in readings(clusters, ["x"]):
        assert (reading.values, reading.complete, reading.needs_repair) == ({"x": 35}, True, ())


def test_reading_notices_a_single_forgotten_write(clusters: Clusters, tmp_path: Path) -> None:
    """Only the last write is missing, as after a switch to a standby that lagged."""
    some_writes(clusters, "b", 4, 5)
    with backup(clusters["a"], tmp_path):
        with queue_on(clusters, "abc") as queue:
            queue.enqueue([("x", 1)], level="QUORUM")
        replay_all(clusters)
    reading = next(readings(clusters, ["x"]))
    assert (reading.values, reading.complete, reading.needs_repair) == ({"x": 21}, False, ("a",))


def test_reading_counts_hints_that_a_coordinator_forgot(clusters: Clusters, tmp_path: Path) -> None:
    """The coordinator forgot a hint for c. A server that retains the payload reports that c lacks the write."""
    some_writes(clusters, "a", 4, 5)
    with backup(clusters["a"], tmp_path):
        clusters["c"].cut_off()
        with queue_on(clusters, "abc") as queue:
            queue.enqueue([("x", 1)], level="QUORUM")
        clusters["c"].proxy.heal()
    for reading in readings(clusters, ["x"]):
        assert (reading.values, reading.complete, reading.needs_repair) == ({"x": 21}, False, ("a",))
        assert reading.lags["b"] == 0 < reading.lags["c"]


def test_reading_knows_writes_whose_coordinator_lost_its_records(clusters: Clusters, tmp_path: Path) -> None:
    """Server a forgot writes of the coordinator b, which lost its records of deliveries.

    But when c dropped the payloads of writes that a had, it noted the latest of these writes.
    """
    with backup(clusters["a"], tmp_path):
        some_writes(clusters, "b", 5, 3)
        with clusters["c"].connect() as conn:
            conn.execute("update pgcombine.handoff_retained set since = since - interval '1 minute'")
            operations.add(conn, "a", dsns(clusters)["a"].replace(f":{clusters['a'].password}@", "@"))
        with open_peer("c", clusters["c"].direct, 5).connection as coordinator:
            assert drop_retained(coordinator, 5) == 3
    clusters["b"].execute("delete from pgcombine.handoff_delivery")
    for reading in readings(clusters, ["x"]):
        assert (reading.values, reading.complete, reading.needs_repair) == ({"x": 15}, False, ("a",))


def test_upkeep_keeps_tokens_that_servers_must_have(clusters: Clusters) -> None:
    some_writes(clusters, "a", 1, 3)
    replay_all(clusters)
    seen = "select seen from pgcombine_internal.handoff_status('wc')"
    with clusters["a"].connect() as conn:
        assert len(one(conn, seen)["b"]) == 3
        conn.execute(
            "update pgcombine.handoff_delivery set at = at - interval '1 minute' "
            "where destination = 'b' and at < (select max(at) from pgcombine.handoff_delivery where destination = 'b')"
        )
        conn.execute("select pgcombine_internal.handoff_clean_up()")
        assert [len(one(conn, seen)[name]) for name in "bc"] == [1, 3]


# These tests are about queues that were dropped and created again. The generation of a queue is the number
# of dropped queues of its name.


def drop(cluster: Cluster) -> list[str]:
    """Drop the queue, and return the warnings about writes that other servers lack."""
    told: list[str] = []
    with cluster.connect() as conn:
        conn.add_notice_handler(lambda notice: told.append(notice.message_primary or ""))
        combine_all(conn)
        conn.execute("select pgcombine.drop_queue('wc')")
    return [line for line in told if "is dropped with" in line]


def create(cluster: Cluster) -> None:
    cluster.run(make_queue, buckets=4)


def reason(coordinator: Cluster, destination: str) -> tuple[str, str]:
    with coordinator.connect() as conn:
        row = conn.execute(
            "select state, reason from pgcombine.handoff where destination = %s", (destination,)
        ).fetchone()
    assert row is not None
    return row


@pytest.fixture
def waiting(clusters: Clusters) -> Clusters:
    """All servers have x = 1. A hint of a write that adds 10 waits at a for c."""
    with queue_on(clusters, "abc") as queue:
        queue.enqueue([("x", 1)], level="ALL")
        clusters["c"].cut_off()
        queue.enqueue([("x", 10)], level="QUORUM")
    return clusters


def test_drop_removes_the_hints_of_a_queue(waiting: Clusters) -> None:
    """The queue is dropped and created again on all servers, and the old hints are dropped."""
    late = hint_at(waiting["a"])
    assert [drop(cluster) for cluster in waiting.values()] == [
        ['queue "wc" is dropped with 1 writes that other servers lack, and 0 updates that they refused'], [], []
    ]  # fmt: skip
    for cluster in waiting.values():
        create(cluster)
    waiting["c"].proxy.heal()
    with queue_on(waiting, "bac") as queue:
        queue.enqueue([("x", 100)], level="ALL")
    replay_all(waiting)
    agreed(waiting, {"x": 100})
    peer = open_peer("c", waiting["c"].direct, 5)
    with peer.connection, pytest.raises(QueueMismatchError):
        apply(peer, [late], "a")
    for reading in readings(waiting, ["x"]):
        assert (reading.values, reading.complete, reading.lags) == ({"x": 100}, True, dict.fromkeys("abc", 0))
    for name in "abc":
        for done in (
            run_cli("replicas", "verify", "--dsn", waiting[name].direct),
            run_cli("replicas", "repair", "--dsn", waiting[name].direct),
        ):
            assert done.returncode == 0, done.stderr
        assert not [row for row in operations_status(waiting[name]) if row["state"] != "up" or row["needs_repair"]]


def operations_status(cluster: Cluster) -> list[dict[str, object]]:
    return cluster.run(operations.status)


def hint_at(coordinator: Cluster) -> Hint:
    with coordinator.connect() as conn:
        row = conn.execute(
            "select token, queue, shape, digest, servers, updates, payload, '{a,b,c}'::text[], 3, null "
            "from pgcombine.handoff_hint"
        ).fetchone()
    assert row is not None
    return Hint(*row)


def test_server_unreachable_during_the_drop_refuses_new_writes(waiting: Clusters) -> None:
    """The server still has the old queue. It refuses writes of the new queue, and no reading uses its values."""
    for name in "ab":
        drop(waiting[name])
        create(waiting[name])
    with queue_on(waiting, "bac") as queue:
        queue.enqueue([("x", 100)], level="QUORUM")
    waiting["c"].proxy.heal()
    replay(waiting)
    state, why = reason(waiting["b"], "c")
    assert (state, "is the former queue: it was dropped" in why) == ("paused", True)
    for reading in readings(waiting, ["x"]):
        assert (reading.values, reading.complete, reading.needs_repair) == ({"x": 100}, False, ("c",))
    drop(waiting["c"])
    create(waiting["c"])
    waiting["b"].run(operations.resume, "c")
    replay_all(waiting)
    agreed(waiting, {"x": 100})
    for reading in readings(waiting, ["x"]):
        assert (reading.values, reading.complete, reading.needs_repair) == ({"x": 100}, True, ())


def test_queue_recreated_on_one_server_needs_a_rebuild(waiting: Clusters) -> None:
    """The new queue on c gets no hints of the dropped queue. Until a rebuild it lacks the writes that a and b have."""
    drop(waiting["c"])
    create(waiting["c"])
    waiting["c"].proxy.heal()
    for reading in readings(waiting, ["x"]):
        assert (reading.values, reading.complete, reading.needs_repair) == ({"x": 11}, False, ("c",))
    replay(waiting)
    state, why = reason(waiting["a"], "c")
    assert (state, "was dropped on this server and created again" in why) == ("paused", True)
    waiting["a"].run(rebuilding.rebuild, waiting["a"].direct, "c", ["b"])
    assert repair(waiting["a"]).marked == []
    replay_all(waiting)
    agreed(waiting, {"x": 11})
    with queue_on(waiting, "cab") as queue:
        queue.enqueue([("x", 100)], level="ALL")
    for reading in readings(waiting, ["x"]):
        assert (reading.values, reading.complete, reading.needs_repair) == ({"x": 111}, True, ())


@pytest.mark.slow
def test_server_without_the_dropped_queue_takes_over_the_generation(clusters: Clusters) -> None:
    """Server c got no write of the dropped queue. A replayer may set c's generation; a role that only writes can't."""
    with queue_on({name: clusters[name] for name in "ab"}, "a") as queue:
        queue.enqueue([("x", 1)], level="ALL")
    for cluster in clusters.values():
        drop(cluster)
        create(cluster)
    with clusters["c"].connect() as conn:
        conn.execute("create role pgcombine_writer")
        conn.execute("select pgcombine.grant_right('handoff', 'pgcombine_writer', 'wc')")
        conn.execute("select pgcombine_internal.handoff_handshake('c')")
        shape = one(conn, "select pgcombine_internal.handoff_shape('wc')").int
        # generation 7: a shape's last bits are xored with the generation, which is 0 on c
        later = uuid.UUID(int=shape ^ 7)
        conn.execute("set role pgcombine_writer")
        with raises_state("PC043"):
            conn.execute(
                "select pgcombine_internal.handoff_check(s.id, 'wc', %s) from pgcombine.handoff_server s", (later,)
            )
        conn.execute("reset role; drop owned by pgcombine_writer; drop role pgcombine_writer")
    with queue_on(clusters, "abc") as queue:
        queue.enqueue([("x", 100)], level="ALL")
    replay_all(clusters)
    agreed(clusters, {"x": 100})
    for reading in readings(clusters, ["x"]):
        assert (reading.values, reading.complete) == ({"x": 100}, True)
