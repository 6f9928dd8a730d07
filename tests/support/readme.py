"""The commands of README.md, as they stand there: ``python3 tests/support/readme.py pytest`` prints one.

Runs on the standard library alone, since it is what a machine calls before anything is installed.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

README = Path(__file__).parents[2] / "README.md"

_BLOCK = re.compile(r"^```(?:bash|sh|console)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def commands(text: str | None = None) -> list[str]:
    """Each line of the fenced shell blocks, without comments; lines that end in a backslash are joined."""
    blocks = _BLOCK.findall(README.read_text(encoding="utf-8") if text is None else text)
    lines = "".join(blocks).replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def command(ending: str) -> str:
    """The one-line command that ends with ``ending`` and starts from nothing; LookupError if it isn't one."""
    found = [line for line in commands() if line.startswith("python3 -m venv") and line.endswith(ending)]
    if len(found) != 1:
        raise LookupError(f"README.md has {len(found)} commands that make .venv and end with {ending!r}, not 1")
    return found[0]


if __name__ == "__main__":
    print(command(sys.argv[1]))
