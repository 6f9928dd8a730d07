"""Passes that remove expired keys, beside sessions that change the condition or rebucket the queue."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import errors
from support.queues import make_queue, one, rows, values, write_values
from support.sessions import in_background, waits
from support.wait import eventually

from pgcombine.worker.passes import open_connection, run_pass

ADD = "select pgcombine.add_observer('wc', %s, 'insert into history select word from changes')"


def queue_with_history(conn: psycopg.Connection, **options: object) -> None:
    make_queue(conn, delete_when=None, buckets=1, **options)
    conn.execute("create table history (word text)")


def test_new_condition_applies_at_once_after_a_concurrent_pass(dsn: str, conn: psycopg.Connection) -> None:
    queue_with_history(conn, expire_when="n <= 0", expire_every="1 h")
    write_values(conn, "insert into pgcombine.wc_values values ('a', 0), ('b', 1)")
    with open_connection(dsn) as late:
        late.execute("begin isolation level repeatable read")
        late.execute("select from pgcombine.wc_values")  # the transaction's snapshot is taken here
        conn.execute("select pgcombine.set_expiry('wc', 'n <= 1')")
        with pytest.raises(errors.SerializationFailure):
            late.execute("select pgcombine_internal.run_pass('wc', 0, from_page => 0)")
        late.execute("rollback")
        done = run_pass(late, "wc", 0)
        assert done
        assert (done.expired, done.unfinished) == (2, False)
    assert values(conn) == {}


@pytest.mark.parametrize("expire_when", ["n <= 1", None])
def test_expire_fails_if_the_condition_changes_meanwhile(
    dsn: str, conn: psycopg.Connection, expire_when: str | None
) -> None:
    queue_with_history(conn, expire_when="n <= 0", expire_every="1 h")
    conn.execute(ADD, ("history",))
    write_values(conn, "insert into pgcombine.wc_values values ('a', 0), ('b', 1)")

    def call() -> None:
        with pytest.raises(errors.SerializationFailure, match="changed during the pass"):
            second.execute("call pgcombine.expire('wc')")

    with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second:
        first.execute("lock table history in exclusive mode")
        with in_background(call):
            waits(conn, second.info.backend_pid)
            conn.execute("select pgcombine.set_expiry('wc', %s)", (expire_when,))
            first.commit()
    assert values(conn) == {"a": 0, "b": 1}
    assert one(conn, "call pgcombine.expire('wc')") == (2 if expire_when else 0)


def test_expire_finds_keys_in_buckets_added_meanwhile(dsn: str, conn: psycopg.Connection) -> None:
    make_queue(conn, delete_when=None, buckets=2)
    write_values(conn, "insert into pgcombine.wc_values select g::text, 0 from generate_series(1, 1000) g")
    conn.execute("select pgcombine.set_expiry('wc', 'n <= 0')")
    with psycopg.connect(dsn) as first, psycopg.connect(dsn, autocommit=True) as second:
        first.execute("select pgcombine_internal.claim_bucket('wc', 1)")
        with in_background(lambda: one(second, "call pgcombine.expire('wc')")) as called:
            eventually(lambda: one(conn, "select count(*) from pgcombine.wc_values_b0000") == 0)
            first.execute("select pgcombine.rebucket('wc', 8)")
            first.commit()
        assert called[0].result() == 1000
    assert rows(conn, "wc_values") == []
