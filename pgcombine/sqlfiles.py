"""The SQL files of the product: repeatable definitions in order, and named queries.

Files are package data (``pgcombine.sql``), so they are found in a checkout and in an installed wheel alike.
A name that isn't there raises :class:`FileNotFoundError`: a defect of the program, not of its use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from functools import cache
from importlib import resources

REPEATABLE_FOLDERS = ("functions", "combiners", "triggers", "views")
GRANTS = "grants.sql"


@cache
def query(name: str) -> str:
    """The text of the named query ``sql/queries/<name>.sql``."""
    return (resources.files("pgcombine.sql") / "queries" / f"{name}.sql").read_text(encoding="utf-8")


def repeatables() -> Iterator[tuple[str, str]]:
    """(path below sql/, text) of every repeatable file in the order of application."""
    root = resources.files("pgcombine.sql")
    for folder in REPEATABLE_FOLDERS:
        for file in sorted((root / folder).iterdir(), key=lambda f: f.name):
            if file.name.endswith(".sql"):
                yield f"{folder}/{file.name}", file.read_text(encoding="utf-8")
    yield GRANTS, (root / GRANTS).read_text(encoding="utf-8")


@cache
def digest() -> str:
    """SHA-256 (hex) over the repeatable files: names the version of the SQL in a database."""
    hashed = hashlib.sha256()
    for path, text in repeatables():
        hashed.update(f"{path}\0{text}\0".encode())
    return hashed.hexdigest()
