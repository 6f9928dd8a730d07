"""The command ``pgcombine worker``, the class ``Worker`` and ``drain``."""

from __future__ import annotations

import json
import signal
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from support import eventually, run_cli, start_cli
from support.homes import SMALL, Filled
from support.queues import add, enqueue, make_queue, one, values, word_in
from support.servers import embedded_only
from support.sessions import in_background, worker_listens, workers

from pgcombine.embedded import EmbeddedServer
from pgcombine.errors import (
    ConfigError,
    ConnectError,
    PassError,
    QueueNotFoundError,
    SchemaMismatchError,
    SchemaMissingError,
    WaitTimeoutError,
)
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.worker.drain import drain
from pgcombine.worker.worker import Worker

Process = subprocess.Popen[str]
OF_WORKERS = "from pg_stat_activity where application_name like 'pgcombine worker%' and datname = current_database()"
WAITING = f"select pid {OF_WORKERS} and wait_event_type = 'Lock'"


@contextmanager
def listening(dsn: str, *channels: str) -> Iterator[psycopg.Connection]:
    with psycopg.connect(dsn, autocommit=True) as listener:
        for channel in channels:
            listener.execute(sql.SQL("listen {}").format(sql.Identifier(channel)))
        yield listener


def heard(listener: psycopg.Connection, sender: psycopg.Connection) -> list[str]:
    """The channels that were notified until now.

    PostgreSQL delivers notifications in the order of commits, so the notification of ``the_end`` comes last.
    """
    listener.execute("listen the_end")
    sender.execute("notify the_end")
    channels: list[str] = []
    for note in listener.notifies(timeout=30):
        if note.channel == "the_end":
            return channels
        channels.append(note.channel)
    raise AssertionError("the last notification didn't come")


def ended(process: Process, *, timeout: float = 30) -> tuple[int, str]:
    """Wait for a process to end, and return its exit status and output."""
    out, _ = process.communicate(timeout=timeout)
    return process.returncode, out


@pytest.mark.wc
def test_insert_of_any_session_wakes_the_worker(conn: psycopg.Connection, dsn: str) -> None:
    """The worker polls once an hour, so only a notification can wake it."""
    with start_cli("worker", "wc", "--poll", 3600, "--dsn", dsn) as process:
        for n in (1, 2, 3):
            eventually(lambda: worker_listens(conn), what="the worker listens")
            add(conn, {"fluo": 1})
            eventually(lambda n=n: values(conn) == {"fluo": n}, what=f"insert {n} arrives")
        eventually(lambda: worker_listens(conn), what="the worker listens")
        enqueue(conn, {"word": "fluo", "n": -3})
        eventually(lambda: values(conn) == {}, what="the enqueue arrives")
        with conn.cursor() as cursor:
            eventually(lambda: worker_listens(conn), what="the worker listens")
            with cursor.copy("copy pgcombine.wc_updates (word, n) from stdin") as copy:
                copy.write_row(("copied", 7))
        eventually(lambda: values(conn) == {"copied": 7}, what="the copy arrives")
        process.send_signal(signal.SIGTERM)
        assert ended(process)[0] == 0


def test_polling_worker_needs_no_notifications(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, notify=False)
    with workers(dsn, "wc", poll=0.05):
        for n in range(1, 4):
            add(conn, {"a": 1})
            eventually(lambda n=n: values(conn) == {"a": n}, what="the updates are combined")


def test_enqueue_notifies_only_a_worker_with_the_idle_lock(conn: psycopg.Connection, dsn: str) -> None:
    """While no worker holds the idle lock, neither ``pgcombine.enqueue`` nor an INSERT notifies."""
    make_queue(conn, buckets=3)
    make_queue(conn, "other", buckets=1)
    words = [word_in(conn, bucket) for bucket in range(3)]
    with (
        listening(dsn, "pgcombine.wc", "pgcombine.other") as listener,
        psycopg.connect(dsn, autocommit=True) as writer,
        psycopg.connect(dsn) as blocker,
    ):
        add(writer, {words[0]: 1})
        enqueue(writer, {"word": words[1], "n": 1})
        assert heard(listener, writer) == [], "an enqueue notified although no worker listens"
        with workers(dsn, "wc", poll=3600) as worker:
            eventually(lambda: worker_listens(conn), what="the worker listens")
            assert sorted(values(conn)) == sorted(words[:2])

            blocker.execute("lock table pgcombine.wc_values in access exclusive mode")
            enqueue(writer, [{"word": words[2], "n": 1}, {"word": words[0], "n": 1}])
            assert heard(listener, writer) == ["pgcombine.wc"], "an enqueue must notify the queue"
            eventually(lambda: conn.execute(WAITING).fetchone(), what="the pass waits for the lock")
            enqueue(writer, {"word": words[1], "n": 1})
            add(writer, {words[1]: 1})
            add(writer, {"x": 1}, "other")
            assert heard(listener, writer) == [], "an enqueue notified although the worker is in a pass"
            blocker.rollback()

            eventually(lambda: worker_listens(conn), what="the worker listens again")
            assert [values(conn)[word] for word in words] == [2, 3, 1], (
                "the updates that came during the pass are missing"
            )
            add(writer, dict.fromkeys(words, 1))
            assert heard(listener, writer) == ["pgcombine.wc"], "an insert must notify the queue"
            eventually(lambda: worker.totals.updates == 9, what="all updates are combined")
    assert [values(conn)[word] for word in words] == [3, 4, 2]


def test_worker_combines_what_an_observer_enqueues(conn: psycopg.Connection, dsn: str) -> None:
    names = ["wc", "other", *(f"idle{n}" for n in range(12))]
    for name in names:
        make_queue(conn, name, buckets=2)
    statement = "insert into pgcombine.other_updates select word, 1 from changes"
    with workers(dsn, poll=3600) as worker:
        eventually(lambda: worker_listens(conn), what="the worker listens")
        conn.execute("select pgcombine.add_observer('wc', 'tier', %s)", (statement,))
        for n in range(1, 6):
            add(conn, {f"w{i}": 1 for i in range(9)})
            add(conn, {"a": 1}, names[-n])
            eventually(lambda n=n: worker.totals.updates == 19 * n, what="both tiers and the other queue are combined")
            eventually(lambda: worker_listens(conn), what="the worker listens again")
    assert sum(values(conn, "other").values()) == 45


@pytest.mark.parametrize("before", [[], ["wc"]], ids=["first queue", "another queue"])
def test_sleeping_worker_learns_of_a_new_queue(conn: psycopg.Connection, dsn: str, before: list[str]) -> None:
    for name in before:
        make_queue(conn, name)
    with workers(dsn, poll=3600):
        listening = "select count(*) from pg_stat_activity where datname = current_database() and query ilike 'listen%'"
        eventually(
            lambda: worker_listens(conn) if before else one(conn, listening) > 0, what="the worker listens", timeout=30
        )
        make_queue(conn, "new")
        add(conn, {"a": 1}, "new")
        eventually(lambda: values(conn, "new") == {"a": 1}, what="the new queue is combined")


def test_busy_worker_polls_idle_and_new_queues(conn: psycopg.Connection, dsn: str) -> None:
    for name in ("wc", "idle", "other"):
        make_queue(conn, name)
    stop = threading.Event()

    def write() -> int:
        total = 0
        with psycopg.connect(dsn, autocommit=True) as mine:
            while not stop.is_set():
                add(mine, {"a": 1}, "wc")
                total += 1
        return total

    with workers(dsn, poll=3600) as worker:
        eventually(lambda: worker_listens(conn), what="the worker listens")
        with in_background(write) as (written,):
            try:
                eventually(lambda: worker.totals.updates > 50, what="one queue is busy")
                add(conn, {"a": 1}, "idle")
                make_queue(conn, "new")
                add(conn, {"a": 1}, "new")
                eventually(
                    lambda: values(conn, "idle") == values(conn, "new") == {"a": 1}, what="the others are combined"
                )
            finally:
                stop.set()
            total = written.result()
        eventually(lambda: values(conn, "wc") == {"a": total}, what="all updates are combined")


@pytest.mark.wc
def test_worker_releases_the_idle_lock_of_a_paused_queue(conn: psycopg.Connection, dsn: str) -> None:
    """If the worker kept the lock, each commit to the paused queue would notify the worker without need."""
    make_queue(conn, "other")
    with workers(dsn, poll=3600):
        eventually(lambda: worker_listens(conn), what="the worker listens")
        conn.execute("select pgcombine.pause('wc')")
        add(conn, {"a": 1}, "other")
        with psycopg.connect(dsn, autocommit=True) as listener:
            lock = "pg_try_advisory_lock_shared(hashtext('pgcombine.idle'), 'pgcombine.wc_updates'::regclass::integer)"
            eventually(lambda: one(listener, f"select {lock}"), what="the idle lock is free")


@pytest.mark.wc
def test_worker_polls_often_while_a_transaction_with_updates_is_open(conn: psycopg.Connection, dsn: str) -> None:
    """A transaction that enqueues while the worker is awake doesn't notify, but shares the idle lock until it ends.

    While the worker can't take the lock, it polls often.
    """
    with psycopg.connect(dsn) as writer, psycopg.connect(dsn) as blocker, workers(dsn, "wc", poll=3600) as worker:
        last_poll = f"select max(query_start) {OF_WORKERS}"
        for n in range(1, 10, 2):
            eventually(lambda: worker_listens(conn), what="the worker listens")
            blocker.execute("lock table pgcombine.wc_values in access exclusive mode")
            add(conn, {"a": 1})
            eventually(lambda: not worker_listens(conn), what="the worker is awake")
            add(writer, {"a": 1})
            blocker.commit()
            eventually(lambda n=n: worker.totals.updates == n, what="the first update is combined")
            polls = {one(conn, last_poll)}
            eventually(
                lambda polls=polls: len(polls) > 5 or polls.add(one(conn, last_poll)),
                what="the worker polls again and again",
            )
            assert not worker_listens(conn)
            writer.commit()
            eventually(lambda n=n: worker.totals.updates == n + 1, what="the second update is combined")
    assert values(conn) == {"a": 10}


@pytest.mark.wc(buckets=1)
def test_sigterm_in_a_pass_ends_the_pass_first(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as blocker, start_cli("worker", "wc", "--dsn", dsn) as process:
        blocker.execute("lock table pgcombine.wc_values in access exclusive mode")
        add(conn, {"a": 1})
        eventually(lambda: conn.execute(WAITING).fetchone(), what="the pass is in progress")
        process.send_signal(signal.SIGTERM)
        blocker.commit()
        status, out = ended(process)
    assert (status, values(conn)) == (0, {"a": 1}), out
    assert "combined: 1 update in 1 pass, 1 change" in out


@pytest.mark.wc
@embedded_only
def test_drain_commands_combine(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, "other")
    add(conn, {"a": 1, "b": 1})
    add(conn, {"a": 1}, "other")
    done = run_cli("drain", "wc", "--timeout", 60, "--json", "--dsn", dsn)
    assert (done.returncode, done.stderr) == (0, "")
    totals = json.loads(done.stdout)
    assert {key: totals[key] for key in ("updates", "keys", "changes")} == {"updates": 2, "keys": 2, "changes": 2}
    assert values(conn) == {"a": 1, "b": 1}
    assert values(conn, "other") == {}
    add(conn, {"a": 1})
    done = run_cli("worker", "--drain", "--json", "--dsn", dsn)
    assert (done.returncode, json.loads(done.stdout)["updates"]) == (0, 2), done.stderr
    assert values(conn, "other") == {"a": 1}


@pytest.mark.wc(buckets=1)
def test_drain_ends_beside_a_writer(conn: psycopg.Connection, dsn: str) -> None:
    """drain ends without an error, although updates are enqueued after its last pass."""
    over = threading.Event()

    def write() -> None:
        with psycopg.connect(dsn, autocommit=True) as writer:
            while not over.wait(0.01):
                add(writer, {"a": 1})

    with in_background(write):
        try:
            eventually(lambda: one(conn, "select pgcombine.backlog('wc')") > 0)
            assert sum(drain(dsn, "wc", timeout=60).updates for _ in range(3)) > 0
        finally:
            over.set()


@pytest.mark.wc(buckets=1)
def test_drain_raises_with_the_reason(conn: psycopg.Connection, dsn: str) -> None:
    add(conn, {"a": 1})
    with psycopg.connect(dsn) as rival:
        rival.execute("select from pgcombine.bucket for update")
        with pytest.raises(WaitTimeoutError):
            drain(dsn, "wc", timeout=0.1)
    conn.execute("select pgcombine.pause('wc')")
    with pytest.raises(WaitTimeoutError):
        drain(dsn, "wc", timeout=10)
    conn.execute("select pgcombine.resume('wc')")
    add(conn, [("a", 2**63 - 1), ("a", 2**63 - 1)])
    with pytest.raises(PassError) as failed:
        drain(dsn, "wc", timeout=10)
    assert (failed.value.queue, failed.value.bucket, failed.value.sqlstate) == ("wc", 0, "22003")
    assert isinstance(failed.value.__cause__, psycopg.errors.NumericValueOutOfRange)
    with pytest.raises(QueueNotFoundError):
        drain(dsn, "cw")


@pytest.mark.wc(buckets=2)
def test_failing_bucket_does_not_delay_others(
    conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    bad, good = word_in(conn, 0), word_in(conn, 1)
    add(conn, [(bad, 2**63 - 1), (bad, 1)])
    with workers(dsn, "wc", poll=0.05) as worker:
        eventually(lambda: "pass.failed queue=wc bucket=0" in caplog.text, what="the failure is logged")
        for n in range(1, 4):
            add(conn, {good: 1})
            eventually(lambda n=n: values(conn) == {good: n}, what="the other bucket goes on")
        assert one(conn, "select pgcombine.backlog('wc')") == 2
        add(conn, {bad: -10})
        eventually(lambda: bad in values(conn), what="the bucket is tried again")
    assert values(conn) == {bad: 2**63 - 10, good: 3}
    assert worker.totals.updates == 6


@pytest.mark.wc(buckets=2)
@pytest.mark.parametrize(
    ("options", "logged"), [("-c lock_timeout=50ms", "pass.locked"), ("-c statement_timeout=1s", "pass.failed")]
)
def test_timeout_does_not_disconnect_the_worker(
    conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture, options: str, logged: str
) -> None:
    """psycopg raises an OperationalError for a timeout, but the connection still works, so the worker keeps it."""
    locked, free = word_in(conn, 0), word_in(conn, 1)
    impatient = psycopg.conninfo.make_conninfo(dsn, options=options)
    with psycopg.connect(dsn) as blocker, workers(impatient, "wc", poll=0.05):
        blocker.execute("lock table pgcombine.wc_values_b0000 in access exclusive mode")
        add(conn, {locked: 1, free: 1})
        eventually(lambda: f"{logged} queue=wc bucket=0" in caplog.text, what="the timeout is logged")
        count = "select n from pgcombine.wc_values_b0001"
        for n in range(1, 4):
            eventually(lambda n=n: conn.execute(count).fetchall() == [(n,)], what="the other bucket goes on")
            add(conn, {free: 1})
        waits_only = conn.execute("select * from pgcombine.failure").fetchall() == []
        assert waits_only == (logged == "pass.locked"), "waiting for a lock is no failure"
        blocker.rollback()
        eventually(lambda: values(conn) == {locked: 1, free: 4}, what="the bucket is tried again")
    assert "worker.disconnected" not in caplog.text


@pytest.mark.parametrize("mode", ["fast", pytest.param("immediate", marks=pytest.mark.slow)])
def test_worker_survives_a_restart_of_the_server(tmp_path: Path, filled: Filled, mode: Any) -> None:
    server = EmbeddedServer(filled(tmp_path / "home"), settings=SMALL)
    try:
        dsn = server.start()
        with psycopg.connect(dsn, autocommit=True) as conn:
            make_queue(conn)
        with start_cli("worker", "wc", "--poll", 1, "--concurrency", 2, "--dsn", dsn) as process:
            for n in (1, 2):
                with psycopg.connect(dsn, autocommit=True) as conn:
                    add(conn, {"a": 1})
                    eventually(lambda n=n, conn=conn: values(conn) == {"a": n}, what="the worker is back")
                if n == 1:
                    server.stop(mode)
                    with pytest.raises(psycopg.OperationalError):
                        psycopg.connect(dsn)
                    assert process.poll() is None
                    assert server.start() == dsn
            process.send_signal(signal.SIGTERM)
            status, out = ended(process)
        assert status == 0, out
        assert "worker.disconnected" in out
        assert "Traceback" not in out
    finally:
        server.stop("immediate")


@pytest.mark.wc(buckets=1)
@embedded_only
def test_drain_obeys_the_workers_timeouts(conn: psycopg.Connection, dsn: str) -> None:
    add(conn, {"a": 1})
    with psycopg.connect(dsn) as other:
        other.execute("lock table pgcombine.wc_values in access exclusive mode")
        done = run_cli("worker", "--drain", "--statement-timeout", 0.2, "--lock-timeout", 0, "--dsn", dsn)
    assert done.returncode == 1
    assert "canceling statement due to statement timeout" in done.stderr.splitlines()[-1]
    assert run_cli("worker", "--drain", "--handoff", "--dsn", dsn).returncode == 2


@embedded_only
def test_worker_command_that_cannot_start_prints_one_line(dsn: str, empty_dsn: str) -> None:
    cases = {
        ("worker", "wc", "--dsn", dsn): (1, 'there is no queue "wc" (select queue from'),
        ("worker", "--dsn", empty_dsn): (3, "run 'pgcombine db upgrade'"),
        ("worker", "--poll", "0", "--dsn", dsn): (1, "the poll interval must be positive"),
    }
    for arguments, (status, message) in cases.items():
        done = run_cli(*arguments)
        assert (done.returncode, done.stdout) == (status, ""), done
        assert message in done.stderr
        assert len(done.stderr.splitlines()) == 1, done.stderr


def test_single_queue_and_column_need_no_list(conn: psycopg.Connection, dsn: str) -> None:
    queue = CombineQueue("single", key="word text", value="n bigint sum")
    queue.create(conn)
    for named in (queue, "single"):
        queue.enqueue(conn, [("a", 1)])
        stopped = threading.Event()
        worker = Worker(dsn, named, on_pass=partial(lambda stopped, done: stopped.set(), stopped))
        totals = worker.run(stopped)
        assert totals.updates == 1
    assert values(conn, "single") == {"a": 2}
    with pytest.raises(QueueNotFoundError):
        Worker(dsn, "none").run()


def test_worker_with_wrong_arguments_raises(conn: psycopg.Connection, dsn: str, empty_dsn: str) -> None:
    stopped = threading.Event()
    stopped.set()
    with pytest.raises(QueueNotFoundError):
        Worker(dsn, ["cw"]).run(stopped)
    with pytest.raises(SchemaMissingError):
        Worker(empty_dsn).run(stopped)
    with pytest.raises(ConnectError):
        Worker("postgresql://nobody@127.0.0.1:1/none").run(stopped)
    for number in (0, -1):
        with pytest.raises(ConfigError, match="concurrency"):
            Worker(dsn, concurrency=number)
        with pytest.raises(ConfigError, match="poll"):
            Worker(dsn, poll=number)


@pytest.mark.wc
def test_a_worker_ends_when_another_version_upgrades_the_schema(conn: psycopg.Connection, dsn: str) -> None:
    """The worker checks the schema when it connects again, and raises."""
    worker = Worker(dsn, ["wc"], poll=0.05)

    def run() -> None:
        with pytest.raises(SchemaMismatchError):
            worker.run(threading.Event())

    with in_background(run):
        add(conn, {"a": 1})
        eventually(lambda: values(conn) == {"a": 1}, what="the worker combines")
        conn.execute("update pgcombine.schema_version set digest = 'another'")
        one(conn, f"select count(pg_terminate_backend(pid)) {OF_WORKERS}")
