"""``wait`` waits until the updates that were committed before the call are combined."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import psycopg
import pytest
from support import eventually, run_cli
from support.sessions import workers
from support.states import raises_state

from pgcombine.errors import ConfigError, InvalidDefinitionError, QueueNotFoundError, WaitTimeoutError
from pgcombine.queue.combine_queue import CombineQueue

WC = CombineQueue("wc", key=["word text"], value=["n bigint sum"], buckets=4)
CALL = "call pgcombine.wait('wc', timeout => '30 s')"


@contextmanager
def waiting(dsn: str, call: str = CALL) -> Iterator[list[str]]:
    """Run ``call`` in another session, and yield a list to which its outcome is appended."""
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


def is_asleep(conn: psycopg.Connection) -> bool:
    """Whether the waiting session sleeps between two checks."""
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


def test_wait_returns_after_a_worker_combined_the_updates(wc: psycopg.Connection, dsn: str) -> None:
    with workers(dsn):
        for total in (1, 2, 3):
            WC.enqueue(wc, [("fluo", 1)])
            WC.wait(wc, timeout=30)
            assert wc.execute("select n from pgcombine.wc_values").fetchall() == [(total,)]


def test_wait_ignores_later_updates(wc: psycopg.Connection, dsn: str) -> None:
    WC.enqueue(wc, [(f"w{i}", 1) for i in range(100)])
    with waiting(dsn) as outcome:
        eventually(lambda: is_asleep(wc))
        assert not outcome
        combine(wc)
        WC.enqueue(wc, [(f"w{i}", 1) for i in range(100)])
    assert outcome == ["done"]
    assert WC.backlog(wc) == 100


def test_wait_fails_when_the_queue_is_dropped(wc: psycopg.Connection, dsn: str) -> None:
    WC.enqueue(wc, [("fluo", 1)])
    with waiting(dsn) as outcome:
        eventually(lambda: is_asleep(wc))
        WC.drop(wc, force=True)
    assert outcome == ["PC001"]


def test_wait_ignores_open_transactions(wc: psycopg.Connection, dsn: str) -> None:
    WC.wait(wc, timeout=0)
    with psycopg.connect(dsn) as other:
        WC.enqueue(other, [("fluo", 1)])
        WC.wait(wc, timeout=5)
        other.rollback()


def test_wait_ignores_snapshots_of_others(wc: psycopg.Connection, dsn: str) -> None:
    WC.enqueue(wc, [("fluo", 1)])
    with psycopg.connect(dsn) as other:
        other.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        other.execute("select count(*) from pgcombine.wc_values")
        with workers(dsn):
            WC.wait(wc, timeout=30)


def test_wait_is_exact_with_passes_over_hash_ranges(conn: psycopg.Connection, dsn: str) -> None:
    """wait returns once all updates from before the call are combined, in all hash ranges. Later ones may remain."""
    conn.execute(
        "select pgcombine.create_queue('wc', array['w text'], array['n int sum'], buckets => 1, pass_limit => 10)"
    )
    conn.execute("insert into pgcombine.wc_updates select 'w' || i, 1 from generate_series(1, 50) i")
    with waiting(dsn) as outcome:
        eventually(lambda: is_asleep(conn))
        for part in range(8):
            for _ in range(3):
                eventually(lambda: is_asleep(conn))
            assert not outcome
            conn.execute("insert into pgcombine.wc_updates select 'w' || i, 1 from generate_series(1, 50) i")
            conn.execute("select pgcombine_internal.run_pass('wc', 0, range_mask => 7, hash_range => %s)", (part,))
    assert outcome == ["done"]
    assert WC.backlog(conn) > 100


def test_wait_is_exact_with_rebuckets(wc: psycopg.Connection, dsn: str) -> None:
    WC.enqueue(wc, [(f"w{i}", 1) for i in range(100)])
    with waiting(dsn) as outcome:
        eventually(lambda: is_asleep(wc))
        for buckets in (2, 4):
            WC.rebucket(wc, buckets)
            for _ in range(3):
                eventually(lambda: is_asleep(wc))
            assert not outcome
        assert combine(wc) == 100
    assert outcome == ["done"]


def test_wait_holds_no_snapshot(wc: psycopg.Connection, dsn: str) -> None:
    WC.enqueue(wc, [("fluo", 1)])
    oldest = "select max(age(backend_xmin)) from pg_stat_activity where application_name = 'waiter'"
    with waiting(dsn):
        eventually(lambda: is_asleep(wc))
        for _ in range(50):
            wc.execute("select pg_current_xact_id()")
        eventually(lambda: (wc.execute(oldest).fetchone()[0] or 0) < 50, what="the waiter's snapshot moves on")
        combine(wc)


def test_wait_raises_after_the_timeout(wc: psycopg.Connection) -> None:
    WC.enqueue(wc, [("fluo", 1)])
    with pytest.raises(WaitTimeoutError):
        WC.wait(wc, timeout=0.05)
    WC.pause(wc)
    with pytest.raises(WaitTimeoutError):
        WC.wait(wc, timeout=0.05)


@pytest.mark.parametrize(
    "block", ["begin; {}", "select 1; {}", "do $$ begin begin {}; exception when division_by_zero then end; end $$"]
)
def test_wait_is_refused_in_a_transaction(wc: psycopg.Connection, block: str) -> None:
    with pytest.raises(psycopg.Error) as caught:
        wc.execute(block.format(CALL))
    assert caught.value.sqlstate in (
        "PC003",
        "2D000",
    )  # 2D000: PostgreSQL refuses a COMMIT in a block with an exception clause
    wc.rollback()


def test_error_in_a_transaction_gives_the_reason(wc: psycopg.Connection, dsn: str) -> None:
    with wc.transaction(), pytest.raises(InvalidDefinitionError):
        WC.wait(wc)
    wc.execute("begin")
    with raises_state("PC003"):
        wc.execute(CALL)
    wc.rollback()
    with psycopg.connect(dsn) as other:  # the connection isn't in autocommit mode, but has begun no transaction
        WC.wait(other)
        assert not other.autocommit
        WC.backlog(other)
        with pytest.raises(InvalidDefinitionError):
            WC.wait(other)
    with pytest.raises(ConfigError):
        WC.wait(object())  # type: ignore[call-overload]


class Interrupted(psycopg.Connection):
    """A connection on which Ctrl-C arrives after a query is sent and before psycopg reads the answer."""

    def wait(self, gen, *args, **kwargs):  # type: ignore[no-untyped-def,override]
        def interrupted():  # type: ignore[no-untyped-def]
            yield next(gen)
            gen.close()
            raise KeyboardInterrupt

        return super().wait(interrupted() if self.autocommit else gen, *args, **kwargs)


def test_interrupted_wait_raises_keyboard_interrupt(wc: psycopg.Connection, dsn: str) -> None:
    """wait raises KeyboardInterrupt, not an error about the unfinished query, and closes the connection."""
    with Interrupted.connect(dsn) as other:
        with pytest.raises(KeyboardInterrupt):
            WC.wait(other)
        assert other.closed


def test_unknown_queue_is_refused(conn: psycopg.Connection) -> None:
    with pytest.raises(QueueNotFoundError):
        WC.wait(conn)


def test_wait_accepts_an_asynchronous_connection(wc: psycopg.Connection, dsn: str) -> None:
    async def run() -> None:
        async with await psycopg.AsyncConnection.connect(dsn) as other:
            await WC.wait(other, timeout=5)

    asyncio.run(run())


def test_command_waits(wc: psycopg.Connection, dsn: str) -> None:
    done = run_cli("wait", "wc", "--timeout", 5, "--json", "--dsn", dsn)
    assert (done.returncode, done.stdout) == (0, '{"queue": "wc", "state": "combined"}\n'), done.stderr
    WC.enqueue(wc, [("fluo", 1)])
    late = run_cli("wait", "wc", "--timeout", 0.1, "--dsn", dsn)
    assert late.returncode == 1
    assert "still has pending updates" in late.stderr
    assert len(late.stderr.splitlines()) == 1
