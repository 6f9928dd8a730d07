"""``pgcombine replicas``: the other servers that hold the same queues, and the writes that wait for them.

The commands that deliver and compare writes are in :mod:`pgcombine.cli.replaying`. The commands for updates that a
server refused are in :mod:`pgcombine.cli.refused_writes`.
"""

from __future__ import annotations

from contextlib import suppress
from enum import StrEnum
from typing import Annotated

import typer

from pgcombine.cli import refused_writes, replaying
from pgcombine.cli.options import (
    Dsn,
    Json,
    Yes,
    confirm,
    counted,
    echo,
    group,
    note,
    open_database,
    print_json,
    print_table,
    report,
    report_state,
    whole,
)
from pgcombine.cli.refused_writes import ServerName
from pgcombine.handoff import operations

replicas = group("The other servers that hold the same queues, and the writes that wait for them.")


class WhenFull(StrEnum):
    """What happens when the hints for a server reach their limit."""

    backpressure = "backpressure"
    require_repair = "require_repair"


@replicas.command()
def add(
    name: ServerName,
    address: Annotated[str, typer.Argument(metavar="DSN", help="The server's connection string, without a password.")],
    max_rows: Annotated[
        int | None, typer.Option("--max-rows", callback=whole(64), help="Limit of updates that wait for the server.")
    ] = None,
    max_bytes: Annotated[
        int | None, typer.Option("--max-bytes", callback=whole(64), help="Limit of bytes that wait for the server.")
    ] = None,
    when_full: Annotated[
        WhenFull | None,
        typer.Option("--when-full", help="At the limit: refuse writes, or write no more hints for the server."),
    ] = None,
    new_identity: Annotated[
        bool,
        typer.Option("--new-identity", help="Accept that another server has taken the place of the registered one."),
    ] = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Register another server, or change its registration.

    Example: pgcombine replicas add b 'host=b.example dbname=app user=app'
    """
    with open_database(dsn) as connection:
        operations.add(
            *(connection, name, address),
            max_rows=max_rows,
            max_bytes=max_bytes,
            when_full=when_full.value if when_full else None,
            new_identity=new_identity,
        )
    report_state("server", name, "registered", as_json)


@replicas.command("ls")
def list_replicas(dsn: Dsn = None, as_json: Json = False) -> None:
    """List the other servers, each with its state and its waiting and delivered hints.

    Example: pgcombine replicas ls --json
    """
    from psycopg.errors import InsufficientPrivilege

    with open_database(dsn) as connection:
        found = operations.ls(connection)
        own = []
        with suppress(InsufficientPrivilege):  # the role may be unable to read this server's own state
            own = operations.own_state(connection)
    if as_json:
        print_json(found)
        return
    columns = ("name", "state", "rows", "bytes", "oldest_age", "delivered", "deduplicated", "quarantined", "dsn")
    print_table(columns, [[row[column] for column in columns] for row in found])
    for row in found:
        if row["needs_repair"]:
            echo(f"{row['name']} needs repair: {row['needs_repair']}")
        elif row["reason"]:
            echo(f"{row['name']} is {row['state']}: {row['reason']}")
    for line in own:
        echo(line)


@replicas.command()
def rm(name: ServerName, yes: Yes = False, dsn: Dsn = None, as_json: Json = False) -> None:
    """Forget another server. The command fails while hints wait for the server, or the server has hints for others.

    Quarantined updates count like hints. First remove the server from the settings of all writers. If the server
    doesn't answer, its hints are lost, and the other servers need repair: run replicas rm on each of them, then
    replicas repair on one.

    Example: pgcombine replicas rm b --yes
    """
    with open_database(dsn) as connection:
        operations.status(connection, name)
        confirm(f'server "{name}" will be forgotten: it has to be rebuilt if it comes back', yes=yes)
        empty = operations.remove(connection, name)
    report_state("server", name, "removed", as_json)
    if not empty:
        note(f"writes that {name} had acknowledged may be missing on other servers: run pgcombine replicas repair")


@replicas.command()
def show(
    name: ServerName,
    limit: Annotated[int, typer.Option("-n", min=1, help="How many to show.")] = 20,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Show the first hints for a server with their updates, and the first updates that the server refused.

    Example: pgcombine replicas show b -n 20
    """
    with open_database(dsn) as connection:
        (status,) = operations.status(connection, name)
        waiting = operations.hints_for(connection, name, limit)
        quarantined = operations.quarantined(connection, name, limit)
    if as_json:
        print_json({**status, "hints": waiting, "quarantine": quarantined})
        return
    for field, content in status.items():
        echo(f"{field + ':':14} {'' if content is None else content}")
    for rows in (waiting, quarantined):
        if rows:
            typer.echo()
            print_table(list(rows[0]), [list(row.values()) for row in rows])


@replicas.command()
def pause(name: ServerName, dsn: Dsn = None, as_json: Json = False) -> None:
    """Stop the delivery of hints to a server; its hints are kept, and writers still write to it.

    Example: pgcombine replicas pause b
    """
    with open_database(dsn) as connection:
        operations.pause(connection, name)
    report_state("server", name, "paused", as_json)


@replicas.command()
def resume(name: ServerName, dsn: Dsn = None, as_json: Json = False) -> None:
    """Let the delivery of hints to a server go on, regardless of why it stopped.

    Example: pgcombine replicas resume b
    """
    with open_database(dsn) as connection:
        operations.resume(connection, name)
    report_state("server", name, "resumed", as_json)


@replicas.command()
def truncate(
    name: ServerName,
    reason: Annotated[str, typer.Option("--reason", help="Reason; kept until the server is repaired.")],
    yes: Yes = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Delete all hints and quarantined updates for a server; if there were some, the server then needs repair.

    Example: pgcombine replicas truncate b --reason 'b will be rebuilt' --yes
    """
    with open_database(dsn) as connection:
        (status,) = operations.status(connection, name)
        waiting = f"{counted(status['writes'], 'hint')} and {counted(status['quarantined'], 'quarantined update')}"
        confirm(f'{waiting} for server "{name}" will be lost', yes=yes)
        updates = operations.truncate(connection, name, reason)
    line = f"truncated: {counted(updates, 'update')}"
    report({"server": name, "state": "truncated", "updates": updates}, line, as_json)


for command in (replaying.run, replaying.replay, replaying.verify, replaying.repair, replaying.rebuild):
    replicas.command()(command)
replicas.add_typer(refused_writes.quarantine, name="quarantine")
