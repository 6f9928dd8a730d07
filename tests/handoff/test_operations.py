"""Commands for operators of several servers, the clean-up of tokens and deliveries, and the quota of hints."""

from __future__ import annotations

import json
import os
import signal
from collections.abc import Collection

import pytest
from support import eventually, run_cli, start_cli
from support.clusters import Clusters, agreed, hints, replay_all, tokens
from support.queues import one
from support.sessions import in_background

from pgcombine import ReplicatedQueue
from pgcombine.errors import HintsFullError
from pgcombine.handoff import operations
from pgcombine.handoff.replayer import Replayer
from pgcombine.handoff.replicated import Receipt


@pytest.fixture
def hinted(queue: ReplicatedQueue, clusters: Clusters) -> Clusters:
    """A hint for c with two updates waits at a. Another write was delivered to all servers."""
    queue.enqueue([("fluo", 1)], level="ALL")
    clusters["c"].cut_off()
    queue.enqueue([("fluo", 10), ("spark", 2)], level="QUORUM")
    queue.close()
    assert hints(clusters) == {"a": 1, "b": 0, "c": 0}
    clusters["c"].proxy.heal()
    return clusters


def call(clusters: Clusters, *args: object, status: int = 0) -> str:
    done = run_cli(*args, "--dsn", clusters["a"].direct)
    assert done.returncode == status, (args, done.stdout, done.stderr)
    assert len(done.stderr.splitlines()) == (status > 0), done.stderr
    return done.stderr if status else done.stdout


def told(clusters: Clusters, *args: object) -> object:
    return json.loads(call(clusters, *args, "--json"))


def test_pause_ends_a_replay_after_its_page(queue: ReplicatedQueue, clusters: Clusters) -> None:
    clusters["c"].cut_off()
    for _ in range(60):  # the first page has 50
        queue.enqueue([("fluo", 1)], level="QUORUM")
    queue.close()
    clusters["c"].proxy.heal()

    class Pausing(Replayer):
        def _count(self, statuses: Collection[str], quarantined: int) -> None:
            super()._count(statuses, quarantined)
            clusters["a"].run(operations.pause, "c")

    assert Pausing(clusters["a"].direct, min_age=0).replay().delivered == 50
    assert hints(clusters) == {"a": 10, "b": 0, "c": 0}
    clusters["a"].run(operations.resume, "c")
    assert replay_all(clusters)["delivered"] == 10
    agreed(clusters, {"fluo": 60})


@pytest.mark.slow
def test_addresses_hold_no_password(hinted: Clusters) -> None:
    rows = told(hinted, "replicas", "ls")
    assert [row["name"] for row in rows] == ["b", "c"]
    assert "not-secret" not in json.dumps(rows)
    for address in ("postgresql://me:secret@host/db", "host=x password=secret", "postgresql://h/db?password=secret"):
        assert "holds a password" in call(hinted, "replicas", "add", "d", address, status=1)
    assert "invalid name" in call(hinted, "replicas", "add", "d e", "host=x", status=1)
    assert "hints or quarantined updates wait for server" in call(hinted, "replicas", "rm", "c", "--yes", status=1)
    call(hinted, "replicas", "rm", "b", "--yes")


@pytest.mark.slow
def test_commands_refuse_an_unregistered_server(hinted: Clusters) -> None:
    for words in (
        ("replicas", "show", "d"),
        ("replicas", "replay", "d"),
        ("replicas", "quarantine", "retry", "d", "--all"),
        ("replicas", "quarantine", "drop", "d", "--all", "--reason", "why not", "--yes"),
        ("replicas", "truncate", "d", "--reason", "why not", "--yes"),
        ("replicas", "verify", "d"),
        ("replicas", "run", "d"),
        ("replicas", "run", "b", "d", "--once"),
    ):
        assert 'server "d" is not registered here' in call(hinted, *words, status=1), words
    refused = call(hinted, "replicas", "add", "b", "host=x", "--max-rows", 0, status=1)
    assert 'invalid quota of server "b": 0 updates (' in refused


def test_replayer_refuses_a_schema_of_another_version(hinted: Clusters) -> None:
    hinted["a"].execute("update pgcombine.schema_version set digest = 'another'")
    # the daemon ends with status 3, on which supervisors restart it
    for words, status in ((("replicas", "run"), 3), (("replicas", "run", "--once"), 1)):
        assert "run 'pgcombine db upgrade'" in call(hinted, *words, status=status)
    assert hints(hinted)["a"] == 1


def test_hints_are_shown_with_their_updates(hinted: Clusters) -> None:
    (b, c) = told(hinted, "replicas", "ls")
    assert (b["writes"], b["rows"], b["delivered"]) == (0, 0, 2)
    assert (c["writes"], c["rows"], c["delivered"]) == (1, 2, 1)
    assert c["bytes"] > 0
    shown = told(hinted, "replicas", "show", "c")
    assert [hint["content"] for hint in shown["hints"]] == [[{"word": "fluo", "n": "10"}, {"word": "spark", "n": "2"}]]
    with hinted["a"].connect() as conn:
        assert conn.execute("select destination, queue, updates from pgcombine.hint").fetchall() == [("c", "wc", 2)]
    assert "is not registered" in call(hinted, "replicas", "show", "x", status=1)


def test_commands_pause_resume_and_replay(hinted: Clusters) -> None:
    call(hinted, "replicas", "pause", "c")
    assert 'server "c" still lacks 2 updates' in call(hinted, "replicas", "replay", "c", status=1)
    call(hinted, "replicas", "resume", "c")
    assert told(hinted, "replicas", "replay", "c") == {
        "server": "c",
        "delivered": 1,
        "deduplicated": 0,
        "quarantined": 0,
        "left": 0,
    }
    agreed(hinted, {"fluo": 11, "spark": 2})
    assert call(hinted, "replicas", "verify", "c") == "verified: c, 0 writes are in progress\n"
    assert [(each["server"], each["left"]) for each in told(hinted, "replicas", "replay")] == [("b", 0), ("c", 0)]
    assert call(hinted, "replicas", "verify").splitlines() == [
        f"verified: {name}, 0 writes are in progress" for name in ("b", "c")
    ]


def test_truncation_marks_the_server(hinted: Clusters) -> None:
    """A later comparison names the write that the server lacks."""
    assert told(hinted, "replicas", "verify", "c")["hinted"] == 1
    token = hinted["a"].one("select token::text from pgcombine.hint")
    assert told(hinted, "replicas", "truncate", "c", "--reason", "it is gone", "--yes")["updates"] == 2
    assert "c needs repair: hints were truncated: it is gone" in call(hinted, "replicas", "ls")
    done = run_cli("replicas", "verify", "c", "--dsn", hinted["a"].direct)
    assert (done.returncode, done.stdout) == (1, f"c lacks {token}\n")
    assert 'server "c" differs in 1 write' in done.stderr


def test_replayer_ends_on_a_signal(hinted: Clusters) -> None:
    arguments = ("replicas", "run", "--min-age", "0", "--poll", "0.1", "--json", "--dsn", hinted["a"].direct)
    with start_cli(*arguments) as replayer:
        eventually(lambda: not any(hints(hinted).values()))
        replayer.send_signal(signal.SIGTERM)
        output, _ = replayer.communicate(timeout=30)
    assert replayer.returncode == 0, output
    assert json.loads(output.splitlines()[-1]) == {"delivered": 1, "deduplicated": 0, "quarantined": 0}
    agreed(hinted, {"fluo": 11, "spark": 2})


@pytest.mark.slow
def test_worker_delivers_hints_by_option(hinted: Clusters) -> None:
    hinted["a"].execute("update pgcombine.handoff_hint set since = since - interval '1 minute'")
    with start_cli("worker", "--handoff", "--dsn", hinted["a"].direct) as worker:
        eventually(lambda: not any(hints(hinted).values()))
        os.kill(worker.pid, signal.SIGTERM)
        output, _ = worker.communicate(timeout=30)
    assert worker.returncode == 0, output
    agreed(hinted, {"fluo": 11, "spark": 2})


@pytest.mark.slow
def test_replacement_takes_the_place_of_a_server(hinted: Clusters) -> None:
    hinted["c"].execute("select pgcombine_internal.handoff_identify('c')")
    assert "it has another id" in call(hinted, "replicas", "replay", "c", status=1)
    address = hinted["a"].one("select dsn from pgcombine.handoff_replica where name = 'c'")
    call(hinted, "replicas", "add", "c", address, "--new-identity")
    call(hinted, "replicas", "replay", "c")
    agreed(hinted, {"fluo": 11, "spark": 2})


@pytest.mark.slow
def test_old_tokens_are_dropped_a_day_at_a_time(hinted: Clusters) -> None:
    """Tokens older than the retention are dropped. So a write with such a token is refused as expired."""
    call(hinted, "replicas", "replay", "c")
    with hinted["a"].connect() as conn:
        conn.execute("select pgcombine_internal.handoff_partition('01890a5d-ac96-774b-bcce-b302099a8057')")
        partitions = "select count(*) from pg_inherits where inhparent = 'pgcombine.handoff_token'::regclass"
        old = f"{partitions} and inhrelid = 'pgcombine.handoff_token_20230630'::regclass"
        assert one(conn, old) == 1
        conn.execute("select pgcombine_internal.handoff_clean_up()")
        assert one(conn, partitions) == 3  # the partitions of today and of the next two days
        server, shape = conn.execute(
            "select id, pgcombine_internal.handoff_shape('wc') from pgcombine.handoff_server"
        ).fetchone()
        apply = """
            select status from pgcombine_internal.handoff_apply(%s, 'wc', %s, '{01890a5d-ac96-774b-bcce-b302099a8057}',
                '{01890a5d-ac96-774b-bcce-b302099a8057}', '{null}', array['{"{fluo}","{1}"}'])
        """
        assert one(conn, apply, server, shape) == "expired"
    agreed(hinted, {"fluo": 11, "spark": 2})


@pytest.mark.slow
def test_clean_up_adds_deliveries_to_totals(hinted: Clusters) -> None:
    call(hinted, "replicas", "replay", "c")
    before = [(row["delivered"], row["deduplicated"]) for row in told(hinted, "replicas", "ls")]
    with hinted["a"].connect() as conn:
        assert one(conn, "select count(*) from pgcombine.handoff_delivery") == 4
        conn.execute(  # the clean-up adds older deliveries to the totals
            "update pgcombine.handoff_delivery d set at = d.at - interval '1 minute' where d.at < "
            "(select max(l.at) from pgcombine.handoff_delivery l where l.destination = d.destination)"
        )
        conn.execute("select pgcombine_internal.handoff_clean_up()")
        assert one(conn, "select count(*) from pgcombine.handoff_delivery") == 2
    assert [(row["delivered"], row["deduplicated"]) for row in told(hinted, "replicas", "ls")] == before == [(2, 0)] * 2


def test_quota_refuses_writes_or_marks_the_server(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """The quota is measured once a second. Writes between two measurements may exceed it; no write is lost.

    With the option ``require_repair``, a write is accepted without a hint, and the server is marked for repair.
    """
    queue.enqueue([("fluo", 1)], level="ALL")  # the servers register each other
    clusters["c"].cut_off()
    with clusters["a"].connect() as conn:
        address = one(conn, "select dsn from pgcombine.handoff_replica where name = 'c'")
        conn.execute("select pgcombine_internal.handoff_register('c', %s, max_rows => 3)", (address,))
        measured = "update pgcombine.handoff_replica set measured_at = %s::timestamptz where name = 'c'"
        conn.execute(measured, ("infinity",))  # no new measurement is due
        for _ in range(5):
            queue.enqueue([("fluo", 1), ("spark", 1)], level="ONE")
        assert one(conn, "select sum(updates) from pgcombine.handoff_hint where destination = 'c'") == 10
        conn.execute(measured, ("-infinity",))
        with pytest.raises(HintsFullError):
            queue.enqueue([("fluo", 1)], level="ONE")
        conn.execute("select pgcombine_internal.handoff_register('c', %s, when_full => 'require_repair')", (address,))
        receipt = queue.enqueue([("late", 1)], level="QUORUM")
        assert (receipt.acked, receipt.hinted) == (("a", "b"), ())
        assert "quota" in one(conn, "select needs_repair from pgcombine.handoff where destination = 'c'")
    clusters["c"].proxy.heal()
    replay_all(clusters)
    agreed({name: clusters[name] for name in "ab"}, {"fluo": 6, "spark": 5, "late": 1})
    assert len(tokens(clusters["a"]) - tokens(clusters["c"])) == 1


def test_write_during_a_removal_goes_on_without_the_server(queue: ReplicatedQueue, clusters: Clusters) -> None:
    queue.enqueue([("fluo", 1)], level="ALL")
    eventually(lambda: not any(hints(clusters).values()))
    with clusters["a"].connect() as conn, clusters["a"].connect() as other:
        conn.autocommit = False
        operations.remove(conn, "c")
        with in_background(lambda: queue.enqueue([("fluo", 1)], level="QUORUM")) as (write,):
            waiting = "select exists (select from pg_locks l where not l.granted)"
            eventually(lambda: one(other, waiting), what="the write waits for the removal")
            conn.commit()
    receipt = write.result()
    assert isinstance(receipt, Receipt)
    assert (receipt.acked, receipt.hinted) == (("a", "b"), ())
    assert [row["name"] for row in clusters["a"].run(operations.ls)] == ["b"]
