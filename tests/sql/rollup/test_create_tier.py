"""Tiers: queues with a coarser key, each fed by another queue."""

from __future__ import annotations

import psycopg
import pytest
from psycopg import sql
from support.queues import add, combine_all, make_queue, one, rows, values
from support.states import raises_state


def make_tier(conn: psycopg.Connection, queue: str, source: str, key: list[str] | None, **options: object) -> None:
    arguments = {"queue": queue, "source": source, "key": key} | options
    named = sql.SQL(", ").join(sql.SQL("{} => %s").format(sql.Identifier(name)) for name in arguments)
    conn.execute(sql.SQL("select pgcombine.create_tier({})").format(named), list(arguments.values()))


def hours(conn: psycopg.Connection, **options: object) -> None:
    make_queue(conn, "hour", key=["hour timestamp", "page text"], delete_when=None, buckets=1, **options)


DAY = ["date_trunc('day', hour) as day", "page"]
HIT = "insert into pgcombine.hour_updates (hour, page, n) values "


def test_a_tier_has_the_sources_updates_with_its_own_key(tx: psycopg.Connection) -> None:
    hours(tx)
    make_tier(tx, "day", "hour", DAY)
    make_tier(tx, "total", "day", ["left(page, 1) as first"], buckets=2)
    for updates in ("('2026-01-01 10:00', 'a', 1), ('2026-01-01 11:00', 'a', 2)", "('2026-01-02 10:00', 'ab', 4)"):
        tx.execute(f"{HIT} {updates}".encode())
        combine_all(tx, "hour")
    assert tx.execute("select day::date::text, page, n from pgcombine.day_current order by day").fetchall() == [
        ("2026-01-01", "a", 3),
        ("2026-01-02", "ab", 4),
    ]
    combine_all(tx, "day")
    combine_all(tx, "total")
    assert values(tx, "total") == {"a": 7}


def test_tier_has_the_value_columns_of_the_source(tx: psycopg.Connection) -> None:
    tx.execute(
        "create function public.longer(a text, b text) returns text immutable language sql "
        "as 'select case when length(a) > length(b) or length(a) = length(b) and a > b then a else b end'"
    )
    columns = [
        "n bigint sum",
        "hits integer count",
        '"The Top" numeric(9,2) max',
        'word text collate "C" public.longer',
        "status text last(at)",
        "at timestamptz max",
        "seen text[] array_union",
    ]
    make_queue(tx, "hour", key=["hour int", 'word2 text collate "C"'], value=columns, delete_when="n = 0")
    make_tier(tx, "day", "hour", ["hour / 24 as day", "word2", "word2 || 'x' as x", "hour::numeric(5,1) as h"])
    definition = "select {} from pgcombine.queue_column where queue = %s and role = %s order by position"
    value = definition.format('name, type, "collation", combiner, ordered_by')
    assert (
        tx.execute(value.encode(), ("day", "value")).fetchall()
        == tx.execute(value.encode(), ("hour", "value")).fetchall()
    )
    assert tx.execute(definition.format('name, type, "collation"').encode(), ("day", "key")).fetchall() == [
        ("day", "integer", None),
        ("word2", "text", '"C"'),
        ("x", "text", '"C"'),
        ("h", "numeric(5,1)", None),
    ]
    assert one(tx, "select delete_when from pgcombine.queue where queue = 'day'") == "(n = 0)"
    tx.execute(
        "insert into pgcombine.hour_updates values (25, 'w', 1, 1, 2.5, 'ab', 'old', '2026-01-01', '{a,b}'), "
        "(26, 'w', 1, 2, 1.5, 'abc', 'new', '2026-01-02', '{b,c}')"
    )
    combine_all(tx, "hour")
    combine_all(tx, "day")
    found = tx.execute('select n, hits, "The Top", word, status, seen from pgcombine.day_values order by h').fetchall()
    assert [row[3:] for row in found] == [("ab", "old", ["a", "b"]), ("abc", "new", ["b", "c"])]


def test_late_updates_and_expired_keys_stay_in_the_tier(tx: psycopg.Connection) -> None:
    hours(tx, expire_when="hour < now() at time zone 'UTC' - interval '2 days'")
    make_tier(tx, "day", "hour", DAY)
    tx.execute(f"{HIT} ('2020-01-01 10:00', 'a', 1)".encode())
    combine_all(tx, "hour")
    assert rows(tx, "hour_values") == []
    tx.execute(f"{HIT} (now(), 'b', 1)".encode())
    combine_all(tx, "hour")
    tx.execute("select pgcombine.set_expiry('hour', 'true')")
    tx.execute("call pgcombine.expire('hour')")
    combine_all(tx, "day")
    assert rows(tx, "hour_values") == []
    assert [(page, n) for _, page, n in rows(tx, "day_values")] == [("a", 1), ("b", 1)]


@pytest.mark.wc(buckets=2)
@pytest.mark.parametrize("existing", [True, False])
def test_existing_values_come_once_and_pending_updates_by_a_pass(conn: psycopg.Connection, existing: bool) -> None:
    add(conn, {"aa": 1, "ab": 2, "b": 3})
    combine_all(conn)
    add(conn, {"aa": 10})
    make_tier(conn, "first", "wc", ["left(word, 1) as first"], existing=existing)
    combine_all(conn)
    combine_all(conn, "first")
    assert values(conn, "first") == ({"a": 13, "b": 3} if existing else {"a": 10})


@pytest.mark.wc
def test_existing_values_need_a_snapshot_after_the_claim(conn: psycopg.Connection) -> None:
    with conn.transaction():
        conn.execute("set transaction isolation level repeatable read")
        with raises_state("PC003"), conn.transaction():
            make_tier(conn, "first", "wc", ["left(word, 1) as first"])
        make_tier(conn, "first", "wc", ["left(word, 1) as first"], existing=False)


def test_options_are_those_of_the_queue(tx: psycopg.Connection) -> None:
    hours(tx)
    make_tier(
        tx,
        "day",
        "hour",
        DAY,
        buckets=2,
        pass_limit=7,
        quarantine_after=3,
        notify=False,
        expire_when="day < now() - interval '90 days'",
        expire_silently=True,
        expire_every="1 hour",
    )
    assert tx.execute(
        "select buckets, pass_limit, quarantine_after, notify, expire_silently, expire_every::text, "
        "expire_when like '%90 days%' from pgcombine.queue where queue = 'day'"
    ).fetchall() == [(2, 7, 3, False, True, "01:00:00", True)]


@pytest.mark.parametrize(
    ("queue", "source", "key", "sqlstate"),
    [
        ("day", "nowhere", ["page"], "PC001"),
        ("hour", "hour", ["page"], "PC003"),
        ("other", "hour", ["page"], "PC002"),
        ("day", "hour", ["n as x"], "PC003"),
        ("day", "hour", ["page as n"], "PC003"),
        ("day", "hour", ["page", "page"], "PC003"),
        ("day", "hour", ["nothing(page) as x"], "PC003"),
        ("day", "hour", ["page, hour as x"], "PC003"),
        ("day", "hour", ["page as x, hour as y"], "PC003"),
        ("day", "hour", ["page) as x, (hour as y"], "PC003"),
        ("day", "hour", ["(select 1) as x"], "PC003"),
        ("day", "hour", ["count(*) as x"], "PC003"),
        ("day", "hour", ["generate_series(1, 2) as x"], "PC003"),
        ("day", "hour", ["hour - now() as x"], "PC003"),
        ("day", "hour", ["date_trunc('day', hour at time zone 'UTC') as x"], "PC003"),
        ("day", "hour", ["random() as x"], "PC003"),
        ("day", "hour", ["$1 as x"], "PC003"),
        ("day", "hour", [" "], "PC003"),
        ("day", "hour", [None], "PC003"),
        ("day", "hour", [], "PC003"),
        ("day", "hour", None, "PC003"),
        ("Day", "hour", ["page"], "PC003"),
        (None, "hour", ["page"], "PC003"),
        ("day", "hour", ["'{}'::jsonb as x", "point(1, 2) as y"], "PC003"),
    ],
)
def test_invalid_definitions_are_refused(
    tx: psycopg.Connection, queue: str, source: str, key: list[str] | None, sqlstate: str
) -> None:
    hours(tx)
    make_queue(tx, "other")
    before = tx.execute("select oid from pg_class where relnamespace = 'pgcombine'::regnamespace order by 1").fetchall()
    with raises_state(sqlstate) as refused:
        make_tier(tx, queue, source, key)
    assert refused.value.diag.message_hint
    after = tx.execute("select oid from pg_class where relnamespace = 'pgcombine'::regnamespace order by 1").fetchall()
    assert after == before


def test_a_day_of_a_timestamptz_needs_a_time_zone(tx: psycopg.Connection) -> None:
    make_queue(tx, "hour", key=["hour timestamptz"], buckets=1)
    with raises_state("PC003") as refused:
        make_tier(tx, "day", "hour", ["date_trunc('day', hour) as day"])
    expression = str(refused.value.diag.message_hint).rpartition(": ")[2]
    make_tier(tx, "day", "hour", [expression.replace("at at", "hour at")])
    tx.execute("insert into pgcombine.hour_updates values ('2026-01-01 23:30Z', 1), ('2026-01-02 00:30Z', 1)")
    tx.execute("set time zone 'Asia/Tokyo'")
    combine_all(tx, "hour")
    combine_all(tx, "day")
    assert tx.execute("select day::text, n from pgcombine.day_values order by 1").fetchall() == [
        ("2026-01-01 00:00:00", 1),
        ("2026-01-02 00:00:00", 1),
    ]


def test_names_are_found_under_every_search_path(tx: psycopg.Connection) -> None:
    tx.execute("create function public.first(word text) returns text immutable language sql as 'select left($1, 1)'")
    make_queue(tx)
    make_tier(tx, "first", "wc", ["first(word) as first"])
    tx.execute("set search_path = pg_catalog")
    add(tx, {"ab": 1})
    combine_all(tx)
    assert one(tx, "select first from pgcombine.first_current") == "a"


def test_constants_mean_the_same_in_every_session(tx: psycopg.Connection) -> None:
    make_queue(tx, "hour", key=["hour timestamptz"], buckets=1)
    with tx.transaction():
        tx.execute("set local datestyle = 'SQL, DMY'")
        tx.execute("set local intervalstyle = 'sql_standard'")
        make_tier(
            tx,
            "day",
            "hour",
            [
                "date_bin('1 day', hour, '02/01/2026'::timestamp at time zone 'UTC') "
                "at time zone 'UTC' - interval '-1 2:00' as day"
            ],
        )
        tx.execute("insert into pgcombine.hour_updates values ('02/01/2026 12:00', 1)")
        expected = one(tx, "select '02/01/2026'::timestamp - interval '-1 2:00'")
    combine_all(tx, "hour")
    assert one(tx, "select day from pgcombine.day_current") == expected


def test_if_not_exists_accepts_the_same_tier_alone(tx: psycopg.Connection) -> None:
    hours(tx)
    make_queue(tx, "other", key=["hour timestamp", "page text"], delete_when=None)
    for _ in range(2):
        make_tier(tx, "day", "hour", DAY, if_not_exists=True)
    assert one(tx, "select count(*) from pgcombine.observer") == 1
    make_tier(tx, "month", "day", ["date_trunc('month', day) as month", "page"])
    for queue, source, key in (
        ("day", "hour", ["date_trunc('month', hour) as day", "page"]),  # another expression in the key
        ("day", "hour", ["date_trunc('day', hour) as day"]),  # another number of key columns
        ("day", "other", DAY),  # another source
        ("other", "hour", ["hour", "page"]),  # a queue that isn't a tier
        ("hour", "month", ["month as hour", "page"]),  # a cycle
    ):
        with raises_state("PC002", queue):
            make_tier(tx, queue, source, key, if_not_exists=True)
    with raises_state("PC002"):
        make_tier(tx, "day", "hour", DAY)


@pytest.mark.wc(buckets=1)
def test_a_null_key_is_refused_for_a_value_and_fails_in_a_pass(conn: psycopg.Connection) -> None:
    add(conn, {"": 1})
    combine_all(conn)
    with raises_state("PC003"):
        make_tier(conn, "first", "wc", ["nullif(word, '') as first"])
    make_tier(conn, "first", "wc", ["nullif(word, '') as first"], existing=False)
    add(conn, {"": 1})
    with pytest.raises(psycopg.errors.NotNullViolation):
        combine_all(conn)


def test_dropping_a_tier_ends_its_feed(tx: psycopg.Connection) -> None:
    hours(tx)
    make_tier(tx, "day", "hour", DAY)
    make_tier(tx, "month", "day", ["date_trunc('month', day) as month"])
    for source, tier in (("hour", "day"), ("day", "month")):
        with raises_state("PC005", tier) as refused:
            tx.execute("select pgcombine.drop_queue(%s)", (source,))
        assert "drop the tier first" in str(refused.value.diag.message_hint)
    tx.execute("select pgcombine.drop_queue('month')")
    tx.execute("select pgcombine.drop_queue('day')")
    tx.execute(f"{HIT} ('2020-01-01 10:00', 'a', 1)".encode())
    combine_all(tx, "hour")
    assert tx.execute("select * from pgcombine.observer").fetchall() == []
    make_tier(tx, "day", "hour", DAY)
    tx.execute("select pgcombine.drop_queue('hour', force => true)")
    combine_all(tx, "day")
    assert [(page, n) for _, page, n in rows(tx, "day_values")] == [("a", 1)]
    tx.execute("select pgcombine.drop_queue('day')")


def test_a_rollup_feeds_a_tier_unless_it_has_computed_columns(tx: psycopg.Connection) -> None:
    tx.execute("create table visits (hour timestamp, seconds int)")
    tx.execute("insert into visits values ('2026-01-01 10:00', 5), ('2026-01-01 11:00', 7), ('2026-01-02 10:00', 1)")
    for rollup, value in (("hour", "sum(seconds) as seconds"), ("slow", "max(seconds) as slowest")):
        tx.execute("select pgcombine.create_rollup(%s, 'visits', array['hour'], array[%s])", (rollup, value))
    make_tier(tx, "day", "hour", ["date_trunc('day', hour) as day"])
    tx.execute("delete from visits where seconds = 5")
    combine_all(tx, "hour")
    while one(tx, "select pgcombine_internal.backfill_slice('hour')"):
        pass
    combine_all(tx, "hour")
    combine_all(tx, "day")
    assert tx.execute("select day::date::text, seconds, row_count from pgcombine.day_values order by 1").fetchall() == [
        ("2026-01-01", 7, 1),
        ("2026-01-02", 1, 1),
    ]
    with raises_state("PC003"):
        make_tier(tx, "slow_day", "slow", ["date_trunc('day', hour) as day"])
