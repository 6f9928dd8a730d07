"""Read README.md and the pages: ``python3 tests/support/readme.py pytest`` prints the README's command for pytest.

The module needs only the standard library, since CI calls it before anything is installed.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"
# PAGES are for users; TEXTS also has the READMEs of folders.
PAGES = [README, *sorted((ROOT / "pgcombine" / "docs").rglob("*.md"))]
TEXTS = [*PAGES, *(ROOT / folder / "README.md" for folder in ("sql", "migrations", "tests"))]


def fences(page: Path, *languages: str) -> list[str]:
    """The contents of a page's fenced blocks in these languages."""
    block = rf"^```(?:{'|'.join(languages)})\n(.*?)^```$"
    return re.findall(block, page.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)


def statements(block: str) -> Iterator[tuple[str, list[str] | None]]:
    """Yield each SQL statement of a block, with the rows that it must return.

    The rows are in lines that begin with ``-->``. Without these lines the rows are None, and any result is right.
    """
    ended = r"((?:\$\$[\s\S]*?\$\$|[^;])*);[^\n]*\n((?:--> [^\n]*\n)*)"
    for statement, rows in re.findall(ended, re.sub(r"(?m)--(?!> ).*$", "", block)):
        yield statement.strip(), re.findall(r"^--> (.*)$", rows, re.MULTILINE) or None


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"(?ms)^```.*?^```$", "", page.read_text(encoding="utf-8"))


def anchors(page: Path) -> set[str]:
    """The names by which GitHub links the headings of a page, unless a heading contains a link or is repeated."""
    headings = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def commands(page: Path = README) -> list[str]:
    """Each command in a page's fenced shell blocks. Lines that end in a backslash are joined with the next line."""
    lines = "".join(fences(page, "bash", "sh", "console")).replace("\\\n", " ").splitlines()
    return [line.strip() for line in lines if line.strip() and not line.lstrip().startswith("#")]


def command(ending: str) -> str:
    """README's one-line command that makes a venv and ends with ``ending``. Raises LookupError unless just one does."""
    found = [line for line in commands() if line.startswith("python3 -m venv") and line.endswith(ending)]
    if len(found) != 1:
        raise LookupError(f"README.md has {len(found)} commands that make .venv and end with {ending!r}, not 1")
    return found[0]


if __name__ == "__main__":
    print(command(sys.argv[1]))
