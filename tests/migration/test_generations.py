"""An older version's own functions meet this version's: upgrades, and the way back that the page on upgrades tells.

``generations/<revision>.sql.xz`` holds the repeatable SQL of a version at that revision (0010: commit c168364, the last
before the log; 0021: commit 11deae2): the files of its ``sql/`` in the order in which it applied them, without lines
that are comments, a form feed between two. ``older`` applies them as those versions did.
"""

from __future__ import annotations

import lzma
import re
import threading
from contextlib import suppress
from decimal import Decimal
from functools import cache
from pathlib import Path

import psycopg
import pytest
import sqlalchemy
from alembic import command
from alembic.config import Config
from migration.test_schema import dump
from migration.test_sql_file import applied
from support.queues import add, combine_all, make_queue, one, rows, values
from support.sessions import in_background
from support.wait import eventually

from pgcombine import schema
from pgcombine.database import sqlfiles

GENERATIONS = Path(__file__).with_name("generations")
REVISIONS = sorted(file.name.partition(".")[0] for file in GENERATIONS.glob("*.sql.xz"))
_STALE = """
    do $$
    declare
        _stale regprocedure;
    begin
        for _stale in
            select p.oid from pg_proc p
            where p.pronamespace::regnamespace::text in ('pgcombine', 'pgcombine_internal')
              and age(p.xmin) > age(pg_current_xact_id()::xid)
            order by p.prokind
        loop
            execute format('drop routine %s', _stale);
        end loop;
    end
    $$
"""


@cache
def generation(revision: str) -> list[str]:
    """The files of that version; the last one is its grants."""
    return lzma.decompress((GENERATIONS / f"{revision}.sql.xz").read_bytes()).decode().split("\f")


def older(dsn: str, revision: str) -> None:
    """``pgcombine db upgrade`` of the older version."""

    def run(connection: sqlalchemy.Connection, config: Config) -> str:
        as_it_is = {"no_parameters": True}
        command.upgrade(config, revision)
        connection.exec_driver_sql("set local check_function_bodies = off")
        *files, grants = generation(revision)
        for text in files:  # in an empty database or after a downgrade: nothing has to be replaced
            connection.exec_driver_sql(text, execution_options=as_it_is)
        connection.exec_driver_sql("select pgcombine.regenerate(queue) from pgcombine.queue order by queue")
        connection.exec_driver_sql(grants, execution_options=as_it_is)
        connection.exec_driver_sql(_STALE, execution_options=as_it_is)
        if revision >= "0016":
            connection.exec_driver_sql("select pgcombine.adopt()")
        connection.exec_driver_sql(
            "insert into pgcombine.repeatable (digest) values ('older')"
            " on conflict (one) do update set digest = excluded.digest"
        )
        return revision

    schema._in_one_transaction(dsn, run, create=True)


def with_queues(conn: psycopg.Connection, number: str = "numeric(20,2)") -> None:
    """Names and types that clash easily, an observer, values, pending updates."""
    make_queue(conn)
    make_queue(
        conn,
        "money",
        key=["m text", "b int"],
        value=[f"amount {number} sum", f"top {number} max"],
        delete_when=None,
        buckets=1,
    )
    conn.execute("create table public.history (word text, was bigint, is_now bigint)")
    conn.execute(
        "select pgcombine.add_observer('wc', 'history', 'insert into history select word, old_n, new_n from changes')"
    )
    add(conn, {"a": 1, "b": 2})
    conn.execute("insert into pgcombine.money_updates (m, b, amount, top) values ('x', 1, 1.25, 2.5)")
    combine_all(conn)
    combine_all(conn, "money")


def enqueue(conn: psycopg.Connection) -> None:
    """Updates, also many at once, which the versions of then packed into arrays."""
    add(conn, {"a": 10, "b": -2})
    conn.execute(
        "select pgcombine.money_enqueue(array_agg('x'::text), array_agg(1), array_agg(0.05::numeric), array_agg(i)) "
        "from generate_series(1::numeric, 50) i"
    )


def holds(conn: psycopg.Connection, *, times: int = 1) -> None:
    """What ``with_queues`` and ``times`` calls of ``enqueue`` make is there, and goes on."""
    for queue in ("wc", "money"):
        combine_all(conn, queue)
    assert values(conn)["a"] == 1 + 10 * times
    assert rows(conn, "money_values") == [("x", 1, Decimal("1.25") + Decimal("2.5") * times, 50)]
    assert (
        one(conn, "select sum(coalesce(is_now, 0) - coalesce(was, 0)) from public.history where word = 'a'")
        == 1 + 10 * times
    )


def sound(conn: psycopg.Connection) -> None:
    assert conn.execute("select * from pgcombine.queue q, pgcombine.verify(q.queue)").fetchall() == []


def schema_of(dsn: str) -> list[str]:
    """As pg_dump shows it, but for the name that PostgreSQL 18 gives a constraint, and a renamed column keeps."""
    named = re.compile(r" CONSTRAINT \w+_hash_not_null NOT NULL")
    return sorted(named.sub(" NOT NULL", line).rstrip(",") for line in dump(dsn, "--schema-only"))


def stale(conn: psycopg.Connection) -> list[str]:
    found = "select p.oid::regprocedure::text from pg_proc p where p.proname like 'gone %'"
    return [name for (name,) in conn.execute(found)]


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_older_version_is_brought_up(empty_dsn: str, dsn: str, revision: str) -> None:
    """While its sessions enqueue and combine: they wait, and go on. Every update counts once."""
    older(empty_dsn, revision)
    stop = threading.Event()
    counts = {"enqueued": 0, "passes": 0}

    def enqueueing() -> None:
        with psycopg.connect(empty_dsn, autocommit=True) as writer:
            while not stop.is_set():
                add(writer, {"w": 1})
                counts["enqueued"] += 1

    def combining() -> None:
        with psycopg.connect(empty_dsn, autocommit=True) as worker:
            while not stop.is_set():
                # a pass that meets the upgrade is rolled back, as in a worker
                with suppress(psycopg.OperationalError, psycopg.ProgrammingError, psycopg.DataError):
                    counts["passes"] += len(worker.execute("select * from pgcombine.combine('wc')").fetchall())

    with psycopg.connect(empty_dsn, autocommit=True) as conn, psycopg.connect(dsn, autocommit=True) as fresh:
        with_queues(conn)
        enqueue(conn)
        with in_background(enqueueing, combining):
            try:
                eventually(lambda: counts["passes"] > 3, what="the older version's passes")
                schema.upgrade(empty_dsn)
                enqueued, passes = counts["enqueued"], counts["passes"]
                eventually(lambda: counts["passes"] > passes + 3, what="passes of this version")
                eventually(lambda: counts["enqueued"] > enqueued, what="updates of this version")
            finally:
                stop.set()
        schema.check(empty_dsn)
        holds(conn)
        assert values(conn) == {"a": 11, "w": counts["enqueued"]}
        sound(conn)
        with_queues(fresh)
    assert schema_of(empty_dsn) == schema_of(dsn)


@pytest.mark.parametrize("revision", REVISIONS)
def test_an_older_version_is_brought_up_by_psql(empty_dsn: str, dsn: str, revision: str) -> None:
    older(empty_dsn, revision)
    with psycopg.connect(empty_dsn, autocommit=True) as conn, psycopg.connect(dsn, autocommit=True) as fresh:
        with_queues(conn)
        enqueue(conn)
        applied(empty_dsn, schema.upgrade_sql(revision))
        holds(conn)
        sound(conn)
        with_queues(fresh)
    assert schema_of(empty_dsn) == schema_of(dsn)


@pytest.mark.parametrize("revision", REVISIONS)
def test_the_way_back(dsn: str, revision: str) -> None:
    """As the page says: down, then the older version's own upgrade; and up again."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        # before the log, views of arrays had lost the precision
        with_queues(conn, "numeric" if revision == "0010" else "numeric(20,2)")
        enqueue(conn)
        before = schema_of(dsn)
        for queue in ("wc", "money"):
            combine_all(conn, queue)
        schema.downgrade(dsn, revision)
        older(dsn, revision)
        assert stale(conn) == []
        enqueue(conn)
        holds(conn, times=2)
        enqueue(conn)
        schema.upgrade(dsn)
        holds(conn, times=3)
        sound(conn)
    assert schema_of(dsn) == before


def test_a_fault_that_these_tests_notice(empty_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As it was: stale functions go last."""
    monkeypatch.setattr(sqlfiles, "_SET_OVERLOADS_ASIDE", "select 1")
    for revision in REVISIONS:
        older(empty_dsn, revision)
        with psycopg.connect(empty_dsn, autocommit=True) as conn:
            with_queues(conn)
            with pytest.raises(psycopg.errors.AmbiguousFunction):
                schema.upgrade(empty_dsn)
            conn.execute("drop schema public, pgcombine cascade; create schema public")
            conn.execute("drop schema if exists pgcombine_internal, phrasecount cascade")
