"""Runs of ``fuzz``. In some, a function lets the hostile role harm the other queue, and fuzz must detect the harm."""

from __future__ import annotations

import random
from pathlib import Path

import psycopg
import pytest
from support.servers import embedded_only

from .fuzz import run

HOLES = (
    "perform set_config('pgcombine.initialize_other', 'on', true); update pgcombine.other_values set n = n + 1",
    "delete from pgcombine.spark_alive",
    "delete from pgcombine.handoff_hint where queue = 'other'",
    "delete from pgcombine.other_changes",
    "delete from pgcombine.feed_consumer",
    "grant select on pgcombine.other_values to public",
)


@embedded_only
@pytest.mark.timeout(300)
def test_hostile_calls_do_no_harm(dsn: str, tmp_path: Path) -> None:
    outcome = run(dsn, tmp_path / "worker.log", calls=100, seconds=120, seed=random.randrange(10**6))
    assert outcome.wrong == [], outcome
    assert outcome.calls >= 100
    assert outcome.updates


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_thousands_of_hostile_calls_do_no_harm(dsn: str, tmp_path: Path) -> None:
    outcome = run(dsn, tmp_path / "worker.log", calls=3_000, seconds=600, seed=random.randrange(10**6))
    assert outcome.wrong == [], outcome
    assert outcome.calls >= 3_000


@pytest.mark.slow
@embedded_only
@pytest.mark.timeout(300)
@pytest.mark.parametrize("does", HOLES)
def test_fuzz_detects_a_hole(conn: psycopg.Connection, dsn: str, tmp_path: Path, does: str) -> None:
    conn.execute(
        "create function pgcombine.hole() returns void language plpgsql security definer "
        f"set search_path = pg_catalog, pg_temp as $$ begin {does}; end $$".encode()
    )
    outcome = run(dsn, tmp_path / "worker.log", calls=40, seconds=60, seed=7, only="^hole$")
    assert outcome.wrong != [], outcome
