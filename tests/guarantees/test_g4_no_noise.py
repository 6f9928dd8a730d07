"""G4: a change is reported only if the old and the new value differ.

Mutants, which the tests must detect: passes that report every key with updates, and passes that report keys that had no
value and still have none.
"""

from __future__ import annotations

from collections.abc import Callable

import psycopg
import pytest
from support.audit import audit, audited
from support.mutants import mutate_functions
from support.queues import add, combine_all, enqueue, make_queue, one, rows

Steps = list[tuple[list[tuple[str, int]], list[tuple[str, int | None, int | None]]]]

QUIET: Steps = [
    ([("absent", 1), ("absent", -1)], []),
    ([("a", 0)], []),
    ([("a", 2), ("b", 1)], [("a", None, 2), ("b", None, 1)]),
    ([("a", 3), ("a", -3)], []),
    ([("a", 0), ("b", 1)], [("b", 1, 2)]),
    ([("a", -2), ("a", 2)], []),
    ([("a", -2), ("c", 1), ("c", -1)], [("a", 2, None)]),
    ([("a", -1), ("a", 1)], []),
]


def quiet(conn: psycopg.Connection) -> None:
    """Enqueue and combine the updates of each step, and compare the reported changes with those of the step."""
    for updates, changes in QUIET:
        conn.execute("truncate public.wc_audit")
        add(conn, updates)
        reported = sum(row[3] for row in combine_all(conn))
        assert sorted(audited(conn)) == changes, updates
        assert reported == len(changes)


@pytest.mark.parametrize("pass_limit", [1000, 1])
def test_updates_that_cancel_out_are_not_reported(conn: psycopg.Connection, pass_limit: int) -> None:
    make_queue(conn, buckets=1, pass_limit=pass_limit)
    audit(conn)
    quiet(conn)


CHANGES = "changes as (\n    {changes}\n)"
TOUCHED = """changes as (
    select word, old_n, case when not pgcombine_gone then n end as new_n from pgcombine_combined where {}
)"""


def reports_all(conn: psycopg.Connection) -> None:
    mutate_functions(conn, CHANGES, TOUCHED.format("true"))


def reports_absent_keys(conn: psycopg.Connection) -> None:
    mutate_functions(conn, CHANGES, TOUCHED.format("old_n is distinct from n"))


@pytest.mark.wc(buckets=1)
@pytest.mark.parametrize("mutant", [reports_all, reports_absent_keys])
def test_mutants_that_report_unchanged_keys_are_detected(
    conn: psycopg.Connection, mutant: Callable[[psycopg.Connection], None]
) -> None:
    audit(conn)
    mutant(conn)
    with pytest.raises(AssertionError):
        quiet(conn)


@pytest.mark.wc(buckets=1)
def test_observer_gets_no_unchanged_key(conn: psycopg.Connection) -> None:
    """An observer inserts a row for each pass with changes. It inserts none if the updates cancel out."""
    conn.execute("create table public.runs (changes bigint)")
    conn.execute(
        "select pgcombine.add_observer('wc', 'runs', "
        "'insert into public.runs select count(*) from changes having count(*) > 0')"
    )
    add(conn, [("a", 1), ("a", -1)])
    combine_all(conn)
    assert one(conn, "select count(*) from public.runs") == 0
    add(conn, {"a": 1})
    combine_all(conn)
    assert one(conn, "select count(*) from public.runs") == 1


@pytest.mark.wc(buckets=1)
def test_unchanged_values_are_not_written(conn: psycopg.Connection) -> None:
    add(conn, {"a": 5, "b": 5})
    combine_all(conn)
    stamps = "select string_agg(format('%s %s', ctid, xmin), ',' order by word) from pgcombine.wc_values"
    before = one(conn, stamps)
    add(conn, [("a", 1), ("a", -1), ("b", 0)])
    combine_all(conn)
    assert one(conn, stamps) == before


def test_min_and_max_report_only_changes(conn: psycopg.Connection) -> None:
    """Updates that keep the maximum and the minimum aren't reported. An update that lowers the minimum is reported."""
    make_queue(conn, value=["top int max", "low int min"], delete_when=None, buckets=1)
    conn.execute("create table public.seen (word text, old_top int, new_top int, old_low int, new_low int)")
    conn.execute(
        "select pgcombine.add_observer('wc', 'seen', "
        "'insert into public.seen select word, old_top, new_top, old_low, new_low from changes')"
    )
    enqueue(conn, {"word": "a", "top": 5, "low": 5})
    combine_all(conn)
    conn.execute("truncate public.seen")
    enqueue(conn, [{"word": "a", "top": 4, "low": 6}, {"word": "a", "top": 5}, {"word": "a"}])
    combine_all(conn)
    assert conn.execute("select * from public.seen").fetchall() == []
    enqueue(conn, {"word": "a", "top": 5, "low": 1})
    combine_all(conn)
    assert conn.execute("select * from public.seen").fetchall() == [("a", 5, 5, 5, 1)]
    assert rows(conn, "wc_values") == [("a", 5, 1)]
