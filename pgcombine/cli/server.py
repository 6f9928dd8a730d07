"""``pgcombine server start|stop|status|remove``: the embedded PostgreSQL of ``PGCOMBINE_HOME``."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from typing import Annotated

import typer

from pgcombine import config
from pgcombine.cli.options import Json, Yes, confirm, group, megabytes, print_json, report
from pgcombine.embedded.server import EmbeddedServer


class Mode(StrEnum):
    """The way to stop the server, as in ``pg_ctl``."""

    smart = "smart"
    fast = "fast"
    immediate = "immediate"


server = group("The embedded PostgreSQL server of PGCOMBINE_HOME.")


@server.command()
def start(as_json: Json = False) -> None:
    """Start the server unless it already runs.

    Example: pgcombine server start
    """
    EmbeddedServer(config.home()).start()
    _report(as_json)


@server.command()
def stop(
    mode: Annotated[
        Mode, typer.Option(help="smart waits for clients, fast ends their transactions, immediate stops like a crash.")
    ] = Mode.fast,
    as_json: Json = False,
) -> None:
    """Stop the server; its data stay.

    Example: pgcombine server stop --mode smart
    """
    ran = EmbeddedServer(config.home()).stop(mode.value)
    report({"stopped": ran}, "stopped" if ran else "the server didn't run", as_json)


@server.command()
def status(as_json: Json = False) -> None:
    """Show whether and where the server runs, and how much disk space it uses.

    Example: pgcombine server status --json
    """
    _report(as_json)


@server.command()
def remove(yes: Yes = False, as_json: Json = False) -> None:
    """Stop the server and delete it with all its databases.

    Example: pgcombine server remove --yes
    """
    own = EmbeddedServer(config.home())
    size = own.disk_use()
    if size is not None:
        confirm(f"the server in {own.home} will be lost with all its databases, {megabytes(size)}", yes=yes)
    removed = own.remove()
    report({"removed": removed}, f"removed: {own.home}" if removed else f"there is no server in {own.home}", as_json)


def _report(as_json: bool) -> None:
    found = dataclasses.asdict(EmbeddedServer(config.home()).status())
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        if name == "size":
            name, value = "disk use", megabytes(value)
        elif isinstance(value, bool):
            value = "yes" if value else "no"
        typer.echo(f"{name.replace('_', ' '):17} {'-' if value is None else value}")
