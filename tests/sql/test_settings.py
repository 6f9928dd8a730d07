"""Results don't depend on the session's settings: those at creation, and those at use."""

from __future__ import annotations

import datetime as dt
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg.types.json import Jsonb
from support.servers import Server
from support.settings import all_but, set_locally, supported

AT = dt.datetime(2026, 1, 2, 3, 4, 5, tzinfo=dt.UTC)
QUEUE: dict[str, Any] = {
    "key": ["w text", "at timestamptz", "b bytea", '"q\\x" text'],
    "value": [
        *("n bigint sum", "f double precision max", "i interval sum", "a text[] array_union", "j jsonb jsonb_merge"),
        *("t timestamptz max", "l text last(t)"),
    ],
    "delete_when": r"n = 0 and l is distinct from 'a\b'",
    "expire_when": r"t < timestamptz '2020-03-01 12:30+00' and l <> 'x\y' and b <> '\x0102'",
    "buckets": 1,
}
TIER = ["date_trunc('day', at at time zone 'UTC') as day", r"w || '\s' as ws"]
OBSERVER = (
    r"insert into public.seen select w || '\o', new_i, interval '1 day -02:00' from changes where w not like 'g\_%'"
)


def define(conn: psycopg.Connection, queue: str, *, exists: bool = False) -> None:
    options = ", ".join(f"{name} => %s" for name in QUEUE)
    create = f"select pgcombine.create_queue(%s, {options}, expire_every => '1 hour', if_not_exists => %s)"
    conn.execute(create.encode(), (queue, *QUEUE.values(), exists))
    tier = "select pgcombine.create_tier(%s, %s, %s, buckets => 1, if_not_exists => %s)"
    conn.execute(tier, (f"{queue}_day", queue, TIER, exists))
    if not exists:
        conn.execute("select pgcombine.create_export(%s, %s)", (f"{queue}_out", queue))
        conn.execute("select pgcombine.create_feed(%s, %s)", (f"{queue}_feed", queue))
        conn.execute("select pgcombine.add_observer(%s, 'seen', %s)", (queue, OBSERVER))


def enqueue(conn: psycopg.Connection, queue: str) -> None:
    row = {"w": "ü", "at": AT.isoformat(), "b": "\\x00ff", "q\\x": "q'\\", "n": 5, "f": 0.1, "i": "1 day 02:00:00"}
    row |= {"a": ["x", None, "NULL"], "j": {"a": 1}, "t": AT.isoformat(), "l": "a\\b"}
    conn.execute("select pgcombine.enqueue(%s, %s)", (queue, Jsonb(row)))
    conn.execute("select pgcombine.enqueue_once(%s, 'token', %s)", (queue, Jsonb([row | {"w": "once", "f": 1e22 / 3}])))
    columns = '(w, at, b, "q\\x", n, t, l) values (%s, %s, %s, %s, %s, %s, %s)'
    insert = f"insert into pgcombine.{queue}_updates {columns}"
    old = AT.replace(year=2019)
    for values in [
        ("z", AT, b"\\", "", 2, AT, "x"),
        ("gone", AT, b"", "", 0, AT, "x"),
        ("old", AT, b"", "", 1, old, "x"),
    ]:
        conn.execute(insert.encode(), values)
    for values in [("kept", AT, b"", "", 0, AT, "a\\b"), ("stays", AT, b"", "", 1, old, "x\\y")]:
        conn.execute(insert.encode(), values)
    conn.execute(insert.encode(), ("bytes", AT, b"\1\2", "", 1, old, "x"))


def results(conn: psycopg.Connection, names: list[str], used: dict[str, str]) -> list[Any]:
    """What the queues ``new`` (not committed) and ``old`` say. Rows are read under the server's own settings."""
    found: list[Any] = []

    def rows(query: str, settings: dict[str, str], *queue: str) -> None:
        set_locally(conn, settings, names)
        query = query.format(*queue)
        found.append((query, conn.execute(query.encode()).fetchall()))

    for queue in ("new", "old"):
        rows("select v.* from unnest(array['{0}', '{0}_day']) q, pgcombine.verify(q) v", used, queue)
        set_locally(conn, used, names)
        define(conn, queue, exists=True)
        rows("select * from pgcombine.{}_current order by w", {}, queue)
        rows("select * from pgcombine.{}_pending order by w, n", {}, queue)
    rows("select * from pgcombine_internal.export_target('new_out')", used)
    rows("select bucket, updates, keys, changes from pgcombine.combine('old')", used)
    rows("select bucket, expired from pgcombine_internal.run_pass('old', from_page => 0)", used)
    for table in ("pgcombine.old_values", "pgcombine.old_current", "public.seen"):
        rows("select * from {} order by 1, 2", {}, table)
    rows("select w, old_n, new_n, new_i, new_a, new_f from pgcombine.old_out_exports order by w", {})
    rows("select w, _change_type, new_a, new_f from pgcombine.old_feed_read(null)", {})
    rows("select day, ws, n, f, i, a, j, t, l from pgcombine.old_day_updates order by 1, 2", {})
    rows("select queue, delete_when, expire_when from pgcombine.queue order by 1", {})
    rows("select pgcombine_internal.regenerate(queue) from pgcombine.queue order by queue", used)
    rows("select q.queue, v.* from pgcombine.queue q, pgcombine.verify(q.queue) v", used)
    rows("select pgcombine.rebucket('old', 2), pgcombine.drop_queue('new', force => true)", used)
    return found


@pytest.fixture(scope="module")
def database(server: Server) -> Iterator[str]:
    """The URI of a database with the queue ``old``, whose updates are pending."""
    with server.migrated() as dsn:
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute("create table public.seen (w text, i interval, d interval)")
            define(conn, "old")
            enqueue(conn, "old")
        yield dsn


def run(dsn: str, create: dict[str, str], use: dict[str, str]) -> list[Any]:
    with psycopg.connect(dsn, prepare_threshold=None) as conn, conn.transaction(force_rollback=True):
        names = [*supported(conn, {**create, **use})]
        set_locally(conn, supported(conn, create), names)
        define(conn, "new")
        use = supported(conn, use)
        set_locally(conn, use, names)
        enqueue(conn, "new")
        return results(conn, names, use)


@pytest.fixture(scope="module")
def expected(database: str) -> list[Any]:
    return run(database, {}, {})


@pytest.mark.parametrize("create", [True, False], ids=["set at creation", "default at creation"])
@pytest.mark.parametrize("use", [True, False], ids=["set at use", "default at use"])
def test_results_are_the_same_under_unusual_settings(
    database: str, expected: list[Any], create: bool, use: bool
) -> None:
    settings = all_but("transactions", "repeatable read", "parallel", "plans", "other plans")
    for (query, got), (_, want) in zip(
        run(database, settings if create else {}, settings if use else {}), expected, strict=True
    ):
        assert got == want, query
