"""Parametrize a test so that only some of its cases are in the fast tier."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest


def each_nth(n: int, cases: Iterable[Any]) -> list[Any]:
    """The cases for ``parametrize``. All are marked slow except the first and each n-th after the first."""
    return [
        pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=[pytest.mark.slow] if number % n else [])
        for number, case in enumerate(cases)
    ]
