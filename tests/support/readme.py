"""Read README.md and the pages: ``python3 tests/support/readme.py pytest`` prints README's command for pytest.

CI runs this before anything is installed, so the module needs only the standard library.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
# TEXTS has the pages for users, and the READMEs of three folders for developers.
PAGES = [README, *sorted((ROOT / "pgcombine" / "docs").rglob("*.md"))]
TEXTS = [*PAGES, *(ROOT / folder / "README.md" for folder in ("sql", "migrations", "tests"))]


def fences(page: Path, *languages: str) -> list[str]:
    """The contents of a page's fenced blocks in these languages."""
    block = rf"^```(?:{'|'.join(languages)})\n(.*?)^```$"
    return re.findall(block, page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def statements(block: str) -> Iterator[tuple[str, list[str] | None]]:
    """Yield each SQL statement of a block, with the rows that it must return.

    The rows follow the statement in lines that begin with ``-->``. A statement without such lines is yielded with None.
    """
    ended = r"((?:\$\$[\s\S]*?\$\$|[^;])*);[^\n]*\n((?:--> [^\n]*\n)*)"
    for statement, rows in re.findall(ended, re.sub(r"(?m)--(?!> ).*$", "", block)):
        yield statement.strip(), re.findall(r"^--> (.*)$", rows, re.MULTILINE) or None


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The names by which GitHub links a page's headings, if no heading contains a link or is repeated."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(page: Path = README) -> list[str]:
    """Each command in a page's fenced shell blocks. Lines that end in a backslash are joined with the next line."""
    lines = "".join(fences(page, "bash", "sh", "console")).replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def command(ending: str) -> str:
    """README's one-line command that makes a venv and ends with ``ending``.

    Raises LookupError unless there is exactly one.
    """
    found = [line for line in commands() if line.startswith("python3 -m venv") and line.endswith(ending)]
    if len(found) != 1:
        raise LookupError(f"README.md needs one command that makes .venv and ends with {ending!r}, not {len(found)}")
    return found[0]


if __name__ == "__main__":
    print(command(sys.argv[1]))
