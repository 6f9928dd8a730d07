"""After the statement timeout cancels a pass, the next pass takes fewer updates, but at least one."""

from __future__ import annotations

import psycopg
import pytest
from support import eventually
from support.queues import add, combine_all, make_queue, one, values
from support.sessions import workers

from pgcombine.errors import ConfigError, PassError
from pgcombine.worker.drain import drain
from pgcombine.worker.passes import open_connection
from pgcombine.worker.worker import Worker

WORDS = {f"w{i}": 1 for i in range(100)}


def slow_when(conn: psycopg.Connection, condition: str) -> None:
    """Add an observer that takes a minute if ``condition``, an aggregate over the changes, is true."""
    conn.execute(
        "create function dawdle(slow boolean) returns void language plpgsql as $$ "
        "begin if slow then perform pg_sleep(60); end if; end $$"
    )
    conn.execute(
        "select pgcombine.add_observer('wc', 'slow', format('select dawdle(%%s) from changes', %s::text))", (condition,)
    )


def cancelled(conn: psycopg.Connection) -> bool:
    """Record a cancelled pass, and return whether the next pass takes fewer updates."""
    return one(conn, "select smaller from pgcombine_internal.fail_pass('wc', 0, '57014', 'too slow')")


def takes(conn: psycopg.Connection) -> tuple[int, bool]:
    """The number of updates that the next pass takes, and whether it leaves others pending."""
    with conn.transaction(force_rollback=True):
        updates, more = conn.execute("select updates, more from pgcombine.combine('wc', 0)").fetchall()[0]
    return updates, more


def test_worker_sets_timeouts(dsn: str) -> None:
    def limit(dsn: str, seconds: float | None) -> object:
        with open_connection(dsn, statement_timeout=seconds) as worker:
            return one(worker, "select current_setting('statement_timeout')")

    assert limit(dsn, None) == "5min"
    assert limit(dsn, 0) == "0"
    assert limit(dsn, 1.5) == "1500ms"
    own = psycopg.conninfo.make_conninfo(dsn, options="-c statement_timeout=20min")
    assert limit(own, None) == "20min"
    assert limit(own, 0) == "0"
    for seconds, lock_timeout in ((None, "10s"), (1.5, "1500ms")):
        with open_connection(dsn, lock_timeout=seconds) as worker:
            assert one(worker, "select current_setting('lock_timeout')") == lock_timeout
    with pytest.raises(ConfigError, match="negative"):
        Worker(dsn, statement_timeout=-1)
    with pytest.raises(ConfigError):
        Worker(dsn, lock_timeout=-1)


def test_worker_takes_fewer_updates_after_a_timeout(
    conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    make_queue(conn, buckets=1, quarantine_after=1)
    slow_when(conn, "count(*) > 20")
    add(conn, WORDS)
    with workers(dsn, "wc", poll=0.05, statement_timeout=0.4):
        eventually(lambda: values(conn) == WORDS, timeout=120, what="all updates are combined")
        add(conn, {"w1": 1})
        eventually(lambda: values(conn) == WORDS | {"w1": 2}, what="a later update is combined")
        eventually(lambda: one(conn, "select count(*) from pgcombine.failure") == 0, what="the failure is cleared")
    assert "canceling statement due to statement timeout" in caplog.text
    assert one(conn, "select count(*) from pgcombine.quarantine") == 0


def test_drain_takes_fewer_updates_after_a_timeout(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=2, quarantine_after=1)
    slow_when(conn, "count(*) > 20")
    add(conn, WORDS)
    totals = drain(dsn, "wc", statement_timeout=0.4)
    assert values(conn) == WORDS
    assert totals.updates == 100
    assert one(conn, "select count(*) from pgcombine.failure") == 0


@pytest.mark.parametrize("words", [pytest.param(100, marks=pytest.mark.slow), 6])
def test_slow_key_does_not_delay_others(conn: psycopg.Connection, dsn: str, words: int) -> None:
    """The slow key stays pending. It isn't quarantined, because a timeout doesn't prove that the key causes it."""
    good = {f"w{i}": 1 for i in range(words)}
    make_queue(conn, buckets=1, quarantine_after=1)
    slow_when(conn, "bool_or(word = 'slow')")
    add(conn, good | {"slow": 1})
    with pytest.raises(PassError):
        drain(dsn, "wc", statement_timeout=0.4)
    assert values(conn) == good
    assert one(conn, "select pgcombine.backlog('wc')") == 1
    assert one(conn, "select count(*) from pgcombine.quarantine") == 0
    assert one(conn, "select sqlstate from pgcombine.failure") == "57014"
    conn.execute("select pgcombine.drop_observer('wc', 'slow')")
    drain(dsn, "wc")
    assert values(conn) == good | {"slow": 1}
    assert one(conn, "select count(*) from pgcombine.failure") == 0


@pytest.mark.wc(buckets=1)
def test_next_pass_takes_half_as_many_updates(conn: psycopg.Connection) -> None:
    add(conn, WORDS)
    for most in (50, 25, 12, 6):
        assert cancelled(conn)
        updates, more = takes(conn)
        assert 0 < updates <= most
        assert more
    conn.execute("select * from pgcombine.combine('wc', 0)")
    assert one(conn, "select pass_limit from pgcombine.failure") == 12  # a successful pass doubles the limit
    taken = combine_all(conn)
    assert len(taken) < 20
    assert [more for *_, more in taken] == [True] * (len(taken) - 1) + [False]
    assert values(conn) == WORDS
    assert one(conn, "select count(*) from pgcombine.failure") == 0


def test_limit_grows_to_that_of_the_queue(conn: psycopg.Connection) -> None:
    make_queue(conn, buckets=1, pass_limit=40)
    add(conn, WORDS)
    assert cancelled(conn)
    assert one(conn, "select pass_limit from pgcombine.failure") == 20
    conn.execute("select * from pgcombine.combine('wc', 0)")
    failure = "select pass_limit, attempts from pgcombine.failure"
    assert conn.execute(failure).fetchall() == [(None, 1)]  # the row stays until a pass takes all updates
    combine_all(conn)
    assert conn.execute(failure).fetchall() == []
    assert values(conn) == WORDS


@pytest.mark.wc(buckets=1)
def test_failing_hash_range_is_retried_after_the_others(conn: psycopg.Connection) -> None:
    add(conn, {f"w{i}": 1 for i in range(4)})
    while one(conn, "select coalesce(min(pass_limit), 2) from pgcombine.failure") > 1:
        assert cancelled(conn)
    seen = set()
    for _ in range(4):
        with conn.transaction(force_rollback=True):
            conn.execute("select * from pgcombine.combine('wc', 0)")
            seen.update(values(conn))
        assert cancelled(conn)
    assert len(seen) == 4


@pytest.mark.wc(buckets=1)
def test_limit_does_not_fall_below_one_update(conn: psycopg.Connection) -> None:
    add(conn, WORDS)
    times = 1
    while cancelled(conn):
        times += 1
        assert times < 20
    assert takes(conn) == (1, True)
    combine_all(conn)
    assert values(conn) == WORDS


@pytest.mark.slow
def test_failing_key_is_quarantined_although_passes_time_out(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=1, quarantine_after=1)
    slow_when(conn, "count(*) > 20")
    add(conn, WORDS)
    add(conn, [("bad", 2**63 - 1), ("bad", 1)])
    with workers(dsn, "wc", poll=0.05, statement_timeout=1):
        eventually(lambda: values(conn) == WORDS, timeout=120, what="all keys but one are combined")
        eventually(lambda: one(conn, "select count(*) from pgcombine.quarantine") == 1)
