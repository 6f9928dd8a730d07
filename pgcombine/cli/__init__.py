"""The command line ``pgcombine``.

Exit status 0: done; 1: failed, with one line on stderr; 2: wrong usage. With ``--json`` the data, and nothing
else, are on stdout.
"""

from __future__ import annotations

import os
import sys

import typer

from pgcombine.cli import (
    bench,
    data,
    database,
    export,
    handoff,
    hints,
    phrasecount,
    quarantine,
    queues,
    server,
    spark,
    work,
)
from pgcombine.cli.options import Group

app = typer.Typer(
    name="pgcombine",
    cls=Group,
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Contended counters and aggregates in PostgreSQL: enqueue updates, combine them, read values.",
)
for group in (database, server, queues, data, work, quarantine, export, handoff, hints, phrasecount, spark, bench):
    group.register(app)


def main() -> None:
    """Entry point of the console script."""
    os.umask(0o077)  # what it writes, logs too, is nobody else's to read
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a phrase that the terminal can't show
    app()
