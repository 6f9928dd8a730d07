"""What ``import pgcombine`` gives, and what it costs."""

from __future__ import annotations

import inspect
import subprocess
import sys
from importlib.metadata import version

import pytest

import pgcombine
from pgcombine import errors

PUBLIC = [name for name in pgcombine.__all__ if name != "__version__"]


@pytest.mark.parametrize("name", PUBLIC)
def test_public_name_is_there_and_documented(name: str) -> None:
    found = getattr(pgcombine, name)
    assert found.__name__ == name
    assert found.__module__.startswith("pgcombine.")
    documented = [found]
    if inspect.isclass(found):
        documented += [
            member
            for attribute, member in vars(found).items()
            if not attribute.startswith("_") and (inspect.isfunction(member) or isinstance(member, property))
        ]
    assert [thing for thing in documented if not inspect.getdoc(thing)] == []


def test_every_error_is_public() -> None:
    own = {
        name
        for name, thing in vars(errors).items()
        if inspect.isclass(thing) and issubclass(thing, errors.PgCombineError)
    }
    assert own <= set(pgcombine.__all__)


def test_names_are_listed() -> None:
    assert pgcombine.__version__ == version("pgcombine")
    assert set(pgcombine.__all__) <= set(dir(pgcombine))
    assert sorted(pgcombine.__all__) == pgcombine.__all__


def test_other_names_are_not_there() -> None:
    with pytest.raises(AttributeError, match="'nothing'"):
        pgcombine.nothing  # noqa: B018


def imported(statement: str) -> set[str]:
    """Modules that a fresh Python has after the statement."""
    code = f"import sys; {statement}; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_import_is_cheap() -> None:
    # what takes time is the packages: the driver alone more than a tenth of a second
    modules = imported("import pgcombine")
    assert not modules & {"psycopg", "sqlalchemy", "alembic", "pytest", "pyspark", "tenacity", "importlib.metadata"}


def test_queue_needs_the_driver_alone() -> None:
    modules = imported("from pgcombine import CombineQueue")
    assert "psycopg" in modules
    assert not modules & {"sqlalchemy", "alembic", "pytest", "pyspark"}


def test_tests_are_not_needed_for_work() -> None:
    modules = imported("from pgcombine import *; import pgcombine.operations, pgcombine.cli.app")
    assert not modules & {"pytest", "pyspark", "pgcombine.testing"}
