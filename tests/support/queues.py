"""Queues for the tests, made and used through SQL."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from importlib import resources
from typing import Any

import psycopg
from psycopg import sql
from psycopg.types.json import Jsonb

from pgcombine.database.sqlfiles import COMPONENTS
from pgcombine.database.texts import plain

Row = tuple[Any, ...]
MOST_PASSES = 10_000


def called(call: str) -> str:
    """The ``select`` of a call such as ``pause('wc')``, with the function's schema before its name."""
    name = call.partition("(")[0]
    public = any((resources.files("pgcombine.sql") / one / "public" / f"{name}.sql").is_file() for one in COMPONENTS)
    return f"select pgcombine{'' if public else '_internal'}.{call}"


def make_queue(
    conn: psycopg.Connection,
    queue: str = "wc",
    *,
    key: Sequence[str | None] | None = ("word text",),
    value: Sequence[str | None] | None = ("n bigint sum",),
    delete_when: str | None = "n = 0",
    buckets: int | None = 4,
    **options: object,
) -> str:
    """Call ``pgcombine.create_queue``, by default for a word count. Returns the queue's name."""
    arguments = {
        "queue": queue,
        "key": None if key is None else list(key),
        "value": None if value is None else list(value),
        "delete_when": delete_when,
        "buckets": buckets,
    } | options
    call = sql.SQL("select pgcombine.create_queue({})").format(
        sql.SQL(", ").join(sql.SQL("{} => %s").format(sql.Identifier(name)) for name in arguments)
    )
    conn.execute(call, list(arguments.values()))
    return queue


def add(conn: psycopg.Connection, updates: Mapping[str, int] | Iterable[tuple[str, int]], queue: str = "wc") -> None:
    """Append updates, pairs of ``word`` and ``n``, to a queue by one plain INSERT."""
    rows = list(updates.items() if isinstance(updates, Mapping) else updates)
    insert = sql.SQL("insert into {} (word, n) select * from unnest(%s::text[], %s::bigint[])")
    words, numbers = [word for word, _ in rows], [n for _, n in rows]
    conn.execute(insert.format(sql.Identifier("pgcombine", f"{queue}_updates")), (words, numbers))


def combine(
    conn: psycopg.Connection, *updates: Mapping[str, int] | Iterable[tuple[str, int]], queue: str = "wc"
) -> None:
    """Append updates and combine them, then the next ones."""
    for some in updates:
        add(conn, some, queue)
        combine_all(conn, queue)


def enqueue(conn: psycopg.Connection, updates: object, queue: str = "wc") -> int:
    return one(conn, "select pgcombine.enqueue(%s, %s)", queue, Jsonb(updates))


def enqueue_arrays(conn: psycopg.Connection, updates: Iterable[tuple[str, int]], queue: str = "wc") -> int:
    """Call ``pgcombine.<queue>_enqueue`` and return its result."""
    pairs = list(updates)
    call = sql.SQL("select {}(%s::text[], %s::bigint[])").format(sql.Identifier("pgcombine", f"{queue}_enqueue"))
    row = conn.execute(call, ([word for word, _ in pairs], [n for _, n in pairs])).fetchone()
    assert row is not None
    return int(row[0])


def rows(conn: psycopg.Connection, relation: str) -> list[Row]:
    """All rows of ``pgcombine.<relation>``, sorted."""
    return sorted(conn.execute(sql.SQL("select * from {}").format(sql.Identifier("pgcombine", relation))).fetchall())


def values(conn: psycopg.Connection, queue: str = "wc") -> dict[Any, Any]:
    """The combined values of a queue with one key column and one value column."""
    return dict(rows(conn, f"{queue}_values"))


def current(conn: psycopg.Connection, queue: str = "wc") -> dict[Any, Any]:
    """The values of a queue including its pending updates, if it has one key column and one value column."""
    return dict(rows(conn, f"{queue}_current"))


def got(conn: psycopg.Connection, words: Iterable[str], queue: str = "wc") -> dict[str, int]:
    """The current values of words, which ``<queue>_get`` and ``<queue>_get_many`` both return."""
    wanted = [*words]
    one, many = (sql.Identifier("pgcombine", f"{queue}_{name}") for name in ("get", "get_many"))
    each = sql.SQL("select c.* from unnest(%s::text[]) w cross join lateral {}(w) c").format(one)
    found = dict(conn.execute(each, (wanted,)).fetchall())
    assert dict(conn.execute(sql.SQL("select * from {}(%s)").format(many), (wanted,)).fetchall()) == found
    return found


def combine_all(conn: psycopg.Connection, queue: str = "wc") -> list[Row]:
    """Call ``pgcombine.combine`` until it returns no row. Returns the rows: bucket, updates, keys, changes, more.

    Raises AssertionError after ``MOST_PASSES`` passes.
    """
    done: list[Row] = []
    while found := conn.execute("select * from pgcombine.combine(%s)", (queue,)).fetchall():
        done += found
        assert len(done) < MOST_PASSES, "passes must end: each one must take updates"
    return done


def pass_of(conn: psycopg.Connection, bucket: int, page: int | None = None) -> str:
    """Prepare the statement of the next pass over a bucket of ``wc``. Returns the ``execute`` that runs it."""
    conn.execute("deallocate all")
    statement, *parameters = conn.execute(
        """
        select pgcombine_internal.pass_sql(q, p.bucket),
               p.has_quarantined, format('(%%s,0)', coalesce(p.first_page, 0)),
               format('(%%s,0)', coalesce(p.first_page + 1024, 0)),
               p.marks::text, p.marks_mask, p.mark::text, p.reads::text, p.range_mask, p.hash_range
        from pgcombine.queue q cross join lateral pgcombine_internal.plan_pass(q, %s, from_page => %s) p
        where q.queue = 'wc'
        """,
        (bucket, page),
    ).fetchall()[0]
    types = "boolean, tid, tid, txid_snapshot[], bigint, txid_snapshot, boolean[], bigint, bigint"
    conn.execute(f"prepare the_pass ({types}) as {statement}")
    return f"execute the_pass ({', '.join(sql.quote(parameter) for parameter in parameters)})"


def pass_time(conn: psycopg.Connection, seconds: float) -> None:
    """Move the times of ticks, passes and samples into the past by ``seconds``, and record a new tick."""
    for statement in (
        "update pgcombine.tick set at = at - {0}",
        "update pgcombine.pass set began = began - {0}, ended = ended - {0}",
        "update pgcombine.sample set at = at - {0}, figures = case kind when 'sizes' then figures else coalesce(("
        "select jsonb_agg(jsonb_set(f, array['since'], to_jsonb((f ->> 'since')::timestamptz - {0})))"
        " from jsonb_array_elements(figures) f), '[]') end",
    ):
        conn.execute(sql.SQL(statement).format(sql.SQL("make_interval(secs => {})").format(seconds)))
    conn.execute("select pgcombine_internal.tick()")


def expire(conn: psycopg.Connection) -> None:
    """Make all present changes of the feed ``f`` too old, and truncate them."""
    for _ in range(2):
        conn.execute(
            "update pgcombine.change_log set since = since - interval '1 h', "
            "closed = array(select c - interval '1 h' from unnest(closed) with ordinality x (c, n) order by n)"
        )
        while one(conn, "select pgcombine_internal.reclaim_changes('wc')"):
            pass


def hold(conn: psycopg.Connection, queue: str = "wc", attempts: int = 1, error: str = "by hand", **key: object) -> None:
    """Quarantine a key, given by its columns, and combine all pending updates of other keys."""
    insert = (
        "insert into pgcombine.quarantined_key (queue, key, updates, attempts, sqlstate, error)"
        " values (%s, %s, 0, %s, %s, %s) returning id"
    )
    number = one(conn, insert, queue, Jsonb(key), attempts, None if error == "by hand" else "22003", error)
    conn.execute(
        sql.SQL("insert into {} select {}, %s from jsonb_populate_record(null::{}, %s)").format(
            sql.Identifier("pgcombine", f"{queue}_quarantine_keys"),
            sql.SQL(plain(one(conn, "select pgcombine_internal.column_list(%s, 'key')", queue))),
            sql.Identifier("pgcombine", f"{queue}_quarantine"),
        ),
        (number, Jsonb(key)),
    )
    combine_all(conn, queue)


def write_values(conn: psycopg.Connection, statement: str, parameters: Sequence[object] | None = None) -> None:
    """Run a statement that writes to a table of values.

    Such writes are refused unless a setting marks the session as one that loads values.
    """
    queue = re.search(r"pgcombine\.(\w+)_values", statement)
    assert queue, statement
    conn.execute("select set_config('pgcombine.initialize_' || %s, 'on', false)", (queue[1],))
    conn.execute(statement.encode(), parameters)


def one(conn: psycopg.Connection, statement: str, *parameters: object) -> Any:
    row = conn.execute(statement, parameters or None).fetchone()
    assert row is not None
    return row[0]


def bucket_of(table: str) -> int:
    """The bucket in the name of a table of updates or values, such as ``wc_updates_b0002_s1``."""
    found = re.search(r"_b(\d{4})", table)
    assert found, f"{table} names no bucket"
    return int(found[1])


def word_in(conn: psycopg.Connection, bucket: int, queue: str = "wc", *, start: int = 0) -> str:
    """A word ``w<number>`` in ``bucket`` of a queue whose key is one text column. The number is ``start`` or higher."""
    return one(
        conn,
        """
        select 'w' || i from pgcombine.queue q, generate_series(%s::int, %s::int + 100000) i
        where q.queue = %s
          and satisfies_hash_partition(format('pgcombine.%%I', q.queue || '_values')::regclass,
                                       q.buckets, %s, 'w' || i)
        limit 1
        """,
        start,
        start,
        queue,
        bucket,
    )


def lose(conn: psycopg.Connection, condition: str = "true", queue: str = "wc") -> None:
    """Delete updates from the log's partitions, as no user does: a trigger guards the log itself."""
    leaves = "select relid::regclass::text from pg_partition_tree(to_regclass(%s)) where isleaf"
    for (leaf,) in conn.execute(leaves, (f"pgcombine.{queue}_updates",)).fetchall():
        conn.execute(f"delete from {leaf} where {condition}".encode())  # noqa: S608
