"""``pgcombine bench``: measurements on this machine."""

from __future__ import annotations

from typing import Annotated

import typer

from pgcombine.cli.options import Dsn, Json, print_json, resolve_dsn
from pgcombine.cli.phrasecount import require_spark

# a copy of the keys of pgcombine.bench.figures.FIGURES; importing that module here would make --help slow
FIGURES = ("end-to-end", "freshness", "combine", "spark")


def bench(
    figure: Annotated[
        list[str] | None,
        typer.Option("--figure", help=f"Repeat for several: {', '.join(FIGURES)}. Default: all but spark."),
    ] = None,
    keys: Annotated[int, typer.Option("--keys", min=1, help="How many keys.")] = 300_000,
    skew: Annotated[float, typer.Option("--skew", min=0, help="Zipf exponent of the keys' frequencies.")] = 1.2,
    clients: Annotated[int, typer.Option("--clients", min=1, help="Number of concurrent clients.")] = 8,
    seconds: Annotated[float, typer.Option("--seconds", min=1, help="Seconds that a measurement takes.")] = 5.0,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Number of rounds; medians are shown.")] = 3,
    buckets: Annotated[int, typer.Option("--buckets", min=1, help="Buckets of the queue.")] = 1,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Updates of the figures combine and spark.")] = 1_000_000,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Measure the queue in a throw-away database of the server, beside upserts, COPY, GROUP BY and plain JDBC.

    Example: pgcombine bench --figure freshness --seconds 5
    """
    if "spark" in (figure or ()):
        require_spark("the figure spark")
    from pgcombine.bench.figures import run
    from pgcombine.bench.scratch import Settings

    settings = Settings(keys, skew, clients, seconds, rounds, buckets, rows)
    results = []
    if not as_json:
        typer.echo("settings: " + ", ".join(f"{name} {value}" for name, value in vars(settings).items()))
    for one in run(resolve_dsn(dsn), settings, figure or ()):
        results.append(vars(one))
        if not as_json:
            line = f"{one.figure:<40}{one.queue:>14,.1f} {one.unit}"
            typer.echo(
                f"{line}; {one.baseline_name}: {one.baseline:,.1f}, ratio {one.ratio:.2f}" if one.ratio else line
            )
    if as_json:
        print_json({"settings": vars(settings), "figures": results})
