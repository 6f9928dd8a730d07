"""The core's SQL and the packages below the components name no component, except in the list of the components."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from support.packages import PACKAGE, ROOT

NAMES = re.compile(
    r"export|handoff|\bhints\b|hinted|(?<!session_)replica(?! identity|tion[ _]slot|tion_role)|replay|spark|rollup|"
    r"[._]feed\b|\bfeed_|change_(log|bucket)|shard|budget|phrasecount|\bweb(hook)?\b",
    re.IGNORECASE,
)
PACKAGES = ("database", "embedded", "runtime", "queue", "worker")
ORDER = "COMPONENTS = ("  # begins the line of database/sqlfiles.py that lists the components; the line may name them
FILES = [
    *sorted((ROOT / "sql" / "core").rglob("*.sql")),
    *sorted(path for package in PACKAGES for path in (PACKAGE / package).rglob("*.py")),
]


def named(names: re.Pattern[str], text: str) -> Iterator[str]:
    """Yield the first match in each line, with the number of the line. Skip the line that begins with ``ORDER``."""
    for number, line in enumerate(text.splitlines(), 1):
        if (found := names.search(line)) and not line.startswith(ORDER):
            yield f"{number}: {found[0]}"


def test_story_of_an_update_names_existing_files() -> None:
    core = ROOT / "sql" / "core"
    story = (core / "README.md").read_text(encoding="utf-8")
    files = set(re.findall(r"`([a-z_/]+\.sql)`", story))
    assert len(files) > 30
    assert {name for name in files if not (core / name).is_file()} == set()
    assert len(story.splitlines()) < 70, "the story must fit on one page"
    assert list(named(NAMES, story)) == []


def test_core_names_no_component() -> None:
    assert len(FILES) > 150
    assert [
        f"{path.relative_to(ROOT)}:{one}" for path in FILES for one in named(NAMES, path.read_text(encoding="utf-8"))
    ] == []


@pytest.mark.parametrize(
    "line",
    [
        "    perform pgcombine.drop_export(_export, force => true);",
        "    select * from pgcombine.handoff_queue;",
        "-- dead loads from Spark",
        "from pgcombine.rollup r",
        "from pgcombine.change_bucket b",
        "-- how many hints wait",
        "replicated boolean,",
        "call pgcombine.replay()",
        "-- a rollup's tiers",
        "from pgcombine.front_shard s",
        "grant usage on schema phrasecount to public",
        "-- the web page",
        "perform pgcombine_internal.tend_budget('seats')",
    ],
)
def test_check_finds_a_component(line: str) -> None:
    assert list(named(NAMES, f"--\n{line}\n")) != []


@pytest.mark.parametrize(
    "line",
    [
        "alter table a attach partition b for values with (modulus 2, remainder 1)",
        "using errcode = 'PC003', hint = 'give a number'",
        "alter table a replica identity full",
        "from pg_replication_slots s where s.xmin is not null -- a replication slot",
        'COMPONENTS = ("core", "export", "handoff")',
    ],
)
def test_check_accepts_permitted_lines(line: str) -> None:
    assert list(named(NAMES, line)) == []
