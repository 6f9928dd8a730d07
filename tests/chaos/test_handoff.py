"""A run of ``handoff``; ``PGCOMBINE_TEST_CHAOS_SECONDS`` sets its length."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest
from support.clusters import started
from support.homes import Filled

from .handoff import HAPPEN, run


@pytest.mark.slow
@pytest.mark.timeout(3900)
def test_acknowledged_writes_count_once_after_losses(memory: Path, filled: Filled) -> None:
    directory = memory / "chaos"
    directory.mkdir()
    with started("abc", filled, directory) as clusters:
        seconds = float(os.environ.get("PGCOMBINE_TEST_CHAOS_SECONDS", "30"))
        outcome = run(clusters, seconds, random.randrange(10**6))
    assert outcome.wrong == [], outcome
    for figure in (*HAPPEN, "writes that must be there"):
        assert outcome.figures[figure], outcome
