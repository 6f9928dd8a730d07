"""``pgcombine quarantine ls|show|retry|drop``."""

from __future__ import annotations

import json
from typing import Annotated, Any

import typer

from pgcombine.cli.options import (
    Dsn,
    Json,
    QueueName,
    Yes,
    confirm,
    counted,
    echo,
    group,
    open_database,
    print_json,
    print_table,
    report,
    report_table,
)
from pgcombine.database.connect import Connection
from pgcombine.database.loading import as_text
from pgcombine.errors import NotQuarantinedError
from pgcombine.queue import combine_queue as queues
from pgcombine.queue import status as figures
from pgcombine.worker import quarantine as quarantines

quarantine = group("Show, retry and drop keys that keep failing.")

Keys = Annotated[
    list[str] | None, typer.Argument(metavar="KEY", help="Keys; a JSON array where they have several columns.")
]
Every = Annotated[bool, typer.Option("--all", help="All keys of the queue.")]


@quarantine.command("ls")
def list_keys(
    name: Annotated[str | None, typer.Argument(metavar="QUEUE", help="A queue; all if none is named.")] = None,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """List the quarantined keys, each with the number of its updates and its error.

    Example: pgcombine quarantine ls wc
    """
    with open_database(dsn) as connection:
        queues.require(connection, [name] if name else [])
        found = quarantines.ls(connection, name)
    rows = [
        (row["queue"], _text(row["key"]), row["updates"], row["attempts"], f"{row['since']:%F %T}", row["error"])
        for row in found
    ]
    report_table(found, ["queue", "key", "updates", "attempts", "since", "error"], rows, as_json)


@quarantine.command()
def show(
    name: QueueName,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key; a JSON array where it has several columns.")],
    limit: Annotated[int, typer.Option("-n", min=1, help="How many updates to show.")] = 20,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Show a quarantined key and its updates.

    Example: pgcombine quarantine show wc fluo
    """
    with open_database(dsn) as connection:
        as_text(connection)
        wanted = _keys(connection, name, [key])[0]
        for found in quarantines.ls(connection, name):
            if {column: str(part) for column, part in found["key"].items()} == wanted:
                break
        else:
            raise NotQuarantinedError(f'key {key} of queue "{name}" isn\'t quarantined', queue=name)
        updates = quarantines.updates(connection, name, found["key"], limit)
    if as_json:
        print_json({**found, "quarantined": updates})
        return
    for field, content in found.items():
        echo(f"{field + ':':10} {_text(content) if field == 'key' else content}")
    typer.echo()
    print_table(list(updates[0]) if updates else [], [list(row.values()) for row in updates])


@quarantine.command()
def retry(name: QueueName, keys: Keys = None, every: Every = False, dsn: Dsn = None, as_json: Json = False) -> None:
    """Make the updates of quarantined keys pending again.

    Example: pgcombine quarantine retry wc --all
    """
    _release(name, keys, every, dsn, as_json, put_back=True)


@quarantine.command()
def drop(
    name: QueueName, keys: Keys = None, every: Every = False, yes: Yes = False, dsn: Dsn = None, as_json: Json = False
) -> None:
    """Delete the updates of quarantined keys; later updates of these keys are combined.

    Example: pgcombine quarantine drop wc fluo --yes
    """
    _release(name, keys, every, dsn, as_json, put_back=False, yes=yes)


def _release(
    name: str, keys: list[str] | None, every: bool, dsn: str | None, as_json: bool, *, put_back: bool, yes: bool = True
) -> None:
    if bool(keys) == every:
        raise typer.BadParameter("give the keys, or --all", param_hint="KEY")
    with open_database(dsn) as connection:
        queues.require(connection, [name])
        release = quarantines.retry if put_back else quarantines.drop
        wanted: list[dict[str, str] | None] = [None] if every else [*_keys(connection, name, keys or [])]
        count, updates = figures.quarantined(connection, name)
        lost = counted(updates, "update") if every else "the updates"
        lost += f" of {counted(count if every else len(wanted), 'quarantined key')} of {name} will be lost"
        confirm(lost, yes=yes)
        with connection.transaction():
            updates = sum(release(connection, name, key) for key in wanted)
    state = "pending" if put_back else "dropped"
    line = f"{'pending again' if put_back else state}: {counted(updates, 'update')}"
    report({"queue": name, "state": state, "updates": updates}, line, as_json)


def _keys(connection: Connection, name: str, keys: list[str]) -> list[dict[str, str]]:
    columns = [column.name for column in figures.columns(connection, name) if column.role == "key"]
    if len(columns) == 1:
        return [{columns[0]: key} for key in keys]
    found = []
    for key in keys:
        try:
            parts = json.loads(key)
        except ValueError:
            parts = None
        if not isinstance(parts, list) or len(parts) != len(columns):
            raise typer.BadParameter(f"{key!r} is no JSON array of {', '.join(columns)}", param_hint="KEY")
        found.append({column: str(part) for column, part in zip(columns, parts, strict=True)})
    return found


def _text(key: dict[str, Any]) -> str:
    return str(next(iter(key.values()))) if len(key) == 1 else json.dumps(list(key.values()), ensure_ascii=False)
