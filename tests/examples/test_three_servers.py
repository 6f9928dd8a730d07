"""The example with three servers runs and prints the expected output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow
EXAMPLE = Path(__file__).with_name("three_servers.py")


def test_example_runs() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", str(EXAMPLE)], capture_output=True, text=True, timeout=240, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "acknowledged by a b c",
        "c is down",
        "a majority is enough: a b",
        "not by all, but not lost: hints for c",
        "c is back",
        "on all three: {'ada': 3, 'grace': 1} complete",
    ]
