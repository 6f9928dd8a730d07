"""An upgrade to a made-up next version (``support/next_version.py``)."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress

import psycopg
import pytest
from migration.test_schema import dump
from migration.test_sql_file import applied, fails
from support.next_version import FIRST, NEXT, next_version
from support.queues import add, combine_all, hold, make_queue, one, rows, values
from support.rollups import Rollup
from support.sessions import in_background
from support.wait import eventually

from pgcombine import schema
from pgcombine.database import sqlfiles
from pgcombine.errors import SchemaMismatchError


def by_psql(dsn: str) -> None:
    applied(dsn, schema.upgrade_sql())


UPGRADES = [schema.upgrade, pytest.param(by_psql, marks=pytest.mark.slow)]


ONCE = """select pgcombine.enqueue_once('money', 'token', '{"m": "x", "b": 1, "top": 7}')"""


def with_queues(conn: psycopg.Connection) -> None:
    """Create queues with an observer, an export, a feed, a rollup, a quarantined key, a token and pending updates."""
    make_queue(conn, expire_when="n <= -1000", quarantine_after=9)
    make_queue(conn, "money", key=["m text", "b int"], value=["top numeric(20,2) max"], delete_when=None, buckets=1)
    conn.execute("create table public.history (word text, was bigint, is_now bigint)")
    conn.execute(
        "select pgcombine.add_observer('wc', 'history', 'insert into history select word, old_n, new_n from changes')"
    )
    conn.execute("select pgcombine.create_export('wc_out', 'wc')")
    conn.execute("select pgcombine.create_feed('wc_feed', 'wc')")
    conn.execute("create table public.doc (body text)")
    docs(conn).call(conn, "backfill")
    conn.execute("insert into public.doc values ('a')")
    add(conn, {"a": 1, "bad": 4})
    hold(conn, attempts=7, error="bad", word="bad")
    conn.execute("insert into pgcombine.money_updates (m, b, top) values ('x', 1, 2.5)")
    combine_all(conn, "money")
    add(conn, {"a": 10, "bad": 8})
    assert one(conn, ONCE)


def docs(conn: psycopg.Connection) -> Rollup:
    value = ["count(*) as n", "max(length(body)) as longest", "count(distinct left(body, 1)) as initials"]
    return Rollup.make(conn, value, ["body as word"], name="docs", source="public.doc", if_not_exists=True)


def holds(conn: psycopg.Connection, others: int = 0) -> None:
    """Check that the queues of ``with_queues`` are complete and work. The word w has ``others`` updates."""
    assert conn.execute("select q.queue, v.* from pgcombine.queue q, pgcombine.verify(q.queue) v").fetchall() == []
    assert one(conn, ONCE) is False
    for queue in ("wc", "money", "docs"):
        combine_all(conn, queue)
    assert values(conn) == {"a": 11} | ({"w": others} if others else {})
    net = "select new_n from pgcombine.wc_feed_read('{}', compact => true) where old_n is null and word = 'a'"
    assert one(conn, net) == 11
    assert rows(conn, "money_values") == [("x", 1, 7)]
    assert one(conn, "select sum(coalesce(is_now, 0) - coalesce(was, 0)) from public.history where word = 'a'") == 11
    found = conn.execute("select key ->> 'word', updates, attempts, error from pgcombine.quarantine").fetchall()
    assert found == [("bad", 2, 7, "bad")]
    conn.execute("insert into public.doc values ('b')")
    combine_all(conn, "docs")
    assert rows(conn, "docs") == [("a", 1, 1, 1), ("b", 1, 1, 1)]
    assert docs(conn).verify(conn) == []


def schema_of(dsn: str) -> list[str]:
    """The sorted lines of pg_dump's output without final commas, since an upgrade may change the order of columns."""
    return sorted(line.rstrip(",") for line in dump(dsn, "--schema-only"))


@pytest.mark.parametrize("upgrade", UPGRADES)
def test_upgrade_beside_enqueues_and_passes_equals_a_new_schema(
    dsn: str, empty_dsn: str, upgrade: Callable[[str], object]
) -> None:
    stop = threading.Event()
    counts = {"enqueued": 0, "passes": 0}

    def enqueueing() -> None:
        with psycopg.connect(dsn, autocommit=True) as writer:
            while not stop.is_set():
                add(writer, {"w": 1})
                counts["enqueued"] += 1

    def combining() -> None:
        with psycopg.connect(dsn, autocommit=True) as worker:
            while not stop.is_set():
                # A pass that fails because of the upgrade is run again.
                with suppress(psycopg.OperationalError, psycopg.ProgrammingError, psycopg.DataError):
                    counts["passes"] += len(worker.execute("select * from pgcombine.combine('wc')").fetchall())

    with psycopg.connect(dsn, autocommit=True) as conn, psycopg.connect(empty_dsn, autocommit=True) as fresh:
        with_queues(conn)
        with next_version():
            with pytest.raises(SchemaMismatchError):
                schema.check(dsn)
            with in_background(enqueueing, combining):
                try:
                    eventually(lambda: counts["passes"] > 3, what="passes run before the upgrade")
                    upgrade(dsn)
                    enqueued, passes = counts["enqueued"], counts["passes"]
                    eventually(lambda: counts["passes"] > passes + 3, what="passes run after the upgrade")
                    eventually(lambda: counts["enqueued"] > enqueued, what="updates come after the upgrade")
                finally:
                    stop.set()
            assert schema.check(dsn) == NEXT
            schema.upgrade(empty_dsn)
        with_queues(fresh)
        assert conn.execute("select queue, rank from pgcombine.ranked order by 1").fetchall() == [
            ("docs", 2),
            ("money", 1),
            ("wc", 4),
        ]
        assert one(conn, "select pgcombine.rank('wc')") == 4
        holds(conn, counts["enqueued"])
    assert schema_of(dsn) == schema_of(empty_dsn)


def test_older_file_is_refused(dsn: str) -> None:
    with next_version():
        schema.upgrade(dsn)
    fails(dsn, schema.upgrade_sql(), f"is newer than this file (revision {NEXT}, the file has {FIRST})")
    with pytest.raises(SchemaMismatchError, match=str(NEXT)):
        schema.upgrade(dsn)


def test_tests_detect_stale_overloads(dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The upgrade fails without its step that drops stale overloads."""
    query = sqlfiles.query
    monkeypatch.setattr(sqlfiles, "query", lambda name: "select 1" if name == "upgrade_overloads" else query(name))
    with psycopg.connect(dsn, autocommit=True) as conn:
        make_queue(conn)
    with next_version(), pytest.raises(psycopg.errors.AmbiguousFunction):
        schema.upgrade(dsn)
