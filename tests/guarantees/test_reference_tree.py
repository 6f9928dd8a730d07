"""A tree of seven queues whose observers enqueue to the next level, as in a test of Fluo Recipes.

A worker runs twenty loops. The levels are xyt → xy, xt, yt → x, y, t. Each change is enqueued to the next level as the
difference of its values. After each load, the values of each queue must equal the totals that the test computes from
the keys.
"""

from __future__ import annotations

from collections import Counter

import psycopg
from psycopg import sql
from support.queues import make_queue, one, rows
from support.sessions import workers
from support.wait import eventually

BUCKETS = 7
WORKERS = 20
TREE = {"xyt": ["xy", "xt", "yt"], "xy": ["x"], "xt": ["t"], "yt": ["y"], "x": [], "y": [], "t": []}

FIRST = ["1:1:1", "1:1:2", "1:2:1", "1:2:2", "2:1:1", "2:1:2", "2:2:1", "2:2:2", "3:1:1"]
SECOND = ["1:1:1", "1:3:1", "2:3:3", "2:3:3", "4:1:2"]  # one key occurs twice


def plant(conn: psycopg.Connection) -> None:
    for name in TREE:
        make_queue(conn, name, key=[f"{column} int" for column in name], value=["n bigint sum"], buckets=BUCKETS)
    for name, below in TREE.items():
        for lower in below:
            columns = sql.SQL(", ").join(map(sql.Identifier, lower))
            statement = sql.SQL(
                "insert into {} ({}, n) select {}, coalesce(new_n, 0) - coalesce(old_n, 0) from changes"
            ).format(sql.Identifier("pgcombine", f"{lower}_updates"), columns, columns)
            conn.execute("select pgcombine.add_observer(%s, %s, %s)", (name, lower, statement.as_string(conn)))


def rolled_up(keys: list[str], name: str) -> list[tuple[int, ...]]:
    counts: Counter[tuple[int, ...]] = Counter()
    for key in keys:
        parts = dict(zip("xyt", map(int, key.split(":")), strict=True))
        counts[tuple(parts[column] for column in name)] += 1
    return sorted((*key, n) for key, n in counts.items())


def load(conn: psycopg.Connection, keys: list[str]) -> None:
    conn.cursor().executemany(
        "insert into pgcombine.xyt_updates (x, y, t, n) values (%s, %s, %s, 1)", [key.split(":") for key in keys]
    )


def test_tree_has_the_totals_of_all_levels(conn: psycopg.Connection, dsn: str) -> None:
    plant(conn)
    backlog = "select sum(pgcombine.backlog(queue))::int from pgcombine.queue"  # one statement, and so one snapshot
    with workers(dsn, count=WORKERS, poll=0.5):
        for loaded, keys in ((FIRST, FIRST), (SECOND, FIRST + SECOND)):
            load(conn, loaded)
            eventually(lambda: one(conn, backlog) == 0, timeout=120, what="the tree is drained")
            for name in TREE:
                assert rows(conn, f"{name}_values") == rolled_up(keys, name), name


def test_tree_is_empty_after_updates_cancel_out(conn: psycopg.Connection, dsn: str) -> None:
    """After updates that cancel out the first ones, all levels are empty."""
    plant(conn)
    backlog = "select sum(pgcombine.backlog(queue))::int from pgcombine.queue"
    with workers(dsn, count=WORKERS, poll=0.5):
        load(conn, FIRST)
        conn.execute("insert into pgcombine.xyt_updates select x, y, t, -n from pgcombine.xyt_current")
        eventually(lambda: one(conn, backlog) == 0, timeout=120, what="the tree is drained")
    assert {name: rows(conn, f"{name}_values") for name in TREE} == {name: [] for name in TREE}
