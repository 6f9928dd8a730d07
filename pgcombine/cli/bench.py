"""``pgcombine bench``: measurements on this machine."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pgcombine.cli.options import Dsn, Json, group, print_json, print_table, resolve_dsn
from pgcombine.cli.phrasecount import Sink, corpus_of, require_spark
from pgcombine.database.connect import connect
from pgcombine.worker.maintenance import reclaiming

if TYPE_CHECKING:
    from pgcombine.bench.settings import Result

# a copy of the keys of pgcombine.bench.figures.FIGURES; importing that module here would make --help slow
FIGURES = (
    "copy",
    "keys",
    "enqueue",
    "hot",
    "end-to-end",
    "upserts",
    "freshness",
    "export",
    "feed",
    "snapshot",
    "scale",
)

bench = group(
    "Measure on this machine, in throw-away databases on the server.\n\n"
    "Example: pgcombine bench --figure enqueue --seconds 5",
    no_args_is_help=False,
)


@bench.callback(invoke_without_command=True)
def queue(
    context: typer.Context,
    figure: Annotated[
        list[str] | None, typer.Option("--figure", help=f"What to measure: {', '.join(FIGURES)}; repeat for several.")
    ] = None,
    keys: Annotated[int, typer.Option("--keys", min=1, help="How many keys.")] = 300_000,
    skew: Annotated[float, typer.Option("--skew", min=0, help="Zipf exponent of the keys' frequencies.")] = 1.2,
    clients: Annotated[int, typer.Option("--clients", min=1, help="Number of concurrent clients.")] = 8,
    seconds: Annotated[float, typer.Option("--seconds", min=1, help="Seconds that a measurement takes.")] = 5.0,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Number of rounds; medians are shown.")] = 3,
    buckets: Annotated[int, typer.Option("--buckets", min=1, help="Buckets of the queue.")] = 4,
    rows: Annotated[int, typer.Option("--rows", min=1, help="Updates for the figures copy and keys.")] = 1_000_000,
    hold: Annotated[float, typer.Option("--hold", min=5, help="Seconds to hold a snapshot in figure snapshot.")] = 60.0,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Measure the queue, and compare it with upserts, COPY and GROUP BY measured in the same run."""
    if context.invoked_subcommand is not None:
        return
    from rich.console import Console
    from rich.progress import Progress

    from pgcombine.bench.figures import run
    from pgcombine.bench.settings import Settings

    settings = Settings(
        keys=keys,
        skew=skew,
        clients=clients,
        seconds=seconds,
        rounds=rounds,
        buckets=buckets,
        rows=rows,
        hold_seconds=hold,
    )
    results: list[Result] = []
    try:
        with Progress(console=Console(stderr=True), transient=True, disable=not sys.stderr.isatty()) as progress:
            bar = progress.add_task("", total=None)
            for one in run(
                resolve_dsn(dsn), settings, figure or (), on_start=lambda name: progress.update(bar, description=name)
            ):
                results.append(one)
    finally:
        with connect(resolve_dsn(dsn)) as connection:
            log = reclaiming(connection)
        # after an error, this prints the results from before the error
        _print(vars(settings) | {"log": log}, results, as_json)


def _print(settings: dict[str, object], results: list[Result], as_json: bool) -> None:
    if as_json:
        print_json({"settings": settings, "figures": [one.as_dict() for one in results]})
        return
    typer.echo("settings: " + ", ".join(f"{name} {value}" for name, value in settings.items()))
    print_table(
        ("figure", "queue", "unit", "baseline", "", "ratio"),
        [
            (
                one.figure,
                f"{one.queue:,.1f}",
                one.unit,
                "" if one.baseline is None else f"{one.baseline:,.1f}",
                one.baseline_name,
                "" if one.ratio is None else f"{one.ratio:.2f}",
            )
            for one in results
        ],
    )


@bench.command()
def phrasecount(
    directory: Annotated[
        Path | None, typer.Argument(metavar="DIR", help="Directory of text files. Default: Python's standard library.")
    ] = None,
    sink: Annotated[Sink | None, typer.Option("--sink", help="Spark's JDBC writer or COPY.")] = None,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Measure phrasecount on new and on unchanged files, and a plain Spark batch job that counts the same phrases.

    Example: pgcombine bench phrasecount documents
    """
    corpus = corpus_of(directory)  # raises ConfigError if PySpark, which the import below needs, is missing
    from pgcombine.bench.phrasecount import measure

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
    typer.echo(
        "seconds don't include starting Spark and updating the search table; "
        "peak memory doesn't include the PostgreSQL server"
    )


@bench.command()
def handoff(
    seconds: Annotated[float, typer.Option("--seconds", min=0.5, help="Seconds for each measurement of writes.")] = 4.0,
    updates: Annotated[int, typer.Option("--updates", min=1, help="Updates of a write.")] = 10,
    replayed: Annotated[int, typer.Option("--replayed", min=500, help="Updates that are replayed.")] = 500_000,
    as_json: Json = False,
) -> None:
    """Measure replicated writes and the replay of hints on three temporary embedded servers.

    Example: pgcombine bench handoff --seconds 5
    """
    from pgcombine.bench.handoff import measure

    figures = list(measure(seconds=seconds, updates=updates, replayed=replayed))
    if as_json:
        print_json([{**vars(one), "ratio": one.ratio} for one in figures])
    else:
        print_table(
            ("figure", "value", "baseline", "unit", "ratio"),
            [
                (one.figure, f"{one.value:,.1f}", f"{one.baseline:,.1f}", one.unit, f"{one.ratio:.2f}")
                for one in figures
            ],
        )


@bench.command()
def spark(
    rows: Annotated[int, typer.Option("--rows", min=1, help="Rows in each write.")] = 1_000_000,
    keys: Annotated[int, typer.Option("--keys", min=1, help="Distinct keys.")] = 100_000,
    rounds: Annotated[int, typer.Option("--rounds", min=1, help="Number of rounds; medians are shown.")] = 3,
    memory: Annotated[bool, typer.Option("--memory", help="Measure only the driver's memory.")] = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Compare the speed of pgcombine's Spark sinks with Spark's plain JDBC writer.

    Example: pgcombine bench spark --rows 1000000 --keys 1000
    """
    require_spark("bench spark")
    from pgcombine.bench.scratch import throwaway_database
    from pgcombine.bench.spark import measure
    from pgcombine.bench.spark_memory import driver_memory

    if memory:
        server = resolve_dsn(dsn)
        peaks = driver_memory(lambda: throwaway_database(server), rows=rows, keys=keys)
        if as_json:
            print_json({"driver_peak_bytes": peaks})
        else:
            table = [(sink, *(f"{peak / 1e6:,.0f} MB" for peak in found.values())) for sink, found in peaks.items()]
            print_table(("driver's peak memory", f"{rows:,} rows", f"{10 * rows:,} rows"), table)
        return
    with throwaway_database(resolve_dsn(dsn)) as database:
        figures = measure(database, rows=rows, keys=keys, rounds=rounds)
    if as_json:
        print_json(figures)
        return
    print_table(
        ("sink", "rows/s", "ratio", "log bytes/row"),
        [
            (
                name,
                f"{one['rows_per_second']:,.0f}",
                f"{one['ratio']:.2f}",
                f"{one['log_bytes_per_million'] / 1e6:,.0f}",
            )
            for name, one in figures["sinks"].items()
        ],
    )
    typer.echo("ratio: to the rows/s of plain JDBC, tuned")
