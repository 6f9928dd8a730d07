"""``pgcombine phrasecount``: count the phrases of a directory's files, incrementally."""

from __future__ import annotations

import importlib.util
import sys
import sysconfig
from dataclasses import asdict, replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pgcombine import schema
from pgcombine.cli.loops import stopped_by_signal
from pgcombine.cli.options import Dsn, Json, fail, print_json, print_table, resolve_dsn, seconds
from pgcombine.config import libpq_dsn
from pgcombine.errors import ConfigError, pip_install

if TYPE_CHECKING:
    from pgcombine.phrasecount.corpus import Corpus
    from pgcombine.phrasecount.report import Report
    from pgcombine.phrasecount.run import Figures
    from pgcombine.phrasecount.search import Search
    from pgcombine.phrasecount.verify import Verification


# directories in the standard library's directory that hold installed packages and compiled modules
NOT_STANDARD_LIBRARY = frozenset({"site-packages", "dist-packages", "__pycache__"})


class Sink(StrEnum):
    """The way in which Spark writes to PostgreSQL."""

    jdbc = "jdbc"
    copy = "copy"


def phrasecount(
    directory: Annotated[
        Path | None,
        typer.Argument(
            metavar="DIR",
            help="Directory of text files; hidden directories in it are left out. "
            "Default: the sources of Python's standard library.",
        ),
    ] = None,
    sink: Annotated[
        Sink | None,
        typer.Option("--sink", help="Have Spark count, and write by its JDBC writer or by COPY, even small changes."),
    ] = None,
    limit: Annotated[
        int | None, typer.Option("--limit", min=1, metavar="N", help="Count only the first N files by path.")
    ] = None,
    max_bytes: Annotated[
        int, typer.Option("--max-bytes", min=1, metavar="N", help="Don't count files with more than N bytes.")
    ] = 64 * 1024 * 1024,
    top: Annotated[int, typer.Option("--top", min=0, metavar="N", help="Print the N most frequent phrases.")] = 10,
    verify: Annotated[
        bool, typer.Option("--verify", help="Recount from scratch and compare all phrases; exit 1 if any differs.")
    ] = False,
    follow: Annotated[
        bool, typer.Option("--follow", help="Count new, changed and deleted files as they come, until SIGTERM.")
    ] = False,
    poll: Annotated[
        float,
        typer.Option(
            "--poll",
            min=0.01,
            metavar="SECONDS",
            callback=seconds,
            help="With --follow: seconds between two polls of DIR.",
        ),
    ] = 1.0,
    search: Annotated[
        bool, typer.Option(help="Keep the table phrasecount.search up to date, by the export phrases_search.")
    ] = True,
    search_dsn: Annotated[
        str | None,
        typer.Option(
            "--search-dsn",
            metavar="DSN",
            help="Database of the search table, also in later runs. Default: the last run's, or else that of --dsn.",
        ),
    ] = None,
    find: Annotated[
        str | None,
        typer.Option(
            "--find",
            metavar="WORDS",
            help="Don't count, but find phrases that contain these words one after the other.",
        ),
    ] = None,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Name every file that isn't counted.")] = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Count phrases of four words over all files below DIR; later runs count only what changed.

    Example: pgcombine phrasecount documents --top 20
    """
    if find is not None:
        _find(find, top, dsn, search_dsn, as_json)
        return
    if follow and (verify or limit is not None):
        raise typer.BadParameter(
            "can't be used with --follow: leave one of them out", param_hint="--verify" if verify else "--limit"
        )
    corpus = replace(corpus_of(directory), limit=limit, max_bytes=max_bytes)
    from pgcombine.phrasecount.report import Report
    from pgcombine.phrasecount.run import count
    from pgcombine.phrasecount.search import Search

    database = resolve_dsn(dsn)
    schema.check(database)
    report = Report(names=verbose)
    kept = Search(database, search_dsn and libpq_dsn(search_dsn)) if search else None
    chosen = sink.value if sink else None
    if follow:
        _follow(database, corpus, report, chosen, kept, poll, as_json)
        return
    figures = count(database, corpus, report=report, sink=chosen, top=top, recount=verify, search=kept)
    if as_json:
        print_json(_as_json(figures))
    else:
        _print(figures)
    report.problems()
    if figures.verified is not None and figures.verified.mismatches:
        fail(_difference(figures.verified))


def _follow(
    dsn: str, corpus: Corpus, report: Report, sink: str | None, search: Search | None, poll: float, as_json: bool
) -> None:
    from pgcombine.phrasecount.follow import follow

    def tell(figures: Figures) -> None:
        if as_json:
            print_json(_as_json(figures))
        else:
            typer.echo(
                f"{figures.documents:,} documents: {figures.added:,} new, {figures.edited:,} edited, "
                f"{figures.removed:,} gone; {figures.updates:,} updates; {figures.phrases:,} phrases in all; "
                f"{figures.seconds:.1f} s"
            )
        sys.stdout.flush()

    stop = stopped_by_signal()
    runs = follow(dsn, corpus, report=report, stop=stop, on_run=tell, sink=sink, search=search, poll=poll)
    if not as_json:
        typer.echo(f"stopped after {runs:,} runs")


def _find(words: str, top: int, dsn: str | None, search_dsn: str | None, as_json: bool) -> None:
    from pgcombine.phrasecount.search import Search

    database = resolve_dsn(dsn)
    schema.check(database)
    found = Search(database, search_dsn and libpq_dsn(search_dsn)).find(words, top)
    if as_json:
        print_json(_rows(found))
    else:
        print_table(("phrase", "docs", "total"), found)


def corpus_of(directory: Path | None) -> Corpus:
    """Return the files below a directory. The default is the sources of Python's standard library.

    Raises ConfigError if PySpark is missing or the directory doesn't exist.
    """
    require_spark("phrasecount")
    from pgcombine.phrasecount.corpus import Corpus, real_directory

    if directory is not None:
        return Corpus(real_directory(directory))
    return Corpus(real_directory(Path(sysconfig.get_path("stdlib"))), exclude=NOT_STANDARD_LIBRARY)


def require_spark(what: str) -> None:
    """Raise ConfigError if PySpark is missing. Callers do this before they import modules that need PySpark."""
    if importlib.util.find_spec("pyspark") is None:
        raise ConfigError(f"{what} runs on Spark, which is missing: {pip_install('spark')}")


def _print(figures: Figures) -> None:
    if figures.top:
        print_table(("phrase", "docs", "total"), figures.top)
        typer.echo()
    steps = ", ".join(f"{name} {seconds:.1f}" for name, seconds in figures.step_seconds.items())
    typer.echo(
        f"{figures.documents:,} documents in {figures.directory}: {figures.added:,} new, {figures.edited:,} edited, "
        f"{figures.removed:,} gone, {figures.problems:,} files not counted\n"
        f"{figures.updates:,} updates, combined in {figures.passes:,} passes; {figures.phrases:,} phrases in all\n"
        f"{figures.seconds:.1f} s: {steps}"
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
    data["top"] = _rows(figures.top)
    return data


def _rows(rows: list[tuple[str, int, int]]) -> list[dict[str, Any]]:
    return [{"phrase": phrase, "docs": docs, "total": total} for phrase, docs, total in rows]


def _difference(verified: Verification) -> str:
    def side(docs: int | None, total: int | None) -> str:
        return "none" if docs is None else f"({docs}, {total})"

    examples = "; ".join(
        f"{phrase!r} is {side(docs, total)}, recounted {side(new_docs, new_total)}"
        for phrase, docs, total, new_docs, new_total in verified.examples
    )
    return f"verification failed: {verified.mismatches:,} phrases differ from a recount, (docs, total): {examples}"
