"""``wait``: returns when all that was committed before the call is combined, and holds no snapshot meanwhile."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from support import eventually, run_cli

from pgcombine.errors import ConfigError, InvalidDefinitionError, QueueNotFoundError, WaitTimeoutError
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.worker.worker import Worker

WC = CombineQueue("wc", key=["word text"], value=["n bigint sum"], buckets=4)
CALL = "call pgcombine.wait('wc', timeout => '30 s')"


@contextmanager
def worker(dsn: str) -> Iterator[None]:
    stop = threading.Event()
    thread = threading.Thread(target=Worker(dsn).run, args=(stop,))
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


@contextmanager
def waiting(dsn: str, call: str = CALL) -> Iterator[list[str]]:
    """``call`` in another session; the list gets its outcome."""
    outcome: list[str] = []

    def run() -> None:
        with psycopg.connect(dsn, autocommit=True, application_name="waiter") as conn:
            try:
                conn.execute(call)
                outcome.append("done")
            except psycopg.Error as error:
                outcome.append(str(error.sqlstate))

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield outcome
    finally:
        thread.join()


def looks(conn: psycopg.Connection) -> bool:
    """Whether the waiter has taken its first look: it sleeps."""
    return bool(
        conn.execute(
            "select from pg_stat_activity where application_name = 'waiter' and wait_event = 'PgSleep'"
        ).fetchall()
    )


def combine(conn: psycopg.Connection) -> int:
    row = conn.execute("select coalesce(sum(updates), 0) from generate_series(0, 3) b, pgcombine.combine('wc', b)")
    return int(row.fetchone()[0])


@pytest.fixture
def wc(conn: psycopg.Connection) -> psycopg.Connection:
    WC.create(conn)
    return conn


def test_with_a_worker_ones_own_updates_are_combined(wc: psycopg.Connection, dsn: str) -> None:
    with worker(dsn):
        for total in (1, 2, 3):
            WC.enqueue(wc, [("fluo", 1)])
            WC.wait(wc, timeout=30)
            assert wc.execute("select n from pgcombine.wc_values").fetchall() == [(total,)]


def test_nothing_pending_returns_at_once(wc: psycopg.Connection) -> None:
    WC.wait(wc, timeout=0)


def test_later_updates_are_not_waited_for(wc: psycopg.Connection, dsn: str) -> None:
    WC.enqueue(wc, [(f"w{i}", 1) for i in range(100)])
    with waiting(dsn) as outcome:
        eventually(lambda: looks(wc))
        assert not outcome
        combine(wc)
        WC.enqueue(wc, [(f"w{i}", 1) for i in range(100)])
    assert outcome == ["done"]
    assert WC.backlog(wc) == 100


def test_an_open_transaction_of_another_is_not_waited_for(wc: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as other:
        WC.enqueue(other, [("fluo", 1)])
        WC.wait(wc, timeout=5)
        other.rollback()


def test_a_snapshot_held_elsewhere_does_not_keep_it(wc: psycopg.Connection, dsn: str) -> None:
    WC.enqueue(wc, [("fluo", 1)])
    with psycopg.connect(dsn) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute("select count(*) from pgcombine.wc_values")
        with worker(dsn):
            WC.wait(wc, timeout=30)


def test_slices_do_not_fool_it(conn: psycopg.Connection, dsn: str) -> None:
    """Passes over slices of the keys: it returns when what it waits for is combined, whatever else is pending."""
    conn.execute(
        "select pgcombine.create_queue('wc', array['w text'], array['n int sum'], buckets => 1, pass_limit => 10)"
    )
    conn.execute("insert into pgcombine.wc_updates select 'w' || i, 1 from generate_series(1, 50) i")
    with waiting(dsn) as outcome:
        eventually(lambda: looks(conn))
        for part in range(8):
            for _ in range(3):
                eventually(lambda: looks(conn))
            assert not outcome
            conn.execute("insert into pgcombine.wc_updates select 'w' || i, 1 from generate_series(1, 50) i")
            conn.execute("select pgcombine_internal.run_pass('wc', 0, range_mask => 7, hash_range => %s)", (part,))
    assert outcome == ["done"]
    assert WC.backlog(conn) > 100


def test_rebucket_does_not_fool_it(wc: psycopg.Connection, dsn: str) -> None:
    WC.enqueue(wc, [(f"w{i}", 1) for i in range(100)])
    with waiting(dsn) as outcome:
        eventually(lambda: looks(wc))
        for buckets in (2, 4):
            WC.rebucket(wc, buckets)
            for _ in range(3):
                eventually(lambda: looks(wc))
            assert not outcome
        assert combine(wc) == 100
    assert outcome == ["done"]


def test_it_holds_no_snapshot(wc: psycopg.Connection, dsn: str) -> None:
    WC.enqueue(wc, [("fluo", 1)])
    oldest = "select max(age(backend_xmin)) from pg_stat_activity where application_name = 'waiter'"
    with waiting(dsn):
        eventually(lambda: looks(wc))
        for _ in range(50):
            wc.execute("select pg_current_xact_id()")
        eventually(lambda: (wc.execute(oldest).fetchone()[0] or 0) < 50, what="the waiter's snapshot moves on")
        combine(wc)


def test_the_time_is_up(wc: psycopg.Connection) -> None:
    WC.enqueue(wc, [("fluo", 1)])
    with pytest.raises(WaitTimeoutError, match="check that workers run"):
        WC.wait(wc, timeout=0.05)
    WC.pause(wc)
    with pytest.raises(WaitTimeoutError, match="paused"):
        WC.wait(wc, timeout=0.05)


@pytest.mark.parametrize(
    "block", ["begin; {}", "select 1; {}", "do $$ begin begin {}; exception when division_by_zero then end; end $$"]
)
def test_in_a_transaction_it_is_refused(wc: psycopg.Connection, block: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        wc.execute(block.format(CALL))
    assert caught.value.sqlstate in ("PC003", "2D000")  # in a block with an exception clause PostgreSQL refuses
    wc.rollback()


def test_in_a_transaction_the_error_says_so(wc: psycopg.Connection, dsn: str) -> None:
    with wc.transaction(), pytest.raises(InvalidDefinitionError, match="in a transaction"):
        WC.wait(wc)
    wc.execute("begin")
    with pytest.raises(psycopg.Error, match="can't run in a transaction") as caught:
        wc.execute(CALL)
    assert caught.value.sqlstate == "PC003"
    wc.rollback()
    with psycopg.connect(dsn) as other:  # not in autocommit, but in no transaction
        WC.wait(other)
        assert not other.autocommit
        WC.backlog(other)
        with pytest.raises(InvalidDefinitionError):
            WC.wait(other)
    with pytest.raises(ConfigError):
        WC.wait(object())  # type: ignore[call-overload]


class Interrupted(psycopg.Connection):
    """Ctrl-C arrives when a query is sent and psycopg hasn't begun to wait for the answer."""

    def wait(self, gen, *args, **kwargs):  # type: ignore[no-untyped-def,override]
        def interrupted():  # type: ignore[no-untyped-def]
            yield next(gen)
            gen.close()
            raise KeyboardInterrupt

        return super().wait(interrupted() if self.autocommit else gen, *args, **kwargs)


def test_interrupted_before_the_answer(wc: psycopg.Connection, dsn: str) -> None:
    """Whoever waits learns of the interrupt, not of the connection that it left behind."""
    with Interrupted.connect(dsn) as other:
        with pytest.raises(KeyboardInterrupt):
            WC.wait(other)
        assert other.closed


def test_unknown_queue(conn: psycopg.Connection) -> None:
    with pytest.raises(QueueNotFoundError):
        WC.wait(conn)


def test_asynchronous(wc: psycopg.Connection, dsn: str) -> None:
    async def run() -> None:
        async with await psycopg.AsyncConnection.connect(dsn) as other:
            await WC.wait(other, timeout=5)

    asyncio.run(run())


def test_command(wc: psycopg.Connection, dsn: str) -> None:
    done = run_cli("wait", "wc", "--timeout", 5, "--json", "--dsn", dsn)
    assert (done.returncode, done.stdout) == (0, '{"queue": "wc", "state": "combined"}\n'), done.stderr
    WC.enqueue(wc, [("fluo", 1)])
    late = run_cli("wait", "wc", "--timeout", 0.1, "--dsn", dsn)
    assert late.returncode == 1
    assert "still has pending updates" in late.stderr
    assert len(late.stderr.splitlines()) == 1
