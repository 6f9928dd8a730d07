"""The options of ``create_queue`` and of tiers."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import psycopg
import pytest
from support import run_cli

from pgcombine.errors import BacklogFullError, ConfigError, InvalidDefinitionError, QueueExistsError, QueueNotFoundError
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.worker.drain import drain


def partitions(conn: psycopg.Connection, table: str) -> int:
    return conn.execute(
        "select count(*) from pg_inherits where inhparent = %s::regclass", (f"pgcombine.{table}",)
    ).fetchone()[0]


@pytest.mark.parametrize("key", [["word text"], ["a int", "b text"]])
def test_buckets_share_partitions(conn: psycopg.Connection, dsn: str, key: list[str]) -> None:
    wc = CombineQueue("wc", key=key, value=["n bigint sum"], buckets=12, buckets_per_partition=4)
    wc.create(conn)
    assert (partitions(conn, "wc_updates_s0"), partitions(conn, "wc_values")) == (3, 3)
    rows = [(f"w{i}",) if len(key) == 1 else (i, f"w{i}") for i in range(600)]
    for total in (1, 2):
        wc.enqueue(conn, [(*row, 1) for row in rows])
        backlogs = conn.execute(
            "select (pgcombine_internal.bucket_status('wc', b)).backlog from generate_series(0, 11) b"
        ).fetchall()
        assert sum(count for (count,) in backlogs) == 600
        assert len(conn.execute("select bucket from pgcombine_internal.busy('wc')").fetchall()) == 12
        if total == 1:  # each bucket's pass takes only the keys of the bucket
            taken = conn.execute(
                "select updates from generate_series(0, 11) b, pgcombine.combine('wc', b) order by bucket"
            )
            assert taken.fetchall() == backlogs
        else:
            assert drain(dsn, "wc", timeout=30).updates == 600
        assert conn.execute("select count(*), min(n), max(n) from pgcombine.wc_values").fetchone() == (
            600,
            total,
            total,
        )
    assert wc.verify(conn) == []


def test_bounded_passes_combine_shared_partitions(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute(
        "select pgcombine.create_queue('wc', array['word text'], array['n bigint sum'], buckets => 4,"
        " buckets_per_partition => 2, pass_limit => 50)"
    )
    conn.execute("insert into pgcombine.wc_updates select 'w' || i % 700, 1 from generate_series(1, 2100) i")
    conn.execute("insert into pgcombine.wc_updates select 'hot', 1 from generate_series(1, 2000) i")
    drain(dsn, "wc", timeout=60)
    assert conn.execute("select count(*), sum(n) from pgcombine.wc_values").fetchone() == (701, 4100)
    assert conn.execute("select n from pgcombine.wc_values where word = 'hot'").fetchone() == (2000,)


def test_concurrent_passes_may_share_a_partition(conn: psycopg.Connection, dsn: str) -> None:
    wc = CombineQueue("wc", key=["word text"], value=["n bigint sum"], buckets=2, buckets_per_partition=2)
    wc.create(conn)
    wc.enqueue(conn, [(f"w{i}", 1) for i in range(100)])
    with psycopg.connect(dsn) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        first = other.execute("select updates from pgcombine.combine('wc', 0)").fetchone()[0]
        second = conn.execute("select updates from pgcombine.combine('wc', 1)").fetchone()[0]
        other.commit()
    assert first + second == 100
    assert conn.execute("select count(*), sum(n) from pgcombine.wc_values").fetchone() == (100, 100)


@pytest.mark.parametrize("number", [0, -1, 5, 24])
def test_buckets_per_partition_must_divide_buckets(conn: psycopg.Connection, number: int) -> None:
    with pytest.raises(InvalidDefinitionError, match=str(number)):
        CombineQueue("wc", key=["w text"], value=["n int sum"], buckets=12, buckets_per_partition=number).create(conn)


@pytest.fixture
def spaces(conn: psycopg.Connection) -> Iterator[list[str]]:
    names = [f"pgcombine_test_{os.getpid()}_{letter}" for letter in "ab"]
    conn.execute("set allow_in_place_tablespaces = on")
    for name in names:
        conn.execute(f"create tablespace {name} location ''")
    yield names
    conn.execute("select pgcombine.drop_queue('wc', force => true)")
    for name in names:
        conn.execute(f"drop tablespace {name}")


def test_partitions_are_spread_over_tablespaces(conn: psycopg.Connection, spaces: list[str]) -> None:
    wc = CombineQueue("wc", key=["word text"], value=["n bigint sum"], buckets=4, tablespaces=spaces)
    wc.create(conn)
    used = (
        "select t.spcname, count(*) from pg_class c join pg_tablespace t on t.oid = c.reltablespace"
        " where c.relkind in ('r', 'i') and c.relname like 'wc\\_%%' group by 1 order by 1"
    )
    assert conn.execute(used).fetchall() == [(name, 12) for name in spaces]
    wc.rebucket(conn, 6)
    assert conn.execute(used).fetchall() == [(name, 18) for name in spaces]
    wc.enqueue(conn, [("a", 1)])
    assert wc.get(conn, ["a"]) == {"a": 1}


OPTIONS: dict[str, Any] = {
    "delete_when": "n = 0",
    "buckets": 6,
    "notify": False,
    "pass_limit": 777,
    "quarantine_after": 9,
    "buckets_per_partition": 3,
    "tablespaces": ["pg_default"],
    "max_backlog": 1000,
    "expire_when": "n <= 0",
    "expire_silently": True,
    "expire_every": timedelta(hours=1),
    "token_retention": timedelta(days=3),
}


def test_python_knows_every_option(conn: psycopg.Connection) -> None:
    """The options of CombineQueue have the defaults of create_queue."""
    names = "select proargnames[2:] from pg_proc where oid = 'pgcombine.create_queue'::regproc"
    assert set(conn.execute(names).fetchone()[0]) - {"if_not_exists"} == {"key", "value", *OPTIONS}
    columns = {"key": ["w text"], "value": ["n int sum"]}
    CombineQueue("wc", **columns, **OPTIONS).create(conn)
    CombineQueue("python", **columns).create(conn)
    conn.execute("select pgcombine.create_queue('sql', array['w text'], array['n int sum'])")
    chosen = (
        "buckets, notify, pass_limit, quarantine_after, partitions, tablespaces, max_backlog, "
        "expire_when, expire_silently, expire_every, token_retention"
    )
    made = {
        name: row
        for name, *row in conn.execute(f"select queue, delete_when, {chosen} from pgcombine.queue").fetchall()  # noqa: S608
    }
    assert made["wc"] == [
        *("(n = 0)", 6, False, 777, 9, 2, ["pg_default"], 1000),
        *("(n <= 0)", True, timedelta(hours=1), timedelta(days=3)),
    ]
    assert made["python"] == made["sql"]
    with pytest.raises(InvalidDefinitionError):
        CombineQueue("more", **columns, pass_limit=0).create(conn)


def test_expiry_is_set_and_cleared(conn: psycopg.Connection) -> None:
    wc = CombineQueue("wc", key="w text", value="n int sum", expire_silently=True, expire_every=timedelta(hours=1))
    wc.create(conn)
    found = "select expire_when, expire_silently, expire_every from pgcombine.queue"
    wc.set_expiry(conn, "n <= 0")
    assert conn.execute(found).fetchall() == [("(n <= 0)", True, timedelta(hours=1))]
    wc.set_expiry(conn, None)
    assert conn.execute(found).fetchall() == [(None, True, timedelta(hours=1))]
    with pytest.raises(InvalidDefinitionError):
        wc.set_expiry(conn, "random() > n")


def test_unknown_tablespace_is_refused(conn: psycopg.Connection) -> None:
    with pytest.raises(InvalidDefinitionError):
        CombineQueue("wc", key=["w text"], value=["n int sum"], tablespaces=["pg_default", "nope"]).create(conn)


def test_full_queue_refuses_updates(conn: psycopg.Connection, dsn: str) -> None:
    wc = CombineQueue("wc", key=["word text"], value=["n bigint sum"], buckets=4, max_backlog=100)
    wc.create(conn)

    wc.enqueue(conn, [(f"w{i}", 1) for i in range(100)])
    conn.execute("select pgcombine_internal.check_backlog()")
    with pytest.raises(BacklogFullError):
        wc.enqueue(conn, [("more", 1)])
    drain(dsn, "wc", timeout=30)
    wc.enqueue(conn, [("more", 1)])
    with pytest.raises(InvalidDefinitionError):
        CombineQueue("other", key=["w text"], value=["n int sum"], max_backlog=0).create(conn)


def test_command_sets_all_options(conn: psycopg.Connection, dsn: str) -> None:
    options = ("--buckets", 8, "--buckets-per-partition", 4, "--max-backlog", 1000, "--tablespace", "pg_default")
    options += ("--pass-limit", 777, "--quarantine-after", 9, "--no-notify")
    options += ("--expire-when", "w <= 'a'", "--expire-silently", "--expire-every", 60)
    options += ("--delete-when", "n = 0", "--token-retention", 3600)
    made = run_cli("queue", "create", "wc", "--key", "w text", "--value", "n int sum", *options, "--dsn", dsn)
    assert made.returncode == 0, made.stderr
    shown = json.loads(run_cli("queue", "show", "wc", "--json", "--dsn", dsn).stdout)
    assert {name: shown[name] for name in ("buckets", "buckets_per_partition", "tablespaces", "max_backlog")} == {
        "buckets": 8,
        "buckets_per_partition": 4,
        "tablespaces": ["pg_default"],
        "max_backlog": 1000,
    }
    assert [shown[name] for name in ("pass_limit", "quarantine_after", "notify")] == [777, 9, False]
    assert shown["expire_when"] == "(w <= 'a'::text)"
    assert [shown[name] for name in ("expire_silently", "expire_every")] == [True, "00:01:00"]
    assert [shown[name] for name in ("delete_when", "token_retention")] == ["(n = 0)", "01:00:00"]
    assert run_cli("verify", "wc", "--dsn", dsn).stdout == "verified: wc\n"


def test_a_tier_takes_values_and_deletion_from_its_source(conn: psycopg.Connection, dsn: str) -> None:
    wc = CombineQueue("wc", key=["word text"], value=["n bigint sum"], delete_when="n = 0")
    wc.create(conn)
    wc.enqueue(conn, [("aa", 1), ("ab", 2)])
    drain(dsn, wc)
    first = CombineQueue("first", key=["left(word, 1) as first"], buckets=2, expire_when="n > 100")
    for _ in range(2):
        first.create_tier(conn, "wc", if_not_exists=True)
    wc.enqueue(conn, [("aa", 4), ("b", 1), ("c", 200)])
    drain(dsn, wc)
    drain(dsn, first)
    assert dict(first.values(conn)) == {"a": 7, "b": 1}
    with pytest.raises(QueueExistsError):
        first.create_tier(conn, "wc")
    with pytest.raises(QueueNotFoundError):
        CombineQueue("second", key=["left(word, 1) as first"]).create_tier(conn, "nowhere")
    for option in ({"value": ["n bigint sum"]}, {"delete_when": "n = 0"}, {"max_backlog": 7}):
        with pytest.raises(ConfigError, match=str(next(iter(option)))):
            CombineQueue("second", key=["left(word, 1) as first"], **option).create_tier(conn, "wc")
