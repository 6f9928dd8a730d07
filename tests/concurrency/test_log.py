"""The log while passes run: transactions of any length, and segments that are used in turn.

Each segment takes the updates of a round, which is a range of transaction ids. In most of these tests, a round has only
16 ids, so that a few dozen transactions use all segments.
"""

from __future__ import annotations

import psycopg
import pytest
from support.queues import add, combine_all, current, make_queue, one, rows, values, word_in

LEVELS = [psycopg.IsolationLevel.READ_COMMITTED, psycopg.IsolationLevel.REPEATABLE_READ]
ROUND = 16


def make_log(conn: psycopg.Connection, queue: str = "wc", **options: object) -> None:
    """Create a queue whose rounds have 16 transaction ids, with one bucket by default."""
    conn.execute("alter table pgcombine.queue alter column segment_bits set default 4")
    make_queue(conn, queue, **{"buckets": 1, **options})


def burn(conn: psycopg.Connection, ids: int) -> None:
    """Use up transaction ids."""
    for _ in range(ids):
        conn.execute("select txid_current()")


def taken(conn: psycopg.Connection) -> int:
    """Run a pass and return the number of updates that it takes."""
    return one(conn, "select updates from pgcombine.combine('wc', 0)")


@pytest.fixture
def passer(dsn: str, level: psycopg.IsolationLevel) -> psycopg.Connection:
    """An autocommit connection with the isolation level ``level``."""
    options = f"-c default_transaction_isolation={level.name.lower().replace('_', chr(92) + ' ')}"
    return psycopg.connect(dsn, autocommit=True, options=options)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("every", [1, 7, 45])
def test_passes_combine_any_number_of_rounds(conn: psycopg.Connection, passer: psycopg.Connection, every: int) -> None:
    """A pass takes the updates of one transaction id, of a part of a round, or of several rounds."""
    make_log(conn)
    with passer:
        for i in range(1, 2 * 45 + 1):
            add(conn, {"a": 1, f"w{i}": 1})
            if i % every == 0:
                assert taken(passer) == 2 * every
                assert values(conn)["a"] == i
        combine_all(passer)
    segments = {name for (name,) in conn.execute("select distinct tableoid::regclass::text from pgcombine.wc_updates")}
    assert len(segments) == 4
    assert rows(conn, "wc_pending") == []
    assert current(conn) == values(conn)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("rounds", [0, 1, 2, 5])
def test_long_transaction_is_combined_once(
    conn: psycopg.Connection, dsn: str, passer: psycopg.Connection, rounds: int
) -> None:
    """Passes combine later updates while a transaction is open. After its commit, a pass takes all of its updates."""
    make_log(conn)
    with passer, psycopg.connect(dsn) as writer:
        add(writer, {"a": 1, "only": 1})
        for i in range(3):
            burn(conn, rounds * ROUND // 3)
            add(conn, {"a": 10})
            assert taken(passer) == 1
            add(writer, {"a": 100})
            assert current(conn) == values(conn) == {"a": 10 * (i + 1)}
        writer.commit()
        assert len(rows(conn, "wc_pending")) == 5
        assert current(conn) == {"a": 331, "only": 1}
        add(conn, {"a": 1000})
        assert taken(passer) == 6
        assert taken(passer) == 0
    assert values(conn) == current(conn) == {"a": 1331, "only": 1}


@pytest.mark.parametrize("level", LEVELS)
def test_a_transactions_own_updates_stay_pending(conn: psycopg.Connection, passer: psycopg.Connection) -> None:
    """A pass doesn't take updates of its own transaction. In this transaction, wc_current and backlog include them."""
    make_log(conn)
    with passer, passer.transaction():
        add(passer, {"a": 1})
        assert combine_all(passer) == []
        assert taken(passer) == 0
        assert current(passer) == {"a": 1}
        assert one(passer, "select pgcombine.backlog('wc')") == 1
    assert combine_all(conn) == [(0, 1, 1, 1, False)]
    assert values(conn) == {"a": 1}


def test_a_reader_with_a_snapshot_sees_the_same_before_and_after_passes(conn: psycopg.Connection, dsn: str) -> None:
    make_log(conn, buckets=2)
    for i in range(20):
        add(conn, {f"w{i % 3}": i})
    with psycopg.connect(dsn) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        before = current(reader), sorted(rows(reader, "wc_pending")), values(reader)
        combine_all(conn)
        for i in range(3 * ROUND):
            add(conn, {f"w{i % 3}": i})
        combine_all(conn)
        assert (current(reader), sorted(rows(reader, "wc_pending")), values(reader)) == before


@pytest.mark.parametrize("level", LEVELS)
def test_updates_with_the_ids_of_other_transactions_are_refused(passer: psycopg.Connection) -> None:
    """Rows copied from a log with their ids are refused, because the marks of passes may show these ids as combined."""
    with passer:
        make_log(passer)
        make_log(passer, "other")
        add(passer, {"a": 1}, "other")
        passer.execute("create table public.copied as select * from pgcombine.wc_updates with no data")
        passer.execute("insert into public.copied select * from pgcombine.other_updates")
        for wrong in (
            "insert into pgcombine.wc_updates select * from pgcombine.other_updates",
            "insert into pgcombine.wc_updates select * from public.copied",
            "insert into pgcombine.other_updates select * from pgcombine.other_updates",
            "insert into pgcombine.wc_updates (word, n, pgcombine_tx) select 'a', 1, txid_current() + 1",
            "insert into pgcombine.wc_updates (word, n, pgcombine_tx) values ('a', 1, 3)",
        ):
            with pytest.raises(psycopg.errors.CheckViolation):
                passer.execute(wrong)
        with (
            pytest.raises(psycopg.errors.CheckViolation),
            passer.cursor().copy("copy pgcombine.wc_updates (word, n, pgcombine_tx) from stdin") as copy,
        ):
            copy.write_row(("a", 1, 3))
        passer.execute("insert into pgcombine.wc_updates (word, n) select word, n from pgcombine.other_updates")
        passer.execute("insert into pgcombine.wc_updates (word, n, pgcombine_tx) values ('a', 1, txid_current())")
        combine_all(passer)
        assert values(passer) == {"a": 2}


def test_segment_refuses_ids_of_other_rounds(conn: psycopg.Connection) -> None:
    make_log(conn)
    add(conn, {"a": 1})
    written = one(conn, "select tableoid::regclass::text from pgcombine.wc_updates")
    while one(conn, "select txid_current() >> 4 & 3") == int(written[-1]):
        pass
    with pytest.raises(psycopg.errors.CheckViolation):
        conn.execute(f"insert into {written} (word, n) values ('a', 1)")  # noqa: S608


@pytest.mark.parametrize(("before", "after"), [(2, 1), (1, 2)])
def test_session_finds_pending_updates_after_a_rebucket(
    conn: psycopg.Connection, dsn: str, before: int, after: int
) -> None:
    """A session that has cached the tables from before a rebucket finds pending updates in the new tables."""
    make_queue(conn, buckets=before)
    looks = (
        "select array(select unnest(l.tables) "
        "from generate_series(1, 0, -1) b, pgcombine_internal.bucket_log('wc', b) l)"
    )
    with psycopg.connect(dsn) as session:
        assert one(session, looks) == []
        session.execute("select to_regclass('pgcombine.wc_updates_b0001_s0')")
        conn.execute("select pgcombine.rebucket('wc', %s)", (after,))
        words = [word_in(conn, bucket) for bucket in range(after)]
        add(conn, dict.fromkeys(words, 1))
        held = {table for (table,) in conn.execute("select tableoid::regclass::text from pgcombine.wc_updates")}
        assert len(held) == after
        assert held <= set(one(session, looks))


@pytest.mark.parametrize(
    "how",
    [
        "reclaim_segment('wc', %(relation)s, 0, %(last)s, %(seen)s, 9223372036854775807)",
        "delete_consumed('wc', %(relation)s, 0)",
    ],
)
def test_tables_that_were_exchanged_are_not_reclaimed(conn: psycopg.Connection, how: str) -> None:
    """A segment that was found combined isn't reclaimed after a rebucket has put another table in its place."""
    conn.execute("alter table pgcombine.queue alter column segment_bits set default 4")
    make_queue(conn, buckets=2)
    first, second = word_in(conn, 0), word_in(conn, 1)
    conn.execute("do $$ begin while txid_current() % 16 <> 15 loop commit; end loop; end $$")
    add(conn, {first: 1, second: 1})
    conn.execute("do $$ begin while txid_current() % 16 <> 15 loop commit; end loop; end $$")
    add(conn, {first: 1})
    conn.execute("select pgcombine.combine('wc', 0)")
    seen = one(conn, "select txid_current_snapshot()::text")
    found = conn.execute(
        "select relation, last from pgcombine_internal.consumed_segments('wc', %s, 9223372036854775807)", (seen,)
    ).fetchall()
    assert [relation for relation, _ in found] == [found[0][0]]
    conn.execute("select pgcombine.rebucket('wc', 1)")
    conn.execute("analyze pgcombine.wc_updates")
    conn.execute(f"select pgcombine_internal.{how}", {"relation": found[0][0], "last": found[0][1], "seen": seen})
    assert one(conn, "select pgcombine.backlog('wc')") == 1
    combine_all(conn)
    assert values(conn) == {first: 2, second: 1}


def test_snapshot_older_than_the_journal_is_refused(conn: psycopg.Connection, dsn: str) -> None:
    """The journal no longer has the passes since a pass's snapshot. So the pass fails and counts no update twice."""
    make_log(conn)
    claim = one(conn, "select pg_get_functiondef('pgcombine_internal.claim_bucket'::regproc)")
    assert "interval '1 hour'" in claim
    conn.execute(claim.replace("interval '1 hour'", "interval '0.5 s'"))
    add(conn, {"a": 1})
    with psycopg.connect(dsn) as late:
        late.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        assert one(late, "select pgcombine.backlog('wc')") == 1
        combine_all(conn)
        add(conn, {"a": -1})
        combine_all(conn)  # the key is deleted, so the late pass meets no conflict on its row
        for _ in range(2):
            add(conn, {"b": 1})
            combine_all(conn)
        conn.execute("update pgcombine.pass set ended = ended - interval '1 hour'")
        assert one(conn, "select pgcombine_internal.trim_journal()") > 1
        conn.execute("select pg_sleep(0.5)")
        with pytest.raises(psycopg.errors.SerializationFailure) as caught:
            late.execute("select pgcombine.combine('wc', 0)")
        assert caught.value.diag.message_hint == "begin a new transaction"
    assert values(conn) == {"b": 2}


def test_update_of_a_rebuckets_own_transaction_is_kept(conn: psycopg.Connection) -> None:
    """Also if the transaction's id begins a round, and no later id has ended: then its snapshot ends before the id."""
    make_log(conn)
    kept = 0
    for number in range(50):
        conn.execute("do $$ begin while txid_current() % 16 <> 15 loop commit; end loop; end $$")
        with conn.transaction():
            add(conn, {"a": 1})
            kept += one(conn, "select txid_current() >= txid_snapshot_xmax(txid_current_snapshot())")
            conn.execute("select pgcombine.rebucket('wc', %s)", (2 - number % 2,))
        combine_all(conn)
        assert values(conn) == {"a": number + 1}
        if kept == 3:
            break
