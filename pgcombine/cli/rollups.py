"""``pgcombine rollup create|ls|show|backfill|verify|drop``."""

from __future__ import annotations

from typing import Annotated

import typer

from pgcombine.cli.options import (
    Buckets,
    Dsn,
    Json,
    Yes,
    confirm,
    echo,
    group,
    open_database,
    print_json,
    report_problems,
    report_state,
    report_table,
)
from pgcombine.rollup.rollup import Rollup, rollups

rollup = group("Aggregates of tables, right in every snapshot.")

Name = Annotated[str, typer.Argument(metavar="ROLLUP", help="Name of the rollup.")]


@rollup.command()
def create(
    name: Name,
    source: Annotated[str, typer.Option("--source", help="The table, such as 'public.requests'.")],
    key: Annotated[list[str], typer.Option("--key", help="Key expression such as 'customer'; repeat for several.")],
    value: Annotated[
        list[str], typer.Option("--value", help="Aggregate such as 'sum(tokens) as tokens'; repeat for several.")
    ],
    filter: Annotated[
        str | None, typer.Option("--filter", help="Condition; rows for which it isn't true are left out.")
    ] = None,
    keep: Annotated[
        str | None, typer.Option("--keep", help="Condition; rows for which it is true stay counted when they go.")
    ] = None,
    buckets: Buckets = 1,
    slice_by: Annotated[
        str | None, typer.Option("--slice-by", help="Indexed column: its greatest values are backfilled first.")
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Accept a rollup that exists with the same definition.")
    ] = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Make a rollup; workers then add the rows that the table has already.

    Example: pgcombine rollup create spend --source requests --key customer --value 'sum(tokens) as tokens'
    """
    with open_database(dsn) as connection:
        Rollup(
            name, source=source, key=key, value=value, filter=filter, keep=keep, buckets=buckets, slice_by=slice_by
        ).create(connection, if_not_exists=if_not_exists)
    report_state("rollup", name, "created", as_json)


@rollup.command("ls")
def list_rollups(dsn: Dsn = None, as_json: Json = False) -> None:
    """List the rollups.

    Example: pgcombine rollup ls
    """
    with open_database(dsn) as connection:
        found = rollups(connection)
    rows = [
        (r["rollup"], r["source"], ", ".join(r["key"]), ", ".join(r["value"]), r["state"], len(r["problems"]))
        for r in found
    ]
    report_table(found, ["rollup", "source", "key", "value", "state", "problems"], rows, as_json)


@rollup.command()
def show(name: Name, dsn: Dsn = None, as_json: Json = False) -> None:
    """Show a rollup's definition, its backfill, and why it may miss changes.

    Example: pgcombine rollup show spend
    """
    with open_database(dsn) as connection:
        (found,) = rollups(connection, name)
    if as_json:
        print_json(found)
        return
    for field, content in found.items():
        for line in content if isinstance(content, list) else [content]:
            echo(f"{field + ':':10} {'' if line is None else line}")


@rollup.command()
def backfill(name: Name, dsn: Dsn = None, as_json: Json = False) -> None:
    """Add the rows that the table had before the rollup; if the command is interrupted, run it again.

    Example: pgcombine rollup backfill spend
    """
    from rich.console import Console
    from rich.progress import Progress

    console = Console(stderr=True)
    with open_database(dsn) as connection:
        rollups(connection, name)  # raises an error if there is none
        with Progress(console=console, transient=True, disable=not console.is_terminal) as progress:
            bar = progress.add_task(name, total=None)
            for done, slices in Rollup(name).backfill(connection):
                progress.update(bar, completed=done, total=slices or None)
    report_state("rollup", name, "backfilled", as_json)


@rollup.command()
def verify(
    name: Name,
    repair: Annotated[bool, typer.Option("--repair", help="Also enqueue updates that correct the values.")] = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Compare a rollup with its table; exit status 1 if keys differ.

    Example: pgcombine rollup verify spend --repair
    """
    with open_database(dsn) as connection:
        problems = Rollup(name).verify(connection, repair=repair)
    report_problems("rollup", name, problems, as_json, repaired=repair)


@rollup.command()
def drop(
    name: Name,
    force: Annotated[
        bool,
        typer.Option("--force", help="Drop the rollup even if it is exported or feeds a tier; drop the exports, too."),
    ] = False,
    yes: Yes = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Drop a rollup; its table stays.

    Example: pgcombine rollup drop spend --yes
    """
    with open_database(dsn) as connection:
        (found,) = rollups(connection, name)
        confirm(f'rollup "{name}" of {found["source"]} will be dropped', yes=yes)
        Rollup(name).drop(connection, force=force)
    report_state("rollup", name, "dropped", as_json)
