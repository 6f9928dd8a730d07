"""The README's length, commands and figures, and the completeness of the reference pages."""

from __future__ import annotations

import itertools
import re
import shlex
from pathlib import Path

import psycopg
import pytest
from support.queues import one
from support.readme import PAGES, README, ROOT, command

from pgcombine.config import VARIABLES
from pgcombine.database import sqlfiles

LINES = 150
BENCHMARKS, OPERATIONS, REFERENCE = (
    page for page in PAGES if page.name in ("benchmarks.md", "operations.md", "sql.md")
)


@pytest.mark.parametrize("ending", ["/pgcombine quickstart", "/pgcombine phrasecount", "/pytest -n logical"])
def test_readme_commands_need_only_python_and_pip(ending: str) -> None:
    programs = [shlex.split(part)[0] for part in command(ending).split("&&")]
    assert programs[:2] == ["python3", "python3"]
    assert programs[2] == f".venv/bin/{ending.split()[0].lstrip('/')}"
    assert len(programs) == 3


def test_readme_is_short() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= LINES


def test_each_guarantee_has_its_module() -> None:
    tests = [re.fullmatch(r"\[(\d)\]\((.*)\)", row[2]) for row in table(README, "## Guarantees")]
    modules = sorted((ROOT / "tests" / "guarantees").glob("test_g*.py"))
    assert [(test[1], ROOT / test[2]) for test in tests if test] == [(path.name[6], path) for path in modules]


def test_readme_figures_are_those_of_the_benchmarks() -> None:
    kept, measured = (rows(page, heading) for page, heading in ((README, "Figures"), (BENCHMARKS, "Side by side")))
    assert len(kept) == 5
    assert [one for one in kept if not any(one.items() <= other.items() for other in measured)] == []


def rows(page: Path, heading: str) -> list[dict[str, str]]:
    """The rows of the first table after a heading, each with the table's column headings as keys."""
    header, *cells = table(page, f"## {heading}", head=1)
    return [dict(zip(header, row, strict=True)) for row in cells]


def table(page: Path, heading: str, head: int = 0) -> list[list[str]]:
    """The cells of the rows of the first table after a heading; with ``head=1`` also the column headings."""
    text = page.read_text(encoding="utf-8").partition(f"\n{heading}\n")[2]
    lines = itertools.takewhile(
        lambda line: line.startswith("|"), itertools.dropwhile(lambda line: not line.startswith("|"), text.splitlines())
    )
    headings, _, *cells = ([cell.strip() for cell in line.strip("|").split("|")] for line in lines)
    return [headings] * head + cells


def test_reference_has_every_function(conn: psycopg.Connection) -> None:
    """The page has an entry for each routine of the schema, and describes each option of a queue."""
    public = (
        "select proname, obj_description(oid, 'pg_proc') from pg_proc where pronamespace = 'pgcombine'::regnamespace"
    )
    there = dict(conn.execute(public).fetchall())
    assert [name for name, comment in there.items() if not comment] == []
    assert sorted(entries("Functions and procedures")) == sorted(there)
    options = one(conn, "select proargnames from pg_proc where oid = 'pgcombine.create_queue'::regproc")
    described = re.findall(r"^- (`.*?`): ", entries("Functions and procedures")["create_queue"], re.MULTILINE)
    assert ", ".join(described) == ", ".join(f"`{option}`" for option in options)


def entries(heading: str) -> dict[str, str]:
    """The entries below a heading of the reference page: name → text."""
    part = REFERENCE.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    return dict(re.findall(r"^### (\w+)\n((?:(?!### ).*\n?)*)", part, re.MULTILINE))


def test_table_has_every_combiner(conn: psycopg.Connection) -> None:
    told = {name for row in table(REFERENCE, "## Combiners") for name in re.findall(r"`([a-z_]+)(?:\(at\))?`", row[0])}
    there = {name for (name,) in conn.execute("select combiner from pgcombine.combiner").fetchall()}
    assert there - told == set()
    # the header of combiners.sql names each combiner, and says how combiners treat nulls
    nulls = dict(sqlfiles.repeatables())["core/combiners.sql"]
    assert all(name in nulls.partition("Templates")[0] for name in there)
    assert "-- Nulls. " in nulls


def test_table_has_every_setting() -> None:
    told = re.findall(r"`(PGCOMBINE_\w+)`", " ".join(name for name, _ in table(OPERATIONS, "## Which database")))
    assert sorted(told) == sorted(VARIABLES)
