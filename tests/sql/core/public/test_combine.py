"""pgcombine.combine: the values that a pass writes, the bucket that it chooses, and the row that it returns."""

from __future__ import annotations

import datetime
import decimal
import uuid

import psycopg
import pytest
from support.queues import (
    add,
    bucket_of,
    combine_all,
    current,
    enqueue,
    make_queue,
    one,
    rows,
    values,
    word_in,
)
from support.states import raises_state
from support.tiers import each_nth


def combine(conn: psycopg.Connection, bucket: int | None = 0, queue: str = "wc") -> list[tuple[object, ...]]:
    statement = "select bucket, updates, keys, changes, more from pgcombine.combine(%s, bucket => %s)"
    return conn.execute(statement, (queue, bucket)).fetchall()


@pytest.mark.wc(buckets=1)
def test_passes_combine_four_transactions(conn: psycopg.Connection) -> None:
    add(conn, {"fluo": 1})
    add(conn, {"fluo": 1})
    assert combine(conn) == [(0, 2, 1, 1, False)]
    assert values(conn) == {"fluo": 2}
    add(conn, {"fluo": 2})
    add(conn, {"fluo": -1})
    assert combine(conn) == [(0, 2, 1, 1, False)]
    assert values(conn) == {"fluo": 3}
    assert combine(conn) == [(0, 0, 0, 0, False)]
    assert rows(conn, "wc_pending") == []


@pytest.mark.wc(buckets=1)
def test_a_pass_without_updates_runs_no_observer(conn: psycopg.Connection) -> None:
    conn.execute("create table public.counts (changes bigint)")
    conn.execute(
        "select pgcombine.add_observer('wc', 'counts', 'insert into public.counts select count(*) from changes')"
    )
    assert combine(conn) == [(0, 0, 0, 0, False)]
    assert one(conn, "select count(*) from public.counts") == 0
    add(conn, {"a": 1})
    assert combine(conn) == [(0, 1, 1, 1, False)]
    assert one(conn, "select sum(changes) from public.counts") == 1


@pytest.mark.wc(buckets=1)
def test_updates_that_cancel_out_change_nothing(conn: psycopg.Connection) -> None:
    add(conn, [("absent", 1), ("absent", -1)])
    assert combine(conn) == [(0, 2, 1, 0, False)]
    assert values(conn) == {}
    add(conn, {"there": 5})
    combine(conn)
    before = one(conn, "select (ctid, xmin, cmin)::text from pgcombine.wc_values")
    add(conn, [("there", 3), ("there", -3), ("new", 1)])
    assert combine(conn) == [(0, 3, 2, 1, False)]
    assert one(conn, "select (ctid, xmin, cmin)::text from pgcombine.wc_values where word = 'there'") == before


@pytest.mark.wc(buckets=1)
def test_deleted_key_returns(conn: psycopg.Connection) -> None:
    for n, left, changes in ((3, {"a": 3}, 1), (-3, {}, 1), (0, {}, 0), (2, {"a": 2}, 1)):
        add(conn, {"a": n})
        assert combine(conn) == [(0, 1, 1, changes, False)]
        assert values(conn) == left


def test_zero_stays_without_delete_when(tx: psycopg.Connection) -> None:
    make_queue(tx, delete_when=None)
    add(tx, [("a", 1), ("a", -1), ("b", 2)])
    combine_all(tx)
    assert values(tx) == current(tx) == {"a": 0, "b": 2}


def test_delete_when_that_is_null_keeps_the_key(tx: psycopg.Connection) -> None:
    make_queue(tx, value=["top int max"], delete_when="top > 5")
    enqueue(tx, [{"word": "a"}, {"word": "b", "top": 6}, {"word": "c", "top": 5}])
    assert current(tx) == {"a": None, "c": 5}
    combine_all(tx)
    assert values(tx) == {"a": None, "c": 5}


@pytest.mark.wc
def test_two_updates_of_a_key_in_one_transaction_both_count(conn: psycopg.Connection) -> None:
    add(conn, {"a": 1})
    add(conn, {"a": 1})
    add(conn, [("a", 1), ("a", 1)])
    combine_all(conn)
    assert values(conn) == {"a": 4}


def test_pass_combines_several_key_and_value_columns(tx: psycopg.Connection) -> None:
    make_queue(
        tx,
        key=["word text", "day date"],
        value=["n bigint sum", "docs int count", "low int min", "high int max"],
        delete_when="n = 0 and docs = 0",
        buckets=3,
    )
    first, second = datetime.date(2024, 2, 29), datetime.date(2024, 3, 1)
    insert = "insert into pgcombine.wc_updates (word, day, n, docs, low, high) values (%s, %s, %s, %s, %s, %s)"
    tx.cursor().executemany(
        insert,
        [("a", first, 5, 1, 7, 7), ("a", first, 1, 2, 3, 9), ("a", second, 1, 1, 4, 4), ("b", first, 2, 1, 1, 1)],
    )
    expected = [("a", first, 6, 3, 3, 9), ("a", second, 1, 1, 4, 4), ("b", first, 2, 1, 1, 1)]
    assert rows(tx, "wc_current") == expected
    combine_all(tx)
    assert rows(tx, "wc_values") == rows(tx, "wc_current") == expected
    tx.cursor().executemany(insert, [("a", first, -6, 0, 8, 1), ("b", first, -2, -1, None, None)])
    expected = [("a", first, 0, 3, 3, 9), ("a", second, 1, 1, 4, 4)]
    assert rows(tx, "wc_current") == expected
    combine_all(tx)
    assert rows(tx, "wc_values") == expected


def test_null_updates_count_as_nothing(tx: psycopg.Connection) -> None:
    make_queue(tx, value=["s bigint sum", "c bigint count", "low int min", "high int max"], delete_when=None)
    for s, c, low, high in ((1, 1, 5, 5), (None, None, None, None), (2, 3, 2, 9)):
        enqueue(tx, [{"word": word, "s": s, "c": c, "low": low, "high": high} for word in ("in one pass", "each")])
        tx.execute("select pgcombine.combine('wc', b) from generate_series(0, 3) b")
    enqueue(tx, [{"word": "each", "s": None, "c": None}])
    assert [row[1:] for row in rows(tx, "wc_current")] == [(3, 4, 2, 9)] * 2
    combine_all(tx)
    assert [row[1:] for row in rows(tx, "wc_values")] == [(3, 4, 2, 9)] * 2


TYPES = {
    "text": ("a", "A"),
    "varchar(5)": ("12345", ""),
    "bigint": (1, -(2**63)),
    "smallint": (1, -1),
    "uuid": (uuid.UUID(int=1), uuid.UUID(int=2)),
    "date": (datetime.date(2024, 2, 29), datetime.date(1, 1, 1)),
    "timestamptz": (
        datetime.datetime(2024, 2, 29, 12, tzinfo=datetime.UTC),
        datetime.datetime(2024, 2, 29, 13, tzinfo=datetime.UTC),
    ),
    "bytea": (b"\x00\x01", b""),
    "numeric": (decimal.Decimal("1.5"), decimal.Decimal("1e30")),
    "boolean": (True, False),
    "interval": (datetime.timedelta(hours=1), datetime.timedelta(days=1)),
    "text[]": (["a", None], ["a"]),
    "double precision": (0.1, -1e300),
    "jsonb": ('{"a": [1, null]}', "[]"),
}


@pytest.mark.parametrize("key_type", each_nth(2, TYPES))
def test_pass_combines_keys_of_each_type(tx: psycopg.Connection, key_type: str) -> None:
    one_key, other = TYPES[key_type]
    make_queue(tx, key=[f"k {key_type}"], buckets=3)
    insert = "insert into pgcombine.wc_updates (k, n) values (%s::KEY, %s)".replace("KEY", key_type)
    for _ in range(2):
        tx.cursor().executemany(insert, [(one_key, 1), (other, 10), (one_key, 1)])
        combine_all(tx)
    found = "select n from pgcombine.wc_values where k = %s::KEY".replace("KEY", key_type)
    assert [one(tx, found, one_key), one(tx, found, other)] == [4, 20]
    assert one(tx, found.replace("wc_values", "wc_current"), one_key) == 4
    assert one(tx, "select count(*) from pgcombine.wc_values") == 2


def test_enum_may_be_a_key(tx: psycopg.Connection) -> None:
    tx.execute("create type public.mood as enum ('sad', 'happy')")
    make_queue(tx, key=["m mood"], value=["n bigint sum", "best mood max"], delete_when=None)
    enqueue(tx, [{"m": "happy", "n": 1, "best": "sad"}, {"m": "happy", "n": 1, "best": "happy"}, {"m": "sad", "n": 1}])
    combine_all(tx)
    assert {m: (n, best) for m, n, best in rows(tx, "wc_values")} == {"happy": (2, "happy"), "sad": (1, None)}


def test_equal_numerics_are_one_key(tx: psycopg.Connection) -> None:
    make_queue(tx, key=["k numeric"], buckets=8)
    for n in ("1", "1.0", "1.000", "1.01"):
        tx.execute("insert into pgcombine.wc_updates values (%s::numeric, 1)", (n,))
    assert current(tx) == {decimal.Decimal(1): 3, decimal.Decimal("1.01"): 1}
    combine_all(tx)
    tx.execute("insert into pgcombine.wc_updates values (1.0000, 1)")
    combine_all(tx)
    assert values(tx) == {decimal.Decimal(1): 4, decimal.Decimal("1.01"): 1}


@pytest.mark.parametrize(
    ("value_type", "updates", "combined"),
    each_nth(
        2,
        [
            ("smallint sum", ("30000", "-30000", "7"), "7"),
            ("integer sum", ("2147483647", "-1"), "2147483646"),
            ("numeric(12,2) sum", ("0.10", "0.20"), "0.30"),
            ("numeric sum", ("1e40", "1"), "10000000000000000000000000000000000000001"),
            ("interval sum", ("1 day", "2 hours"), "1 day 02:00:00"),
            ("double precision sum", ("0.5", "0.25"), "0.75"),
            ("money sum", ("1.50", "2"), None),
            ("numeric count", ("1", "2.5"), "3.5"),
            ("text max", ("a", "b"), "b"),
            ("text min", ("a", "b"), "a"),
            ("date max", ("2024-02-29", "2024-03-01"), "2024-03-01"),
            ("timestamp with time zone min", ("2024-02-29 00:00+00", "2024-02-28 00:00+00"), None),
            ("character varying(3) max", ("abc", "abd"), "abd"),
            ("double precision max", ("1", "NaN"), "NaN"),
            ("inet min", ("10.0.0.2", "10.0.0.1"), "10.0.0.1/32"),
        ],
    ),
)
def test_pass_combines_values_of_each_type(
    tx: psycopg.Connection, value_type: str, updates: tuple[str, ...], combined: str | None
) -> None:
    """The value must be the same if one pass combines all updates, and if each update has its own pass."""
    make_queue(tx, "once", value=[f"v {value_type}"], delete_when=None, buckets=1)
    make_queue(tx, "each", value=[f"v {value_type}"], delete_when=None, buckets=1)
    for update in updates:
        for queue in ("once", "each"):
            enqueue(tx, {"word": "a", "v": update}, queue)
        combine(tx, queue="each")
    combine(tx, queue="once")
    result = one(tx, "select v::text from pgcombine.once_values")
    assert one(tx, "select v::text from pgcombine.each_values") == result
    assert combined is None or result == combined


@pytest.mark.wc(buckets=2)
def test_combine_skips_a_busy_bucket(conn: psycopg.Connection, dsn: str) -> None:
    first, second = word_in(conn, 0), word_in(conn, 1)
    add(conn, {first: 1, second: 1})
    with psycopg.connect(dsn) as rival:
        assert combine(rival, 0) == [(0, 1, 1, 1, False)]
        assert combine(conn, 0) == []
        assert combine(conn, None) == [(1, 1, 1, 1, False)]
        rival.rollback()
    assert values(conn) == {second: 1}
    assert combine(conn, 0) == [(0, 1, 1, 1, False)]


@pytest.mark.wc(buckets=2)
def test_combine_returns_no_row_if_all_buckets_are_busy(conn: psycopg.Connection, dsn: str) -> None:
    add(conn, {word_in(conn, 0): 1, word_in(conn, 1): 1})
    with psycopg.connect(dsn) as rival:
        # lock the buckets' rows, as passes do
        rival.execute("select from pgcombine.bucket where queue = 'wc' for update")
        assert combine(conn, None) == []
    assert one(conn, "select pgcombine.backlog('wc')") == 2


def test_combine_without_a_bucket_chooses_one_with_updates(tx: psycopg.Connection) -> None:
    make_queue(tx, buckets=16)
    assert combine(tx, None) == []
    word = word_in(tx, 11)
    add(tx, {word: 1})
    assert combine(tx, None) == [(11, 1, 1, 1, False)]
    assert combine(tx, None) == []


@pytest.mark.wc
def test_a_pass_takes_its_bucket_only(conn: psycopg.Connection) -> None:
    words = [word_in(conn, bucket) for bucket in range(4)]
    add(conn, dict.fromkeys(words, 1))
    assert combine(conn, 2) == [(2, 1, 1, 1, False)]
    assert values(conn) == {words[2]: 1}
    assert {word for word, _ in rows(conn, "wc_pending")} == {words[0], words[1], words[3]}


@pytest.mark.wc
@pytest.mark.parametrize(
    ("function", "bucket"), [("combine", "-1"), ("combine", "4"), *(("combine_sql", b) for b in ("-1", "4", "null"))]
)
def test_unknown_bucket_is_refused(conn: psycopg.Connection, function: str, bucket: str) -> None:
    with raises_state("PC003", bucket):
        conn.execute(f"select pgcombine.{function}('wc', {bucket})")


@pytest.mark.parametrize("call", ["combine('wc')", "combine('wc', 0)", "combine_sql('wc', 0)", "backlog('wc')"])
def test_unknown_queue_is_refused(tx: psycopg.Connection, call: str) -> None:
    with raises_state("PC001"):
        tx.execute(f"select pgcombine.{call}")


def test_combine_sql_shows_the_statement_that_runs(tx: psycopg.Connection) -> None:
    make_queue(tx, key=['"100%" text'], value=['"it\'s" bigint sum'], delete_when='"it\'s" % 10 = 0', buckets=1)
    enqueue(tx, [{"100%": "a", "it's": 1}, {"100%": "a", "it's": 2}, {"100%": "b", "it's": 10}])
    statement = one(tx, "select pgcombine.combine_sql('wc', 0)")
    assert bucket_of(statement) == 0
    tx.execute("deallocate all")
    combine(tx)
    assert values(tx) == {"a": 3}
    assert one(tx, "select statement from pg_prepared_statements where name ~ '^pgcombine'").endswith(statement)
    assert statement == one(tx, "select pgcombine.combine_sql('wc', 0)"), "the text doesn't depend on the updates"


@pytest.mark.wc(buckets=1)
def test_overflow_loses_nothing(conn: psycopg.Connection) -> None:
    add(conn, {"a": 2**63 - 1, "b": 1})
    combine(conn)
    add(conn, {"a": 1, "b": 1})
    with pytest.raises(psycopg.errors.NumericValueOutOfRange), conn.transaction():
        combine(conn)
    assert values(conn) == {"a": 2**63 - 1, "b": 1}
    assert rows(conn, "wc_pending") == [("a", 1), ("b", 1)]
    add(conn, {"a": -5})
    combine(conn)
    assert values(conn) == {"a": 2**63 - 5, "b": 2}


@pytest.mark.wc(buckets=2)
def test_pass_combines_a_large_bucket(conn: psycopg.Connection) -> None:
    conn.execute("insert into pgcombine.wc_updates select 'w' || i % 1000, i from generate_series(1, 20000) i")
    combine_all(conn)
    wrong = "select count(*) from pgcombine.wc_values v full join (select 'w' || i % 1000 as word, sum(i) as n from"
    wrong += " generate_series(1, 20000) i group by 1) r using (word) where v.n is distinct from r.n"
    assert (one(conn, wrong), one(conn, "select count(*) from pgcombine.wc_values")) == (0, 1000)
