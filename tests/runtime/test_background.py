"""``Worker``, ``ExportWorker`` and ``Replayer`` in the background: start, stop, errors, and functions that connect."""

from __future__ import annotations

import threading
from typing import Any

import psycopg
import pytest
from support import eventually
from support.exports import make_export
from support.queues import add, combine_all, make_queue, values
from support.servers import embedded_only

from pgcombine import Entry, ExportWorker, Replayer, Worker, drain
from pgcombine.errors import (
    ConfigError,
    ExportNotFoundError,
    OperationalError,
    QueueNotFoundError,
    ReplicaError,
    WaitTimeoutError,
)

pytestmark = embedded_only

Some = Worker | ExportWorker | Replayer


class Kind:
    """A kind of worker: how to make one, and how to see that it works."""

    def __init__(self, conn: psycopg.Connection, name: str) -> None:
        self.conn = conn
        self.name = name
        self.seen: list[Entry] = []
        make_queue(conn)
        if name == "ExportWorker":
            make_export(conn)

    def make(self, dsn: Any, target: str | None = None) -> Some:
        if self.name == "Worker":
            return Worker(dsn, target or "wc", poll=0.05)
        if self.name == "ExportWorker":
            return ExportWorker(dsn, target or "search", self.seen.extend, poll=0.05)
        return Replayer(dsn, [target] if target else [], poll=0.05)

    def works(self, worker: Some, number: int) -> None:
        """Give the worker work and wait until the work is done. For a Replayer, wait until it is ready."""
        if self.name == "Worker":
            add(self.conn, {f"word{number}": 1})
            eventually(lambda: f"word{number}" in values(self.conn))
        elif self.name == "ExportWorker":
            add(self.conn, {f"word{number}": 1})
            combine_all(self.conn)
            eventually(lambda: f"word{number}" in [entry.key for entry in self.seen])
        else:
            eventually(lambda: worker.heartbeat.ready)


@pytest.fixture(params=["Worker", "ExportWorker", "Replayer"])
def kind(request: pytest.FixtureRequest, conn: psycopg.Connection) -> Kind:
    return Kind(conn, request.param)


def running(name: str) -> bool:
    return any(thread.name == f"pgcombine-{name}" for thread in threading.enumerate())


def test_worker_can_be_started_and_stopped_repeatedly(kind: Kind, dsn: str) -> None:
    worker = kind.make(dsn)
    for number in range(2):
        worker.start()
        with pytest.raises(ConfigError, match=kind.name):
            worker.start()
        kind.works(worker, number)
        worker.stop(60)
        assert not running(kind.name)
        worker.stop()  # a second stop does nothing


def test_a_block_starts_a_worker_and_stops_it(kind: Kind, dsn: str) -> None:
    with kind.make(dsn) as worker:
        kind.works(worker, 1)
        assert running(kind.name)
    assert not running(kind.name)


def test_stop_ends_a_run_in_another_thread(kind: Kind, dsn: str) -> None:
    worker = kind.make(dsn)
    for number in range(2):
        thread = threading.Thread(target=worker.run)
        thread.start()
        kind.works(worker, number)
        worker.stop()
        thread.join(60)
        assert not thread.is_alive()


def test_stop_raises_the_error_that_ended_the_worker(kind: Kind, dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    expected = {"Worker": QueueNotFoundError, "ExportWorker": ExportNotFoundError, "Replayer": ReplicaError}[kind.name]
    worker = kind.make(dsn, "nothing")
    worker.start()
    eventually(lambda: not running(kind.name))
    assert f"worker.failed class={kind.name} " in caplog.text  # logged at once, not only when the worker is stopped
    with pytest.raises(expected, match="nothing"):
        worker.stop(60)
    worker.stop()  # the error is raised only once
    with pytest.raises(expected, match="nothing"), kind.make(dsn, "nothing"):
        pass
    with pytest.raises(KeyError), kind.make(dsn, "nothing"):
        raise KeyError("of the block")


@pytest.mark.wc
def test_stop_raises_after_its_timeout(conn: psycopg.Connection, dsn: str) -> None:
    begun, free = threading.Event(), threading.Event()

    def hold(_: object) -> None:
        begun.set()
        free.wait(60)

    worker = Worker(dsn, "wc", on_pass=hold)
    worker.start()
    add(conn, {"fluo": 1})
    assert begun.wait(60)
    with pytest.raises(WaitTimeoutError):
        worker.stop(0.1)
    free.set()
    worker.stop(60)
    assert values(conn) == {"fluo": 1}


def test_function_opens_a_lost_connection_with_the_new_password(kind: Kind, conn: psycopg.Connection, dsn: str) -> None:
    """A role's password changes and its sessions end. The function fails once, then connects with the new password."""
    role = f"{psycopg.conninfo.conninfo_to_dict(dsn)['dbname']}_vault"
    conn.execute(f"create role {role} superuser login password 'first'")
    vault: list[str | OSError] = ["first"]
    passwords: list[str] = []

    def connect() -> psycopg.Connection[dict[str, Any]]:
        found = vault[-1]
        if isinstance(found, OSError):
            vault.pop()
            raise found
        passwords.append(found)
        return psycopg.connect(
            psycopg.conninfo.make_conninfo(dsn, user=role, password=found), row_factory=psycopg.rows.dict_row
        )

    try:
        with kind.make(connect) as worker:
            kind.works(worker, 1)
            conn.execute(f"alter role {role} password 'second'")
            vault[:] = ["second", TimeoutError("the vault is silent")]
            ended = "select count(pg_terminate_backend(pid)) from pg_stat_activity where usename = %s"
            assert conn.execute(ended, (role,)).fetchone() != (0,)
            eventually(lambda: passwords[-1] == "second")
            kind.works(worker, 2)
        assert passwords[0] == "first"
        assert len(vault) == 1
    finally:
        conn.execute(f"drop role {role}")


@pytest.mark.wc
def test_a_call_that_loses_its_connection_raises_an_operational_error(conn: psycopg.Connection, dsn: str) -> None:
    add(conn, {"fluo": 1})

    def end(_: object) -> None:
        conn.execute(
            "select pg_terminate_backend(pid) from pg_stat_activity "
            "where datname = current_database() and application_name = 'pgcombine worker'"
        )

    with pytest.raises(OperationalError) as raised:
        drain(dsn, "wc", on_pass=end)
    assert isinstance(raised.value.__cause__, psycopg.OperationalError)
    assert raised.value.sqlstate == "57P01"
    assert values(conn) == {"fluo": 1}


def test_a_function_that_does_not_connect_is_refused(dsn: str) -> None:
    closed = psycopg.connect(dsn)
    closed.close()
    for returned in ("host=db", closed):
        with pytest.raises(ConfigError):
            Worker(lambda returned=returned: returned).run(threading.Event())
