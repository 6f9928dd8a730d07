"""``import pgcombine`` gives the public names and imports no large package."""

from __future__ import annotations

import inspect
import os
import pickle
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from support.packages import ROOT

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


def test_errors_form_a_tree() -> None:
    """Callers catch the base classes. The error of a server that restarts is no ConfigError, so callers may retry."""
    classes = {
        thing for thing in vars(errors).values() if inspect.isclass(thing) and issubclass(thing, errors.PgCombineError)
    }
    assert [one.__name__ for one in classes if not one.__name__.endswith("Error")] == []
    bases = {one for one in classes if one.__bases__ == (errors.PgCombineError,)}
    assert bases == {
        *(errors.ConfigError, errors.OperationalError, errors.QueueError),
        *(errors.PassError, errors.ExportError, errors.ReplicationError),
    }
    assert [
        one for one in classes if issubclass(one, errors.ConfigError) and issubclass(one, errors.OperationalError)
    ] == []
    assert issubclass(errors.ServerNotReadyError, errors.OperationalError)


def test_errors_keep_the_hint_and_survive_pickling() -> None:
    found = errors.from_sqlstate("PC010", "the queue is full", "wait for workers", queue="wc")
    assert isinstance(found, errors.BacklogFullError)
    again = pickle.loads(pickle.dumps(found))
    for error in (found, again):
        assert str(error) == "the queue is full (wait for workers)"
        assert (error.hint, error.queue, error.sqlstate) == ("wait for workers", "wc", "PC010")


def test_dir_lists_the_public_names() -> None:
    assert pgcombine.__version__ == version("pgcombine")
    assert dir(pgcombine) == sorted(pgcombine.__all__)
    assert len(PUBLIC) < 16
    assert set(PUBLIC) > {"CombineQueue", "ExportQueue", "ReplicatedQueue", "Worker", "ExportWorker", "Replayer"}


def test_a_type_checker_sees_the_names(tmp_path: Path) -> None:
    lines = [f"reveal_type(pgcombine.{name})" for name in pgcombine.__all__]
    (tmp_path / "client.py").write_text("\n".join(["import pgcombine", *lines, "pgcombine.nothing", ""]))
    cache = f"--cache-dir={tmp_path / 'cache'}"
    mypy = [sys.executable, "-m", "mypy", "--strict", cache, "--follow-imports=silent", "client.py"]
    done = subprocess.run(mypy, cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"MYPYPATH": str(ROOT)})
    found = done.stdout.splitlines()
    seen = [line for line in found if "Revealed type" in line]
    assert len(seen) == len(lines), done.stdout
    assert [line for line in seen if '"Any"' in line] == []
    assert [line for line in found if "error:" in line] == [
        f'client.py:{len(lines) + 2}: error: Module has no attribute "nothing"  [attr-defined]'
    ]


def test_unknown_name_raises_attribute_error() -> None:
    with pytest.raises(AttributeError, match="'nothing'"):
        pgcombine.nothing  # noqa: B018


def imported(statement: str) -> set[str]:
    """The modules that a new Python process has imported after the statement."""
    code = f"import sys; {statement}; print(*sys.modules)"
    return set(subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split())


def test_import_is_cheap() -> None:
    # each of these packages would make the import slower
    heavy = "psycopg sqlalchemy alembic pytest pyspark tenacity typer rich importlib.metadata"
    assert not imported("import pgcombine") & set(heavy.split())


def test_queue_imports_no_large_package_but_the_driver() -> None:
    modules = imported("from pgcombine import CombineQueue")
    assert "psycopg" in modules
    assert not modules & {"sqlalchemy", "alembic", "pytest", "pyspark"}


def test_commands_import_neither_pytest_nor_pyspark() -> None:
    modules = imported("from pgcombine import *; import pgcombine.operations, pgcombine.cli.app")
    assert not modules & {"pytest", "pyspark", "pgcombine.testing"}
