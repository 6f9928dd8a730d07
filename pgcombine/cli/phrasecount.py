"""``pgcombine phrasecount``: count the phrases of a directory's files, incrementally."""

from __future__ import annotations

import importlib.util
import sysconfig
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgcombine import schema
from pgcombine.cli.options import Dsn, Json, fail, print_json, print_table, resolve_dsn
from pgcombine.errors import ConfigError

if TYPE_CHECKING:
    from pgcombine.phrasecount.run import Corpus, Figures
    from pgcombine.phrasecount.verify import Verification


# what pip puts below it, and what Python compiles
NOT_STANDARD_LIBRARY = frozenset({"site-packages", "dist-packages", "__pycache__"})


class Sink(StrEnum):
    """How Spark writes to PostgreSQL."""

    jdbc = "jdbc"
    copy = "copy"


def phrasecount(
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="[DIR]", help="Directory of text files. Default: the sources of Python's standard library."
        ),
    ] = None,
    sink: Annotated[
        Sink | None,
        typer.Option("--sink", help="Spark's JDBC writer or COPY. Default: JDBC where its driver is found."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Count only the first N files by path.")
    ] = None,
    max_bytes: Annotated[int, typer.Option("--max-bytes", min=1, metavar="N", help="Larger files aren't counted.")] = 64
    * 1024
    * 1024,
    top: Annotated[int, typer.Option("--top", min=0, metavar="N", help="Print the N most frequent phrases.")] = 10,
    verify: Annotated[
        bool, typer.Option("--verify", help="Recount from scratch and compare all phrases; exit 1 if any differs.")
    ] = False,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Name every file that can't be counted.")] = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Count phrases of four words over all files below DIR; a further run counts only what changed."""
    corpus = replace(corpus_of(directory), limit=limit, max_bytes=max_bytes)
    from pgcombine.phrasecount.report import NAMED, Report
    from pgcombine.phrasecount.run import count

    database = resolve_dsn(dsn)
    schema.check(database)
    figures = count(
        database,
        corpus,
        report=Report(named=None if verbose else NAMED),
        sink=sink.value if sink else None,
        top=top,
        recount=verify,
    )
    if as_json:
        print_json(_as_json(figures))
    else:
        _print(figures)
    if figures.verified is not None and figures.verified.mismatches:
        fail(_difference(figures.verified))


def corpus_of(directory: Path | None) -> Corpus:
    """The files below a directory; without one the sources of Python's standard library.

    Raises ConfigError if PySpark is missing or there is no such directory.
    """
    require_spark("phrasecount")
    from pgcombine.phrasecount.run import Corpus, real_directory

    if directory is not None:
        return Corpus(real_directory(directory))
    return Corpus(real_directory(Path(sysconfig.get_path("stdlib"))), exclude=NOT_STANDARD_LIBRARY)


def require_spark(what: str) -> None:
    """Raise ConfigError if PySpark is missing, before anything of it is imported."""
    if importlib.util.find_spec("pyspark") is None:
        raise ConfigError(f"{what} runs on Spark, which is missing: pip install 'pgcombine[spark]'")


def register(app: typer.Typer) -> None:
    """Add the command."""
    app.command()(phrasecount)


def _print(figures: Figures) -> None:
    if figures.top:
        print_table(("phrase", "docs", "total"), figures.top)
        typer.echo()
    steps = ", ".join(f"{name} {seconds:.1f}" for name, seconds in figures.step_seconds.items())
    typer.echo(
        f"{figures.documents:,} documents in {figures.directory}: {figures.added:,} new, {figures.edited:,} edited, "
        f"{figures.removed:,} gone, {figures.problems:,} files not counted\n"
        f"{figures.updates:,} updates, combined in {figures.passes:,} passes; {figures.phrases:,} phrases in all\n"
        f"{figures.seconds:.1f} s: starting Spark {figures.session_seconds:.1f}, {steps}\n"
        f"sink: {figures.sink} ({figures.sink_reason})"
    )
    if figures.left_out:
        typer.echo(f"{figures.left_out:,} occurrences of phrases over 2,600 bytes were left out")
    if figures.verified is not None and not figures.verified.mismatches:
        typer.echo(
            f"verified: a recount of {figures.verified.documents:,} unique documents has the same "
            f"{figures.verified.phrases:,} phrases"
        )


def _as_json(figures: Figures) -> dict[str, Any]:
    data = asdict(figures)
    data["top"] = [{"phrase": phrase, "docs": docs, "total": total} for phrase, docs, total in figures.top]
    return data


def _difference(verified: Verification) -> str:
    def side(docs: int | None, total: int | None) -> str:
        return "none" if docs is None else f"({docs}, {total})"

    examples = "; ".join(
        f"{phrase!r} is {side(docs, total)}, recounted {side(new_docs, new_total)}"
        for phrase, docs, total, new_docs, new_total in verified.examples
    )
    return f"verification failed: {verified.mismatches:,} phrases differ from a recount, (docs, total): {examples}"
