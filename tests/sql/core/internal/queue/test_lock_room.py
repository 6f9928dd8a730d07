"""Queues with more tables than the server can lock: calls that lock too many tables raise a clear error.

The tests start servers with the smallest ``max_locks_per_transaction``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import suppress

import psycopg
import pytest
from support import eventually, run_cli
from support.needs import does_not_apply, require_docker
from support.queues import add, combine_all, make_queue, one, rows, values
from support.servers import Server, names, start
from support.sessions import warnings, workers

from pgcombine.errors import QueueExistsError, QueueNotEmptyError, TooManyLocksError, sqlstate_of
from pgcombine.queue.combine_queue import CombineQueue
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


def test_lock_capacity_can_be_locked(conn: psycopg.Connection) -> None:
    capacity = one(conn, "select pgcombine_internal.lock_capacity()")
    assert 500 < capacity < 1000
    with conn.transaction():
        conn.execute("select pg_advisory_xact_lock(i) from generate_series(1, %s) i", (capacity,))


def test_lock_capacity_depends_on_the_version(conn: psycopg.Connection) -> None:
    """PostgreSQL 19 has half as many locks with the same setting."""
    here = one(conn, "select pgcombine_internal.lock_capacity()")
    version = one(conn, "select current_setting('server_version_num')::int")
    assert one(conn, "select pgcombine_internal.lock_capacity(%s)", version) == here
    if version >= 180000:
        assert one(conn, "select pgcombine_internal.lock_capacity(180004)") == here
        assert one(conn, "select pgcombine_internal.lock_capacity(190000)") == here // 2
        assert one(conn, "select pgcombine_internal.lock_capacity(200001)") == here // 2
    else:
        assert one(conn, "select pgcombine_internal.lock_capacity(170000)") == here


@pytest.mark.parametrize("key", ["word text", "word int"])
@pytest.mark.parametrize("value", [["n bigint sum"], ["n bigint sum", "s text last(at)", "at timestamptz max"]])
def test_locks_to_drop_estimates_the_locks_of_a_drop(conn: psycopg.Connection, key: str, value: list[str]) -> None:
    make_queue(conn, key=[key], value=value, buckets=8)
    estimated = one(conn, "select pgcombine_internal.locks_to_drop('wc')")
    with conn.transaction():
        conn.execute("select pgcombine.drop_queue('wc')")
        taken = one(
            conn,
            "select count(distinct (locktype, database, relation, classid, objid)) from pg_locks"
            " where pid = pg_backend_pid()",
        )
    assert estimated - 100 < taken <= estimated


def needed(error: TooManyLocksError) -> int:
    """The value of max_locks_per_transaction that the error recommends."""
    found = re.search(r"set max_locks_per_transaction to (\d+) or more \(it is 10\) and restart", str(error))
    assert found, error
    return int(found[1])


def test_drop_is_refused_before_anything_is_locked(conn: psycopg.Connection, dsn: str) -> None:
    WC.create(conn)
    add(conn, {"a": 1})
    combine_all(conn)
    with psycopg.connect(dsn) as other:
        add(other, {"a": 1})
        with pytest.raises(
            TooManyLocksError, match=r"to drop queue \"wc\" takes about \d+ locks.*drop_large_queue"
        ) as caught:
            WC.drop(conn)  # doesn't wait for the lock of the other session
    assert caught.value.sqlstate == "PC011"
    per_unit = one(
        conn, "select pgcombine_internal.lock_capacity() / current_setting('max_locks_per_transaction')::bigint"
    )
    assert (needed(caught.value) - 10) * per_unit >= one(conn, "select pgcombine_internal.locks_to_drop('wc')")
    combine_all(conn)
    assert values(conn) == {"a": 2}


def test_rebucket_is_refused_before_anything_is_copied(conn: psycopg.Connection) -> None:
    make_queue(conn, buckets=8)
    with pytest.raises(TooManyLocksError, match=r"to rebucket queue.*buckets_per_partition") as caught:
        WC.rebucket(conn, 1024)
    assert needed(caught.value) > 50
    WC.rebucket(conn, 1024, buckets_per_partition=128)
    assert WC.verify(conn) == []


@pytest.mark.slow
def test_create_is_refused_if_locks_run_out(conn: psycopg.Connection) -> None:
    wanted = {"key": ["word text"], "value": ["n bigint sum"], "buckets": 1024}
    with pytest.raises(TooManyLocksError, match=r"to create queue.*buckets_per_partition") as caught:
        CombineQueue("wc", **wanted).create(conn)
    assert needed(caught.value) > 50
    assert one(conn, TABLES) == 0
    CombineQueue("wc", **wanted, buckets_per_partition=128).create(conn)
    WC.drop(conn)


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


def test_drop_is_refused_while_others_hold_the_locks(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=8)
    assert one(conn, "select pgcombine_internal.locks_to_drop('wc') < pgcombine_internal.lock_capacity()")
    with psycopg.connect(dsn) as other:
        fill(other, 200)
        with pytest.raises(TooManyLocksError, match="to drop queue"):
            WC.drop(conn)
    WC.drop(conn)
    assert one(conn, TABLES) == 0


@pytest.mark.slow
def test_workers_serve_more_tables_than_can_be_locked(
    conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    queues = [f"q{number}" for number in range(1 + one(conn, "select pgcombine_internal.lock_capacity()") // BUCKETS)]
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
    with psycopg.connect(dsn) as reader, psycopg.connect(dsn, autocommit=True) as impatient:
        reader.execute("select * from pgcombine.wc_values_b0050").fetchall()
        impatient.execute("set lock_timeout = '100ms'")
        with pytest.raises(psycopg.errors.LockNotAvailable):
            impatient.execute("call pgcombine.drop_large_queue('wc')")
        left = one(conn, TABLES)
        assert 2 < left < one(reader, "select %s", 5 * BUCKETS)
    with pytest.raises(psycopg.errors.UndefinedTable):
        add(conn, {"a": 1})
    with open_connection(dsn) as worker:
        assert worker.execute("select * from pgcombine_internal.due()").fetchall() == []
    with pytest.raises(QueueExistsError, match=r"is being dropped.*drop_large_queue"):
        WC.create(conn)
    conn.execute("call pgcombine.drop_large_queue('wc')")
    assert one(conn, TABLES) == 0
    WC.create(conn)
    assert values(conn) == {}


def test_drop_large_queue_refuses_what_drop_queue_refuses(conn: psycopg.Connection) -> None:
    make_queue(conn)
    call = "call pgcombine.drop_large_queue('wc')"
    with pytest.raises(psycopg.Error, match="can't run in a transaction") as refused, conn.transaction():
        conn.execute(call)
    assert refused.value.sqlstate == "PC003"
    conn.execute("create view report as select * from pgcombine.wc_values_b0001")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="report"):
        conn.execute(call)
    conn.execute("drop view report")
    conn.execute("create table sold (word text references pgcombine.wc_values)")
    with pytest.raises(psycopg.errors.DependentObjectsStillExist, match="sold"):
        conn.execute(call)
    conn.execute("drop table sold")
    add(conn, {"a": 1})
    with pytest.raises(psycopg.Error, match="pending") as refused:
        conn.execute(call)
    assert refused.value.sqlstate == sqlstate_of(QueueNotEmptyError)
    combine_all(conn)
    assert values(conn) == {"a": 1}
    conn.execute("call pgcombine.drop_large_queue('wc', force => true)")
    assert one(conn, TABLES) == 0


def test_drop_large_queue_refuses_a_queue_that_another_component_uses(conn: psycopg.Connection) -> None:
    conn.execute("create table docs (word text)")
    conn.execute("select pgcombine.create_rollup('wc', 'docs', array['word'], array['count(*) as n'])")
    with pytest.raises(psycopg.Error, match="is a rollup of docs") as refused:
        conn.execute("call pgcombine.drop_large_queue('wc')")
    assert refused.value.sqlstate == "PC005"
    assert refused.value.diag.message_hint == "select pgcombine.drop_rollup('wc')"
    conn.execute("insert into docs values ('a')")
    conn.execute("call pgcombine.drop_large_queue('wc', force => true)")
    conn.execute("insert into docs values ('b')")
    assert one(conn, TABLES) == 0
