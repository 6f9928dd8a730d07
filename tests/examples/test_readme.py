"""The README's commands exist and are the ones that CI runs."""

from __future__ import annotations

import re
import shlex
from itertools import takewhile

import pytest
from support.readme import command, commands
from support.verbs import verbs


@pytest.mark.parametrize("ending", ["/pgcombine phrasecount", "/pytest"])
def test_commands_need_only_python_and_pip(ending: str) -> None:
    programs = [shlex.split(part)[0] for part in command(ending).split("&&")]
    assert programs[:2] == ["python3", "python3"]
    assert programs[2] == f".venv/bin/{ending.split()[0].lstrip('/')}"
    assert len(programs) == 3


def commands_in_readme() -> list[tuple[str, ...]]:
    """The words of each ``pgcombine`` command in the README's shell blocks, up to the first option."""
    found = set()
    for line in commands():
        for part in re.split(r"&&|\||;", line):
            words = shlex.split(part, comments=True)
            if words and words[0].rpartition("/")[2] == "pgcombine":
                found.add(tuple(takewhile(lambda word: not word.startswith("-"), words[1:])))
    return sorted(found)


def test_verbs_in_the_readme_exist() -> None:
    there = verbs()
    groups = {verb[:1] for verb in there if len(verb) > 1}
    for words in commands_in_readme():
        # What follows a verb is its arguments; what follows a group is a verb.
        verb = words[:2] if words[:1] in groups else words[:1]
        assert not verb or verb in there, f"README: pgcombine {' '.join(words)}"
