"""Feeds in SQL: their changes, portions, offsets, retention and rights."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb
from support.mutants import mutate_functions
from support.queues import add, combine, combine_all, make_queue, one
from support.states import raises_state

Vector = dict[str, int]


def make_feed(conn: psycopg.Connection, feed: str = "f", queue: str = "wc", **options: object) -> None:
    call = sql.SQL("select pgcombine.create_feed({})").format(
        sql.SQL(", ").join(
            sql.SQL("{} => %s").format(sql.Identifier(name)) for name in {"feed": 0, "queue": 0} | options
        )
    )
    conn.execute(call, [feed, queue, *options.values()])


def offset(conn: psycopg.Connection, after: Vector | None = None, most: int | None = None, feed: str = "f") -> Vector:
    argument = None if after is None else Jsonb(after)
    found: Vector = one(conn, "select pgcombine_internal.feed_offset(%s, %s, %s)", feed, argument, most)
    return found


def changes(conn: psycopg.Connection, after: Vector | None, **options: Any) -> list[tuple[Any, ...]]:
    """The type, word, old_n and new_n of the changes that ``f_read`` returns."""
    arguments = {"after": after} | options
    call = sql.SQL("select _change_type, word, old_n, new_n from pgcombine.f_read({}) where _after is null").format(
        sql.SQL(", ").join(sql.SQL("{} => %s").format(sql.Identifier(name)) for name in arguments)
    )
    values = [Jsonb(value) if isinstance(value, dict) else value for value in arguments.values()]
    return conn.execute(call, values).fetchall()


def found(conn: psycopg.Connection, query: str) -> list[tuple[Any, ...]]:
    return conn.execute(query.encode()).fetchall()


def age(conn: psycopg.Connection, seconds: int = 100) -> None:
    """Make the feed's segments older by ``seconds``."""
    conn.execute(
        "update pgcombine.change_log set since = since - make_interval(secs => %s), "
        "closed = array(select c - make_interval(secs => %s) from unnest(closed) with ordinality x (c, n) order by n)",
        (seconds, seconds),
    )


def upkeep(conn: psycopg.Connection) -> None:
    while one(conn, "select pgcombine_internal.reclaim_changes('wc')"):
        pass


def expire(conn: psycopg.Connection) -> None:
    """Make the present changes too old, and truncate them."""
    for _ in range(2):
        age(conn)
        upkeep(conn)


@pytest.fixture
def feed(tx: psycopg.Connection) -> psycopg.Connection:
    make_queue(tx, buckets=4)
    make_feed(tx, retention="1 min")
    return tx


def test_feed_has_every_change(feed: psycopg.Connection) -> None:
    combine(feed, {"a": 1}, {"a": 2}, {"a": -3})
    assert changes(feed, {}) == [("insert", "a", None, 1), ("update", "a", 1, 3), ("delete", "a", 3, None)]
    versions = found(
        feed,
        "select _sequence & 1099511627775, _commit_version, _commit_timestamp < now() from pgcombine.f_read('{}') "
        "where _after is null",
    )
    passes = found(feed, "select tx from pgcombine.pass where changes > 0 order by tx")
    assert [row[0] for row in versions] == [1, 2, 3]
    assert [row[1:] for row in versions] == [(tx, True) for (tx,) in passes]
    assert found(feed, "select * from pgcombine.verify('wc')") == []


def test_feed_has_columns_of_any_name_and_expired_keys(tx: psycopg.Connection) -> None:
    make_queue(
        tx, "plain", key=["a int", '"B %" date'], value=["n int max", '"v %" text[] array_union'], delete_when=None
    )
    make_feed(tx, "f", "plain")
    tx.execute("""select pgcombine.enqueue('plain', '[{"a": 1, "B %": "2024-02-29", "n": 7, "v %": ["x"]}]')""")
    combine_all(tx, "plain")
    assert found(
        tx, 'select a, "B %"::text, "old_v %", "new_v %" from pgcombine.f_read(\'{}\') where _after is null'
    ) == [(1, "2024-02-29", None, ["x"])]
    tx.execute("select pgcombine.set_expiry('plain', 'n = 7')")
    tx.execute("call pgcombine.expire('plain')")
    assert found(tx, "select _change_type, old_n, new_n from pgcombine.f_read('{}') where _after is null")[-1] == (
        "delete",
        7,
        None,
    )


def test_consumer_goes_on_where_it_stopped(feed: psycopg.Connection) -> None:
    now = offset(feed)
    assert changes(feed, None) == []
    combine(feed, {chr(97 + n): 1 for n in range(20)}, {chr(97 + n): 1 for n in range(20)})
    seen: list[tuple[Any, ...]] = []
    portions = 0
    while (upto := offset(feed, now, 7)) != now:
        portion = changes(feed, now, upto=upto)
        assert portion == changes(feed, now, upto=upto)
        assert 0 < len(portion) <= 7
        seen, now, portions = seen + portion, upto, portions + 1
    assert sorted(seen) == sorted(changes(feed, {}))
    assert len(seen) == 40
    assert portions == 6
    assert now == offset(feed)


def test_portion_starves_no_bucket(feed: psycopg.Connection) -> None:
    combine(feed, {f"{n}": 1 for n in range(400)})
    assert [last & 1099511627775 for last in offset(feed, {}, 40).values()] == [10, 10, 10, 10]
    assert sum(last & 1099511627775 for last in offset(feed, {}, 3).values()) == 3
    served = {bucket for _ in range(100) for bucket, last in offset(feed, {}, 1).items() if last & 1099511627775}
    assert served == set(offset(feed))


def test_compact_portion_has_the_net_change_of_a_key(feed: psycopg.Connection) -> None:
    before = offset(feed)
    combine(feed, {"a": 1, "gone": 1}, {"a": 2, "gone": -1}, {"b": 1}, {"a": 4})
    assert sorted(changes(feed, before, compact=True)) == [("insert", "a", None, 7), ("insert", "b", None, 1)]
    middle = offset(feed)
    combine(feed, {"a": -7, "gone": 1}, {"gone": -1})
    assert changes(feed, middle, compact=True) == [("delete", "a", 7, None)]
    assert len(changes(feed, middle)) == 3


def test_snapshot_fits_its_offset(feed: psycopg.Connection) -> None:
    combine(feed, {"a": 1, "b": 1})
    (after, *nothing), *values = found(feed, "select * from pgcombine.f_snapshot()")
    assert nothing == [None, None]
    assert sorted(values) == [(None, "a", 1), (None, "b", 1)]
    assert after == offset(feed)
    combine(feed, {"a": 1})
    assert changes(feed, after) == [("update", "a", 1, 2)]


def test_snapshot_from_before_a_rebucket_is_refused(feed: psycopg.Connection, module_dsn: str) -> None:
    combine(feed, {"a": 1})
    with psycopg.connect(module_dsn) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        reader.execute("select")
        feed.execute("select pgcombine.rebucket('wc', 2)")
        with pytest.raises(psycopg.errors.SerializationFailure):
            reader.execute("select * from pgcombine.f_snapshot()")


@pytest.mark.parametrize(
    "after",
    [
        "[]",
        "3",
        '{"9": 0}',
        '{"x": 0}',
        '{"01": 0}',
        '{"0": -1}',
        '{"0": 1.5}',
        '{"0": "1"}',
        '{"0": null}',
        '{"0": 99999999999999999999}',
        '{"0": 77}',
        '{"0": 9223372036854775808}',
    ],
)
def test_bad_offset_is_refused(feed: psycopg.Connection, after: str) -> None:
    for call in (
        "pgcombine_internal.feed_offset('f', %s)",
        "pgcombine.f_read(%s)",
        "pgcombine.f_read('{}', upto => %s)",
        "pgcombine.commit_feed('f', 'c', %s)",
    ):
        with raises_state("PC003"):
            feed.execute(f"select {call}".encode(), (after,))


def test_upto_before_the_offset_is_refused(feed: psycopg.Connection) -> None:
    start = offset(feed)
    combine(feed, {"a": 1})
    with raises_state("PC003"):
        changes(feed, offset(feed), upto=start)


def test_portion_with_a_partial_end_has_only_its_buckets(feed: psycopg.Connection) -> None:
    start = offset(feed)
    combine(feed, {f"{n}": 1 for n in range(40)})
    bucket, last = next(iter(offset(feed).items()))
    portion = changes(feed, start, upto={bucket: last})
    assert len(portion) == last - start[bucket] > 0
    assert changes(feed, start, upto={}) == []
    with raises_state("PC003"):
        changes(feed, start, most=3, upto={bucket: last})


def test_feed_with_a_large_number_accepts_its_offsets(tx: psycopg.Connection) -> None:
    tx.execute("alter table pgcombine.change_log alter column number restart 8000000")
    make_queue(tx)
    make_feed(tx)
    start = offset(tx)
    assert min(start.values()) == 8000000 << 40
    combine(tx, {"a": 1})
    assert changes(tx, start) == [("insert", "a", None, 1)]


def test_offset_is_too_old_once_changes_are_truncated(feed: psycopg.Connection) -> None:
    start = offset(feed)
    combine(feed, {"a": 1})
    caught_up = offset(feed)
    expire(feed)
    assert one(feed, "select count(*) from pgcombine.wc_changes") == 0
    combine(feed, {"a": 1})
    for call in (
        "pgcombine_internal.feed_offset('f', %s)",
        "pgcombine.f_read(%s)",
        "pgcombine.commit_feed('f', 'c', %s)",
    ):
        with raises_state("PC051") as caught:
            feed.execute(f"select {call}".encode(), (Jsonb(start),))
        assert "f_snapshot" in (caught.value.diag.message_hint or "")
    assert changes(feed, caught_up) == changes(feed, {}) == [("update", "a", 1, 2)]
    assert found(feed, "select * from pgcombine.verify('wc')") == []


@pytest.mark.parametrize("compact", [False, True])
def test_reader_with_an_old_snapshot_notices_a_truncation(
    feed: psycopg.Connection, module_dsn: str, compact: bool
) -> None:
    start = offset(feed)
    combine(feed, {"a": 1, "b": 1, "c": 1, "d": 1, "e": 1})
    with psycopg.connect(module_dsn) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        assert offset(reader, start) != start
        expire(feed)
        for after in (start, {}):
            with raises_state("PC051"), reader.transaction():
                changes(reader, after, compact=compact)
        mutate_functions(feed, "counted <> expected", "false")
        assert changes(reader, start, compact=compact) == []  # without the comparison, a truncation isn't noticed
        mutate_functions(feed, "if false then", "if counted <> expected then")


@pytest.mark.parametrize("compact", [False, True])
def test_later_changes_do_not_stand_for_truncated_ones(
    feed: psycopg.Connection, module_dsn: str, compact: bool
) -> None:
    start = offset(feed)
    combine(feed, {"a": 1})
    middle = offset(feed)
    age(feed)
    upkeep(feed)
    combine(feed, {"a": 1})
    with psycopg.connect(module_dsn) as reader:
        reader.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        assert offset(reader, start, 1) == middle
        age(feed, 61)
        upkeep(feed)
        with raises_state("PC051"), reader.transaction():
            changes(reader, start, upto=middle, compact=compact)
        assert changes(reader, middle, compact=compact) == [("update", "a", 1, 2)]


def test_segments_take_turns(feed: psycopg.Connection) -> None:
    used = set()
    for _ in range(14):
        combine(feed, {"a": 1})
        used.add(one(feed, "select segment from pgcombine.change_log"))
        age(feed, 16)
        upkeep(feed)
    assert used == {0, 1, 2, 3, 4, 5}
    kept = changes(feed, {})
    assert len(kept) in (4, 5)
    assert kept[-1] == ("update", "a", 13, 14)
    assert found(feed, "select * from pgcombine.verify('wc')") == []


def test_segment_stays_while_it_is_read(feed: psycopg.Connection, module_dsn: str) -> None:
    combine(feed, {"a": 1})
    age(feed)
    upkeep(feed)
    with psycopg.connect(module_dsn) as reader:
        assert len(changes(reader, {})) == 1
        age(feed)
        upkeep(feed)
        assert one(feed, "select count(*) from pgcombine.wc_changes") == 1
    upkeep(feed)
    assert one(feed, "select count(*) from pgcombine.wc_changes") == 0


def test_late_pass_does_not_stop_the_segments(feed: psycopg.Connection, module_dsn: str) -> None:
    combine(feed, {"a": 1})
    add(feed, {f"{n}": 1 for n in range(20)})
    with psycopg.connect(module_dsn) as late:
        late.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        late.execute("select")
        expire(feed)
        assert one(feed, "select segment from pgcombine.change_log") == 1
        for bucket in range(4):
            late.execute("select pgcombine.combine('wc', %s)", (bucket,))
    assert found(feed, "select distinct _segment from pgcombine.wc_changes") == [(0,)]
    assert found(feed, "select * from pgcombine.verify('wc')") == []
    age(feed)
    problem = 'queue "wc" has changes in segment 0, which is neither in use nor closed: run a worker'
    assert found(feed, "select * from pgcombine.verify('wc')") == [(problem,)]
    used = []
    for _ in range(8):
        combine(feed, {"a": 1})
        used.append(one(feed, "select segment from pgcombine.change_log"))
        age(feed, 16)
        upkeep(feed)
    assert used == [1, 2, 3, 4, 5, 0, 1, 2]
    assert len(changes(feed, {})) < 6
    assert found(feed, "select * from pgcombine.verify('wc')") == []


@pytest.mark.parametrize(("max_bytes", "waits"), [(10**9, True), (1, False), (None, False)])
def test_changes_wait_for_a_consumer_up_to_a_size(tx: psycopg.Connection, max_bytes: int | None, waits: bool) -> None:
    make_queue(tx)
    make_feed(tx, retention="1 min", max_bytes=max_bytes)
    tx.execute("select pgcombine.commit_feed('f', 'c', pgcombine_internal.feed_offset('f'))")
    combine(tx, {"a": 1})
    assert found(tx, "select kept, consumers, behind from pgcombine.feed_stat where bytes > 0") == [(1, 1, 1)]
    expire(tx)
    assert len(changes(tx, {})) == waits
    if waits:
        tx.execute("select pgcombine.commit_feed('f', 'c', pgcombine_internal.feed_offset('f', '{}'))")
        upkeep(tx)
        assert changes(tx, {}) == []
    tx.execute("select pgcombine.commit_feed('f', 'c', null)")
    assert found(tx, "select consumers, behind from pgcombine.feed_stat") == [(0, None)]


def test_lag_is_the_age_of_the_oldest_unread_change(feed: psycopg.Connection) -> None:
    def lag() -> float | None:
        seconds = one(feed, "select lag_seconds from pgcombine.feed_stat")
        return None if seconds is None else round(seconds / 10) * 10

    combine(feed, {"old": 1})
    assert lag() is None  # there is no consumer
    feed.execute("select pgcombine.commit_feed('f', 'c', pgcombine_internal.feed_offset('f'))")
    assert lag() == 0
    combine(feed, {"a": 1, "b": 1})
    feed.execute(
        "update pgcombine.wc_changes set _commit_timestamp = clock_timestamp()"
        " - case word when 'old' then '900 s' when 'a' then '300 s' else '100 s' end::interval"
    )
    assert lag() == 300
    feed.execute("select pgcombine.commit_feed('f', 'begins', '{}')")
    assert lag() == 900
    feed.execute(
        "select pgcombine.commit_feed('f', c, pgcombine_internal.feed_offset('f')) from unnest('{c,begins}'::text[]) c"
    )
    assert lag() == 0


@pytest.mark.parametrize("numbers", [(16, 2, 16), (2, 3), (1, 4)])
def test_keys_stay_in_order_after_a_rebucket(feed: psycopg.Connection, numbers: tuple[int, ...]) -> None:
    words = {f"{n}": 1 for n in range(30)}
    now = offset(feed)
    combine(feed, words)
    for number in numbers:
        feed.execute("select pgcombine.rebucket('wc', %s)", (number,))
        combine(feed, words, words)
    values: dict[str, int] = {}
    while (upto := offset(feed, now, 20)) != now:
        for _, word, old, new in changes(feed, now, upto=upto):
            assert values.get(word) == old
            values[word] = new
        now = upto
    assert set(values.values()) == {1 + 2 * len(numbers)}
    assert found(feed, "select * from pgcombine.verify('wc')") == []
    with raises_state("PC003"):
        changes(feed, {}, upto=now)
    expire(feed)
    assert one(feed, "select turns from pgcombine.change_log") == []


def test_offset_that_lacks_a_truncated_bucket_is_too_old(feed: psycopg.Connection) -> None:
    former = offset(feed)
    feed.execute("select pgcombine.rebucket('wc', 8)")
    combine(feed, {f"{n}": 1 for n in range(40)})
    assert len(changes(feed, former)) == 40
    expire(feed)
    combine(feed, {f"{n}": 1 for n in range(40)})
    last = offset(feed)
    partial = {bucket: sequence for bucket, sequence in last.items() if bucket in former}
    for after in (former, partial):
        with raises_state("PC051"):
            offset(feed, after)
    assert len(changes(feed, {})) == 40
    bucket = next(iter(last))
    assert 0 < len(changes(feed, {}, upto={bucket: last[bucket]})) < 40


def test_offset_of_a_former_feed_is_too_old(feed: psycopg.Connection) -> None:
    combine(feed, {"a": 1})
    former = offset(feed)
    feed.execute("select pgcombine.drop_feed('f')")
    make_feed(feed)
    combine(feed, {"a": 1}, {"a": 1})
    with raises_state("PC051"):
        changes(feed, former)
    assert len(changes(feed, {})) == 2


def test_pass_with_an_older_snapshot_fails_to_serialize(feed: psycopg.Connection, module_dsn: str) -> None:
    add(feed, {"a": 1})
    with psycopg.connect(module_dsn) as late:
        late.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        late.execute("select")
        add(feed, {"a": 1})
        combine_all(feed)
        bucket = one(feed, "select bucket from pgcombine.change_bucket where last & 1099511627775 = 1")
        with pytest.raises(psycopg.errors.SerializationFailure):
            late.execute("select * from pgcombine.combine('wc', %s)", (bucket,))
    assert changes(feed, {}) == [("insert", "a", None, 2)]


def test_pass_fails_without_the_row_of_its_bucket(feed: psycopg.Connection) -> None:
    feed.execute("delete from pgcombine.change_bucket")
    with pytest.raises(psycopg.errors.NotNullViolation):
        combine(feed, {"a": 1})


@pytest.mark.parametrize(
    ("call", "sqlstate"),
    [
        ("create_feed('F', 'wc')", "PC003"),
        ("create_feed(null, 'wc')", "PC003"),
        ("create_feed('g', 'wc', '0 s')", "PC003"),
        ("create_feed('g', 'wc', null)", "PC003"),
        ("create_feed('g', 'wc', max_bytes => 0)", "PC003"),
        ("create_feed('g', 'nowhere')", "PC001"),
        ("create_feed('f', 'wc')", "PC002"),
        ("create_feed('f', 'wc', '1 h', if_not_exists => true)", "PC002"),
        ("drop_feed('g')", "PC050"),
        ("drop_feed(null)", "PC050"),
        ("f_read('{}', 0)", "PC003"),
        ("commit_feed('g', 'c', '{}')", "PC050"),
        ("commit_feed('f', '', '{}')", "PC003"),
        ("drop_queue('wc')", "PC005"),
    ],
)
def test_call_is_refused(feed: psycopg.Connection, call: str, sqlstate: str) -> None:
    with raises_state(sqlstate):
        feed.execute(f"select pgcombine.{call}".encode())


@pytest.mark.parametrize("column", ["after", "_bucket", "upto"])
def test_queue_with_a_column_of_the_feed_is_refused(tx: psycopg.Connection, column: str) -> None:
    make_queue(tx, key=[f"{column} text"])
    with raises_state("PC003"):
        make_feed(tx)


@pytest.mark.parametrize(("setting", "in_pass"), [("off", "on"), ("local", "on"), ("remote_write", "remote_write")])
def test_pass_does_not_commit_asynchronously(feed: psycopg.Connection, setting: str, in_pass: str) -> None:
    feed.execute("""
        create table public.committed (setting text);
        create function public.committed() returns trigger language plpgsql as
            'begin insert into public.committed values (current_setting(''synchronous_commit'')); return null; end';
        create constraint trigger committed after update on pgcombine.change_bucket deferrable initially deferred
            for each row execute function public.committed()""")
    feed.execute(f"set synchronous_commit = {setting}")
    combine(feed, {"a": 1})
    assert found(feed, "table public.committed") == [(in_pass,)]
    assert one(feed, "show synchronous_commit") == setting
    feed.execute("drop function public.committed() cascade; drop table public.committed")


def test_drop_does_not_wait_long_for_a_reader(feed: psycopg.Connection, module_dsn: str) -> None:
    with psycopg.connect(module_dsn) as reader:
        changes(reader, {})
        feed.execute("set lock_timeout = '10ms'")
        with raises_state("PC006"):
            feed.execute("select pgcombine.drop_feed('f')")
        combine(feed, {"a": 1})
    feed.execute("select pgcombine.drop_feed('f')")
    assert one(feed, "show lock_timeout") == "10ms"


def test_existing_feed_takes_no_number(feed: psycopg.Connection) -> None:
    drawn = "select last_value from pg_sequences where sequencename = 'change_log_number_seq'"
    before = one(feed, drawn)
    make_feed(feed, retention="1 min", if_not_exists=True)
    with raises_state("PC002"):
        make_feed(feed)
    assert one(feed, drawn) == before


def test_foreign_functions_of_the_same_names_stay(feed: psycopg.Connection) -> None:
    for name in ("f_read", "g_read"):
        feed.execute(
            f"create function pgcombine.{name}(integer) returns integer language sql return 1;"
            f"create function pgcombine.{name}(text) returns integer language sql return 1"
        )
    with raises_state("PC002"):
        make_feed(feed, "g")
    assert found(feed, "select * from pgcombine.verify('wc')") == []
    feed.execute("select pgcombine.drop_feed('f')")
    assert one(feed, "select count(*) from pg_proc where proname ~ '^[fg]_read$'") == 4
    feed.execute(
        "drop function pgcombine.f_read(integer), pgcombine.f_read(text), "
        "pgcombine.g_read(integer), pgcombine.g_read(text)"
    )


def test_dropped_feed_leaves_nothing(feed: psycopg.Connection) -> None:
    left = "select count(*) from pg_class where relname like 'wc\\_changes%'"
    functions = "select count(*) from pg_proc where proname in ('f_read', 'f_snapshot')"
    make_feed(feed, "f", "wc", retention="1 min", if_not_exists=True)
    assert (one(feed, left), one(feed, functions)) == (13, 2)
    feed.execute("select pgcombine.drop_feed('f')")
    combine(feed, {"a": 1})
    assert one(feed, left) == one(feed, functions) == one(feed, "select count(*) from pgcombine.observer") == 0
    make_feed(feed)
    feed.execute("select pgcombine.drop_queue('wc', force => true)")
    assert one(feed, left) == one(feed, functions) == one(feed, "select count(*) from pgcombine.change_bucket") == 0


def test_verify_reports_missing_changes(feed: psycopg.Connection) -> None:
    combine(feed, {"a": 1})
    feed.execute("delete from pgcombine.wc_changes")
    feed.execute("drop function pgcombine.f_snapshot")
    assert [problem for (problem,) in found(feed, "select * from pgcombine.verify('wc')")] == [
        "function pgcombine.f_snapshot is missing: run pgcombine db upgrade",
        one(
            feed,
            "select format('queue \"wc\" has 0 changes of bucket %s after sequence %s instead of 1', bucket, last - 1) "
            "from pgcombine.change_bucket where last & 1099511627775 = 1",
        ),
    ]


def test_reader_needs_the_right_to_read_the_queue(feed: psycopg.Connection, role: str) -> None:
    combine(feed, {"a": 1})
    calls = [
        *("select pgcombine.f_read('{}')", "select pgcombine.f_snapshot()"),
        *("select pgcombine_internal.feed_offset('f', '{}')", "select pgcombine.commit_feed('f', 'c', '{}')"),
    ]
    feed.execute(f"set role {role}")
    for call in calls:
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            feed.execute(call.encode())
    feed.execute(f"reset role; select pgcombine.grant_right('read', '{role}', 'wc'); set role {role}")
    for call in calls:
        feed.execute(call.encode())
    assert changes(feed, {}) == [("insert", "a", None, 1)]
    for call in (
        *("select from pgcombine.wc_changes", "select from pgcombine.feed_stat"),
        *("update pgcombine.change_bucket set last = 9", "select pgcombine_internal.reclaim_changes('wc')"),
    ):
        with pytest.raises(psycopg.errors.InsufficientPrivilege):
            feed.execute(call.encode())


def test_worker_writes_feeds(feed: psycopg.Connection, role: str) -> None:
    feed.execute(f"select pgcombine.grant_right('work', '{role}')")
    make_queue(feed, "later")
    make_feed(feed, "later", "later")
    for queue in ("wc", "later"):
        add(feed, {"a": 1}, queue)
    feed.execute(f"set role {role}")
    for queue in ("wc", "later"):
        combine_all(feed, queue)
    upkeep(feed)
    feed.execute("reset role")
    both = "select * from pgcombine.f_read('{}') union all select * from pgcombine.later_read('{}')"
    assert len(found(feed, f"select * from ({both}) f where _after is null")) == 2  # noqa: S608


def test_offset_comes_with_its_changes(feed: psycopg.Connection) -> None:
    """The first row of a reading is the offset after the portion, so that no consumer stores a later one."""
    call = "select _after, word from pgcombine.f_read({})"
    assert found(feed, call.format("null")) == [(offset(feed), None)]
    combine(feed, {"a": 1, "b": 1}, {"a": 1})
    after: Vector = {}
    words = []
    while (rows := feed.execute(call.format("%s, 1").encode(), (Jsonb(after),)).fetchall())[0][0] != after:
        assert [row[0] for row in rows[1:]] == [None] * (len(rows) - 1)
        after = rows[0][0]
        words += [word for _, word in rows[1:]]
    assert sorted(words) == ["a", "a", "b"]
    assert after == offset(feed)


def test_feed_has_a_limited_number_of_consumers(feed: psycopg.Connection) -> None:
    commit = "select pgcombine.commit_feed('f', %s, '{}')"
    feed.execute("select pgcombine.commit_feed('f', 'c' || n, '{}') from generate_series(1, 1000) n")
    feed.execute(commit, ("c1",))
    with raises_state("PC003"), feed.transaction():
        feed.execute(commit, ("c1001",))
    feed.execute("select pgcombine.commit_feed('f', 'c1', null)")
    feed.execute(commit, ("c1001",))
