"""The command line starts quickly, prints its version and help, and ends without a traceback at Ctrl-C."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version

import pytest
from support import run_cli
from support.cli import environment

from pgcombine.bench import figures
from pgcombine.cli import bench

# A program that runs pgcombine with ``arguments``. When it imports ``module``, it sends SIGINT to itself, as if the
# user pressed Ctrl-C at that moment.
INTERRUPTED = """if True:
    import os, signal, sys
    class Finder:
        def find_spec(self, name, path=None, target=None):
            if name == {module!r}:
                os.kill(os.getpid(), signal.SIGINT)
    sys.meta_path.insert(0, Finder())
    sys.argv = ["pgcombine", *{arguments!r}]
    from pgcombine.cli import main
    main()
    """


def python(code: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-W", "error", "-c", code]
    return subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("arguments", [["--help"], ["status", "--help"]])
def test_help_imports_nothing_heavy(arguments: list[str]) -> None:
    heavy = ["psycopg", "rich", "tenacity", "sqlalchemy", "alembic", "pyspark", "pyarrow", "psutil", "pgcombine.bench"]
    code = f"""if True:
        import atexit, sys
        atexit.register(lambda: print([name for name in {heavy} if name in sys.modules], file=sys.stderr))
        sys.argv = ["pgcombine", *{arguments}]
        from pgcombine.cli import main
        main()
        """
    answer = python(code)
    assert answer.returncode == 0
    assert "Usage: pgcombine" in answer.stdout
    assert answer.stderr == "[]\n"


def test_version_option_prints_the_version() -> None:
    answer = run_cli("--version")
    assert (answer.returncode, answer.stdout, answer.stderr) == (0, f"pgcombine {version('pgcombine')}\n", "")


@pytest.mark.parametrize("verb", [[], ["db"], ["db", "upgrade"], ["status"], ["bench"]])
def test_short_option_prints_the_help(verb: list[str]) -> None:
    answer = run_cli(*verb, "-h")
    assert answer.returncode == 0
    assert f"Usage: {' '.join(['pgcombine', *verb])}" in answer.stdout


def test_command_lists_the_figures_of_the_benchmark() -> None:
    assert tuple(figures.FIGURES) == bench.FIGURES


@pytest.mark.parametrize(
    ("module", "command"),
    [
        *(("typer", "--help"), ("psycopg", "get --help"), ("pgcombine.worker.worker", "worker --help")),
        *(("alembic.script", "db upgrade --sql"), ("sqlalchemy.dialects.postgresql", "db upgrade --sql")),
    ],
)
def test_ctrl_c_during_an_import_prints_nothing(module: str, command: str) -> None:
    answer = python(INTERRUPTED.format(module=module, arguments=command.split()))
    assert (answer.returncode, answer.stdout, answer.stderr) == (130, "", "")


def test_ctrl_c_at_exit_prints_no_traceback() -> None:
    code = """if True:
        import atexit, os, signal, sys
        atexit.register(lambda: os.kill(os.getpid(), signal.SIGINT))
        sys.argv = ["pgcombine", "--version"]
        from pgcombine.cli import main
        main()
        """
    answer = python(code)
    assert (answer.returncode, answer.stderr) == (130, "")
    assert answer.stdout.startswith("pgcombine ")


def test_ignored_ctrl_c_stays_ignored() -> None:
    """Ctrl-C doesn't end a program that started with SIGINT ignored, as a shell script's background programs do."""
    code = INTERRUPTED.format(module="typer", arguments=["--version"])
    answer = python(code.replace("sys.argv =", "signal.signal(signal.SIGINT, signal.SIG_IGN); sys.argv ="))
    assert answer.returncode == 0
    assert answer.stdout.startswith("pgcombine ")
