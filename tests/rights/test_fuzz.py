"""Short runs of ``fuzz``, and that it would notice a door."""

from __future__ import annotations

import random
from pathlib import Path

import psycopg
import pytest
from support.servers import embedded_only

from .fuzz import run

DOORS = (
    "perform set_config('pgcombine.initialize_other', 'on', true); update pgcombine.other_values set n = n + 1",
    "delete from pgcombine.spark_alive",
    "delete from pgcombine.handoff_hint where queue = 'other'",
    "delete from pgcombine.other_words_exports",
    "grant select on pgcombine.other_values to public",
)


@embedded_only
@pytest.mark.timeout(300)
def test_some_calls(dsn: str, tmp_path: Path) -> None:
    outcome = run(dsn, tmp_path / "worker.log", calls=100, seconds=120, seed=random.randrange(10**6))
    assert outcome.wrong == [], outcome
    assert outcome.calls >= 100
    assert outcome.updates


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_thousands_of_calls(dsn: str, tmp_path: Path) -> None:
    outcome = run(dsn, tmp_path / "worker.log", calls=3_000, seconds=600, seed=random.randrange(10**6))
    assert outcome.wrong == [], outcome
    assert outcome.calls >= 3_000


@pytest.mark.slow
@embedded_only
@pytest.mark.timeout(300)
@pytest.mark.parametrize("does", DOORS)
def test_a_door_is_noticed(conn: psycopg.Connection, dsn: str, tmp_path: Path, does: str) -> None:
    conn.execute(
        "create function pgcombine.door() returns void language plpgsql security definer "
        f"set search_path = pg_catalog, pg_temp as $$ begin {does}; end $$".encode()
    )
    outcome = run(dsn, tmp_path / "worker.log", calls=40, seconds=60, seed=7, only="^door$")
    assert outcome.wrong != [], outcome
