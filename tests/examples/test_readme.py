"""The README's commands exist and are the ones that CI runs."""

from __future__ import annotations

import re
import shlex

import pytest
from support import run_cli
from support.readme import README, command, commands


@pytest.mark.parametrize("ending", ["/pgcombine phrasecount", "/pytest"])
def test_commands_need_only_python_and_pip(ending: str) -> None:
    programs = [shlex.split(part)[0] for part in command(ending).split("&&")]
    assert programs[:2] == ["python3", "python3"]
    assert programs[2] == f".venv/bin/{ending.split()[0].lstrip('/')}"
    assert len(programs) == 3


def verbs_in_readme() -> list[tuple[str, ...]]:
    """The verbs of each ``pgcombine`` command in the README's shell blocks, options and arguments left out."""
    found = set()
    for line in commands():
        for part in re.split(r"&&|\||;", line):
            words = shlex.split(part, comments=True)
            if words and words[0].rpartition("/")[2] == "pgcombine":
                verbs = [word for word in words[1:3] if re.fullmatch(r"[a-z][a-z-]*", word)]
                found.add(tuple(verbs))
    return sorted(found)


@pytest.mark.parametrize("verbs", verbs_in_readme(), ids=" ".join)
def test_verbs_in_the_readme_exist(verbs: tuple[str, ...]) -> None:
    # The second word is a verb of a group or an argument: the help of the first answers for it then.
    answers = [run_cli(*verbs[:n], "--help").returncode for n in range(1, len(verbs) + 1)]
    assert 0 in answers, f"pgcombine {' '.join(verbs)} of {README.name} isn't a command"
