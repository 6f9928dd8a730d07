"""Failures that handoff survives, so that servers count each acknowledged write once, and failures that it reports."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from collections.abc import Callable

import pytest
from support import eventually, start_cli
from support.clusters import Cluster, Clusters, agreed, dsns, figures, hints, queue_on, replay, replay_all, tokens
from support.queues import current, lose, one
from support.states import raises_state

from pgcombine import Replayer, ReplicatedQueue
from pgcombine.errors import IndeterminateError, UnavailableError
from pgcombine.handoff.rebuilding import rebuild
from pgcombine.handoff.replicated import new_token


@pytest.mark.servers("abcde")
def test_writes_survive_one_replica_that_is_down(clusters: Clusters) -> None:
    """Each key is on three of five servers. One server of a key is down during three writes at ALL."""
    with ReplicatedQueue(dsns(clusters), "wc", replicas=3, level="ALL", timeout=3) as queue:
        with clusters["a"].connect() as conn:
            conn.execute("select pgcombine_internal.handoff_handshake('a')")
            (word, holders) = next(
                (word, holders)
                for word in (f"w{i}" for i in range(200))
                if (
                    holders := one(
                        conn,
                        "select holders from pgcombine_internal.handoff_holders('wc', %s, '{a,b,c,d,e}', 3)",
                        f'{{"{{{word}}}"}}',
                    )
                )
                == ["a", "c", "e"]
            )
        clusters["e"].kill()
        errors = []
        for _ in range(3):
            with pytest.raises(IndeterminateError) as raised:
                queue.enqueue([(word, 1)])
            errors.append(raised.value)
        assert [error.hinted for error in errors] == [("e",)] * 3
        eventually(lambda: hints({name: clusters[name] for name in "abcd"}) == {"a": 3, "b": 0, "c": 0, "d": 0})
        clusters["e"].start()
        assert replay(clusters, "a") == {"delivered": 3, "deduplicated": 0, "quarantined": 0}
        eventually(lambda: queue.enqueue([(word, 1)], errors[0].token).acked == ("a", "c", "e"))
        for error in errors:
            assert queue.enqueue([(word, 1)], error.token).acked == ("a", "c", "e")
    replay_all(clusters)
    agreed({name: clusters[name] for name in holders}, {word: 3})
    agreed({name: clusters[name] for name in "bd"}, {})


def test_write_survives_a_replica_that_fails_after_the_answer(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """The replica doesn't answer, and is killed and restarted after the caller has its answer."""
    clusters["c"].proxy.black_hole()
    assert queue.enqueue([("fluo", 1)], level="ONE").acked[:1] == ("a",)
    clusters["c"].kill()
    for _ in range(2):  # kill the replica two more times
        clusters["c"].start()
        clusters["c"].kill()
    clusters["c"].start()
    clusters["c"].proxy.heal()
    replay_all(clusters)
    agreed(clusters, {"fluo": 1})


@pytest.mark.slow
def test_writes_survive_hanging_servers(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """The processes of a replica, then of the coordinator, are suspended, but the kernel accepts connections.

    A write goes to the next coordinator with the same token. The first one may apply the write later, too.
    """
    queue.enqueue([("fluo", 1)], level="ALL")
    clusters["c"].freeze()
    for level in ("ONE", "QUORUM"):
        assert "a" in queue.enqueue([("fluo", 1)], level=level).acked
    with pytest.raises(IndeterminateError) as raised:
        queue.enqueue([("fluo", 1)], level="ALL")
    assert raised.value.hinted == ("c",)
    clusters["c"].thaw()
    replay_all(clusters)
    clusters["a"].freeze()
    assert queue.enqueue([("fluo", 1)], level="QUORUM").acked == ("b", "c")
    clusters["a"].thaw()
    replay_all(clusters)
    agreed(clusters, {"fluo": 5})


@pytest.mark.slow
def test_write_survives_a_killed_server(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """The server is killed while it applies a write, and before its answer. Then the next delivery is a duplicate."""
    queue.enqueue([("fluo", 1)], level="ALL")
    with clusters["c"].connect() as blocker:
        blocker.autocommit = False
        blocker.execute("lock table pgcombine.wc_updates")  # the token is inserted, the updates wait
        with pytest.raises(IndeterminateError):
            queue.enqueue([("fluo", 10)], level="ALL")
        clusters["c"].kill()
        blocker.close()
    clusters["c"].start()
    assert len(tokens(clusters["c"])) == 1
    replay_all(clusters)
    clusters["c"].proxy.lose_reply_to = b"handoff_apply"
    with pytest.raises(IndeterminateError):
        queue.enqueue([("fluo", 100)], level="ALL")
    assert len(tokens(clusters["c"])) == 3
    clusters["c"].kill()
    clusters["c"].start()
    clusters["c"].proxy.heal()
    replay_all(clusters)
    agreed(clusters, {"fluo": 111})
    assert figures(clusters["a"])["c"] == (2, 1, 0)


def test_hints_survive_a_killed_caller(clusters: Clusters) -> None:
    """The caller is killed with -9. Nothing was delivered yet, but hints exist for both other servers."""
    code = f"""
        import os, signal
        from pgcombine import ReplicatedQueue
        from pgcombine.handoff import sender
        sender.Sender.submit = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
        ReplicatedQueue({dsns(clusters)!r}, "wc").enqueue([("fluo", 1)])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, timeout=60, check=False)
    assert done.returncode == -9, done.stderr
    assert hints(clusters) == {"a": 2, "b": 0, "c": 0}
    replay_all(clusters)
    agreed(clusters, {"fluo": 1})


def tried(call: Callable[[], object]) -> object:
    """Return the result of the call, or None if it raises UnavailableError or IndeterminateError."""
    try:
        return call()
    except (UnavailableError, IndeterminateError):
        return None


def fill(clusters: Clusters, writes: int) -> dict[str, int]:
    """Make writes of ten updates each. Hints for c stay at a; those for b are delivered. Return the sums by word."""
    clusters["c"].proxy.refuse = True
    expected: dict[str, int] = {}
    with queue_on(clusters, level="ONE") as queue:
        for number in range(writes):
            rows = [(f"w{(number + i) % 50}", i) for i in range(10)]
            queue.enqueue(rows)
            for word, n in rows:
                expected[word] = expected.get(word, 0) + n
    replay(clusters)
    assert hints(clusters) == {"a": writes, "b": 0, "c": 0}
    clusters["c"].proxy.heal()
    return expected


def waiting(coordinator: Cluster, destination: str) -> int:
    return int(coordinator.one("select count(*) from pgcombine.handoff_hint where destination = %s", destination))


def test_killed_replayer_causes_only_duplicates(clusters: Clusters) -> None:
    """The next replayer repeats the deliveries, and each is a duplicate."""
    expected = fill(clusters, 30)
    with clusters["a"].connect() as blocker:
        blocker.autocommit = False
        # with this lock the replayer can't record its deliveries
        blocker.execute("lock table pgcombine.handoff_delivery in share mode")
        arguments = ("replicas", "run", "--min-age", "0", "--dsn", clusters["a"].direct)
        with start_cli(*arguments, env={"PGCOMBINE_HOME": None}) as replayer:
            eventually(lambda: len(tokens(clusters["c"])) == 30)
            replayer.kill()
            replayer.wait()
        blocker.rollback()
        assert waiting(clusters["a"], "c") == 30
    assert replay_all(clusters) == {"delivered": 0, "deduplicated": 30, "quarantined": 0}
    agreed(clusters, expected)


@pytest.mark.slow
def test_retry_through_another_coordinator_counts_once(clusters: Clusters) -> None:
    """The first coordinator took the write, but its answer was lost and the server was killed. After its restart, it
    has the write only once."""
    token = new_token()
    with ReplicatedQueue({"a": clusters["a"].dsn}, "wc", timeout=1) as alone:
        alone.enqueue([("other", 1)])
        clusters["a"].proxy.lose_reply_to = b"handoff_accept"
        with pytest.raises(IndeterminateError) as raised:
            alone.enqueue([("fluo", 1)], token)
        assert (raised.value.token, raised.value.acked, raised.value.hinted) == (token, (), ())
    clusters["a"].kill()
    with ReplicatedQueue(dsns(clusters), "wc") as queue:
        receipt = eventually(lambda: tried(lambda: queue.enqueue([("fluo", 1)], token)))
        assert receipt.acked == ("b", "c")
    clusters["a"].start()
    clusters["a"].proxy.heal()
    replay_all(clusters)
    for cluster in clusters.values():
        assert cluster.one("select n from pgcombine.wc_current where word = 'fluo'") == 1


def test_recovered_server_is_asked_when_a_level_needs_it(clusters: Clusters) -> None:
    """After many failures callers avoid a server for seconds, or until it answers one of them."""

    def fails_for_long() -> None:
        for _ in range(12):
            queue._servers["b"].failed()
        assert queue._servers["b"].avoided

    with (
        ReplicatedQueue(dsns(clusters), "wc", timeout=5) as queue,
        ReplicatedQueue(dsns(clusters), "wc", timeout=5) as other,
    ):
        clusters["b"].proxy.refuse = True
        assert queue.enqueue([("fluo", 1)]).acked == ("a", "c")
        fails_for_long()
        assert other._servers["b"].avoided
        assert other.enqueue([("fluo", 1)]).acked == ("a", "c")
        clusters["b"].proxy.heal()
        clusters["c"].cut_off()
        for _ in range(5):
            assert queue.enqueue([("fluo", 1)]).acked == ("a", "b")
        assert not other._servers["b"].avoided
        fails_for_long()
        reading = queue.get(["fluo"])
        assert (reading.values, reading.unknown, reading.complete) == ({"fluo": 7}, ("c",), False)
        clusters["c"].proxy.heal()
        fails_for_long()
        assert queue.enqueue([("fluo", 1)], level="ALL").acked == ("a", "b", "c")
    replay_all(clusters)
    agreed(clusters, {"fluo": 8})


@pytest.mark.slow
def test_reading_asks_a_server_that_failed_lately(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """A read avoids a server that failed lately, but asks that server if another one hangs."""
    queue.enqueue([("fluo", 1)], level="ALL")
    for _ in range(12):
        queue._servers["b"].failed()
    clusters["a"].proxy.black_hole()
    reading = queue.get(["fluo"], level="QUORUM")
    assert (reading.values, sorted(reading.lags), reading.unknown) == ({"fluo": 1}, ["b", "c"], ("a",))


@pytest.mark.slow
def test_error_tells_that_nothing_was_written(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """No server can be connected to, so the error says for certain that nothing was written."""
    for cluster in clusters.values():
        cluster.proxy.refuse = True
    with pytest.raises(UnavailableError):
        queue.enqueue([("fluo", 1)])
    for cluster in clusters.values():
        cluster.proxy.heal()
    agreed(clusters, {})


def test_writes_survive_a_full_disk(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """Inserts fail with 53100 (disk full). Hints for a replica with a full disk wait. In place of a coordinator with a
    full disk, another server takes the write."""
    for name in "ca":
        token = new_token()
        eventually(lambda token=token: tried(lambda: queue.enqueue([("fluo", 1)], token, level="ALL")))
        with clusters[name].connect() as conn:
            conn.execute(
                "create function full_disk() returns trigger language plpgsql as "
                "$$begin raise exception 'could not extend file' using errcode = '53100'; end$$"
            )
            conn.execute("create trigger full_disk before insert on pgcombine.wc_updates execute function full_disk()")
        receipt = queue.enqueue([("fluo", 1)], level="QUORUM")
        assert name not in receipt.acked
        clusters[name].execute("drop function full_disk cascade")
        replay_all(clusters)
    agreed(clusters, {"fluo": 4})


def test_one_bad_update_of_five_hundred_is_quarantined(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """One update is quarantined with its reason; all other updates and writes are applied."""
    clusters["c"].execute("alter table pgcombine.wc_updates add constraint small check (n < 1000)")
    queue.enqueue([("before", 1)], level="ONE")
    receipt = queue.enqueue([("fluo", 5000 if i == 321 else 1) for i in range(500)], level="QUORUM")
    assert receipt.acked == ("a", "b")
    queue.enqueue([("after", 1)], level="ONE")
    replay_all(clusters)
    agreed({name: clusters[name] for name in "ab"}, {"before": 1, "after": 1, "fluo": 5499})
    agreed({"c": clusters["c"]}, {"before": 1, "after": 1, "fluo": 499})
    assert tokens(clusters["a"]) == tokens(clusters["c"])
    delivered, _, quarantined = figures(clusters["a"])["c"]
    assert (delivered, quarantined) == (3, 1)
    with clusters["a"].connect() as conn:
        held = conn.execute(
            "select token, number, sqlstate, error, pgcombine_internal.handoff_content(queue, payload) "
            "from pgcombine.handoff_quarantine"
        ).fetchall()
        assert [row[:3] for row in held] == [(receipt.token, 322, "23514")]
        assert "small" in held[0][3]
        assert held[0][4] == [{"word": "fluo", "n": "5000"}]


def test_server_with_another_definition_is_paused(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """The server is paused, and hints wait. After its queue is corrected and it is resumed, it gets all writes."""
    definition = "'wc', '{word text}', '{n bigint sum}', buckets => 4"
    with clusters["c"].connect() as conn:
        conn.execute("select pgcombine.drop_queue('wc')")
        conn.execute("select pgcombine.create_queue('wc', '{word text}', '{n bigint max}')")
    assert queue.enqueue([("fluo", 1)], level="QUORUM").acked == ("a", "b")
    eventually(lambda: waiting(clusters["a"], "b") == 0)
    replay(clusters)
    with clusters["a"].connect() as coordinator, clusters["c"].connect() as conn:
        told = coordinator.execute("select state, reason from pgcombine.handoff where destination = 'c'").fetchone()
        assert told == (
            "paused",
            'queue "wc" has another definition on this server (give it the same definition on all servers)',
        )
        assert replay(clusters)["delivered"] == 0
        conn.execute("select pgcombine.drop_queue('wc')")
        conn.execute(f"select pgcombine.create_queue({definition})")
        assert replay(clusters)["delivered"] == 0
        coordinator.execute("select pgcombine_internal.resume_destination('server', 'c')")
    replay_all(clusters)
    agreed(clusters, {"fluo": 1})


def test_another_server_at_the_address_gets_nothing(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """Replayers recognize the other server by its name or, if the names are equal, by its id."""
    queue.enqueue([("fluo", 1)], level="ALL")
    clusters["c"].proxy.target, right = clusters["b"].proxy.target, clusters["c"].proxy.target
    clusters["c"].proxy.cut()
    assert queue.enqueue([("fluo", 1)], level="QUORUM").acked == ("a", "b")
    eventually(lambda: waiting(clusters["a"], "b") == 0)
    assert replay(clusters)["delivered"] == 0
    with clusters["a"].connect() as coordinator:
        assert 'this server is "b", not "c"' in one(
            coordinator, "select reason from pgcombine.handoff where destination = 'c'"
        )
        clusters["c"].proxy.target = right
        clusters["c"].proxy.cut()
        with clusters["c"].connect() as conn:
            before = conn.execute("table pgcombine.handoff_server").fetchone()
            conn.execute("select pgcombine_internal.handoff_identify('c')")
            assert replay(clusters)["delivered"] == 0
            assert "it has another id" in one(
                coordinator, "select reason from pgcombine.handoff where destination = 'c'"
            )
            conn.execute("update pgcombine.handoff_server set id = %s, epoch = 1", (before[2],))
    replay_all(clusters)
    agreed(clusters, {"fluo": 2})


def test_copy_of_a_server_is_refused(clusters: Clusters) -> None:
    """A dump restored into another cluster has the same name and id but another system identifier."""
    with clusters["c"].connect() as conn:
        conn.execute("select pgcombine_internal.handoff_handshake('c')")
        conn.execute("update pgcombine.handoff_server set system_identifier = system_identifier + 1")
        with raises_state("PC042"):
            conn.execute("select pgcombine_internal.handoff_handshake('c')")
        conn.execute("select pgcombine_internal.handoff_identify('c')")
        assert one(conn, "select epoch from pgcombine_internal.handoff_handshake('c')") == 2


def test_older_backup_is_noticed(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """The server forgot an acknowledged write. It is paused and marked for repair, and the hints for it stay."""
    queue.enqueue([("fluo", 1)], level="ALL")
    eventually(lambda: not any(hints(clusters).values()))
    with clusters["c"].connect() as conn:
        before = conn.execute("table pgcombine.handoff_token").fetchall()
    queue.enqueue([("fluo", 10)], level="ALL")
    eventually(lambda: not any(hints(clusters).values()))
    clusters["c"].cut_off()
    queue.enqueue([("fluo", 100)], level="QUORUM")
    eventually(lambda: waiting(clusters["a"], "b") == 0)
    with clusters["c"].connect() as conn:  # restores the state of the backup
        conn.execute("delete from pgcombine.handoff_token where token <> %s", (before[0][0],))
    clusters["c"].proxy.heal()
    assert replay(clusters)["delivered"] == 0
    with clusters["a"].connect() as coordinator:
        assert one(coordinator, "select state from pgcombine.handoff where destination = 'c'") == "paused"
        assert "forgotten" in one(coordinator, "select needs_repair from pgcombine.handoff where destination = 'c'")
    assert waiting(clusters["a"], "c") == 1


def test_coordinator_from_an_older_backup_is_noticed(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """The restored server was the coordinator of all writes. The other servers know only which writes it sent."""
    queue.enqueue([("fluo", 1)], level="ALL")
    with clusters["a"].connect() as conn:
        before = conn.execute("table pgcombine.handoff_token").fetchall()
    first = before[0][0]

    def written() -> bool:  # the tokens of a coordinator's last writes are recorded at most once a second
        queue.enqueue([("fluo", 10)], level="ALL")
        with clusters["b"].connect() as b, clusters["c"].connect() as c:
            noted = [one(conn, "select pgcombine_internal.handoff_last('a')") for conn in (b, c)]
        return None not in noted and first not in noted

    eventually(written)
    eventually(lambda: not any(hints(clusters).values()))
    assert queue.get(["fluo"], level="ALL").needs_repair == ()
    with clusters["a"].connect() as conn:  # restores the state of the backup
        conn.execute("delete from pgcombine.handoff_token where token <> %s", (first,))
        conn.execute("delete from pgcombine.handoff_delivery")
        lose(conn)
        conn.execute("insert into pgcombine.wc_updates (word, n) values ('fluo', 1)")
    for cluster in clusters.values():
        cluster.proxy.cut()
    eventually(lambda: bool(queue.enqueue([("spark", 1)], level="ONE")) and queue.get(["fluo"]).needs_repair == ("a",))
    replay_all({name: clusters[name] for name in "ab"})
    with clusters["b"].connect() as conn:
        assert one(conn, "select state from pgcombine.handoff where destination = 'a'") == "paused"
        assert "forgotten" in one(conn, "select needs_repair from pgcombine.handoff where destination = 'a'")
        rebuild(conn, clusters["b"].dsn, "a", ["b"])
    assert queue.get(["fluo"]).needs_repair == ()
    held = []
    for cluster in clusters.values():
        held.append(cluster.run(current))
    assert held[0]["fluo"] > 1
    assert held[1:] == held[:1] * 2


def test_two_replayers_share_the_hints(clusters: Clusters) -> None:
    """Each hint is delivered once."""
    expected = fill(clusters, 60)
    replayers = [Replayer(clusters["a"].direct, min_age=0) for _ in range(2)]
    threads = [threading.Thread(target=replayer.replay, kwargs={"force": True}) for replayer in replayers]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(replayer.totals.delivered for replayer in replayers) == 60
    assert [replayer.totals.deduplicated for replayer in replayers] == [0, 0]
    agreed(clusters, expected)
