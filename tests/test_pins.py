"""The pinned versions of a jar and of container images, the lowest versions of packages, and the extras in messages."""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from pgcombine.spark.jdbc_driver import JDBC_DRIVER

ROOT = Path(__file__).parents[1]
FILES = [
    *(ROOT / "README.md", ROOT / "compose.yaml"),
    *(
        path
        for folder in (".ci", "pgcombine", "tests")
        for path in (ROOT / folder).rglob("*")
        if path.suffix in (".md", ".yml", ".sh", ".py", "") and path.is_file() and path != Path(__file__)
    ),
]
IMAGES = {
    *("postgres:15", "postgres:18"),
    "python:3.12-slim",
    "prom/prometheus:v3.13.3",
    "grafana/grafana:13.2.0",
}
NAMED = re.compile(r"(?:(?<!@)\bpostgres|\bpython|prom/prometheus|grafana/grafana):v?\d[\w.-]*")
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIREMENTS = [
    Requirement(text)
    for texts in [PROJECT["dependencies"], *PROJECT["optional-dependencies"].values()]
    for text in texts
    if not text.startswith("pgcombine[")
]


def named(pattern: re.Pattern[str]) -> dict[str, set[str]]:
    """The different matches of the pattern in each file that has any."""
    found = {str(path.relative_to(ROOT)): set(pattern.findall(path.read_text(encoding="utf-8"))) for path in FILES}
    return {name: texts for name, texts in found.items() if texts}


def test_files_name_the_pinned_images() -> None:
    found = named(NAMED)
    assert {"compose.yaml", "pgcombine/deploy/Dockerfile", "tests/support/make_images.sh"} <= set(found)
    assert set().union(*found.values()) == IMAGES, found


def test_page_names_the_pinned_driver() -> None:
    found = named(re.compile(r"org\.postgresql:postgresql:([\d.]+\d)"))
    assert found == {"pgcombine/docs/spark.md": {JDBC_DRIVER}}


@pytest.mark.parametrize("requirement", REQUIREMENTS, ids=str)
def test_packages_have_lowest_versions(requirement: Requirement) -> None:
    assert any(one.operator in (">=", "==", "~=") for one in requirement.specifier), requirement


@pytest.mark.parametrize("name", ["psycopg", "sqlalchemy", "matplotlib", "pyspark", "psutil", "setuptools"])
def test_package_named_twice_has_one_lowest_version(name: str) -> None:
    floors = {
        str(one) for found in REQUIREMENTS if found.name == name for one in found.specifier if one.operator == ">="
    }
    assert len(floors) == 1


def test_messages_name_the_extras() -> None:
    """``errors.pip_install`` makes the messages that tell which extra to install."""
    sources = {path: path.read_text(encoding="utf-8") for path in (ROOT / "pgcombine").rglob("*.py")}
    calls = [node for text in sources.values() for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)]
    named = {
        argument.value
        for call in calls
        if isinstance(call.func, ast.Name) and call.func.id == "pip_install"
        for argument in call.args
        if isinstance(argument, ast.Constant)
    }
    assert named == set(PROJECT["optional-dependencies"]) - {"all", "otel", "peers", "test"}
    assert [path.name for path, text in sources.items() if "pgcombine[" in text] == ["errors.py"]
