"""Retries with tokens in random order, from eight clients, some of which are killed: each event counts once."""

from __future__ import annotations

import pytest
from support.servers import embedded_only

from .retries import retry


@embedded_only
@pytest.mark.parametrize("calls", [20_000])
def test_retries_count_once(dsn: str, calls: int) -> None:
    outcome = retry(dsn, calls, kills=8)
    assert outcome.wrong == 0
    assert outcome.tokens == outcome.events == calls // 4
    assert outcome.calls == calls
    assert outcome.appended <= outcome.events
    assert outcome.killed + outcome.terminated >= 8
