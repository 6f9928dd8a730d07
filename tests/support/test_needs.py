"""Without a Docker engine, tests that need one are skipped and counted in the summary. In CI they fail."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from support.cli import environment

TESTS = Path(__file__).parents[1]


@pytest.mark.parametrize(
    ("ci", "status", "told"),
    [pytest.param("", 0, "     4  a Docker engine is needed", marks=pytest.mark.slow), ("true", 1, "4 errors")],
)
def test_missing_docker_skips_or_fails(ci: str, status: int, told: str) -> None:
    arguments = ["-q", "-m", "", "-k", "container", TESTS / "sql" / "core" / "public" / "test_pause.py"]
    without = {"CI": ci, "DOCKER_HOST": "unix:///nonexistent", "PGCOMBINE_TEST_DSN": None, "PYTEST_ADDOPTS": None}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", *arguments],
        env=environment(without),
        cwd=TESTS.parent,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == status, done.stdout
    assert told in done.stdout
