"""A soak run of 45 seconds: writers and daemons run under kills, and the totals are exact."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from support.clusters import started
from support.homes import Filled

from .run import printed, run

pytestmark = pytest.mark.slow


@pytest.mark.timeout(900)
def test_totals_are_exact_after_kills(filled: Filled, tmp_path: Path) -> None:
    with started("ab", filled, tmp_path) as servers:
        report = run(servers, tmp_path, minutes=0.75, gap=3.0, seed=random.randrange(10**6))
    told = printed(report)
    assert report["wrong"] == [], told
    assert report["updates"] > 1000, told
    assert sum(report["kills"].values()) > 3, told
    assert report["page"]["number"] > 10, told
    assert report["delay"]["snapshot held"]["number"] > 0, told
    assert report["backlog"]["max"] > 0, told
    assert report["lag"]["p99"] > 0, told
