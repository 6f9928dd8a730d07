"""A queue in a database whose default isolation level is not read committed.

pgcombine's own sessions choose their level. SQL functions that need read committed refuse another level.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from support import eventually, run_cli
from support.exports import make_export
from support.queues import add, combine_all, make_queue, one, values
from support.sessions import in_background, warnings, workers
from support.states import raises_state

from pgcombine import ExportWorker
from pgcombine.database.connect import connect
from pgcombine.errors import InvalidDefinitionError
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.queue.dropping import drop
from pgcombine.worker.passes import open_connection

WC = CombineQueue("wc", key=["word text"], value=["n bigint sum"], delete_when="n = 0", buckets=4)


@pytest.fixture(params=["serializable", pytest.param("repeatable read", marks=pytest.mark.slow)])
def conn(dsn: str, request: pytest.FixtureRequest) -> Iterator[psycopg.Connection]:
    """Set the database's default isolation level, and connect as a user does. Later sessions have that default, too."""
    with psycopg.connect(dsn, autocommit=True) as admin:
        admin.execute(
            sql.SQL("alter database {} set default_transaction_isolation = {}").format(
                sql.Identifier(admin.info.dbname), request.param
            )
        )
    with psycopg.connect(dsn, autocommit=True) as conn:
        assert one(conn, "select current_setting('transaction_isolation')") == request.param
        yield conn


@pytest.mark.slow
def test_commands_work(conn: psycopg.Connection, dsn: str, tmp_path: Path) -> None:
    def run(*arguments: object) -> str:
        done = run_cli(*arguments, "--dsn", dsn)
        assert (done.returncode, done.stderr) == (0, ""), arguments
        return done.stdout

    rows = tmp_path / "rows.csv"
    rows.write_text("word,n\na,1\nb,2\n")
    run("queue", "create", "wc", "--key", "word text", "--value", "n bigint sum", "--buckets", 4)
    run("initialize", "wc", rows)
    run("enqueue", "wc", rows)
    run("drain", "wc")
    run("queue", "rebucket", "wc", 8)
    with workers(dsn, "wc"):
        run("enqueue", "wc", rows)
        run("wait", "wc", "--timeout", 60)
    assert values(conn) == {"a": 3, "b": 6}
    run("queue", "pause", "wc")
    run("queue", "resume", "wc")
    assert json.loads(run("status", "--json"))["queues"][0]["backlog"] == 0
    run("verify", "wc")
    run("queue", "drop", "wc", "--yes")
    run("db", "upgrade")
    run("db", "check")


def test_methods_work_in_autocommit(conn: psycopg.Connection, dsn: str) -> None:
    """On a user's autocommit connection, calls that need read committed begin a transaction with that level."""
    WC.create(conn)
    WC.initialize(conn, [("a", 1)])
    add(conn, {"a": 1, "b": 1})
    with workers(dsn):
        WC.wait(conn, timeout=60)
    WC.rebucket(conn, 8)
    assert WC.get(conn, ["a", "b"]) == {"a": 2, "b": 1}
    assert WC.verify(conn) == []
    with (
        conn.transaction(),
        pytest.raises(InvalidDefinitionError),
    ):
        WC.rebucket(conn, 4)  # in the caller's transaction, the caller must set the level
    WC.drop(conn)


def test_sql_functions_refuse_the_level(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn)
    add(conn, {"a": 1})
    combine_all(conn)
    with workers(dsn):
        add(conn, {"a": 1})
        conn.execute("call pgcombine.wait('wc', '60 s')")
    assert values(conn) == {"a": 2}
    with raises_state("PC003") as refused:
        conn.execute("select pgcombine.rebucket('wc', 8)")
    assert refused.value.diag.message_hint == "begin transaction isolation level read committed"
    conn.execute("begin isolation level read committed")
    conn.execute("select pgcombine.rebucket('wc', 8)")
    conn.execute("commit")
    assert values(conn) == {"a": 2}
    with open_connection(dsn) as session:
        drop(session, "wc")
    assert conn.execute("select from pgcombine.queue").fetchall() == []


def test_polls_conflict_with_no_writer(conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    """Polls of workers cause no serialization failures of writers, and workers log no warning."""
    make_queue(conn, buckets=2)

    def write(word: str) -> None:
        with psycopg.connect(dsn, autocommit=True) as writer:
            for _ in range(150):
                add(writer, {word: 1, f"{word}{word}": 1})

    with caplog.at_level(logging.DEBUG, logger="pgcombine"), workers(dsn, "wc", count=3, poll=0.01):
        with in_background(*(lambda word=word: write(word) for word in "abcd")):
            pass
        expected = {word: 150 for letter in "abcd" for word in (letter, 2 * letter)}
        eventually(lambda: values(conn) == expected, what="all updates are combined")
    assert warnings(caplog) == []


def test_exports_are_delivered(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn)
    make_export(conn)
    received: list[str] = []
    exporter = ExportWorker(dsn, "search", lambda entries: received.extend(entry.key for entry in entries))
    add(conn, {"a": 1, "b": 1})
    combine_all(conn)
    assert exporter.drain(timeout=60) == 2
    assert sorted(received) == ["a", "b"]


def test_pgcombines_sessions_use_read_committed(conn: psycopg.Connection, dsn: str) -> None:
    for autocommit in (True, False):
        with connect(dsn, autocommit=autocommit) as own:
            for _ in range(2):
                assert one(own, "select current_setting('transaction_isolation')") == "read committed"
                if not autocommit:
                    own.rollback()
