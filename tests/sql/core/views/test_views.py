"""The views ``<queue>_pending``, ``<queue>_current`` and ``pgcombine.status``."""

from __future__ import annotations

import re

import psycopg
import pytest
from support.queues import add, combine_all, current, hold, make_queue, one, rows, values, word_in


def test_current_is_values_and_pending_together(tx: psycopg.Connection) -> None:
    make_queue(tx, buckets=5)
    assert current(tx) == {}
    for updates, expected in (
        ([("cat", 2), ("dog", 5)], {"cat": 2, "dog": 5}),
        ([("cat", 1), ("dog", 1)], {"cat": 3, "dog": 6}),
        ([("cat", 1), ("dog", 1), ("fish", 2)], {"cat": 4, "dog": 7, "fish": 2}),
        ([("cat", 1), ("dog", -7)], {"cat": 5, "fish": 2}),
    ):
        add(tx, updates)
        assert current(tx) == expected
        if "fish" in expected:
            combine_all(tx)
            assert current(tx) == values(tx) == expected


def test_materialized_view_may_read_current(tx: psycopg.Connection, role: str) -> None:
    """In REFRESH MATERIALIZED VIEW, the function pgcombine_internal.caller would raise an error."""
    make_queue(tx)
    add(tx, {"a": 1})
    tx.execute(
        f"create schema kept authorization {role}; select pgcombine.grant_right('read', '{role}', 'wc');"
        f" set role {role}"
    )
    tx.execute("create materialized view kept.words as select * from pgcombine.wc_current; reset role")
    add(tx, {"a": 1})
    tx.execute("refresh materialized view kept.words")
    assert tx.execute("select * from kept.words").fetchall() == [("a", 2)]


def test_current_does_not_mix_up_keys(tx: psycopg.Connection) -> None:
    make_queue(tx, key=["a text", "b text"])
    tx.execute("insert into pgcombine.wc_updates values ('ab', 'c', 1), ('a', 'bc', 2), ('ab', '', 4), ('', 'ab', 8)")
    assert tx.execute("select n from pgcombine.wc_current where a = 'ab'").fetchall() == [(1,), (4,)] or (
        sorted(tx.execute("select n from pgcombine.wc_current where a = 'ab'").fetchall()) == [(1,), (4,)]
    )
    assert one(tx, "select n from pgcombine.wc_current where (a, b) = ('a', 'bc')") == 2


@pytest.mark.wc
def test_pending_shows_every_update(conn: psycopg.Connection) -> None:
    add(conn, [("a", 1), ("a", 1), ("b", 2)])
    assert rows(conn, "wc_pending") == [("a", 1), ("a", 1), ("b", 2)]
    assert one(conn, "select pgcombine.backlog('wc')") == 3
    conn.execute("insert into pgcombine.wc_updates (word, n) values ('c', null)")
    assert one(conn, "select pgcombine.backlog('wc')") == 4
    combine_all(conn)
    assert rows(conn, "wc_pending") == []
    assert one(conn, "select pgcombine.backlog('wc')") == 0


def test_status_counts_by_queue(tx: psycopg.Connection) -> None:
    make_queue(tx, "a", buckets=2)
    make_queue(tx, "b", buckets=3)
    add(tx, {"x": 1, "y": 1}, "a")
    tx.execute("select pgcombine.pause('b')")
    found = tx.execute("select queue, buckets, paused, backlog from pgcombine.status order by 1").fetchall()
    assert found == [("a", 2, False, 2), ("b", 3, True, 0)]


def test_status_shows_quarantined_updates_and_failing_buckets(tx: psycopg.Connection, role: str) -> None:
    make_queue(tx, buckets=1)
    make_queue(tx, "well")
    figures = (
        "select queue, backlog, quarantined_keys, quarantined_updates, failing_buckets from pgcombine.status order by 1"
    )
    assert tx.execute(figures).fetchall() == [("wc", 0, 0, 0, 0), ("well", 0, 0, 0, 0)]
    add(tx, [("bad", 1), ("bad", 1)])
    hold(tx, word="bad")
    add(tx, {"good": 1})
    tx.execute("select pgcombine_internal.fail_pass('wc', 0, null, 'why')")
    tx.execute("select pgcombine.grant_right('monitor', %s)", (role,))
    assert tx.execute(figures).fetchall() == [("wc", 1, 1, 2, 1), ("well", 0, 0, 0, 0)]
    tx.execute(f"set role {role}")
    assert tx.execute(figures).fetchall() == [("wc", 1, 1, 2, 1), ("well", 0, 0, 0, 0)]


@pytest.mark.wc(buckets=2)
def test_bucket_status_counts_its_updates(conn: psycopg.Connection) -> None:
    add(conn, [(word_in(conn, 1), 1)] * 3)
    backlogs = conn.execute(
        "select b, (pgcombine_internal.bucket_status('wc', b)).backlog from generate_series(0, 1) b order by 1"
    ).fetchall()
    assert backlogs == [(0, 0), (1, 3)]
    assert one(conn, "select lag_seconds from pgcombine_internal.bucket_status('wc', 0)") == 0


def test_the_catalog_is_readable_by_everybody_and_the_data_are_not(tx: psycopg.Connection, role: str) -> None:
    make_queue(tx)
    tx.execute(f"set role {role}")
    assert [row[0] for row in rows(tx, "queue")] == ["wc"]
    privileges = "select has_table_privilege('pgcombine.' || %s, 'select, insert')"
    assert [one(tx, privileges, f"wc_{what}") for what in ("updates", "values", "pending", "current")] == [False] * 4


MOST = {"smallint": 2**15 - 1, "integer": 2**31 - 1, "bigint": 2**63 - 1}
OVERFLOWS = [  # a type, and a value whose double exceeds the type's range
    *(pytest.param(kind, str(most), id=kind) for kind, most in MOST.items()),
    *(pytest.param(kind, str(-most), id=f"-{kind}") for kind, most in MOST.items()),
    ("numeric(5,2)", "999.99"),
    ("numeric(3,-2)", "99900"),
    ("numeric", "9e131071"),
    ("real", "3e38"),
    ("double precision", "1.5e308"),
    ("interval", "178956970 years"),
    ("few", "60"),
]


@pytest.mark.parametrize(("kind", "most"), OVERFLOWS)
def test_a_sum_beyond_its_type_is_null_and_fails_no_reader(tx: psycopg.Connection, kind: str, most: str) -> None:
    tx.execute("create domain few as int check (value < 100)")
    make_queue(tx, value=[f"n {kind} sum", "m bigint max"], delete_when=None, buckets=2)
    small = {"interval": "1 day", "numeric(3,-2)": "100"}.get(kind, "1")

    def put(word: str, n: str) -> None:
        tx.execute("insert into pgcombine.wc_updates values (%s, %s, 7)", (word, n))

    def read(where: str = "true") -> dict[str, str | None]:
        query = f"select word, n::text, m from pgcombine.wc_current where {where}"  # noqa: S608
        return {word: n for word, n, m in tx.execute(query.encode()) if m == 7}

    warned: list[str] = []
    tx.add_notice_handler(lambda notice: warned.append(str(notice.message_primary)))
    put("good", small)
    put("bad", most)
    alone = read()
    assert None not in alone.values()
    combine_all(tx)
    assert read() == alone
    put("good", small)
    put("bad", most)
    put("among", most)
    put("among", most)
    assert warned == []
    assert read("word = 'bad'") == {"bad": None}
    found = read()
    assert (found.pop("bad"), found.pop("among")) == (None, None)
    assert found == read("word = 'good'") == read("n is not null")
    assert found["good"] not in (None, alone["good"])
    assert len(warned) == 5
    assert all(re.match(r'column "n" of key \((bad|among)\) in wc_current is null: its updates', w) for w in warned)
    with pytest.raises((psycopg.errors.DataError, psycopg.errors.CheckViolation)):
        hold(tx, word="among")  # runs a pass, in which "bad" overflows
    hold(tx, word="bad")
    assert read() == found | {"bad": alone["bad"]}


@pytest.mark.wc(buckets=1)
def test_overflowing_sum_is_shown_although_delete_when_names_it(conn: psycopg.Connection) -> None:
    add(conn, [("bad", 2**63 - 1), ("bad", 1), ("gone", 1), ("gone", -1), ("good", 1)])
    warned: list[str] = []
    conn.add_notice_handler(lambda notice: warned.append(str(notice.message_primary)))
    assert current(conn) == {"bad": None, "good": 1}
    assert len(warned) == 1
    add(conn, {"bad": -5})
    assert current(conn) == {"bad": 2**63 - 5, "good": 1}


def test_nan_is_a_sum_and_null_is_no_overflow(tx: psycopg.Connection) -> None:
    make_queue(tx, value=["n numeric(5,2) sum", "m double precision sum"], delete_when=None, buckets=1)
    tx.execute("insert into pgcombine.wc_updates values ('a', 'NaN', 'NaN'), ('a', 1, 'inf'), ('b', null, null)")
    warned: list[object] = []
    tx.add_notice_handler(warned.append)
    found = tx.execute("select word, n::text, m::text from pgcombine.wc_current order by 1").fetchall()
    assert found == [("a", "NaN", "NaN"), ("b", None, None)]
    assert warned == []


def test_users_combiner_that_raises_fails_readers_of_its_key(tx: psycopg.Connection) -> None:
    tx.execute("create function plus(a int, b int) returns int immutable strict language sql return a + b")
    make_queue(tx, value=["n int plus"], delete_when=None, buckets=2)
    add(tx, [("good", 1), ("bad", 2**31 - 1), ("bad", 1)])
    assert tx.execute("select n from pgcombine.wc_current where word = 'good'").fetchall() == [(1,)]
    with pytest.raises(psycopg.errors.NumericValueOutOfRange):
        current(tx)
