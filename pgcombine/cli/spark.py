"""``pgcombine spark clean``."""

from __future__ import annotations

from typing import Annotated

import typer

from pgcombine.cli.options import Dsn, Json, group, open_database, report
from pgcombine.database.connect import one

spark = group("Housekeeping for loads from Spark.")
_CLEAN = "select * from pgcombine_internal.clean_loads(make_interval(secs => %s), make_interval(secs => %s))"


@spark.callback()
def _group() -> None:
    pass


@spark.command()
def clean(
    older_than: Annotated[
        float, typer.Option("--older-than", min=0, help="Hours after which a load that no longer writes is removed.")
    ] = 24.0,
    runs_older_than: Annotated[
        float, typer.Option("--runs-older-than", min=0, help="Days after which ids of runs are forgotten.")
    ] = 30.0,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Remove what dead loads left behind, and old run ids; workers do this, too.

    Example: pgcombine spark clean --older-than 6
    """
    with open_database(dsn) as connection:
        loads, runs = one(connection, _CLEAN, older_than * 3600, runs_older_than * 86_400)
    report({"loads": loads, "runs": runs}, f"cleaned: {loads} loads, {runs} run ids", as_json)
