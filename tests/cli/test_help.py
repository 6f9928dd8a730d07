"""The help of the verbs, each with an example, the pages that ``pgcombine docs`` prints, and shell completion."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest
import typer
from support.cli import SCRIPT, environment, run_cli
from support.needs import require_program
from support.readme import README
from support.verbs import verbs

from pgcombine.cli.app import app

ROOT: Any = typer.main.get_command(app)
DOCS = README.parent / "pgcombine" / "docs"


def found(path: tuple[str, ...]) -> Any:
    command = ROOT
    for name in path:
        command = command.commands[name]
    return command


def runs(command: Any) -> bool:
    """Whether the command does something itself, unlike a group that only holds other commands."""
    return not getattr(command, "commands", None) or bool(getattr(command, "invoke_without_command", False))


RUNNING = [path for path in verbs() if runs(found(path))]


def test_verbs_are_found() -> None:
    assert {("status",), ("bench",), ("queue", "create")} <= {*RUNNING}
    assert ("queue",) not in RUNNING
    assert len(RUNNING) > 60


def test_top_level_fits_on_a_screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with ROOT.make_context("pgcombine", [], resilient_parsing=True) as context:
        lines = ROOT.get_help(context).splitlines()
    assert len(lines) <= 41
    assert max(map(len, lines)) <= 80
    headings = [line for line in lines if re.fullmatch(r"\S.*:", line)]
    assert headings == ["Daily:", "Data:", "Operate:", "Tour:"]
    listed = [line.split()[0] for line in lines if re.match(r"  [a-z]+  ", line)]
    assert listed == list(ROOT.commands)


def test_quarantined_data_has_the_same_verbs_everywhere() -> None:
    for path in (("quarantine",), ("export", "quarantine"), ("replicas", "quarantine")):
        assert list(found(path).commands) == ["ls", "show", "retry", "drop"], path


def test_verbs_that_delete_ask() -> None:
    asks = {path for path in RUNNING if any("--yes" in one.opts for one in found(path).params)}
    assert asks == {path for path in RUNNING if {*path} & {"drop", "rm", "remove", "truncate", "rebuild"}}


def test_the_pages_name_all_that_run_on() -> None:
    """Two pages list the daemons. A command is a daemon if it has the option ``--log-format``."""
    run_on = {" ".join(path) for path in RUNNING if any("--log-format" in one.opts for one in found(path).params)}
    named = {
        "operations.md": r"of the commands that don't end \(([^)]*)\)",
        "operations/service.md": r"^([^.]*) run until SIGTERM",
    }
    for page, pattern in named.items():
        (text,) = re.findall(pattern, (DOCS / page).read_text(encoding="utf-8"), re.MULTILINE)
        assert set(re.findall(r"`([a-z ]+)`", text)) == run_on, page


@pytest.mark.parametrize("path", RUNNING, ids=" ".join)
def test_example(path: tuple[str, ...]) -> None:
    examples = re.findall(r"^Example: (.*)$", found(path).help, re.MULTILINE)
    assert len(examples) == 1, "the docstring must end with one line: Example: pgcombine …"
    calls = re.findall(r"pgcombine ((?:'[^']*'|[^|&)'])*)", examples[0])
    assert [call for call in calls if tuple(call.split()[: len(path)]) == path], "the example is of another verb"
    for call in calls:
        command, words = ROOT, shlex.split(call)
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
        with command.make_context("pgcombine", words):  # raises an error if the usage is wrong
            pass


def test_docs_are_listed_and_printed() -> None:
    listed = run_cli("docs").stdout.splitlines()
    names = [line.split()[0] for line in listed]
    assert "reference/commands" in names
    assert all(len(line.split()) > 1 for line in listed), "each page has a title"
    page = DOCS / "reference" / "commands.md"
    for name in ("reference/commands", "commands", "commands.md"):
        shown = run_cli("docs", name)
        assert (shown.returncode, shown.stdout) == (0, page.read_text(encoding="utf-8"))
    refused = run_cli("docs", "operatoins")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr == 'pgcombine: there is no page "operatoins": did you mean "operations"?\n'


def test_pages_that_messages_name_are_there() -> None:
    sources = [*(DOCS.parent).rglob("*.py"), *(DOCS.parents[1] / "sql").rglob("*.sql")]
    named = {name for file in sources for name in re.findall(r"pgcombine docs ([a-z/-]+)", file.read_text("utf-8"))}
    pages = {page.relative_to(DOCS).with_suffix("").as_posix() for page in DOCS.rglob("*.md")}
    assert "rights" in named
    assert named - {"lists"} - pages == set()


def test_completion_in_bash(tmp_path: Path) -> None:
    """The script installs the completion as a user does, and loads it as the user's next shell does."""
    bash = require_program("bash")
    script = """
        pgcombine --install-completion > /dev/null || exit 7
        . "$HOME/.bashrc"
        complete_words() {
            COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
            _pgcombine_completion pgcombine
            echo "${COMPREPLY[*]}"
        }
        complete -p pgcombine
        complete_words pgcombine do
        complete_words pgcombine queue re
        complete_words pgcombine status --wa
        """
    env = environment({"HOME": tmp_path, "PATH": f"{SCRIPT.parent}{os.pathsep}{os.environ['PATH']}"})
    done = subprocess.run([bash, "-c", script], env=env, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    registered, *completed = done.stdout.splitlines()
    assert registered.endswith(" pgcombine")
    assert completed == ["doctor docs", "resume rebucket", "--watch"]
