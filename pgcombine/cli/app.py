"""The commands of ``pgcombine``, put together.

A module of commands imports slow packages (SQLAlchemy, Alembic, Spark, the benchmarks) only when one of its commands
runs. So ``--help`` and shell completion are quick.
"""

from __future__ import annotations

from typing import Annotated

import typer

from pgcombine.cli import (
    bench,
    data,
    database,
    doctor,
    export,
    handoff,
    hints,
    phrasecount,
    quarantine,
    queues,
    server,
    spark,
    status,
    work,
)
from pgcombine.cli.options import Group
from pgcombine.cli.watch import Watching

app = typer.Typer(
    name="pgcombine",
    cls=Group,
    no_args_is_help=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    pretty_exceptions_enable=False,
)


def _version(wanted: bool) -> None:
    if wanted:
        import pgcombine

        typer.echo(f"pgcombine {pgcombine.__version__}")
        raise typer.Exit


@app.callback()
def pgcombine(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Contended counters and aggregates in PostgreSQL: enqueue updates, combine them, read values."""


app.command("dsn")(database.show_dsn)
for command in (
    *(status.status, doctor.doctor, queues.verify),
    *(data.enqueue, data.initialize, data.get, data.top, data.values),
    *(work.worker, work.drain, work.wait),
    phrasecount.phrasecount,
):
    app.command(cls=Watching if command in (status.status, data.top) else None)(command)
for name, group in {
    "db": database.db,
    "server": server.server,
    "queue": queues.queue,
    "quarantine": quarantine.quarantine,
    "export": export.export,
    "replicas": handoff.replicas,
    "handoff": handoff.handoff,
    "hints": hints.hints,
    "spark": spark.spark,
    "bench": bench.group,
}.items():
    app.add_typer(group, name=name)
