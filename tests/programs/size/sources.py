"""Counts of a version's sources, such as lines of SQL. Most counts list the counted files or items."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

ROOTS = (
    *("wake", "refuse_backlog", "enqueue", "enqueue_function", "generate_enqueue", "combine", "pass_parts"),
    *("due", "busy", "tick", "take_idle_lock", "reclaim", "trim_journal", "bloated"),
)
# modules in the worker's folder that aren't part of its loop
BESIDE = {"__init__", "drain", "quarantine", "rights", "python_pass"}
FLAT = {
    "worker",
    "passes",
    "janitor",
    "tidying",
    "snapshots",
    "wakeup",
    "model",
}  # the loop in versions without a worker's folder
_SQL = re.compile(
    r"\s*(select|insert into|delete from|merge into|call|copy|do|truncate|vacuum|analyze|lock table|comment on"
    r"|grant \w+ on|with \w+( \(| as)|update [\w.{}]+( \w+)? set"
    r"|(create|alter|drop) (\w+ )*(table|schema|role|database|routine|index))\s"
)
_ARGUMENTS = r"\((?:[^()]|\([^()]*\))*\)"
_ONE_CALL = re.compile(rf"\s*(?:select|call) (?:[\w.*, ]+ from )?[\w.{{}}]+{_ARGUMENTS}(?: \w+)?;?\s*")


@dataclass(frozen=True)
class Count:
    """A number, and the counted items."""

    number: int
    parts: tuple[str, ...] = ()


class Tree:
    """The sources of a version."""

    def __init__(self, root: Path) -> None:
        self.root = root

    def counts(self) -> dict[str, Count]:
        way, stages = [*self.way(), *self.loop()], self.stages()
        placeholders = sorted({name for path in stages for name in _placeholders(path)})
        literals = [*self.literals()]
        pages = [self.root / "README.md", *sorted((self.root / "pgcombine" / "docs").rglob("*.md"))]
        every_line = [line for path in self.sql for line in _lines(path)]
        return {
            "SQL lines of core": self._lines(sorted((self.root / "sql" / "core").rglob("*.sql"))),
            "files on the way of an update": Count(len(way), tuple(map(self._name, way))),
            "lines on the way of an update": self._lines(way),
            "placeholders in a pass": Count(len(placeholders), tuple(placeholders)),
            "stages of a pass": Count(len(stages), tuple(map(self._name, stages))),
            "longest line of SQL": Count(max(map(len, every_line), default=0)),
            "Python lines without bench": self._lines(self.python),
            "SQL literals in Python": Count(len(literals), tuple(literals)),
            "lines of tests": self._lines(sorted((self.root / "tests").rglob("*.py"))),
            "words of the pages": Count(sum(len(path.read_text().split()) for path in pages if path.exists())),
        }

    @cached_property
    def sql(self) -> list[Path]:
        return sorted((self.root / "sql").rglob("*.sql"))

    @cached_property
    def python(self) -> list[Path]:
        """The modules of the package without ``bench``."""
        package = self.root / "pgcombine"
        return [path for path in sorted(package.rglob("*.py")) if path.relative_to(package).parts[0] != "bench"]

    def way(self) -> list[Path]:
        """Return the SQL files of the functions in ROOTS, and of those that they call directly or indirectly."""
        functions = {path.stem: path for path in self.sql if path.parent.name not in ("queries", "views")}
        found: dict[str, Path] = {}
        todo = [name for name in ROOTS if name in functions]
        while todo:
            name = todo.pop()
            if name in functions and name not in found:
                found[name] = functions[name]
                todo += re.findall(r"\bpgcombine(?:_internal)?\.(\w+)\s*\(", _code(functions[name]))
        return sorted(found.values())

    def loop(self) -> list[Path]:
        package = self.root / "pgcombine"
        if not (package / "worker").is_dir():
            return [path for path in self.python if path.parent == package and path.stem in FLAT]
        wakeup = [path for path in self.python if path.stem == "wakeup"]
        return [path for path in self.python if path.parent == package / "worker" and path.stem not in BESIDE] + wakeup

    def stages(self) -> list[Path]:
        """Return the SQL files of functions that make a part of a pass's statement from a text with placeholders."""
        return [path for path in self.way() if path.parent.name == "pass" and any(_placeholders(path))]

    def literals(self) -> Iterator[str]:
        """Yield the place and the text of each SQL string in :attr:`python` that is more than one call."""
        for path in self.python:
            for line, text in _strings(ast.parse(path.read_text())):
                if _SQL.match(text) and not _ONE_CALL.fullmatch(text):
                    yield f"{self._name(path)}:{line} {' '.join(text.split())[:80]}"

    def _lines(self, paths: Iterable[Path]) -> Count:
        counts = {self._name(path): len(_lines(path)) for path in paths}
        return Count(sum(counts.values()), tuple(f"{number:5} {name}" for name, number in counts.items()))

    def _name(self, path: Path) -> str:
        return path.relative_to(self.root).as_posix()


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines()


def _code(path: Path) -> str:
    """Return a function's text without comments and without hints, which name functions that a user may call."""
    code = re.sub(r"--[^\n]*", "", path.read_text())
    return re.sub(r"\bhint\s*=[^;]*;", ";", code)


def _placeholders(path: Path) -> Iterator[str]:
    return (found[1] for found in re.finditer(r"\{(\w+)\}", _code(path)))


def _strings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each string in a module, except docstrings and other bare strings.

    ``{}`` stands for a value in an f-string.
    """
    parts: set[ast.AST] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Expr):
            parts.add(node.value)
        elif isinstance(node, ast.JoinedStr):
            parts.update(node.values)
            text = "".join(str(one.value) if isinstance(one, ast.Constant) else "{}" for one in node.values)
            yield node.lineno, text
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node not in parts:
            yield node.lineno, node.value
