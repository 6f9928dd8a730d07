"""The product's SQL files: repeatable definitions in order, and named queries.

The files are package data (``pgcombine.sql``), so a checkout and an installed wheel both have them. An unknown query
raises :class:`FileNotFoundError`.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from functools import cache
from importlib import resources
from importlib.resources.abc import Traversable

# in the order of their installation
COMPONENTS = ("core", "feed", "export", "handoff", "spark", "rollup", "shard", "budget")
# A header begins with the calls; a call may take several lines. The purpose is the first sentence after the calls.
_HEADER = re.compile(r"(?:-- (?:call )?pgcombine\.(?P<name>\w+)(?:\(.*)?\n|--   .*\n)+(?P<purpose>(?s:-- .*?\.))\s")
# the calls, the purpose and the rest of a header
_TOP = re.compile(
    r"\A(?:-- (?:call )?pgcombine\w*\.\w+(?:\(.*)?\n(?:--   .*\n)*)+(-- (?s:.*?)\.)(?=\s)((?:.*\n(?=--))*.*\n)"
)
_COLUMN = re.compile(r"^--   (\w+) +(\S.*(?:\n--     +\S.*)*)", re.MULTILINE)


@cache
def query(name: str) -> str:
    """Return the text of the named query ``sql/queries/<name>.sql``."""
    return (resources.files("pgcombine.sql") / "queries" / f"{name}.sql").read_text(encoding="utf-8")


@cache
def repeatables() -> list[tuple[str, str]]:
    """Return (path below sql/, text) of every repeatable file, in the order in which they are applied."""
    root = resources.files("pgcombine.sql")
    files: list[tuple[str, str]] = []
    for component in COMPONENTS:
        for part in ("public", "internal", "combiners.sql", "triggers", "views", "component.sql"):
            files += sorted(_below(root / component / part, f"{component}/{part}"))
    for component in COMPONENTS:
        files += _below(root / component / "grants.sql", f"{component}/grants.sql")
    return files


def steps() -> Iterator[str]:
    """Yield the statements that apply the repeatable files after the revisions.

    These are the texts of the files, with named queries between and after them. Of the header of a function or a view
    they have the purpose and the parameters: the rest is for those who change the files. The functions of
    ``set_aside.sql`` must exist already.
    """
    functions = False
    for path, text in repeatables():
        if functions and not _is_function(path):
            yield query("upgrade_overloads")
        functions = _is_function(path)
        if path == f"{COMPONENTS[0]}/grants.sql":
            yield query("upgrade_regenerate")
        yield _shortened(path, text)
    yield query("upgrade_stale")


def _shortened(path: str, text: str) -> str:
    """Return the text with a shorter header. The columns of a view get comments from the header, so they go, too."""
    header = _TOP.match(text)
    if header is None:
        return text
    purpose, rest = header.groups()
    lines = [] if "/views/" in path else [line for line in rest.splitlines() if line.startswith("--   ")]
    return "\n".join([purpose, *lines, text[header.end() :]])


def comments() -> Iterator[str]:
    """Yield the statements that comment on public functions and views with the first sentence of their headers.

    A column of a view gets the text that the view's header has for the column.
    """
    for path, text in repeatables():
        part = path.split("/")[1]
        if part in ("public", "views"):
            header = _HEADER.match(text)
            assert header is not None, path
            kind = "view" if part == "views" else "routine"
            yield f"comment on {kind} pgcombine.{header['name']} is {_literal(header['purpose'])}"
            for name, meaning in _COLUMN.findall(text[: text.index("\ncreate ")]) if part == "views" else ():
                yield f'comment on column pgcombine.{header["name"]}."{name}" is {_literal(meaning)}'


def _literal(comment: str) -> str:
    """Return text from a header, possibly of several lines, as an SQL literal of one line."""
    words = " ".join(line.removeprefix("--").strip() for line in comment.splitlines())
    return "'" + words.replace("'", "''") + "'"


def _below(entry: Traversable, path: str) -> Iterator[tuple[str, str]]:
    if entry.is_dir():
        for one in entry.iterdir():
            yield from _below(one, f"{path}/{one.name}")
    elif entry.is_file() and path.endswith(".sql"):
        yield path, entry.read_text(encoding="utf-8")


def _is_function(path: str) -> bool:
    return path.split("/")[1:2] in (["public"], ["internal"])


@cache
def baseline_digest() -> str:
    """Return the SHA-256 (hex) of the first revision's file. A schema that the revision has made stores it."""
    text = (resources.files("pgcombine.migrations.versions") / "0001_baseline.sql").read_text(encoding="utf-8")
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def digest() -> str:
    """Return the SHA-256 (hex) of the repeatable files. A database stores it as the version of its SQL."""
    hashed = hashlib.sha256()
    for path, text in repeatables():
        hashed.update(f"{path}\0{text}\0".encode())
    return hashed.hexdigest()
