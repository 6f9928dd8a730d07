"""The SQL files: their order, their headers, and the object that a file of a routine or view makes."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

import pytest

from pgcombine.database import sqlfiles

ROOT = Path(__file__).parents[2] / "sql"
FILES = dict(sqlfiles.repeatables())
CREATES = re.compile(
    r"^create or replace (?:recursive )?(function|procedure|aggregate|view) (\w+)\.(\w+)", re.MULTILINE
)


def test_files_are_applied_in_order() -> None:
    applied = list(FILES)
    components = ["core", "feed", "export", "handoff", "spark", "rollup", "shard", "budget"]
    grants = [f"{component}/grants.sql" for component in ("core", "feed", "rollup", "shard", "budget")]
    assert applied[-len(grants) :] == grants
    parts = [tuple(path.split("/")[:2]) for path in applied if path not in grants]
    kinds = ["public", "internal", "combiners.sql", "triggers", "views", "component.sql"]
    assert parts == sorted(parts, key=lambda part: (components.index(part[0]), kinds.index(part[1])))
    for part in dict.fromkeys(parts):
        files = [path for path in applied if path.startswith("/".join(part))]
        assert files == sorted(files)
    there = {str(path.relative_to(ROOT)) for path in ROOT.rglob("*.sql")}
    assert there == set(applied) | {path for path in there if path.startswith(("queries/", "phrasecount/"))}


# The example application, phrasecount, has files of its own.
APPLICATION = [f"phrasecount/{path.name}" for path in (ROOT / "phrasecount").glob("*.sql") if path.stem != "schema"]
OBJECTS = [path for path in FILES if path.count("/") > 1] + APPLICATION


@pytest.mark.parametrize("path", OBJECTS)
def test_file_has_one_object_and_a_header(path: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    made = CREATES.findall(text)
    named = {(schema, name) for _, schema, name in made if name == Path(path).stem}
    assert len(named) == 1, f"{path} makes {made}"
    ((schema, name),) = named
    component, part = path.split("/")[:2]
    own = {"public": "pgcombine", "views": "pgcombine"}.get(part, "pgcombine_internal")
    assert schema == (component if component == "phrasecount" else own)
    steps = [f"{name}_step"] if any(kind == "aggregate" for kind, *_ in made) else []
    assert {name for *_, name in made} <= {name, *steps}, f"{path} makes {made}"
    assert re.match(rf"-- (call )?{schema}\.{name}\b", text), "the header doesn't name the object"


# a comment, a quoted name, a string with escapes, or a plain string
ESCAPED = r"'(?:[^'\\]|\\.|'')*'"
TOKEN = re.compile(rf"""--[^\n]*|"[^"]*"|\bE{ESCAPED}(?:\s*\n\s*{ESCAPED})*|(?P<plain>'(?:[^']|'')*')""")
ROUTINES = [path for path in OBJECTS if "/views/" not in path and not path.startswith("phrasecount/")]


@pytest.mark.parametrize("path", [path for path in ROUTINES if "\\" in FILES[path]])
def test_strings_mean_the_same_in_every_session(path: str) -> None:
    """A backslash in a plain string depends on the session's standard_conforming_strings."""
    plain = [token["plain"] for token in TOKEN.finditer(FILES[path]) if "\\" in (token["plain"] or "")]
    assert not plain or "\nset standard_conforming_strings = on\n" in FILES[path], (
        f"write E'…', or add 'set standard_conforming_strings = on': {plain}"
    )


def header(path: str) -> str:
    """The comment at the beginning of a file."""
    return "".join(itertools.takewhile(lambda line: line.startswith("--"), FILES[path].splitlines(keepends=True)))


@pytest.mark.parametrize("path", [path for path in FILES if re.search(r"errcode = '", FILES[path])])
def test_header_names_the_errors(path: str) -> None:
    raised = set(re.findall(r"errcode = '(\w+)'", FILES[path]))
    assert raised - set(re.findall(r"\b\w{5}\b", header(path))) == set()


def test_digest_changes_only_with_the_files(monkeypatch: pytest.MonkeyPatch) -> None:
    def digest(files: list[tuple[str, str]]) -> str:
        monkeypatch.setattr(sqlfiles, "repeatables", lambda: files)
        return sqlfiles.digest.__wrapped__()

    one = digest([("a.sql", "select 1"), ("b.sql", "select 2")])
    assert digest([("a.sql", "select 1"), ("b.sql", "select 2")]) == one
    others = [
        [("a.sql", "select 1"), ("b.sql", "select 3")],
        [("b.sql", "select 2"), ("a.sql", "select 1")],
        [("a.sql", "select 1")],
        [("a.sql", "select 1b.sql"), ("", "select 2")],
    ]
    assert len({one, *map(digest, others)}) == 5


def test_lines_have_at_most_120_columns() -> None:
    files = {path.relative_to(ROOT).as_posix(): path for path in ROOT.rglob("*.sql")}
    files |= {path.name: path for path in (ROOT.parent / "migrations").rglob("*.sql")}
    long = [
        f"{name}:{number}"
        for name, path in files.items()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if len(line) > 120
    ]
    assert long == []


def test_unknown_query_raises() -> None:
    assert "select" in sqlfiles.query("status_queues")
    with pytest.raises(FileNotFoundError):
        sqlfiles.query("nonsense")
