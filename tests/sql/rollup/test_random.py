"""Rollups under the random statements of the module ``statements``, which must also detect the mutants."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace

import psycopg
import pytest
from support.mutants import beyond_the_mark, late_mark, mutate_functions
from support.servers import embedded_only
from support.tiers import each_nth

from .statements import SHAPES, Table, Wrong, change, crowd, run

STATEMENTS = 60


def run_tables(conn: psycopg.Connection, dsn: str, shape: str, seeds: list[object], **options: bool) -> Counter[str]:
    total: Counter[str] = Counter()
    with psycopg.connect(dsn) as snapshot:
        for seed in seeds:
            table = Table.make(conn, random.Random(f"{shape} {seed}"), shape, **options)
            try:
                done = run(table, STATEMENTS, snapshot)
            except Wrong as wrong:
                raise Wrong(f"seed {seed}: {wrong}") from wrong
            finally:
                snapshot.rollback()
                table.close()
            assert sum(times for kind, times in done.items() if " " not in kind) > STATEMENTS / 2, done
            total += done
    return total


@pytest.mark.parametrize("shape", SHAPES)
def test_a_view_equals_its_query_after_each_statement(conn: psycopg.Connection, dsn: str, shape: str) -> None:
    """The first series of statements has a fixed seed, the second one a random seed."""
    run_tables(conn, dsn, shape, [1, random.randrange(10**6)])


@pytest.mark.parametrize("shape", each_nth(2, ["plain", "deep", "heirs"]))
def test_views_equal_their_queries_while_sessions_write(conn: psycopg.Connection, dsn: str, shape: str) -> None:
    compare_sessions(conn, dsn, shape, sessions=4, statements=STATEMENTS)


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_view_equals_its_query_after_thousands_of_statements(conn: psycopg.Connection, dsn: str, shape: str) -> None:
    done = run_tables(conn, dsn, shape, [random.randrange(10**6) for _ in range(8)])
    kinds = {kind.__name__ for kind, _ in Table.make(conn, random.Random(1), shape, cascade=False).statements()}
    assert kinds <= set(done), done
    assert done["compared snapshots"] > 10, done
    compare_sessions(conn, dsn, shape, sessions=8, statements=5 * STATEMENTS)


def compare_sessions(conn: psycopg.Connection, dsn: str, shape: str, sessions: int, statements: int) -> None:
    seed = random.randrange(10**6)
    table = Table.make(conn, random.Random(seed), shape, secured=False, cascade=False)
    with crowd(table, dsn, sessions) as at_work:
        while at_work.fewer_than(sessions * statements, snapshots=statements // 10):
            with suppress(psycopg.OperationalError):  # such as a deadlock
                table.keep_up()
                if table.chance.random() < 0.1:
                    change(replace(table, rollup=None), "change_parts", alone=False)
    table.settle()


# the shape and the options of a table, and the texts that the mutant replaces in functions, each with its replacement
Mutant = tuple[str, dict[str, bool], dict[str, str]]
MUTANTS: dict[str, Mutant] = {
    "transition tables for partitions": (
        "partitioned",
        {},
        {"s.relkind = 'p'": "false", "in (i.inhparent, i.inhrelid)": "in (1)"},
    ),
    "truncate takes back the rows of all": ("heirs", {}, {"format('only %s', _relation)": "_relation::text"}),
    "new partitions are truncated unseen": (
        "deep",
        {"watched": False},
        {"t.relation and c.relkind = 'p'": "t.relation and false"},
    ),
    "a partition that goes leaves its rows": (
        "deep",
        {"watched": True},
        {"if _any then": "if _any and _part.comes then"},
    ),
    "an heir that comes leaves its rows out": ("heirs", {"watched": True}, {"if _any then": "if not _part.comes then"}),
    "truncate is not counted": (
        "plain",
        {},
        {"execute format('with pgcombine_old as (select * from %s) ', _from) || statement;": "null;"},
    ),
    "an update of a statement adds only": (
        "plain",
        {},
        {"(rollup, _old_rows, _new_rows)": "(rollup, null, _new_rows)"},
    ),
    "a deletion of a row is not counted": ("partitioned", {}, {"{deleted_row};": "null;"}),
    "unchanged sums touch no key": (
        "plain",
        {},
        {"where (rollup).definition #>> '{computed,columns}' is null": "where true"},
    ),
    "columns are computed without the filter": (
        "plain",
        {},
        {"(rollup).definition ->> 'filter',\n            case when source": "case when source"},
    ),
    "backfill touches no extreme": (
        "plain",
        {},
        {
            "'extreme' and sign not in ('-', '<')": "'extreme' and sign = '+'",
            "'taken' and sign not in ('+', '^')": "'taken' and sign in ('-', '<')",
        },
    ),
    "backfill enqueues known rows, too": ("plain", {}, {"then format('-%I', s": "then format('0 * %I', s"}),
    "an update of a row adds only": ("deep", {}, {"statement(rollup, _old, _new)": "statement(rollup, null, _new)"}),
    "virtual columns are read as they are": (
        "plain",
        {"virtual": True},
        {"pgcombine_internal.printed_sql(d.adrelid, d.adbin),": "'null',"},
    ),
    "an extreme that goes stays": ("plain", {}, {"format('u.%2$I is not null and": "format('u.%2$I is null and"}),
    "the view shows stored extremes": ("plain", {}, {"case when q.pgcombine_touched then q": "case when false then q"}),
    "equal rows count once": ("plain", {}, {"except all select": "except select"}),
    "infinities count as minus infinities": ("plain", {}, {"({x}) = ''Infinity": "({x}) = ''-Infinity"}),
    "backfill forgets what is pending": (
        "plain",
        {},
        {"array['_values', '_pending', '_quarantine']": "array['_values']"},
    ),
}


@pytest.mark.slow
@embedded_only
@pytest.mark.parametrize("mutant", MUTANTS)
def test_random_statements_detect_each_mutant(conn: psycopg.Connection, dsn: str, mutant: str) -> None:
    shape, options, changes = MUTANTS[mutant]
    for old, new in changes.items():
        mutate_functions(conn, old, new)
    with pytest.raises(Wrong) as told:
        run_tables(conn, dsn, shape, list(range(100)), **options)
    assert "\nfailed: " not in str(told.value)


@pytest.mark.slow
@embedded_only
@pytest.mark.parametrize("mutant", [late_mark, beyond_the_mark])
def test_concurrent_sessions_detect_mutants_of_passes(
    conn: psycopg.Connection, dsn: str, mutant: Callable[[psycopg.Connection], None]
) -> None:
    mutant(conn)
    with pytest.raises(Wrong):
        compare_sessions(conn, dsn, "plain", sessions=8, statements=1000)
