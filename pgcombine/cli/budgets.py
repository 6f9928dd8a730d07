"""``pgcombine budget create|ls|show|verify|drop``."""

from __future__ import annotations

from typing import Annotated

import typer

from pgcombine.budget import Budget, budgets
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
    whole,
)

budget = group("Amounts from which transactions take without waiting, never more than there is.")

Name = Annotated[str, typer.Argument(metavar="BUDGET", help="Name of the budget.")]


@budget.command()
def create(
    name: Name,
    key: Annotated[list[str], typer.Option("--key", help="Key column such as 'show int'; repeat for several.")],
    amount: Annotated[str, typer.Option("--amount", help="bigint, integer, numeric or numeric(14,2).")] = "bigint",
    chips: Annotated[
        int, typer.Option("--chips", callback=whole(32), help="About how many transactions take from a key at a time.")
    ] = 16,
    buckets: Buckets = 1,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Accept a budget that exists with the same definition.")
    ] = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Make a budget and its queue.

    Example: pgcombine budget create seats --key 'show int'
    """
    with open_database(dsn) as connection:
        Budget(name, key=key, amount=amount, chips=chips, buckets=buckets).create(
            connection, if_not_exists=if_not_exists
        )
    report_state("budget", name, "created", as_json)


@budget.command("ls")
def list_budgets(dsn: Dsn = None, as_json: Json = False) -> None:
    """List the budgets.

    Example: pgcombine budget ls
    """
    with open_database(dsn) as connection:
        found = budgets(connection)
    rows = [(one["budget"], ", ".join(one["key"]), one["amount"], one["chips"]) for one in found]
    report_table(found, ["budget", "key", "amount", "chips"], rows, as_json)


@budget.command()
def show(name: Name, dsn: Dsn = None, as_json: Json = False) -> None:
    """Show a budget's definition, and what its keys have together.

    Example: pgcombine budget show seats
    """
    with open_database(dsn) as connection:
        (found,) = budgets(connection, name)
        found |= Budget(name).totals(connection)
    if as_json:
        print_json(found)
        return
    for field, content in found.items():
        echo(f"{field + ':':10} {', '.join(content) if isinstance(content, list) else content}")


@budget.command()
def verify(name: Name, dsn: Dsn = None, as_json: Json = False) -> None:
    """Compare a budget with its queue; exit status 1 if keys differ.

    Example: pgcombine budget verify seats
    """
    with open_database(dsn) as connection:
        problems = Budget(name).verify(connection)
    report_problems("budget", name, problems, as_json)


@budget.command()
def drop(
    name: Name,
    force: Annotated[
        bool, typer.Option("--force", help="Drop it even if amounts are held, updates are pending, or it is exported.")
    ] = False,
    yes: Yes = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Drop a budget with its queue.

    Example: pgcombine budget drop seats --yes
    """
    with open_database(dsn) as connection:
        budgets(connection, name)  # raises an error if there is none
        total = Budget(name).totals(connection)
        confirm(f'budget "{name}" with {total["available"]} available will be dropped', yes=yes)
        Budget(name).drop(connection, force=force)
    report_state("budget", name, "dropped", as_json)
