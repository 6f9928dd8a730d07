"""``pgcombine replicas quarantine ls|show|retry|drop``: the updates that another server refused."""

from __future__ import annotations

from typing import Annotated, Any
from uuid import UUID

import typer

from pgcombine.cli.options import Dsn, Json, Yes, confirm, counted, group, open_database, report, report_table, whole
from pgcombine.errors import NotQuarantinedError
from pgcombine.handoff import operations

ServerName = Annotated[str, typer.Argument(metavar="SERVER", help="Name of the other server.")]
Token = Annotated[UUID | None, typer.Argument(metavar="TOKEN", help="Token of the write, as ls prints it.")]
Number = Annotated[
    int | None, typer.Argument(metavar="NUMBER", callback=whole(32), help="Number of an update; all if none is given.")
]
Every = Annotated[bool, typer.Option("--all", help="All updates that the server refused.")]
Limit = Annotated[int, typer.Option("-n", min=1, help="How many to show.")]

quarantine = group("Show, retry and drop updates that another server refused.")


@quarantine.command("ls")
def list_updates(
    name: Annotated[
        str | None, typer.Argument(metavar="SERVER", help="Name of the other server; all if none is named.")
    ] = None,
    limit: Limit = 20,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """List the first updates that other servers refused, each with the reason for the refusal.

    Example: pgcombine replicas quarantine ls b -n 100
    """
    with open_database(dsn) as connection:
        operations.status(connection, name)
        _print(operations.quarantined(connection, name, limit), as_json)


@quarantine.command()
def show(
    name: ServerName,
    token: Annotated[UUID, typer.Argument(metavar="TOKEN", help="Token of the write, as ls prints it.")],
    limit: Limit = 20,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Show the updates of one write that a server refused.

    Example: pgcombine replicas quarantine show b 01890a5d-ac96-774b-bcce-b302099a8057
    """
    with open_database(dsn) as connection:
        operations.status(connection, name)
        found = operations.quarantined(connection, name, limit, token)
    if not found:
        raise NotQuarantinedError(
            f'server "{name}" refused no updates of write {token} (pgcombine replicas quarantine ls {name})'
        )
    _print(found, as_json)


@quarantine.command()
def retry(
    name: ServerName,
    token: Token = None,
    number: Number = None,
    every: Every = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Turn updates that a server refused into hints again. Each update becomes a separate write for that server alone.

    Example: pgcombine replicas quarantine retry b --all
    """
    _one_or_all(token, every)
    with open_database(dsn) as connection:
        updates = operations.retry_quarantined(connection, name, token, number)
    _report("hinted again", name, updates, as_json)


@quarantine.command()
def drop(
    name: ServerName,
    reason: Annotated[str, typer.Option("--reason", help="Reason; kept until the server is rebuilt.")],
    token: Token = None,
    number: Number = None,
    every: Every = False,
    yes: Yes = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Delete updates that a server refused; the server then lacks them and needs repair.

    Example: pgcombine replicas quarantine drop b --all --reason 'the queue is gone' --yes
    """
    _one_or_all(token, every)
    with open_database(dsn) as connection:
        (status,) = operations.status(connection, name)
        lost = f"updates of write {token}" if token else counted(status["quarantined"], "update")
        confirm(f'{lost} that server "{name}" refused will be lost', yes=yes)
        updates = operations.drop_quarantined(connection, name, reason, token, number)
    _report("dropped", name, updates, as_json)


def _print(found: list[dict[str, Any]], as_json: bool) -> None:
    columns = ("destination", "token", "number", "queue", "since", "error", "content")
    report_table(found, columns, [[row[column] for column in columns] for row in found], as_json)


def _one_or_all(token: UUID | None, every: bool) -> None:
    if (token is None) != every:
        raise typer.BadParameter("give the token of a write, or --all", param_hint="TOKEN")


def _report(what: str, name: str, updates: int, as_json: bool) -> None:
    report({"server": name, "state": what, "updates": updates}, f"{what}: {counted(updates, 'update')}", as_json)
