"""Runs of ``log``; ``PGCOMBINE_TEST_CHAOS_SECONDS`` sets the length of the longer run."""

from __future__ import annotations

import os
import random
from collections.abc import Callable

import psycopg
import pytest
from support.mutants import beyond_the_mark, late_mark, open_forgotten

from .log import HAPPEN, run


@pytest.mark.timeout(300)
def test_updates_count_once_when_everything_overlaps(dsn: str) -> None:
    outcome = run(dsn, 2, random.randrange(10**6))
    assert outcome.wrong == [], outcome


@pytest.mark.slow
@pytest.mark.timeout(3900)
def test_updates_count_once_in_a_longer_run(dsn: str) -> None:
    outcome = run(dsn, float(os.environ.get("PGCOMBINE_TEST_CHAOS_SECONDS", "30")), random.randrange(10**6), HAPPEN)
    assert outcome.wrong == [], outcome
    for figure in HAPPEN:
        assert outcome.figures[figure], outcome


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mutant", [beyond_the_mark, late_mark, open_forgotten])
def test_run_finds_a_wrong_interval(
    conn: psycopg.Connection, dsn: str, mutant: Callable[[psycopg.Connection], None]
) -> None:
    mutant(conn)
    assert run(dsn, 15, random.randrange(10**6)).wrong
