"""Attached tables under random statements: see ``attached_statements``. Mutants show that it would tell."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import psycopg
import pytest
from support.mutants import mutate_functions
from support.servers import embedded_only
from support.tiers import each_nth

from .attached_statements import REFUSALS, SHAPES, Table, Wrong, circumstances, run, run_many

STATEMENTS = 60


@pytest.mark.parametrize("shape", each_nth(2, SHAPES))
def test_a_few_statements(conn: psycopg.Connection, shape: str) -> None:
    """The same ones each time, then others."""
    for seed in (1, random.randrange(10**6)):
        table = Table.make(conn, random.Random(f"{shape} {seed}"), shape)
        try:
            done = run(table, STATEMENTS)
        except Wrong as wrong:
            pytest.fail(f"seed {seed}: {wrong}")
        assert sum(times for kind, times in done.items() if " " not in kind) > STATEMENTS / 2, done


@pytest.mark.parametrize("shape", ["plain", "deep", "heirs"])
def test_several_sessions_at_once(conn: psycopg.Connection, dsn: str, shape: str) -> None:
    """Rows that another session changes while a statement waits for it."""
    seed = random.randrange(10**6)
    table = Table.make(conn, random.Random(seed), shape, secured=False, cascade=False)

    def work(number: int) -> int:
        done = 0
        with psycopg.connect(dsn, autocommit=True, options="-c search_path=public") as session:
            mine = replace(table, conn=session, chance=random.Random(f"{seed} {number}"))
            kinds, weights = zip(*mine.statements(), strict=True)
            for _ in range(STATEMENTS):
                statement = mine.chance.choices(kinds, weights)[0]
                if statement == mine.new_partition:
                    continue
                try:
                    with circumstances(mine):
                        mine.run(statement())
                    done += 1
                except (psycopg.errors.OperationalError, psycopg.errors.SerializationFailure, *REFUSALS):
                    pass  # a deadlock, an old snapshot, a row that moved
                except psycopg.Error as error:
                    if error.sqlstate != "PC003":
                        raise
        return done

    with ThreadPoolExecutor(4) as pool:
        done = list(pool.map(work, range(4)))
    assert sum(done) > STATEMENTS, done
    table.compare(f"sessions with seed {seed}")
    assert conn.execute("select problem from pgcombine.verify('words', recount => true)").fetchall() == []


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_thousands_of_statements(conn: psycopg.Connection) -> None:
    done = run_many(conn, random.randrange(10**6), 3_000)
    assert sum(times for kind, times in done.items() if " " not in kind) > 1_500, done


# each with the shape and the options of the table that tells, and what it replaces in the functions
MUTANTS: dict[str, tuple[str, dict[str, bool], dict[str, str]]] = {
    "transition tables for partitions": (
        "partitioned",
        {},
        {"s.relkind = 'p'": "false", "in (i.inhparent, i.inhrelid)": "in (1)"},
    ),
    "transition tables for a partition": (
        "leaf",
        {},
        {"in (i.inhparent, i.inhrelid)": "in (1)", "i.inhrelid = check": "1 = check"},
    ),
    "truncate takes back the rows of all": ("heirs", {}, {"'only ' || _relation": "_relation::text"}),
    "truncate sees what its role sees": (
        "plain",
        {"secured": True},
        {"row_security_active(case": "false and row_security_active(case"},
    ),
    "new partitions are truncated unseen": (
        "partitioned",
        {"secured": False},
        {"t.relation and c.relkind = 'p'": "t.relation and false"},
    ),
    "an update of a row adds only": (
        "deep",
        {},
        {"attached_statement(_a, _old, _new)": "attached_statement(_a, null, _new)"},
    ),
}


def run_tables(conn: psycopg.Connection, shape: str, options: dict[str, bool]) -> None:
    for seed in range(20):
        run(Table.make(conn, random.Random(seed), shape, **options), STATEMENTS)


@pytest.mark.slow
@embedded_only
@pytest.mark.parametrize("mutant", MUTANTS)
def test_mutants_are_told(conn: psycopg.Connection, mutant: str) -> None:
    shape, options, changes = MUTANTS[mutant]
    for old, new in changes.items():
        mutate_functions(conn, old, new)
    with pytest.raises(Wrong, match=r"\(queue, recount\)|verify"):
        run_tables(conn, shape, options)


@pytest.mark.slow
@embedded_only
def test_a_mutant_that_reads_virtual_columns_as_they_are(conn: psycopg.Connection) -> None:
    mutate_functions(conn, "bool_or(a.attgenerated = 'v')", "false")
    with pytest.raises(Wrong, match=r"\(queue, recount\)"):
        run_tables(conn, "plain", {"virtual": True})
