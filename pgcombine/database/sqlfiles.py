"""The product's SQL files: repeatable definitions in order, and named queries.

They are package data (``pgcombine.sql``), so a checkout and an installed wheel both have them. An unknown name raises
:class:`FileNotFoundError`: a defect of the program, not of its use.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

REPEATABLE_FOLDERS = ("public", "internal", "combiners", "triggers", "views")
# its first lines are the calls, perhaps wrapped; its purpose is the first sentence after them
_HEADER = re.compile(r"(?:-- (?:call )?pgcombine\.(?P<name>\w+)\(.*\n|--   .*\n)+(?P<purpose>(?s:-- .*?\.))\s")
_MAKES = re.compile(r"^create or replace (?:function|procedure|aggregate) (\w+\.\w+)", re.MULTILINE)
GRANTS = "grants.sql"


@cache
def query(name: str) -> str:
    """Return the text of the named query ``sql/queries/<name>.sql``."""
    return (resources.files("pgcombine.sql") / "queries" / f"{name}.sql").read_text(encoding="utf-8")


def repeatables() -> Iterator[tuple[str, str]]:
    """Yield (path below sql/, text) of every repeatable file, in the order in which they are applied."""
    root = resources.files("pgcombine.sql")
    for folder in REPEATABLE_FOLDERS:
        yield from sorted(_below(root / folder, folder))
    yield GRANTS, (root / GRANTS).read_text(encoding="utf-8")


def routine(text: str) -> str | None:
    """Return the name of the first routine that a file creates or replaces, with its schema."""
    made = _MAKES.search(text)
    return None if made is None else made[1]


def comments() -> Iterator[str]:
    """Yield for each public function the statement that comments on it with the first sentence of its header."""
    for path, text in repeatables():
        if path.startswith("public/"):
            header = _HEADER.match(text)
            assert header is not None, path
            purpose = header["purpose"].replace("\n--", "").removeprefix("-- ").replace("'", "''")
            yield f"comment on routine pgcombine.{header['name']} is '{purpose}'"


def _below(directory: Traversable, path: str) -> Iterator[tuple[str, str]]:
    for entry in directory.iterdir():
        if entry.is_dir():
            yield from _below(entry, f"{path}/{entry.name}")
        elif entry.name.endswith(".sql"):
            yield f"{path}/{entry.name}", entry.read_text(encoding="utf-8")


@cache
def digest() -> str:
    """Return the SHA-256 (hex) of the repeatable files. It is the version of the SQL in a database."""
    hashed = hashlib.sha256()
    for path, text in repeatables():
        hashed.update(f"{path}\0{text}\0".encode())
    return hashed.hexdigest()
