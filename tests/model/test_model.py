"""Models of pgcombine's protocols. The model checker spin finds no error in them, but one in each broken variant.

``log.pml`` models the log, ``wake.pml`` how workers notice updates, ``adopt.pml`` post_restore in a restored database,
and ``handoff.pml`` writes to several servers.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from support.needs import require_program

pytestmark = pytest.mark.slow
HERE = Path(__file__).parent
BROKEN = ("FROM_XMIN", "FORGOTTEN", "UNRESTRICTED", "LATE_MARK", "NO_KEY", "EAGER", "HASTY", "NEWEST_PASS")
BROKEN_WAKING = (
    *("OWN_SESSION", "SHARES_SHORTLY", "TRUSTS_OTHERS", "FORGETS_HEARD", "FORGETS_DEFERRED", "UNPOLLED"),
    *("UNPOLLED_OTHER", "NO_SUCCESSION", "LATE_LISTEN", "KEEPS_REFUSED"),
)
BROKEN_HANDOFF = (
    *("UNKEPT", "DROPPED_EARLY", "COPY_WITHOUT_TEXTS", "COPY_WITHOUT_TOKENS", "REBUILD_ANYWAY", "CHECKED_EARLY"),
    *("UNREACHED", "RM_UNMARKED", "REPLACED_UNMARKED", "MARK_CLEARED_FIRST", "MARK_CLEARED", "NO_HOME_ID"),
)
GET = {"HOMES": 1, "GET": 1, "FIRST": 0, "PROMPT": 1}


def check(directory: Path, model: str = "log", fault: str | None = None, **settings: int) -> tuple[int, int]:
    """Run spin on a model, and return the number of errors and the number of visited states.

    Spin stops at an error. ``fault`` names a broken variant, whose error spin finds fast, so the compiler doesn't
    optimize the checker.
    """
    spin, compiler = require_program("spin"), require_program("gcc")
    defined = [f"-D{name}={value}" for name, value in {**settings, **({fault: 1} if fault else {})}.items()]
    subprocess.run([spin, "-a", *defined, HERE / f"{model}.pml"], cwd=directory, check=True, capture_output=True)
    build = [compiler, "-O0" if fault else "-O2", "-DSAFETY", "-o", "pan", "pan.c"]
    subprocess.run(build, cwd=directory, check=True, capture_output=True)
    done = subprocess.run(["./pan", "-m10000", "-w24"], cwd=directory, check=True, capture_output=True, text=True)
    assert "max search depth too small" not in done.stdout, done.stdout
    errors = re.search(r"errors: (\d+)", done.stdout)
    states = re.search(r"(\d+) states, stored", done.stdout)
    assert errors is not None
    assert states is not None
    return int(errors[1]), int(states[1])


@pytest.mark.parametrize("ring", [2, 3])
def test_log_of_two_writers_has_no_error(tmp_path: Path, ring: int) -> None:
    errors, states = check(tmp_path, WRITERS=2, RING=ring)
    assert errors == 0
    assert states > 100_000


@pytest.mark.parametrize("variant", BROKEN)
def test_broken_logs_have_an_error(tmp_path: Path, variant: str) -> None:
    errors, _ = check(tmp_path, fault=variant, WRITERS=2, RING=3)
    assert errors > 0


def test_waking_has_no_error(tmp_path: Path) -> None:
    errors, states = check(tmp_path, "wake")
    assert errors == 0
    assert states > 1_000_000


@pytest.mark.parametrize("variant", BROKEN_WAKING)
def test_broken_variants_of_waking_have_an_error(tmp_path: Path, variant: str) -> None:
    errors, _ = check(tmp_path, "wake", variant)
    assert errors > 0


def test_post_restore_has_no_error(tmp_path: Path) -> None:
    errors, states = check(tmp_path, "adopt")
    assert errors == 0
    assert states > 100_000


@pytest.mark.parametrize("variant", ["NO_LOCK", "NO_SECOND_LOOK", "NO_LOOK", "PASS_FIRST"])
def test_broken_variants_of_post_restore_have_an_error(tmp_path: Path, variant: str) -> None:
    errors, _ = check(tmp_path, "adopt", variant)
    assert errors > 0


@pytest.mark.parametrize(
    "world", [{"HOMES": 2}, {"HOMES": 1, "ASKING": 1}, {"WRITES": 2, "HOMES": 1, "FIRST": 0, "PROMPT": 1}, GET]
)
def test_handoff_has_no_error(tmp_path: Path, world: dict[str, int]) -> None:
    errors, states = check(tmp_path, "handoff", **world)
    assert errors == 0
    assert states > 1_000_000


@pytest.mark.parametrize("variant", BROKEN_HANDOFF)
def test_broken_handoffs_have_an_error(tmp_path: Path, variant: str) -> None:
    errors, _ = check(tmp_path, "handoff", variant, HOMES=1)
    assert errors > 0


def test_get_that_reads_an_unasked_server_has_an_error(tmp_path: Path) -> None:
    errors, _ = check(tmp_path, "handoff", "READ_ELSEWHERE", **GET)
    assert errors > 0
