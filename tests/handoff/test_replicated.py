"""Writes and reads at each level, with all servers or while some can't be reached."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, date, datetime, timedelta

import pytest
from support import eventually
from support.clusters import Clusters, agreed, dsns, figures, hints, replay_all
from support.queues import one

from pgcombine import ReplicatedQueue
from pgcombine.errors import (
    ConfigError,
    IndeterminateError,
    InvalidUpdateError,
    QueueNotFoundError,
    TokenConflictError,
    TokenExpiredError,
)
from pgcombine.handoff.connections import open_peer
from pgcombine.handoff.delivery import Hint, apply
from pgcombine.handoff.rebuilding import rebuild
from pgcombine.handoff.replicated import new_token


def test_all_servers_acknowledge(queue: ReplicatedQueue, clusters: Clusters) -> None:
    receipt = queue.enqueue([{"word": "fluo", "n": 1}, {"word": "spark"}], level="ALL")
    assert (receipt.acked, receipt.hinted) == (("a", "b", "c"), ())
    eventually(lambda: not any(hints(clusters).values()))
    agreed(clusters, {"fluo": 1, "spark": 0})


def test_coordinator_alone_answers_at_level_one(queue: ReplicatedQueue, clusters: Clusters) -> None:
    for cluster in (clusters["b"], clusters["c"]):
        cluster.proxy.refuse = True
    receipt = queue.enqueue([("fluo", 1)], level="ONE")
    assert receipt.acked == ("a",)
    assert receipt.hinted == ("b", "c")
    for cluster in (clusters["b"], clusters["c"]):
        cluster.proxy.heal()
    replay_all(clusters)
    agreed(clusters, {"fluo": 1})
    assert [delivered for delivered, _, _ in figures(clusters["a"]).values()] == [1, 1]


def test_same_token_adds_nothing(queue: ReplicatedQueue, clusters: Clusters) -> None:
    token = new_token()
    for _ in range(3):
        assert queue.enqueue([("fluo", 1)], token, level="ALL").token == token
    with pytest.raises(TokenConflictError, match=str(token)):
        queue.enqueue([("fluo", 2)], token)
    eventually(lambda: not any(hints(clusters).values()))
    agreed(clusters, {"fluo": 1})
    assert figures(clusters["a"]) == {"b": (1, 2, 0), "c": (1, 2, 0)}


def test_tokens_of_other_times_are_refused(queue: ReplicatedQueue) -> None:
    with pytest.raises(TokenExpiredError):
        queue.enqueue([("fluo", 1)], "01890a5d-ac96-774b-bcce-b302099a8057")
    with pytest.raises(TokenExpiredError):
        queue.enqueue([("fluo", 1)], "0fff0a5d-ac96-774b-bcce-b302099a8057")
    with pytest.raises(ConfigError):
        queue.enqueue([("fluo", 1)], "a8098c1a-f86e-4da1-b1a4-00112444be1e")


def test_misfit_is_refused_before_it_is_written(queue: ReplicatedQueue, clusters: Clusters) -> None:
    for row in (("fluo",), {"wird": "x"}, ("fluo", "x"), (None, 1), ("a\0", 1), ("\ud800", 1), ("fluo", {"n": 1})):
        with pytest.raises(InvalidUpdateError):
            queue.enqueue([row])
    agreed(clusters, {})


def test_values_of_all_kinds_arrive(clusters: Clusters) -> None:
    definition = (
        "create_queue('kinds', '{k text,d date}', '{s numeric sum,f double precision max,b boolean bool_or,"
        "c bigint count,a int[] array_union,j jsonb jsonb_merge,y bytea max}', buckets => 2)"
    )
    for cluster in clusters.values():
        cluster.execute(f"select pgcombine.{definition}")
    from datetime import date
    from decimal import Decimal

    from psycopg.types.json import Jsonb

    rows = [
        {"k": 'q"u\\o{t},e', "d": date(2024, 2, 29), "s": Decimal("1.50"), "f": float("inf"), "b": True, "a": [1, 2]},
        {"k": "NULL", "d": "2024-01-01", "s": None, "c": 3, "j": Jsonb({"a": ['"', "\\"]}), "y": b'\x00"\\'},
        {"k": "", "d": "2024-01-01"},
    ]
    with ReplicatedQueue(dsns(clusters), "kinds", level="ALL") as kinds:
        kinds.enqueue(rows)
        found = []
        for cluster in clusters.values():
            with cluster.connect() as conn:
                found.append(conn.execute("select * from pgcombine.kinds_current order by k").fetchall())
        assert found[0] == [
            ("", date(2024, 1, 1), 0, None, None, 1, None, None, None),
            ("NULL", date(2024, 1, 1), None, None, None, 3, None, {"a": ['"', "\\"]}, b'\x00"\\'),
            ('q"u\\o{t},e', date(2024, 2, 29), Decimal("1.50"), float("inf"), True, 1, [1, 2], None, None),
        ]
        assert found[1:] == found[:1] * 2
        assert kinds.get([("", "2024-01-01")]).values[("", date(2024, 1, 1))][3] == 1


def test_servers_may_have_other_settings(clusters: Clusters) -> None:
    """Values are the same on all servers after writes, hints and a rebuild, although the servers' settings differ."""
    settings = {
        "b": {"timezone": "America/New_York", "datestyle": "SQL, DMY", "intervalstyle": "sql_standard"},
        "c": {"timezone": "Asia/Tokyo", "datestyle": "German", "extra_float_digits": "0"},
    }
    for name, cluster in clusters.items():
        with cluster.connect() as conn:
            for setting, value in settings.get(name, {}).items():
                conn.execute(f"alter database {conn.info.dbname} set {setting} = '{value}'")
            conn.execute(
                "select pgcombine.create_queue('times', '{at timestamptz}', '{d date max,i interval sum,f float8 max}')"
            )

    def found(name: str) -> list[tuple[object, ...]]:
        with clusters[name].connect() as conn:
            conn.execute("set timezone = 'UTC'; set datestyle = 'ISO'; set intervalstyle = 'postgres'")
            conn.execute("set extra_float_digits = 1")
            return conn.execute("select at, d, i, f from pgcombine.times_current order by at").fetchall()

    one_third = 1 / 3
    with ReplicatedQueue(dsns(clusters), "times", level="ALL") as times:
        times.enqueue([(datetime(2024, 3, 4, 5, 6), "03/04/2024", timedelta(days=-1, hours=2), one_third)])
        times.enqueue([(f"2024-03-05 00:00:{i % 60:02}", "03-04-2024", "1", one_third) for i in range(1200)])
        clusters["c"].cut_off()
        times.enqueue([("2024-03-06", "04/03/2024", "1", one_third)], level="QUORUM")
        clusters["c"].proxy.heal()
        replay_all(clusters)
        read = times.get([datetime(2024, 3, 4, 5, 6)], level="ALL")
    assert list(read.values.values()) == [(date(2024, 3, 4), timedelta(days=-1, hours=2), one_third)]
    assert found("a")[0] == (
        datetime(2024, 3, 4, 5, 6, tzinfo=UTC),
        date(2024, 3, 4),
        timedelta(days=-1, hours=2),
        one_third,
    )
    assert len(found("a")) == 62
    assert found("b") == found("c") == found("a")
    clusters["a"].run(rebuild, clusters["a"].dsn, "b", ["c"])
    assert found("b") == found("a")


def test_write_retried_during_its_delivery_counts_once(clusters: Clusters) -> None:
    """If a caller retries a write during its delivery, one delivery may have the write twice. The write counts once."""
    rows = [(f"w{number}", 1) for number in range(600)]
    with ReplicatedQueue(dsns(clusters), "wc", level="ALL") as queue:
        queue.enqueue([("first", 1)])
        for size in (1, 600):
            clusters["b"].cut_off()
            with pytest.raises(IndeterminateError):
                queue.enqueue(rows[:size])
            clusters["b"].proxy.heal()
            with clusters["a"].connect() as coordinator:
                row = coordinator.execute(
                    "select token, queue, shape, digest, to_jsonb(servers), updates, payload "
                    "from pgcombine.handoff_hint where destination = 'b'"
                ).fetchone()
            assert row is not None
            hint = Hint(*row, None, None, None)
            peer = open_peer("b", clusters["b"].dsn, 4.0)
            with closing(peer.connection):
                assert apply(peer, [hint, hint]) == {hint.token: "applied"}
            replay_all(clusters)
    agreed(clusters, {"first": 1, "w0": 2, **{word: 1 for word, _ in rows[1:]}})


@pytest.mark.slow
def test_reading_names_servers_that_lack_writes(queue: ReplicatedQueue, clusters: Clusters) -> None:
    queue.enqueue([("fluo", 1)], level="ALL")
    clusters["c"].cut_off()
    queue.enqueue([("fluo", 10)], level="QUORUM")
    eventually(lambda: sum(hints(clusters).values()) == 1)
    clusters["c"].proxy.heal()
    reading = queue.get(["fluo", "none"], level="ALL")
    assert (reading.values, reading.lags, reading.complete) == ({"fluo": 11}, {"a": 0, "b": 0, "c": 1}, True)
    assert reading.unknown == ()
    clusters["a"].cut_off()
    reading = queue.get(["fluo"], level="QUORUM")
    assert (reading.unknown, reading.complete) == (("a",), False)
    clusters["a"].proxy.heal()
    replay_all(clusters)
    assert queue.get(["fluo"], level="ALL").lags == {"a": 0, "b": 0, "c": 0}
    agreed(clusters, {"fluo": 11})


def test_reading_names_servers_that_need_repair(queue: ReplicatedQueue, clusters: Clusters) -> None:
    """A server that needs repair may lack writes. So a reading uses the other servers, or else is incomplete."""
    queue.enqueue([("fluo", 1)], level="ALL")
    eventually(lambda: not any(hints(clusters).values()))
    clusters["a"].execute("select pgcombine_internal.handoff_require_repair('c', 'a test')")
    reading = queue.get(["fluo"], level="ALL")
    assert (reading.values, reading.complete, reading.needs_repair) == ({"fluo": 1}, True, ("c",))
    with clusters["c"].connect() as conn:
        conn.execute("select pgcombine_internal.handoff_register('a', 'host=a')")
        conn.execute("select pgcombine_internal.handoff_require_repair('a', 'a test')")
        conn.execute("select pgcombine_internal.handoff_register('b', 'host=b')")
        conn.execute("select pgcombine_internal.handoff_require_repair('b', 'a test')")
    reading = queue.get(["fluo"], level="ALL")
    assert (reading.complete, reading.needs_repair) == (False, ("a", "b", "c"))


@pytest.mark.slow
@pytest.mark.servers("abcde")
def test_each_key_is_on_the_given_number_of_servers(clusters: Clusters) -> None:
    words = {f"w{i}": i for i in range(100)}
    with ReplicatedQueue(dsns(clusters), "wc", replicas=3, level="ALL") as queue:
        for part in range(4):
            queue.enqueue(list(words.items())[part::4])
        eventually(lambda: not any(hints(clusters).values()))
        reading = queue.get(words, level=3)
        assert (reading.values, reading.complete) == (words, True)
    held: dict[str, list[str]] = {word: [] for word in words}
    for name, cluster in clusters.items():
        with cluster.connect() as conn:
            for word, n in conn.execute("select * from pgcombine.wc_current").fetchall():
                assert n == words[word]
                held[word].append(name)
    assert all(len(names) == 3 for names in held.values())
    assert len({tuple(names) for names in held.values()}) == 10  # all ten sets of three of the five servers occur


@pytest.mark.parametrize("fault", ["another server", "a copy", "no queue"])
def test_read_needs_no_definition_of_the_first_server(queue: ReplicatedQueue, clusters: Clusters, fault: str) -> None:
    queue.enqueue([("fluo", 1)], level="ALL")
    servers = dsns(clusters)
    if fault == "another server":
        servers["a"] = servers["b"]
    else:
        with clusters["a"].connect() as conn:
            conn.execute(
                "select pgcombine.drop_queue('wc', force => true)"
                if fault == "no queue"
                else "update pgcombine.handoff_server set system_identifier = system_identifier + 1"
            )
    with ReplicatedQueue(servers, "wc") as other:
        assert other.get(["fluo"], level="QUORUM").values == {"fluo": 1}


@pytest.mark.slow
def test_large_write_is_divided_among_servers(clusters: Clusters) -> None:
    words = {f"w{i}": i for i in range(20_000)}
    servers = dsns(clusters)
    with ReplicatedQueue(servers, "wc", replicas=2, level="ALL", timeout=20) as queue:
        queue.enqueue(list(words.items()))
        assert queue.get(list(words)[:100], level="ALL").values == {f"w{i}": i for i in range(100)}
    held = 0
    for cluster in clusters.values():
        held += cluster.one("select pgcombine.backlog('wc')")
    assert held == 2 * len(words)


def test_replicated_queue_refuses_wrong_settings(clusters: Clusters) -> None:
    servers = dsns(clusters)
    for wrong in ({"replicas": 4}, {"replicas": 0}, {"level": 4}, {"level": "MOST"}, {"timeout": 0}):
        with pytest.raises(ConfigError):
            ReplicatedQueue(servers, "wc", **wrong)
    with ReplicatedQueue(servers, "nothing") as queue:
        with pytest.raises(QueueNotFoundError):
            queue.enqueue([("a", 1)])
        with pytest.raises(QueueNotFoundError):
            queue.get(["a"])


def test_callers_name_the_servers_in_any_order(clusters: Clusters) -> None:
    """A caller tries the servers as coordinators in the order in which it names them, but recently failed ones last.

    Another order doesn't change the row that each server stores for the queue.
    """
    servers = dsns(clusters)
    with ReplicatedQueue(servers, "wc") as queue, ReplicatedQueue(dict(reversed(servers.items())), "wc") as other:
        queue.enqueue([("fluo", 1)], level="ALL")
        with clusters["c"].connect() as conn:
            before = one(conn, "select xmin::text from pgcombine.handoff_queue")
            assert "c" in other.enqueue([("fluo", 1)], level="ONE").acked
            assert one(conn, "select xmin::text from pgcombine.handoff_queue") == before
