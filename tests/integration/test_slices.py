"""A pass that takes longer than the statement timeout: the next ones take slices of the bucket's keys."""

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
    """An observer that takes a minute where the condition, an aggregate over changes, holds."""
    conn.execute(
        "create function dawdle(slow boolean) returns void language plpgsql as $$ "
        "begin if slow then perform pg_sleep(60); end if; end $$"
    )
    conn.execute(
        "select pgcombine.add_observer('wc', 'slow', format('select dawdle(%%s) from changes', %s::text))", (condition,)
    )


def cancelled(conn: psycopg.Connection, mask: int | None, part: int | None) -> bool:
    """Record that a pass was cancelled; whether something smaller is next."""
    return one(
        conn, "select smaller from pgcombine_internal.fail_pass('wc', 0, '57014', 'too slow', %s, %s)", mask, part
    )


def planned(conn: psycopg.Connection) -> tuple[int | None, int | None]:
    """The mask and the slice of the keys that the next pass takes."""
    mask, part = conn.execute("select mask, slice from pgcombine_internal.plan_pass('wc', 0)").fetchall()[0]
    return mask, part


def test_by_default_a_pass_is_limited(dsn: str) -> None:
    def limit(dsn: str, seconds: float | None) -> object:
        with open_connection(dsn, statement_timeout=seconds) as worker:
            return one(worker, "select current_setting('statement_timeout')")

    assert limit(dsn, None) == "5min"
    assert limit(dsn, 0) == "0"
    assert limit(dsn, 1.5) == "1500ms"
    own = psycopg.conninfo.make_conninfo(dsn, options="-c statement_timeout=20min")
    assert limit(own, None) == "20min"
    assert limit(own, 0) == "0"
    with pytest.raises(ConfigError, match="negative"):
        Worker(dsn, statement_timeout=-1)


def test_a_worker_goes_on_in_slices(conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    make_queue(conn, buckets=1, quarantine_after=1)
    slow_when(conn, "count(*) > 20")
    add(conn, WORDS)
    with workers(dsn, "wc", poll=0.05, statement_timeout=0.4):
        eventually(lambda: values(conn) == WORDS, timeout=120, what="all are combined")
        add(conn, {"w1": 1})
        eventually(lambda: values(conn) == WORDS | {"w1": 2}, what="later updates, too")
        eventually(lambda: one(conn, "select count(*) from pgcombine.failure") == 0, what="the failure is forgotten")
    assert "canceling statement due to statement timeout" in caplog.text
    assert one(conn, "select count(*) from pgcombine.quarantine") == 0


def test_drain_goes_on_in_slices(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=2, quarantine_after=1)
    slow_when(conn, "count(*) > 20")
    add(conn, WORDS)
    totals = drain(dsn, "wc", statement_timeout=0.4)
    assert values(conn) == WORDS
    assert totals.updates == 100
    assert one(conn, "select count(*) from pgcombine.failure") == 0


@pytest.mark.slow
def test_a_key_that_takes_too_long_by_itself_holds_up_no_others(
    conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    """It stays pending, and isn't quarantined: a timeout is no proof."""
    make_queue(conn, buckets=1, quarantine_after=1)
    slow_when(conn, "bool_or(word = 'slow')")
    add(conn, WORDS | {"slow": 1})
    with pytest.raises(PassError, match="statement timeout"):
        drain(dsn, "wc", statement_timeout=0.4)
    assert values(conn) == WORDS
    assert one(conn, "select pgcombine.backlog('wc')") == 1
    assert one(conn, "select count(*) from pgcombine.quarantine") == 0
    assert one(conn, "select sqlstate from pgcombine.failure") == "57014"
    assert caplog.text.count("pass.failed") == 6  # of all keys, of four ever smaller slices, of the smallest again
    conn.execute("select pgcombine.drop_observer('wc', 'slow')")
    drain(dsn, "wc")
    assert values(conn) == WORDS | {"slow": 1}
    assert one(conn, "select count(*) from pgcombine.failure") == 0


def test_workers_share_what_took_too_long(conn: psycopg.Connection) -> None:
    """The next pass takes a part of it, whoever runs it; when each part had its turn, it is forgotten."""
    make_queue(conn, buckets=1)
    add(conn, WORDS)
    assert cancelled(conn, None, None)
    with conn.transaction(force_rollback=True):
        mask, part = planned(conn)
    assert mask == 7
    assert cancelled(conn, mask, part)
    finest = [planned(conn) for _ in range(8)]
    assert {mask for mask, _ in finest} == {63}
    assert {number & 7 for _, number in finest} == {part}
    taken = combine_all(conn)
    assert len(taken) <= 15  # 8 slices of 64 and 7 of 8
    assert [more for *_, more in taken] == [True] * (len(taken) - 1) + [False]
    assert values(conn) == WORDS
    assert one(conn, "select count(*) from pgcombine.failure") == 0


def test_what_cant_be_cut_any_more_is_tried_last(conn: psycopg.Connection) -> None:
    make_queue(conn, buckets=1, delete_when=None)
    add(conn, WORDS)
    tried: tuple[int | None, int | None] = (None, None)
    while tried[0] != 4095:
        assert cancelled(conn, *tried)
        tried = planned(conn)
    assert cancelled(conn, *tried)
    while one(conn, "select pgcombine.backlog('wc')") > 1:
        assert planned(conn) != tried
        conn.execute("select * from pgcombine.combine('wc', 0)")
    assert planned(conn) == tried
    assert not cancelled(conn, *tried)  # nothing smaller is left
    assert len(values(conn)) == 99
    add(conn, WORDS)
    combine_all(conn)
    assert sum(values(conn).values()) == 200
    assert one(conn, "select count(*) from pgcombine.failure") == 0


def test_where_nothing_passes_it_isnt_the_size(conn: psycopg.Connection) -> None:
    """Three of the smallest slices: then all keys are tried again."""
    make_queue(conn, buckets=1)
    add(conn, WORDS)
    tried: tuple[int | None, int | None] = (None, None)
    times = 1
    while cancelled(conn, *tried):
        tried = planned(conn)
        times += 1
    assert times <= 13  # each of the three is cut out of a larger one
    assert planned(conn) == (None, None)


@pytest.mark.slow
def test_a_poison_key_among_what_takes_too_long(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=1, quarantine_after=1)
    slow_when(conn, "count(*) > 20")
    add(conn, WORDS)
    add(conn, [("bad", 2**63 - 1), ("bad", 1)])
    with workers(dsn, "wc", poll=0.05, statement_timeout=1):
        eventually(lambda: values(conn) == WORDS, timeout=120, what="all but one are combined")
        eventually(lambda: one(conn, "select count(*) from pgcombine.quarantine") == 1)
