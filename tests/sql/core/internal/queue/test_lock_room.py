"""Queues with more tables than the server can lock are combined, and dropped in portions.

The tests start servers with the smallest ``max_locks_per_transaction``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from support import eventually, run_cli
from support.needs import does_not_apply, require_docker
from support.queues import add, combine_all, make_queue, one, rows, values
from support.servers import Server, names, start
from support.sessions import warnings, workers

from pgcombine.errors import QueueError, QueueExistsError, QueueNotEmptyError
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.queue.dropping import drop
from pgcombine.worker.passes import open_connection

BUCKETS = 100
WC = CombineQueue("wc", key=["word text"], value=["n bigint sum"], buckets=BUCKETS)
TABLES = """
    select (select count(*) from pg_class where relnamespace = 'pgcombine'::regnamespace and relname like 'wc%')
         + (select count(*) from pg_proc where pronamespace::regnamespace::text ~ '^pgcombine' and proname like 'wc%')
"""


@pytest.fixture(scope="module", params=names())
def server(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    if request.param == "given":
        does_not_apply("the server that is given has room for many locks")
    if request.param.startswith("container"):
        require_docker()
    home = tmp_path_factory.mktemp("few-locks")
    few = {"max_locks_per_transaction": "10", "max_connections": "50", "max_prepared_transactions": "0"}
    with start(request.param, home, **few) as dsn:
        server = Server(request.param, dsn)
        yield server
        server.close()


def fill(session: psycopg.Connection, step: int) -> None:
    """Take locks until a step of ``step`` locks fails."""
    with suppress(psycopg.errors.OutOfMemory):
        for i in range(0, 100_000, step):
            session.execute("savepoint s")
            session.execute(
                "select pg_advisory_xact_lock(i) from generate_series(%s::int, %s::int) i", (i, i + step - 1)
            )
            session.execute("release s")
    session.execute("rollback to s")


@pytest.mark.slow
def test_workers_serve_more_tables_than_can_be_locked(
    conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    room = "select current_setting('max_locks_per_transaction')::int * current_setting('max_connections')::int"
    queues = [f"q{number}" for number in range(1 + one(conn, room) * 2 // BUCKETS)]
    for queue in queues:
        make_queue(conn, queue, buckets=BUCKETS)
    with workers(dsn, count=2, poll=0.1):
        for queue in queues:
            add(conn, {"a": 1, "b": 1}, queue)
        for queue in queues:
            eventually(
                lambda queue=queue: values(conn, queue) == {"a": 1, "b": 1}, what="the worker combines the queue"
            )
    assert warnings(caplog) == []
    shown = run_cli("status", "--json", "--dsn", dsn)
    assert shown.returncode == 0, shown.stderr
    assert {queue["backlog"] for queue in json.loads(shown.stdout)["queues"]} == {0}
    assert one(conn, "select sum(backlog) from pgcombine.status") == 0
    # Called without a bucket, combine must find one without locking all tables.
    add(conn, {"a": 1}, queues[0])
    combine_all(conn, queues[0])
    assert values(conn, queues[0]) == {"a": 2, "b": 1}


def test_worker_survives_a_lack_of_locks(conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    """A worker logs the server's error and hint, keeps its connection, and combines when locks are free again."""
    make_queue(conn, notify=False)  # a commit that notifies takes one more lock

    def told(event: str) -> list[str]:
        return [message for message in caplog.messages if message.startswith(event)]

    with psycopg.connect(dsn) as other, psycopg.connect(dsn) as writer, workers(dsn, "wc", poll=0.1):
        add(conn, {"a": 1})
        eventually(lambda: values(conn) == {"a": 1}, what="the worker combines")
        add(writer, {"a": 1})
        fill(other, 2)
        writer.commit()
        # Either a poll or a pass gets the error first.
        (failed, *_) = eventually(
            lambda: told("pass.failed") or told("worker.trouble"), what="the worker logs the error"
        )
        assert re.search(r"sqlstate=53200 .*out of shared memory.*You might need to.*max_locks_per_transaction", failed)
        other.rollback()
        eventually(lambda: values(conn) == {"a": 2}, what="the worker combines again")
    assert told("worker.disconnected") == []


@pytest.mark.slow
def test_command_drops_a_large_queue(conn: psycopg.Connection, dsn: str) -> None:
    WC.create(conn)
    make_queue(conn, "other")
    add(conn, {"a": 1})
    refused = run_cli("queue", "drop", "wc", "--yes", "--dsn", dsn)
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "1 pending updates" in refused.stderr
    assert WC.get(conn, ["a"]) == {"a": 1}
    dropped = run_cli("queue", "drop", "wc", "--yes", "--force", "--dsn", dsn)
    assert (dropped.returncode, dropped.stdout) == (0, "dropped: wc\n"), dropped.stderr
    assert one(conn, TABLES) == 0
    assert [row[0] for row in rows(conn, "queue")] == ["other"]
    again = run_cli("queue", "drop", "wc", "--yes", "--dsn", dsn)
    assert again.returncode == 1
    assert 'there is no queue "wc"' in again.stderr


@pytest.mark.slow
def test_second_call_finishes_an_interrupted_drop(conn: psycopg.Connection, dsn: str) -> None:
    """The first call removes the queue in its first transaction, and fails at a table that is in use."""
    WC.create(conn)
    add(conn, {"a": 1})
    combine_all(conn)
    with psycopg.connect(dsn) as reader, open_connection(make_conninfo(dsn, options="-c lock_timeout=100ms")) as hasty:
        reader.execute("select * from pgcombine.wc_values_b0050").fetchall()
        with pytest.raises(psycopg.errors.LockNotAvailable):
            drop(hasty, "wc")
        left = one(conn, TABLES)
        assert 2 < left < one(reader, "select %s", 5 * BUCKETS)
    with pytest.raises(psycopg.errors.UndefinedTable):
        add(conn, {"a": 1})
    with open_connection(dsn) as worker:
        assert worker.execute("select * from pgcombine_internal.due()").fetchall() == []
        with pytest.raises(QueueExistsError):
            WC.create(conn)
        drop(worker, "wc")
    assert one(conn, TABLES) == 0
    WC.create(conn)
    assert values(conn) == {}


@pytest.mark.wc
def test_drop_in_portions_refuses_what_drop_queue_refuses(conn: psycopg.Connection, dsn: str) -> None:
    with open_connection(dsn) as session:
        for object, statement in (
            ("view report", "create view report as select * from pgcombine.wc_values_b0001"),
            ("table sold", "create table sold (word text references pgcombine.wc_values)"),
        ):
            conn.execute(statement.encode())
            with pytest.raises(QueueError, match=object.split()[1]):
                drop(session, "wc")
            conn.execute(f"drop {object}".encode())
        add(conn, {"a": 1})
        with pytest.raises(QueueNotEmptyError):
            drop(session, "wc")
        combine_all(conn)
        assert values(conn) == {"a": 1}
        drop(session, "wc", force=True)
    assert one(conn, TABLES) == 0


def test_drop_in_portions_refuses_a_queue_that_another_component_uses(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table docs (word text)")
    conn.execute("select pgcombine.create_rollup('wc', 'docs', array['word'], array['count(*) as n'])")
    with open_connection(dsn) as session:
        with pytest.raises(QueueNotEmptyError):
            drop(session, "wc")
        conn.execute("insert into docs values ('a')")
        drop(session, "wc", force=True)
    conn.execute("insert into docs values ('b')")
    assert one(conn, TABLES) == 0
