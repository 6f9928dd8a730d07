"""``reclaim`` removes combined updates from the log.

A segment takes the updates of a round, which is a range of transaction ids, and later those of another round.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb
from support.queues import add, combine_all, current, make_queue, one, values
from support.sessions import workers
from support.states import raises_state
from support.wait import eventually

SOME = "insert into pgcombine.wc_updates select 'w' || i %% 9, 1 from generate_series(1, %s) i"
MANY = 200_000  # a segment with so many updates is truncated before its round ends
SEVERAL = 5000  # with so many updates in a segment, reclaim deletes the combined ones if it can't truncate

ROUND = 128
RING = 4  # number of segments that are used in turn


@pytest.fixture
def short(conn: psycopg.Connection) -> psycopg.Connection:
    """A connection to a database where new queues have rounds of 128 transaction ids."""
    conn.execute("alter table pgcombine.queue alter segment_bits set default 7")
    return conn


@pytest.fixture
def queue(short: psycopg.Connection) -> psycopg.Connection:
    """A connection to a database with the queue wc, which has one bucket, short rounds and 10 combined updates."""
    conn = short
    make_queue(conn, buckets=1)
    next_round(conn)
    conn.execute(SOME, (10,))
    combine_all(conn)
    return conn


def next_round(conn: psycopg.Connection) -> None:
    """Use up transaction ids until the round ends."""
    conn.execute(f"do $$ begin while txid_current() % {ROUND} <> {ROUND - 1} loop commit; end loop; end $$")


def sizes(conn: psycopg.Connection) -> int:
    """The size of all segments in bytes."""
    return one(conn, "select sum(pg_relation_size(relid)) from pg_partition_tree('pgcombine.wc_updates') where isleaf")


def consume(conn: psycopg.Connection) -> None:
    """End the round, and run a pass whose mark is in the next round."""
    next_round(conn)
    add(conn, {"w0": 1})
    combine_all(conn)


def reclaim(conn: psycopg.Connection) -> None:
    conn.execute("call pgcombine.reclaim('wc')")


def reclaim_all(conn: psycopg.Connection) -> None:
    """Reclaim each segment after its round. One update of the current round is left."""
    for _ in range(RING):
        consume(conn)
        reclaim(conn)
    assert rows(conn) == 1


def rows(conn: psycopg.Connection) -> int:
    return one(conn, "select count(*) from pgcombine.wc_updates")


def hide(conn: psycopg.Connection, worker: psycopg.Connection) -> None:
    """Make the worker's role, which can't see the snapshots of other roles, the owner of ``oldest_snapshot_for``."""
    (name,) = worker.execute("select current_user").fetchone() or ()
    conn.execute(
        sql.SQL("alter function pgcombine_internal.oldest_snapshot_for owner to {}").format(sql.Identifier(name))
    )
    conn.execute(sql.SQL("grant usage, create on schema pgcombine to {}").format(sql.Identifier(name)))


def test_segment_is_truncated_after_its_round_is_combined(queue: psycopg.Connection) -> None:
    reclaim(queue)
    assert rows(queue) == 10
    consume(queue)
    assert rows(queue) == 11
    reclaim(queue)
    assert rows(queue) == 1
    add(queue, {"w0": 1})
    assert current(queue)["w0"] == values(queue)["w0"] + 1


def test_pending_updates_stay(queue: psycopg.Connection) -> None:
    add(queue, {"new": 1})
    for _ in range(RING):
        next_round(queue)
        reclaim(queue)
    assert one(queue, "select pgcombine.backlog('wc')") == 1
    combine_all(queue)
    assert values(queue)["new"] == 1


def test_old_snapshot_keeps_segments(queue: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        add(queue, {"w0": 5, "late": 1})
        reader.execute("select 1")  # the reader has a snapshot, but no lock on a table
        expected = current(queue)
        for n in range(1, 6):
            consume(queue)
            with psycopg.connect(dsn) as younger:
                younger.execute("select 1")
                reclaim(queue)
            assert rows(queue) == 12 + n
        assert current(reader) == expected
    reclaim(queue)
    assert rows(queue) < 17
    assert current(queue) == values(queue) == expected | {"w0": expected["w0"] + 5}


def test_reclaim_does_not_wait_for_writers(queue: psycopg.Connection, dsn: str) -> None:
    """reclaim skips a segment that an open transaction has written to, instead of waiting."""
    with psycopg.connect(dsn) as writer:
        add(writer, {"w0": 1})
        consume(queue)
        before = rows(queue)
        reclaim(queue)
        assert rows(queue) == before
        writer.commit()
    combine_all(queue)
    reclaim_all(queue)
    assert values(queue)["w0"] == 1 + 1 + 1 + RING


def test_reclaim_skips_a_table_in_use(queue: psycopg.Connection, dsn: str) -> None:
    consume(queue)
    with psycopg.connect(dsn) as reader:
        assert reader.execute("select count(*) from pgcombine.wc_updates").fetchone() == (11,)
        reclaim(queue)
        assert rows(queue) == 11
    reclaim(queue)
    assert rows(queue) == 1


def test_a_prepared_transaction_keeps_its_updates(queue: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as writer:
        add(writer, {"w0": 1})
        writer.execute("prepare transaction 'reclaimed'")
    for _ in range(3):
        consume(queue)
        reclaim(queue)
    queue.execute("commit prepared 'reclaimed'")
    combine_all(queue)
    reclaim_all(queue)
    assert values(queue)["w0"] == 1 + 1 + 3 + RING


def test_large_segment_is_truncated_before_its_round_ends(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=2, buckets_per_partition=2)
    conn.execute(SOME, (MANY,))
    reclaim(conn)
    assert rows(conn) == MANY, "reclaim removed pending updates"
    combine_all(conn)
    add(conn, {"last": 1})
    reclaim(conn)
    assert rows(conn) == MANY + 1, "reclaim removed a pending update"
    combine_all(conn)
    with psycopg.connect(dsn) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("select")
        conn.execute("insert into pgcombine.wc_updates values ('after', 1)")
        combine_all(conn)
        reclaim(conn)
        assert rows(conn) == MANY + 2, "reclaim removed updates that a snapshot needs"
    reclaim(conn)
    assert (rows(conn), sizes(conn)) == (0, 0)
    assert sum(values(conn).values()) == MANY + 2


def test_segment_of_an_idle_bucket_is_truncated(short: psycopg.Connection) -> None:
    """After other transactions end the round, reclaim truncates an idle bucket's large segment without a pass."""
    make_queue(short, buckets=1)
    short.execute(SOME, (MANY,))
    combine_all(short)
    next_round(short)
    next_round(short)
    reclaim(short)
    assert rows(short) == 0


def test_passes_over_hash_ranges_lose_no_update(short: psycopg.Connection) -> None:
    conn = short
    make_queue(conn, buckets=1, pass_limit=20)
    total = 0
    for number in range(60):
        add(conn, [(f"w{number}.{i}", 1) for i in range(10)])
        total += 10
        if number % 3 == 0:
            conn.execute("select pgcombine.combine('wc', 0)")
        reclaim(conn)
        assert len(current(conn)) == total
    combine_all(conn)
    reclaim_all(conn)
    assert len(values(conn)) == total + 1


def test_reclaim_is_refused_in_a_transaction(queue: psycopg.Connection) -> None:
    with raises_state("PC003"), queue.transaction():
        reclaim(queue)


class TestRoles:
    """Reclaiming by roles that aren't superusers."""

    @pytest.fixture
    def worker(self, queue: psycopg.Connection, dsn: str) -> Iterator[psycopg.Connection]:
        name = f"{queue.info.dbname}_worker"
        queue.execute(sql.SQL("create role {}").format(sql.Identifier(name)))
        queue.execute("select pgcombine.grant_right('work', %s)", (name,))
        try:
            with psycopg.connect(dsn, autocommit=True, options=f"-c role={name}") as worker:
                yield worker
        finally:
            queue.execute(sql.SQL("drop owned by {0}; drop role {0}").format(sql.Identifier(name)))

    def test_worker_truncates_if_the_owner_sees_snapshots(
        self, queue: psycopg.Connection, worker: psycopg.Connection
    ) -> None:
        consume(queue)
        reclaim(worker)
        assert rows(queue) == 1

    def test_nothing_is_truncated_where_snapshots_are_hidden(
        self, queue: psycopg.Connection, worker: psycopg.Connection, dsn: str
    ) -> None:
        """reclaim deletes combined rows instead of truncating. A session with an older snapshot still sees them."""
        hide(queue, worker)
        queue.execute(SOME, (SEVERAL,))
        combine_all(queue)
        with psycopg.connect(dsn) as reader:
            reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
            add(queue, {"w0": 5})
            expected = current(reader)
            combine_all(queue)
            add(queue, {"new": 1})
            assert one(worker, "select pgcombine_internal.oldest_snapshot()") is None
            size = sizes(queue)
            reclaim(worker)
            assert (rows(queue), sizes(queue)) == (1, size), "the table must keep its size and the pending update"
            assert current(reader) == expected
        combine_all(queue)
        assert current(queue) == values(queue) == expected | {"new": 1}

    @pytest.mark.parametrize("buckets", [{"buckets": 4}, {"buckets": 4, "buckets_per_partition": 4}, {"buckets": 1}])
    def test_only_combined_updates_are_deleted(
        self, short: psycopg.Connection, worker: psycopg.Connection, buckets: dict[str, int]
    ) -> None:
        """Between passes over single buckets or hash ranges, reclaim deletes only combined updates."""
        hide(short, worker)
        make_queue(short, "other", **buckets, pass_limit=2000)
        short.execute(sql.SQL("select pgcombine.grant_right('work', {})").format(worker.info.dbname + "_worker"))
        fill = SOME.replace("wc_updates", "other_updates").replace("i %% 9", "i")
        last = 0
        for number in range(8):
            short.execute(fill, (SEVERAL,))
            last += SEVERAL
            short.execute("select pgcombine.combine('other', %s)", (number % buckets["buckets"],))
            worker.execute("call pgcombine.reclaim('other')")
            assert sum(current(short, "other").values()) == last
        combine_all(short, "other")
        for _ in range(3):  # a call skips a segment that another session has locked
            worker.execute("call pgcombine.reclaim('other')")
        assert one(short, "select count(*) from pgcombine.other_updates") == 0
        assert sum(values(short, "other").values()) == last

    def test_reclaim_needs_the_right_to_work(self, queue: psycopg.Connection, worker: psycopg.Connection) -> None:
        worker.execute("call pgcombine.reclaim()")
        queue.execute("select pgcombine.revoke_right('work', %s)", (worker.info.dbname + "_worker",))
        for call in ("call pgcombine.reclaim('wc')", "call pgcombine.reclaim()"):
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                worker.execute(call.encode())


def test_the_journal_is_trimmed(queue: psycopg.Connection) -> None:
    """``trim_journal`` deletes old passes, but keeps those whose marks are still needed."""
    for n in range(5):
        add(queue, {"w0": n})
        combine_all(queue)
    age = "update pgcombine.pass set ended = ended - interval '1 hour'"
    trim = "select pgcombine_internal.trim_journal('wc')"
    kept = "select array_agg(pass order by pass) from pgcombine.pass"
    last = one(queue, "select max(pass) from pgcombine.pass")
    assert one(queue, trim) == 0
    add(queue, [(f"w{i}", 1) for i in range(10)])
    queue.execute("select pgcombine_internal.run_pass('wc', 0, range_mask => 1, hash_range => 0)")
    queue.execute(age)
    assert one(queue, trim) == last
    assert one(queue, kept) == [last, last + 1]
    pending = one(queue, "select pgcombine.backlog('wc')")
    assert 0 < pending < 10
    queue.execute("select pgcombine_internal.run_pass('wc', 0, range_mask => 1, hash_range => 1)")
    assert one(queue, "select pgcombine.backlog('wc')") == 0
    add(queue, {"w0": 1})
    combine_all(queue)
    queue.execute(age)
    assert one(queue, trim) == 3
    assert len(one(queue, kept)) == 1


def test_the_journal_of_many_hash_ranges_is_trimmed(queue: psycopg.Connection) -> None:
    """A call deletes at most 10,000 passes of a bucket."""
    add(queue, {"w0": 1})
    combine_all(queue)
    first = one(queue, "select max(pass) from pgcombine.pass")
    queue.execute(
        "insert into pgcombine.pass (queue, bucket, pass, mark, range_mask, hash_range, began, ended, updates, keys,"
        " changes) select p.queue, p.bucket, p.pass + i, p.mark, 1, i & 1, p.began, p.ended, 0, 0, 0"
        " from pgcombine.pass p, generate_series(1, 20000) i where p.pass = %s",
        (first,),
    )
    add(queue, {"w0": 1})
    combine_all(queue)
    queue.execute("update pgcombine.pass set ended = ended - interval '1 hour'")
    deleted = [one(queue, "select pgcombine_internal.trim_journal('wc')") for _ in range(5)]
    assert deleted == [first, 10_000, 10_000, 1, 0]
    assert one(queue, "select array_agg(pass) from pgcombine.pass") == [first + 20_001]
    assert one(queue, "select pgcombine.backlog('wc')") == 0


@pytest.mark.wc
def test_a_worker_deletes_old_tokens(conn: psycopg.Connection, dsn: str) -> None:
    tokens = (
        "insert into pgcombine.token (queue, role, token, at)"
        " select 'wc', '', i::text, now() - interval '15 days' from generate_series(1, 25000) i"
    )
    conn.execute(tokens)
    conn.execute("select pgcombine.enqueue_once('wc', 'new', %s)", (Jsonb({"word": "a", "n": 1}),))
    with workers(dsn, "wc", poll=0.05):
        eventually(lambda: one(conn, "select count(*) from pgcombine.token") == 1, what="old tokens are deleted")
    assert one(conn, "select token from pgcombine.token") == "new"


def test_segments_are_reclaimed_while_a_session_writes(conn: psycopg.Connection, dsn: str) -> None:
    """At the start of each round, the session writes until the next round's segment is empty."""
    conn.execute("alter table pgcombine.queue alter segment_bits set default 10")
    make_queue(conn)
    ids = "select txid_snapshot_xmax(txid_current_snapshot()) >> 10"
    held = "select exists (select from pgcombine.wc_updates u where u.tableoid::regclass::text ~ %s)"
    with workers(dsn, "wc", poll=0.05), psycopg.connect(dsn, autocommit=True) as writer:

        def is_free(segment: int) -> bool:
            writer.execute(SOME, (5,))
            return not one(conn, held, f"_s{segment}$")

        last = one(conn, ids)
        for number in range(last + 1, last + 2 * RING):
            while one(conn, ids) < number:
                for _ in range(50):
                    writer.execute(SOME, (5,))
            eventually(lambda: is_free((number + 1) % RING), what="the next segment is empty")  # noqa: B023


@pytest.mark.wc
def test_single_updates_truncate_nothing(conn: psycopg.Connection, dsn: str) -> None:
    """Truncating changes the catalog, so a worker doesn't truncate a segment with few updates during its round."""
    files = "select array_agg(pg_relation_filenode(relid)) from pg_partition_tree('pgcombine.wc_updates') where isleaf"
    before = one(conn, files)
    with workers(dsn, "wc", poll=0.05):
        for number in range(5):
            add(conn, {"a": 1})
            eventually(lambda: values(conn) == {"a": number + 1}, what="the updates are combined")  # noqa: B023
            time.sleep(0.6)
    assert one(conn, files) == before
