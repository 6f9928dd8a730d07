"""``python -m tests.programs.size [COMMIT…]``: count the size of the product in the working tree or in commits.

``--verbose`` lists the counted items. ``tests/programs/size/__init__.py`` describes the counts.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from uuid import uuid4

from psycopg.conninfo import make_conninfo

from pgcombine.database.connect import connect

from ..checkout import WORKING_TREE, Environment, install, names
from ..peers import server
from .sources import Count, Tree

SCHEMAS = ["pgcombine", "pgcombine_internal"]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("commits", nargs="*", metavar="COMMIT", default=[WORKING_TREE])
    parser.add_argument("--verbose", action="store_true")
    parser.add_argument("--dsn", help="a superuser's, of a server on which databases can be made; default: start one")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="pgcombine-size-") as home:
        found = [
            install(commit, name, Path(home, str(number)))
            for number, (commit, name) in enumerate(zip(options.commits, names(options.commits), strict=True))
        ]
        if options.dsn:
            counted = {one.name: counts(one, options.dsn) for one in found}
        else:
            with server.own(18) as dsn:
                counted = {one.name: counts(one, dsn) for one in found}
        print(table(counted), *(f"\n{one.name}: {one.summary}" for one in found), sep="\n")
    if options.verbose:
        for version, those in counted.items():
            for name, count in those.items():
                print(f"\n{version}, {name}: {count.number:,}", *count.parts, sep="\n  ")
    return 0


def counts(environment: Environment, dsn: str) -> dict[str, Count]:
    """Return the counts of a version by name. Makes the version's schema in a new database, and drops the database."""
    name = f"size_{uuid4().hex[:12]}"
    with closing(connect(dsn)) as connection:
        connection.execute(f"create database {name} template template0 encoding 'UTF8'".encode())
        try:
            environment.cli("db", "upgrade", "--dsn", make_conninfo(dsn, dbname=name))
            there = functions(make_conninfo(dsn, dbname=name))
        finally:
            connection.execute(f"drop database {name} with (force)".encode())
    return {"functions": Count(len(there), tuple(there))} | Tree(environment.tree).counts()


def functions(dsn: str) -> list[str]:
    """Return the signatures of the functions in the product's schemas."""
    with closing(connect(dsn)) as connection:
        found = connection.execute(
            "select p.oid::regprocedure::text from pg_proc p join pg_namespace n on n.oid = p.pronamespace "
            "where n.nspname = any (%s) order by 1",
            (SCHEMAS,),
        ).fetchall()
    return [str(name) for (name,) in found]


def table(counted: dict[str, dict[str, Count]]) -> str:
    """Return the counts as Markdown, with a column for each version."""
    rows: list[Sequence[str]] = [["", *counted], ["---", *("---" for _ in counted)]]
    for name in next(iter(counted.values())):
        rows.append([name, *(f"{those[name].number:,}" for those in counted.values())])
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


if __name__ == "__main__":
    sys.exit(main())
