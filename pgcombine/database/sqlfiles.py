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

COMPONENTS = ("core", "export", "handoff", "spark", "rollup")  # one calls only those before it
# its first lines are the calls, perhaps wrapped; its purpose is the first sentence after them
_HEADER = re.compile(r"(?:-- (?:call )?pgcombine\.(?P<name>\w+)\(.*\n|--   .*\n)+(?P<purpose>(?s:-- .*?\.))\s")
_MAKES = re.compile(r"^create or replace (?:function|procedure|aggregate|view) \w+\.(\w+)", re.MULTILINE)
# before anything calls a component's functions; see set_aside.sql
_SET_OVERLOADS_ASIDE = """\
do $$
begin
    perform pg_temp.set_aside(
        array(select p.proname from pg_catalog.pg_proc p join unnest(pg_temp.made()) as made (oid) using (oid)),
        pg_temp.made(), false);
end
$$"""
# Sessions that use a queue lock its relations first, then the catalog. Grants lock the catalog's tables, because of the
# policies on them, so the queues come first here, too.
_REGENERATE = "do $$ begin perform pgcombine_internal.regenerate(queue) from pgcombine.queue order by queue; end $$"
_DROP_STALE = """\
do $$
declare
    _names name[] := array(select p.proname from pg_catalog.pg_proc p join pg_temp.older o on o.routine = p.oid);
    _query text;
    _name name;
begin
    for _query in select h.query from pgcombine.hook h where h.event = 'generated' loop
        for _name in execute _query loop
            _names := array_remove(_names, _name);
        end loop;
    end loop;
    perform pg_temp.set_aside(_names, pg_temp.made(), false);
    perform pg_temp.drop_set_aside();
end
$$"""


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


def steps() -> Iterator[tuple[str | None, str]]:
    """Yield (path, text) of what applies the repeatable files after the revisions: the files, and calls without a path.

    The functions of ``set_aside.sql`` are there already.
    """
    functions = False
    for path, text in repeatables():
        if functions and not _is_function(path):
            yield None, _SET_OVERLOADS_ASIDE
        functions = _is_function(path)
        if path == f"{COMPONENTS[0]}/grants.sql":
            yield None, _REGENERATE
        yield path, text
    yield None, _DROP_STALE


def made(text: str) -> list[str]:
    """Return the names of the routines and views that a file creates or replaces, without their schema."""
    return _MAKES.findall(text)


def comments() -> Iterator[str]:
    """Yield for each public function the statement that comments on it with the first sentence of its header."""
    for path, text in repeatables():
        if path.split("/")[1:2] == ["public"]:
            header = _HEADER.match(text)
            assert header is not None, path
            purpose = header["purpose"].replace("\n--", "").removeprefix("-- ").replace("'", "''")
            yield f"comment on routine pgcombine.{header['name']} is '{purpose}'"


def _below(entry: Traversable, path: str) -> Iterator[tuple[str, str]]:
    if entry.is_dir():
        for one in entry.iterdir():
            yield from _below(one, f"{path}/{one.name}")
    elif entry.is_file() and path.endswith(".sql"):
        yield path, entry.read_text(encoding="utf-8")


def _is_function(path: str) -> bool:
    return path.split("/")[1:2] in (["public"], ["internal"])


@cache
def digest() -> str:
    """Return the SHA-256 (hex) of the repeatable files. It is the version of the SQL in a database."""
    hashed = hashlib.sha256()
    for path, text in repeatables():
        hashed.update(f"{path}\0{text}\0".encode())
    return hashed.hexdigest()
