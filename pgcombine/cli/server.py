"""``pgcombine server start|stop|status``: the embedded PostgreSQL of ``PGCOMBINE_HOME``."""

from __future__ import annotations

import dataclasses
from enum import StrEnum
from typing import Annotated

import typer

from pgcombine import config
from pgcombine.cli.options import Json, print_json
from pgcombine.embedded import EmbeddedServer


class Mode(StrEnum):
    """How to stop, as in ``pg_ctl``."""

    smart = "smart"
    fast = "fast"
    immediate = "immediate"


server = typer.Typer(no_args_is_help=True, help="The embedded PostgreSQL server of PGCOMBINE_HOME.")


@server.command()
def start(as_json: Json = False) -> None:
    """Start the server unless it runs."""
    EmbeddedServer(config.home()).start()
    _report(as_json)


@server.command()
def stop(
    mode: Annotated[
        Mode, typer.Option(help="smart waits for clients, fast ends their transactions, immediate is a crash.")
    ] = Mode.fast,
    as_json: Json = False,
) -> None:
    """Stop the server; its data stay."""
    ran = EmbeddedServer(config.home()).stop(mode.value)
    if as_json:
        print_json({"stopped": ran})
    else:
        typer.echo("stopped" if ran else "it didn't run")


@server.command()
def status(as_json: Json = False) -> None:
    """Show whether the server runs, and where."""
    _report(as_json)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(server, name="server")


def _report(as_json: bool) -> None:
    found = dataclasses.asdict(EmbeddedServer(config.home()).status())
    if as_json:
        print_json(found)
        return
    for name, value in found.items():
        if name == "size":
            value = f"{value / 2**20:.0f} MiB"
        elif isinstance(value, bool):
            value = "yes" if value else "no"
        typer.echo(f"{name.replace('_', ' '):17} {'-' if value is None else value}")
