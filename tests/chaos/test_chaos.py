"""A short run of ``kills``; ``PGCOMBINE_TEST_CHAOS_SECONDS`` sets its length."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from .kills import VICTIMS, run

pytestmark = pytest.mark.slow


@pytest.mark.timeout(900)
def test_committed_updates_count_once_after_kills(home: Path) -> None:
    home.mkdir()
    outcome = run(home, float(os.environ.get("PGCOMBINE_TEST_CHAOS_SECONDS", "12")), random.randrange(10**6))
    assert outcome.wrong == [], outcome
    assert outcome.acknowledged
    assert sum(outcome.kills[victim] for victim in VICTIMS) > 0
