"""The packages in ``pgcombine``, and which import which: ``python tests/support/packages.py`` prints a diagram.

A package is a folder in ``pgcombine/``, or a file beside the folders. Imports inside functions count, since a
deferred import can close a cycle, too.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "pgcombine"
PAGE = PACKAGE / "README.md"
BEGIN, END = "<!-- made by tests/support/packages.py -->", "<!-- end -->"

# A package imports only from packages before it.
PACKAGES = [
    *("errors", "config"),
    *("database", "embedded", "runtime"),
    "schema",
    "queue",
    *("rollup", "budget"),
    *("operations", "django"),
    "worker",
    "testing",
    *("export", "feed", "handoff", "shard"),
    "metrics",
    *("spark", "phrasecount", "bench", "doctor", "web", "cli"),
]
# Packages of one set don't import each other.
SIBLINGS = [{"export", "feed", "handoff", "rollup", "shard", "budget"}]
FACADE = "__init__"  # the public names: pgcombine itself, and facade.py, which lists them


class Import(NamedTuple):
    """One import. ``name`` is the name imported from the module, and empty for ``import module``."""

    line: int
    module: str
    name: str


def sources(directory: Path = PACKAGE) -> list[Path]:
    return sorted(directory.rglob("*.py"))


def place(path: Path, package: Path = PACKAGE) -> str:
    """The path of a file in the package without ``.py``, such as ``database/connect`` or ``database/__init__``."""
    return path.relative_to(package).with_suffix("").as_posix()


def package_of(place: str) -> str:
    """The package of the file at a :func:`place`."""
    first = place.partition("/")[0]
    return FACADE if first == "facade" else first


@cache
def imports(text: str) -> tuple[Import, ...]:
    found: list[Import] = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found += (Import(node.lineno, alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            found += (Import(node.lineno, module, alias.name) for alias in node.names)
    return tuple(found)


def reached(found: Import) -> str | None:
    """The package that an import reaches: FACADE for ``pgcombine`` itself, None for other modules."""
    parts = found.module.split(".")
    if parts[0] != "pgcombine":
        return None
    if len(parts) > 1:
        return package_of(parts[1])
    return found.name if found.name in PACKAGES else FACADE


def arrows() -> set[tuple[str, str]]:
    """Pairs of packages, of which the first imports the second."""
    pairs = {
        (package_of(place(path)), reached(found))
        for path in sources()
        for found in imports(path.read_text(encoding="utf-8"))
    }
    return {(one, other) for one, other in pairs if one in PACKAGES and other in PACKAGES and one != other}


def reduced(pairs: Iterable[tuple[str, str]]) -> set[tuple[str, str]]:
    """The arrows without those that a path of several arrows replaces. The arrows must have no cycle."""
    all_pairs = set(pairs)
    targets: dict[str, set[str]] = {}
    for one, other in all_pairs:
        targets.setdefault(one, set()).add(other)

    def beyond(start: str) -> set[str]:
        found: set[str] = set()
        left = list(targets.get(start, ()))
        while left:
            package = left.pop()
            if package not in found:
                found.add(package)
                left.extend(targets.get(package, ()))
        return found

    return {
        (one, other)
        for one, other in all_pairs
        if all(other not in beyond(package) for package in targets[one] - {other})
    }


def diagram() -> str:
    """The packages and the :func:`reduced` arrows in Mermaid's language, a line for each package that has arrows."""
    lines = ["```mermaid", "flowchart TD"]
    found = reduced(arrows())
    for package in reversed(PACKAGES):
        others = [other for other in reversed(PACKAGES) if (package, other) in found]
        if others:
            lines.append(f"    {package} --> {' & '.join(others)}")
    return "\n".join([*lines, "```"])


def drawn(text: str) -> str:
    """The diagram on a page, between BEGIN and END."""
    return text.split(BEGIN)[1].split(END)[0].strip()


if __name__ == "__main__":
    print(diagram())
