"""One of several servers owns an export: after a change of owner the destination equals the new owner's values."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator

import psycopg
import pytest
from support import eventually, run_cli
from support.clusters import Cluster, Clusters, replay_all
from support.exports import exported, make_export, waiting, watched, worker_to
from support.queues import combine_all, one, values, write_values
from support.servers import with_database
from support.sessions import in_background

from pgcombine import ReplicatedQueue
from pgcombine.errors import ExportNotFoundError, ReplicaError
from pgcombine.handoff import operations, ownership, rebuilding


@pytest.fixture
def target(clusters: Clusters) -> Iterator[str]:
    """A new database ``search`` on c, the destination of the export."""
    with psycopg.connect(clusters["c"].server, autocommit=True) as conn:
        conn.execute("drop database if exists search with (force)")
        conn.execute("create database search")
    return with_database(clusters["c"].server, "search")


@pytest.fixture
def both(clusters: Clusters, target: str) -> Iterator[ReplicatedQueue]:
    """The queue on a and b. Both servers have the export, and a owns it."""
    for name in "ab":
        clusters[name].run(make_export, target, batch=5)
    with ReplicatedQueue({name: clusters[name].dsn for name in "ab"}, "wc", level="ALL", timeout=4) as queue:
        queue.enqueue([("first", 1), ("gone", 1)])
        with clusters["b"].connect() as conn:  # b doesn't know a, since b hasn't coordinated a write yet
            operations.add(
                conn,
                "a",
                f"host=127.0.0.1 port={clusters['a'].proxy.port} user={clusters['a'].user} "
                f"dbname={psycopg.conninfo.conninfo_to_dict(clusters['a'].direct)['dbname']}",
            )
        assert owned(clusters["a"]) == ("a", 1, ["b"])
        yield queue


def owned(cluster: Cluster) -> tuple[str, int, list[str]]:
    done = cluster.run(ownership.own, "search")
    return done.owner, done.epoch, done.told


def combined(cluster: Cluster) -> dict[str, int]:
    with cluster.connect() as conn:
        combine_all(conn)
        return values(conn)


def deliver(cluster: Cluster, target: str) -> None:
    worker_to(cluster.direct, target).drain(30)


@pytest.mark.slow
def test_new_owner_delivers_from_its_epoch_on(both: ReplicatedQueue, clusters: Clusters, target: str) -> None:
    combined(clusters["a"])
    with clusters["b"].connect() as conn:
        combine_all(conn)
        assert waiting(conn) == 0  # a server that doesn't own the export writes no entries
    deliver(clusters["a"], target)
    assert exported(target) == combined(clusters["a"])
    both.enqueue([("second", 2), ("gone", 1)])
    combined(clusters["b"])
    done = run_cli("export", "own", "search", "--json", "--dsn", clusters["b"].direct)
    assert json.loads(done.stdout) == {"export": "search", "owner": "b", "epoch": 2, "told": ["a"], "unreached": {}}
    combined(clusters["a"])
    deliver(clusters["a"], target)
    assert exported(target) == {"first": 1, "gone": 1}
    deliver(clusters["b"], target)
    assert exported(target) == combined(clusters["b"]) == {"first": 1, "second": 2, "gone": 2}
    assert owned(clusters["a"])[:2] == ("a", 3)
    deliver(clusters["a"], target)
    assert exported(target) == combined(clusters["a"])


def test_former_owner_is_fenced(both: ReplicatedQueue, clusters: Clusters, target: str) -> None:
    """The former owner doesn't know of the new one. The destination refuses entries of the former owner, even of keys
    that the new owner lacks. Then the former owner's worker records the new owner, and its passes write no entries."""
    combined(clusters["a"])
    with watched(target):
        deliver(clusters["a"], target)
        both.enqueue([("second", 2), ("gone", -1)], level="ONE")
        replay_all({name: clusters[name] for name in "ab"})
        combined(clusters["b"])
        with clusters["a"].connect() as conn:  # values that b lacks
            conn.execute("insert into pgcombine.wc_updates (word, n) values ('stray', 1)")
            conn.execute(
                "insert into pgcombine.wc_updates (word, n) select 'stray' || i, 1 from generate_series(1, 20) i"
            )
        combined(clusters["a"])
        clusters["a"].cut_off()
        done = run_cli("export", "own", "search", "--dsn", clusters["b"].direct)
        assert (done.returncode, done.stdout.splitlines()[0]) == (0, "owned: search by b since epoch 2")
        assert "a doesn't know the new owner yet" in done.stdout
        stop = threading.Event()
        with clusters["a"].connect() as coordinator:
            with in_background(lambda: worker_to(clusters["a"].direct, target, poll=0.05).run(stop)):
                try:
                    # the destination accepts deliveries of the former owner until the new owner's first delivery
                    eventually(lambda: "stray" in exported(target))
                    deliver(clusters["b"], target)
                    assert exported(target) == combined(clusters["b"]) == {"first": 1, "second": 2, "gone": 0}
                    coordinator.execute("insert into pgcombine.wc_updates (word, n) values ('first', 1), ('later', 1)")
                    combined(clusters["a"])
                    eventually(lambda: one(coordinator, "select owner from pgcombine.export") == "b")
                finally:
                    stop.set()
            assert one(coordinator, "select epoch from pgcombine.export") == 2
            assert waiting(coordinator) == 0
            assert one(coordinator, "select count(*) from pgcombine.observer") == 0
        assert exported(target) == combined(clusters["b"])
    clusters["a"].proxy.heal()


def test_owner_without_values_empties_the_destination(both: ReplicatedQueue, clusters: Clusters, target: str) -> None:
    combined(clusters["a"])
    deliver(clusters["a"], target)
    with clusters["b"].connect() as conn:  # b has no values any more, as if updates had deleted all keys
        combine_all(conn)
        write_values(conn, "delete from pgcombine.wc_values")
    owned(clusters["b"])
    deliver(clusters["b"], target)
    assert exported(target) == {}
    with psycopg.connect(target) as conn:
        assert one(conn, "select count(*) from search where pgcombine_deleted") == 2


def test_key_of_a_quarantined_entry_stays_at_the_destination(
    both: ReplicatedQueue, clusters: Clusters, target: str
) -> None:
    combined(clusters["a"])
    deliver(clusters["a"], target)
    both.enqueue([("first", 9)])
    with clusters["b"].connect() as conn, psycopg.connect(target, autocommit=True) as there:
        combine_all(conn)
        write_values(conn, "delete from pgcombine.wc_values where word = 'gone'")
        there.execute("alter table search add constraint small check (n < 5)")
        owned(clusters["b"])
        deliver(clusters["b"], target)
        assert one(conn, "select count(*) from pgcombine.export_entry") == 1
        assert exported(target) == {"first": 1, "gone": 1}  # the full state isn't delivered yet
        there.execute("alter table search drop constraint small")
        conn.execute("select pgcombine_internal.export_release('search', null, true)")
        deliver(clusters["b"], target)
    assert exported(target) == {"first": 10}


def test_rebuilt_owner_delivers_everything_again(both: ReplicatedQueue, clusters: Clusters, target: str) -> None:
    combined(clusters["a"])
    deliver(clusters["a"], target)
    with clusters["a"].connect() as conn:
        conn.execute("insert into pgcombine.wc_updates (word, n) values ('stray', 1)")
        combine_all(conn)
    deliver(clusters["a"], target)
    assert "stray" in exported(target)
    clusters["b"].run(rebuilding.rebuild, clusters["b"].direct, "a")
    combined(clusters["a"])
    deliver(clusters["a"], target)
    assert exported(target) == combined(clusters["a"]) == {"first": 1, "gone": 1}


def test_servers_without_the_export_can_not_own_it(clusters: Clusters) -> None:
    with clusters["a"].connect() as conn:
        with pytest.raises(ExportNotFoundError):
            ownership.own(conn, "search")
        make_export(conn)
        operations.add(conn, "b", "host=b")
        with pytest.raises(ReplicaError):
            ownership.own(conn, "search")
