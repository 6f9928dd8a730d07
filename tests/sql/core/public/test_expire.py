"""pgcombine.expire, set_expiry and the option expire_when: the keys that expire, and the changes that observers see."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from support.queues import add, combine_all, current, hold, make_queue, one, rows, values, word_in, write_values
from support.states import raises_state

from pgcombine.queue.combine_queue import CombineQueue

HOURS = "bucket <= now() - interval '1 hour'"


def by_time(conn: psycopg.Connection, queue: str = "wc", **options: object) -> str:
    """Create a queue whose keys are times, by default with the expiry ``HOURS``. An observer fills ``history``."""
    make_queue(conn, queue, key=["bucket timestamptz"], delete_when=None, **{"expire_when": HOURS} | options)
    conn.execute("create table if not exists history (id bigserial, bucket timestamptz, was bigint, is_now bigint)")
    conn.execute(
        "select pgcombine.add_observer(%s, 'history', "
        "'insert into history (bucket, was, is_now) select bucket, old_n, new_n from changes')",
        (queue,),
    )
    return queue


def put(conn: psycopg.Connection, hours: float, n: int = 1) -> None:
    """Enqueue an update whose key is ``hours`` before the beginning of the present quarter of an hour."""
    conn.execute(
        "insert into pgcombine.wc_updates (bucket, n) "
        "values (date_bin('15 min', now(), '2000-01-01') - make_interval(mins => %s), %s)",
        (round(60 * hours), n),
    )


def expire(conn: psycopg.Connection, queue: str = "wc") -> int:
    return int(one(conn, "call pgcombine.expire(%s)", queue))


def history(conn: psycopg.Connection) -> list[tuple[Any, ...]]:
    return conn.execute("select was, is_now from history order by id").fetchall()


def counted(conn: psycopg.Connection, queue: str = "wc") -> list[int]:
    return sorted(n for _, n in rows(conn, f"{queue}_values"))


def expiring(conn: psycopg.Connection, **options: object) -> None:
    """Combine two keys and then set the expiry condition. Of the two, the key with the value 5 expires."""
    by_time(conn, expire_when=None, **options)
    put(conn, 3, 5)
    put(conn, 0, 7)
    combine_all(conn)
    conn.execute("select pgcombine.set_expiry('wc', %s)", (HOURS,))


def test_expired_keys_are_removed_and_observers_see_deletions(conn: psycopg.Connection) -> None:
    expiring(conn)
    assert counted(conn) == [5, 7]
    assert expire(conn) == 1
    assert counted(conn) == [7]
    assert sorted(history(conn), key=str) == sorted([(None, 5), (None, 7), (5, None)], key=str)
    assert history(conn)[-1] == (5, None)
    assert expire(conn) == 0


def test_a_late_update_for_an_expired_key_is_never_seen(conn: psycopg.Connection) -> None:
    by_time(conn)
    put(conn, 3, 5)
    combine_all(conn)
    assert counted(conn) == []
    assert current(conn) == {}
    assert history(conn) == []


def test_an_expired_key_starts_anew(conn: psycopg.Connection) -> None:
    make_queue(conn, expire_when="n >= 5")
    for n, there in ((5, {}), (1, {"a": 1}), (4, {}), (2, {"a": 2})):
        add(conn, {"a": n})
        combine_all(conn)
        assert values(conn) == there


def test_pass_over_an_update_removes_its_expired_key(conn: psycopg.Connection) -> None:
    expiring(conn)
    put(conn, 3, 1)
    assert list(current(conn).values()) == [7]
    assert expire(conn) == 0, "the pass over the update removes the key"
    assert counted(conn) == [7]
    assert history(conn)[-1] == (5, None)


def test_expire_silently_tells_observers_nothing(conn: psycopg.Connection) -> None:
    expiring(conn, expire_silently=True)
    conn.execute("select pgcombine.set_expiry('wc', %s, true)", (HOURS,))
    seen = history(conn)
    assert expire(conn) == 1
    put(conn, 3, 1)
    combine_all(conn)
    assert counted(conn) == [7]
    assert history(conn) == seen


def test_key_stays_if_the_condition_is_null(conn: psycopg.Connection) -> None:
    make_queue(conn, value=["n bigint sum", "until timestamptz max"], delete_when=None, expire_when="until <= now()")
    conn.execute(
        "insert into pgcombine.wc_updates (word, n, until) "
        "values ('kept', 1, null), ('long', 1, now() + interval '1 h'), ('gone', 1, now() - interval '1 h')"
    )
    combine_all(conn)
    assert expire(conn) == 0
    assert [word for word, *_ in rows(conn, "wc_values")] == ["kept", "long"]


def test_condition_applies_to_the_new_value(conn: psycopg.Connection) -> None:
    make_queue(conn, value=["n bigint sum", "seen timestamptz max"], delete_when=None)
    conn.execute("insert into pgcombine.wc_updates (word, n, seen) values ('a', 1, now() - interval '2 h')")
    combine_all(conn)
    conn.execute("select pgcombine.set_expiry('wc', 'seen <= now() - interval ''1 h''')")
    conn.execute("insert into pgcombine.wc_updates (word, n, seen) values ('a', 1, now())")
    assert expire(conn) == 0
    combine_all(conn)
    assert [(word, n) for word, n, _ in rows(conn, "wc_values")] == [("a", 2)]


def test_a_quarantined_key_stays_until_it_is_released(conn: psycopg.Connection) -> None:
    make_queue(conn, delete_when=None)
    add(conn, {"a": 1, "b": 1})
    combine_all(conn)
    add(conn, {"a": 1})
    hold(conn, word="a")
    conn.execute("select pgcombine.set_expiry('wc', 'n <= 10')")
    assert expire(conn) == 1
    assert values(conn) == {"a": 1}
    conn.execute("select pgcombine.drop_quarantined('wc', null)")
    assert expire(conn) == 1
    assert values(conn) == {}


def test_a_paused_queue_is_left_alone(conn: psycopg.Connection) -> None:
    expiring(conn)
    conn.execute("select pgcombine.pause('wc')")
    assert expire(conn) == 0
    conn.execute("select pgcombine.resume('wc')")
    assert expire(conn) == 1


def test_expire_removes_more_keys_than_one_pass(conn: psycopg.Connection) -> None:
    make_queue(conn, delete_when=None, buckets=1)
    write_values(conn, "insert into pgcombine.wc_values select g::text, g % 2 from generate_series(1, 50000) g")
    conn.execute("select pgcombine.set_expiry('wc', 'n <= 0')")
    assert expire(conn) == 25_000
    assert one(conn, "select count(*) from pgcombine.wc_values where n = 1") == 25_000
    assert one(conn, "select coalesce(sum(updates), 0) from pgcombine.pass") == 0, "the journal counts no expired keys"


def test_expire_works_for_buckets_that_share_a_partition(conn: psycopg.Connection) -> None:
    make_queue(conn, delete_when=None, buckets=4, buckets_per_partition=4)
    write_values(conn, "insert into pgcombine.wc_values select g::text, 0 from generate_series(1, 1000) g")
    conn.execute("select pgcombine.set_expiry('wc', 'n <= 0')")
    assert expire(conn) == 1000


@pytest.mark.wc
def test_invalid_conditions_are_refused(conn: psycopg.Connection) -> None:
    for condition, why in {
        "nosuch > 1": "nosuch",
        "n": "boolean",
        "n >": "syntax error",
        "n > (select 1)": "subquer",
        "random() > 0.5": "volatile",
        "clock_timestamp() > now()": "volatile",
        "count(*) > 1": "aggregate",
        "true); drop table pgcombine.queue; --": "multi-query",
    }.items():
        with raises_state("PC003", why):
            conn.execute("select pgcombine.set_expiry('wc', %s)", (condition,))
    with raises_state("PC003"):
        conn.execute("select pgcombine.set_expiry('wc', 'n <= 0', every => '-1 s')")
    conn.execute("select pgcombine.set_expiry('wc', 'word <= ''a'' and n <= 0 and now() is not null')")
    assert conn.execute("select * from pgcombine.verify('wc')").fetchall() == []
    conn.execute("select pgcombine.set_expiry('wc', null)")
    assert one(conn, "select expire_when from pgcombine.queue") is None


@pytest.mark.wc
def test_expire_is_refused_in_a_transaction(conn: psycopg.Connection) -> None:
    assert expire(conn) == 0
    with conn.transaction(), raises_state("PC003"):
        conn.execute("call pgcombine.expire('wc')")
    with raises_state("PC001"):
        conn.execute("call pgcombine.expire('nosuch')")


def test_initialize_leaves_out_expired_keys(conn: psycopg.Connection) -> None:
    make_queue(conn, delete_when=None, expire_when="n <= 0")
    with conn.transaction():
        assert CombineQueue("wc").initialize(conn, [("a", 0), ("b", 1)]) == 1
    assert values(conn) == {"b": 1}


def test_a_copy_on_another_server_has_the_same_condition(conn: psycopg.Connection) -> None:
    make_queue(conn, expire_when="n <= 0", expire_silently=True, expire_every="1 h")
    call = one(conn, "select definition from pgcombine_internal.handoff_copy_sql('wc', null, 'b')")
    conn.execute("select pgcombine.drop_queue('wc')")
    conn.execute(call.encode())
    found = conn.execute("select expire_when, expire_silently, expire_every::text from pgcombine.queue").fetchall()
    assert found == [("(n <= 0)", True, "01:00:00")]


def test_condition_may_contain_names_that_need_quotes(conn: psycopg.Connection) -> None:
    make_queue(
        conn,
        key=["a int", '"B %" date'],
        value=['"v %" jsonb jsonb_merge'],
        delete_when=None,
        expire_when='"v %" = \'{"gone": "{a} {keys} %1$s"}\' and "B %" <= current_date',
    )
    write_values(
        conn,
        "insert into pgcombine.wc_values values "
        """(1, '2024-02-29', '{"gone": "{a} {keys} %1$s"}'), (2, '2024-02-29', '{"gone": "no"}')""",
    )
    conn.execute("""insert into pgcombine.wc_updates values (3, '2024-02-29', '{"gone": "{a} {keys} %1$s"}')""")
    assert expire(conn) == 1
    combine_all(conn)
    assert [row[0] for row in rows(conn, "wc_values")] == [2]
    assert conn.execute("select * from pgcombine.verify('wc')").fetchall() == []


@pytest.mark.slow  # expire waits five seconds for the locked bucket
def test_expire_skips_a_busy_bucket(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, delete_when=None, buckets=2)
    write_values(conn, "insert into pgcombine.wc_values select g::text, 0 from generate_series(1, 100) g")
    conn.execute("select pgcombine.set_expiry('wc', 'n <= 0')")
    of_first = one(conn, "select count(*) from pgcombine.wc_values_b0000")
    with psycopg.connect(dsn) as other:
        other.execute("select pgcombine_internal.claim_bucket('wc', 0)")
        assert expire(conn) == 100 - of_first
    assert expire(conn) == of_first


def test_a_condition_that_raises_removes_nothing(conn: psycopg.Connection) -> None:
    make_queue(conn, delete_when=None, buckets=1)
    write_values(conn, "insert into pgcombine.wc_values values ('a', 1), ('b', 0), ('c', 20)")
    conn.execute("select pgcombine.set_expiry('wc', '10 / n <= 1')")
    with pytest.raises(psycopg.errors.DivisionByZero):
        expire(conn)
    assert values(conn) == {"a": 1, "b": 0, "c": 20}
    conn.execute("select pgcombine.set_expiry('wc', '10 / nullif(n, 0) <= 1')")
    assert expire(conn) == 1
    assert values(conn) == {"a": 1, "b": 0}


def fail_expiry(conn: psycopg.Connection, sqlstate: str, error: str) -> None:
    """Record a failed pass over expired keys. Then run a pass, which succeeds and moves the record to ``expiry``."""
    conn.execute("select pgcombine_internal.fail_pass('wc', 0, %s, %s)", (sqlstate, error))
    conn.execute("select pgcombine.combine('wc', 0)")
    assert rows(conn, "failure") == []


def failed(conn: psycopg.Connection) -> list[tuple[Any, ...]]:
    return conn.execute("select failed_page, sqlstate, error from pgcombine.expiry order by bucket").fetchall()


def test_a_failing_key_keeps_the_pages_around_it_and_no_others(conn: psycopg.Connection) -> None:
    make_queue(conn, delete_when=None, buckets=1)
    conn.execute("alter table pgcombine.wc_values_b0000 set (fillfactor = 10)")  # so that pages have few rows
    write_values(
        conn, "insert into pgcombine.wc_values select rpad(g::text, 800, '.'), 20 from generate_series(1, 2500) g"
    )
    write_values(conn, "update pgcombine.wc_values set n = 0 where word like '1100.%'")
    conn.execute("select pgcombine.set_expiry('wc', '10 / n <= 1')")
    with pytest.raises(psycopg.errors.DivisionByZero):
        expire(conn)
    assert 0 < one(conn, "select count(*) from pgcombine.wc_values") <= 1024
    (failure,) = failed(conn)
    assert failure[0] in (0, 1024, 2048)
    assert failure[1:] == ("22012", "division by zero")
    write_values(conn, "delete from pgcombine.wc_values where n = 0")
    assert expire(conn) > 0
    assert rows(conn, "wc_values") == []
    assert failed(conn) == [(None, None, None)]


def test_expire_ends_if_all_its_passes_fail(conn: psycopg.Connection) -> None:
    make_queue(conn, delete_when=None, buckets=2)
    conn.execute("create table history (word text)")
    conn.execute("select pgcombine.add_observer('wc', 'history', 'insert into history select word from changes')")
    write_values(conn, "insert into pgcombine.wc_values select g::text, 0 from generate_series(1, 10) g")
    conn.execute("drop table history")
    conn.execute("select pgcombine.set_expiry('wc', 'n <= 0')")
    with pytest.raises(psycopg.errors.UndefinedTable):
        expire(conn)
    assert failed(conn) == [(0, "42P01", 'relation "history" does not exist')] * 2
    assert conn.execute("select page from pgcombine.expiry").fetchall() == [(0,), (0,)]
    assert conn.execute("select * from pgcombine_internal.due()").fetchall() == [], (
        "the next attempt is due after expire_every"
    )


def test_failed_assertion_of_an_observer_fails_one_bucket(conn: psycopg.Connection) -> None:
    make_queue(conn, delete_when=None, buckets=2)
    words = [word_in(conn, bucket) for bucket in range(2)]
    conn.execute("create table history (word text)")
    conn.execute(
        "create function checked(word text) returns text language plpgsql as "
        f"$$ begin assert word <> '{words[0]}', 'not this word'; return word; end $$"
    )
    conn.execute(
        "select pgcombine.add_observer('wc', 'history', 'insert into history select checked(word) from changes')"
    )
    write_values(conn, "insert into pgcombine.wc_values select unnest(%s::text[]), 0", (words,))
    conn.execute("select pgcombine.set_expiry('wc', 'n <= 0')")
    with pytest.raises(psycopg.errors.AssertFailure):
        expire(conn)
    assert values(conn) == {words[0]: 0}
    assert [failure[1] for failure in failed(conn)] == ["P0004", None]


def test_deferred_constraint_fails_one_bucket(conn: psycopg.Connection) -> None:
    make_queue(conn, delete_when=None, buckets=2)
    conn.execute("create table history (word text unique deferrable initially deferred)")
    conn.execute("select pgcombine.add_observer('wc', 'history', 'insert into history select word from changes')")
    words = [word_in(conn, bucket) for bucket in range(2)]
    write_values(conn, "insert into pgcombine.wc_values select unnest(%s::text[]), 0", (words,))
    conn.execute("insert into history values (%s)", (words[0],))
    conn.execute("select pgcombine.set_expiry('wc', 'n <= 0')")
    with pytest.raises(psycopg.errors.UniqueViolation):
        expire(conn)
    assert rows(conn, "wc_values") == [(words[0], 0)]
    assert [failure[1] for failure in failed(conn)] == ["23505", None]


def test_failure_does_not_delay_a_new_condition(conn: psycopg.Connection) -> None:
    make_queue(conn, buckets=1, expire_when="n <= 0")
    conn.execute("select pgcombine_internal.fail_pass('wc', 0, '57014', 'timeout')")
    conn.execute("select pgcombine.set_expiry('wc', 'n <= 1')")
    conn.execute("select pgcombine.combine('wc', 0)")
    assert failed(conn) == [(None, None, None)]
    assert conn.execute("select * from pgcombine_internal.due()").fetchall() == [("wc", 0)]


def test_failing_updates_do_not_delay_expiry(conn: psycopg.Connection) -> None:
    make_queue(conn, buckets=1, expire_when="n <= 0")
    for _ in range(2):
        conn.execute("select pgcombine_internal.fail_pass('wc', 0, '22003', 'out of range')")
    conn.execute("select pgcombine.combine('wc', 0)")
    assert failed(conn) == [(None, None, None)]
    assert conn.execute("select * from pgcombine_internal.due()").fetchall() == [("wc", 0)]


def test_pass_over_a_part_of_the_updates_removes_no_expired_key(conn: psycopg.Connection) -> None:
    make_queue(conn, buckets=1, expire_when="n <= 0", pass_limit=10)
    conn.execute("insert into pgcombine.wc_updates select g::text, 1 from generate_series(1, 20) g")
    conn.execute("select pgcombine_internal.fail_pass('wc', 0, '22003', 'out of range')")
    assert conn.execute("select page from pgcombine.failure").fetchall() == [(None,)]
    combine_all(conn)
    assert rows(conn, "failure") == []
    assert failed(conn) == [(None, None, None)]


def test_failure_ends_if_its_pages_no_longer_exist(conn: psycopg.Connection) -> None:
    make_queue(conn, delete_when=None, buckets=1, expire_when="n <= 0")
    conn.execute("update pgcombine.expiry set page = 4096")
    fail_expiry(conn, "57014", "timeout")
    assert failed(conn) == [(4096, "57014", "timeout")]
    expire(conn)
    assert failed(conn) == [(None, None, None)]


def test_new_condition_clears_failures(conn: psycopg.Connection) -> None:
    make_queue(conn, buckets=1, expire_when="n <= 0")
    fail_expiry(conn, "57014", "timeout")
    conn.execute("select pgcombine.set_expiry('wc', null)")
    assert failed(conn) == [(None, None, None)]


def test_condition_means_the_same_in_sessions_with_other_date_styles(conn: psycopg.Connection) -> None:
    conn.execute("set datestyle = 'SQL, DMY'; set intervalstyle = 'sql_standard'")
    condition = "day < '02/03/2026'::date and age(day) > '-1 2:00:00'::interval"
    make_queue(conn, key=["day date"], delete_when=None, expire_when=condition)
    (stored,) = conn.execute("select expire_when from pgcombine.queue").fetchone() or ()
    conn.execute("reset datestyle; reset intervalstyle")
    assert "2026-03-02" in stored
    assert "-1 days -02:00:00" in stored
