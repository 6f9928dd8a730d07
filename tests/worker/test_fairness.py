"""A bucket or a queue with many updates doesn't delay the others."""

from __future__ import annotations

import psycopg
import pytest
from support.queues import add, make_queue, one, word_in
from support.sessions import workers
from support.wait import eventually

from pgcombine.worker.totals import Pass


@pytest.mark.parametrize("where", ["another bucket", "another queue"])
def test_hot_bucket_does_not_delay_others(conn: psycopg.Connection, dsn: str, where: str) -> None:
    make_queue(conn, buckets=2, pass_limit=20, delete_when=None)
    make_queue(conn, "cold", buckets=1)
    conn.execute(
        "insert into pgcombine.wc_updates "
        "select word, 1 from (select 'w' || i as word from generate_series(1, 200000) i) w "
        "where satisfies_hash_partition('pgcombine.wc_values'::regclass, 2, 0, word)"
    )
    cold_word = word_in(conn, 1)
    done: list[Pass] = []
    turns = []
    with workers(dsn, poll=0.1, on_pass=done.append):
        for n in range(1, 6):
            before = len(done)
            if where == "another queue":
                add(conn, {"a": 1}, "cold")
                combined = "select coalesce(max(n), 0) from pgcombine.cold_values"
            else:
                add(conn, {cold_word: 1})
                combined = "select coalesce(max(n), 0) from pgcombine.wc_values_b0001"
            eventually(lambda n=n, combined=combined: one(conn, combined) == n, what="the other bucket is combined")
            between = done[before:]
            turns.append(sum((one_pass.queue, one_pass.bucket) == ("wc", 0) for one_pass in between))
        assert one(conn, "select pgcombine.backlog('wc')") > 0, "the backlog was too small for the test"
    # the bound allows for passes that end before this test sees the result
    assert sorted(turns)[2] <= 10, turns
