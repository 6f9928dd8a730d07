"""``pgcombine bench``: figures from this machine."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pgcombine.cli.options import Dsn, Json, print_json, print_table, resolve_dsn
from pgcombine.cli.phrasecount import Sink, corpus_of

group = typer.Typer(no_args_is_help=True, help="Measure on this machine; in throw-away databases on the server.")


@group.command()
def phrasecount(
    directory: Annotated[
        Path | None,
        typer.Argument(metavar="[DIR]", help="Directory of text files. Default: Python's standard library."),
    ] = None,
    sink: Annotated[Sink | None, typer.Option("--sink", help="Spark's JDBC writer or COPY.")] = None,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Run phrasecount, once more unchanged, and a plain Spark batch job with the same counts."""
    corpus = corpus_of(directory)  # says so if Spark is missing, before anything of it is imported
    from pgcombine.phrasecount.benchmark import measure

    figures = measure(resolve_dsn(dsn), corpus, sink.value if sink else None)
    if as_json:
        print_json(figures)
        return
    names = {"first": "phrasecount", "unchanged": "phrasecount, unchanged", "batch": "plain Spark batch job"}
    print_table(
        ("program", "documents", "phrases", "updates", "seconds", "documents/s", "updates/s", "peak MB", "Spark start"),
        [
            (
                name,
                f"{one['documents']:,}",
                f"{one['phrases']:,}",
                f"{one['updates']:,}",
                f"{one['seconds']:.1f}",
                f"{one['documents_per_second']:,.0f}",
                f"{one['updates_per_second']:,.0f}",
                f"{one['peak_bytes'] / 1e6:,.0f}",
                f"{one['session_seconds']:.1f}",
            )
            for name, one in ((names[key], figures[key]) for key in names)
        ],
    )
    steps = ", ".join(f"{name} {seconds:.1f}" for name, seconds in figures["first"]["steps"].items())
    typer.echo(f"seconds of phrasecount: {steps}")
    typer.echo("seconds without starting Spark; peak memory of the program's processes without the server")


def register(app: typer.Typer) -> None:
    """Add the command group."""
    app.add_typer(group, name="bench")
