"""The views: <queue>_pending, <queue>_current, status."""

from __future__ import annotations

import psycopg
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


def test_current_does_not_mix_up_keys(tx: psycopg.Connection) -> None:
    make_queue(tx, key=["a text", "b text"])
    tx.execute("insert into pgcombine.wc_updates values ('ab', 'c', 1), ('a', 'bc', 2), ('ab', '', 4), ('', 'ab', 8)")
    assert tx.execute("select n from pgcombine.wc_current where a = 'ab'").fetchall() == [(1,), (4,)] or (
        sorted(tx.execute("select n from pgcombine.wc_current where a = 'ab'").fetchall()) == [(1,), (4,)]
    )
    assert one(tx, "select n from pgcombine.wc_current where (a, b) = ('a', 'bc')") == 2


def test_pending_shows_every_update(tx: psycopg.Connection) -> None:
    make_queue(tx)
    add(tx, [("a", 1), ("a", 1), ("b", 2)])
    assert rows(tx, "wc_pending") == [("a", 1), ("a", 1), ("b", 2)]
    assert one(tx, "select pgcombine.backlog('wc')") == 3
    tx.execute("insert into pgcombine.wc_updates (word, n) values ('c', null)")
    assert one(tx, "select pgcombine.backlog('wc')") == 4
    combine_all(tx)
    assert rows(tx, "wc_pending") == []
    assert one(tx, "select pgcombine.backlog('wc')") == 0


def test_status_counts_by_queue(tx: psycopg.Connection) -> None:
    make_queue(tx, "a", buckets=2)
    make_queue(tx, "b", buckets=3)
    add(tx, {"x": 1, "y": 1}, "a")
    tx.execute("select pgcombine.pause('b')")
    found = tx.execute("select queue, buckets, paused, backlog from pgcombine.status order by 1").fetchall()
    assert found == [("a", 2, False, 2), ("b", 3, True, 0)]


def test_status_shows_what_is_held_and_what_fails(tx: psycopg.Connection, role: str) -> None:
    make_queue(tx, buckets=1)
    make_queue(tx, "well")
    figures = "select queue, backlog, quarantined_keys, held_updates, failing_buckets from pgcombine.status order by 1"
    assert tx.execute(figures).fetchall() == [("wc", 0, 0, 0, 0), ("well", 0, 0, 0, 0)]
    add(tx, [("bad", 1), ("bad", 1)])
    hold(tx, word="bad")
    add(tx, {"good": 1})
    tx.execute("select pgcombine_internal.fail_pass('wc', 0, null, 'why')")
    tx.execute(f"grant select on pgcombine.status, pgcombine.wc_updates_b0000 to {role}")
    tx.execute(f"grant select on pgcombine.wc_updates, pgcombine.well_updates to {role}")
    assert tx.execute(figures).fetchall() == [("wc", 1, 1, 2, 1), ("well", 0, 0, 0, 0)]
    tx.execute(f"set role {role}")
    assert tx.execute(f"{figures} limit 1").fetchall() == [("wc", 1, 1, 2, 1)]


def test_bucket_status(tx: psycopg.Connection) -> None:
    make_queue(tx, buckets=2)
    add(tx, [(word_in(tx, 1), 1)] * 3)
    backlogs = tx.execute(
        "select b, (pgcombine_internal.bucket_status('wc', b)).backlog from generate_series(0, 1) b order by 1"
    ).fetchall()
    assert backlogs == [(0, 0), (1, 3)]
    assert one(tx, "select lag_seconds from pgcombine_internal.bucket_status('wc', 0)") == 0


def test_the_catalog_is_readable_by_everybody_and_the_data_are_not(tx: psycopg.Connection, role: str) -> None:
    make_queue(tx)
    tx.execute(f"set role {role}")
    assert [row[0] for row in rows(tx, "queue")] == ["wc"]
    privileges = "select has_table_privilege('pgcombine.' || %s, 'select, insert')"
    assert [one(tx, privileges, f"wc_{what}") for what in ("updates", "values", "pending", "current")] == [False] * 4
