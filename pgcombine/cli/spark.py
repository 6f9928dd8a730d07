"""``pgcombine spark clean``."""

from __future__ import annotations

from typing import Annotated

import typer

from pgcombine.cli.options import Dsn, Json, open_database, report
from pgcombine.worker import maintenance

spark = typer.Typer(no_args_is_help=True, help="Housekeeping for loads from Spark.")
_DAY = 86_400.0


@spark.callback()
def _group() -> None:
    pass


@spark.command()
def clean(
    older_than: Annotated[
        float, typer.Option("--older-than", min=0, help="Hours after which a load that no longer writes is removed.")
    ] = maintenance.LOADS_SECONDS / 3600,
    runs_older_than: Annotated[
        float, typer.Option("--runs-older-than", min=0, help="Days after which ids of runs are forgotten.")
    ] = maintenance.RUNS_SECONDS / _DAY,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Remove the remains of dead loads, and old run ids. Workers do it, too.

    Example: pgcombine spark clean --older-than 6
    """
    with open_database(dsn) as connection:
        cleaned = maintenance.clean(connection, loads=older_than * 3600, runs=runs_older_than * _DAY)
    report(cleaned._asdict(), f"cleaned: {cleaned.loads} loads, {cleaned.runs} run ids", as_json)
