"""``pgcombine replicas add|ls|rm`` and ``pgcombine handoff run|rebuild``."""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import Annotated

import typer

from pgcombine.cli.hints import ServerName, told
from pgcombine.cli.loops import LogFormat, LogFormatOption, log_to_stderr, stopped_by_signal, supervised
from pgcombine.cli.metrics import LOOPBACK, Metrics, MetricsHost, MetricsPort
from pgcombine.cli.options import (
    Dsn,
    Json,
    fail,
    note,
    open_database,
    report,
    report_state,
    report_table,
    resolve_dsn,
    seconds,
    whole,
)
from pgcombine.handoff import operations, rebuilding, replayer

replicas = typer.Typer(no_args_is_help=True, help="The other servers that hold the same queues.")
handoff = typer.Typer(no_args_is_help=True, help="Deliver hints; rebuild servers.")


class WhenFull(StrEnum):
    """The action when the quota of a server's hints is reached."""

    backpressure = "backpressure"
    mark_repair = "mark_repair"


@replicas.command()
def add(
    name: ServerName,
    address: Annotated[str, typer.Argument(metavar="DSN", help="Its connection string, without a password.")],
    max_rows: Annotated[
        int | None, typer.Option("--max-rows", callback=whole(64), help="Limit of updates that wait for it.")
    ] = None,
    max_bytes: Annotated[
        int | None, typer.Option("--max-bytes", callback=whole(64), help="Limit of bytes that wait for it.")
    ] = None,
    when_full: Annotated[
        WhenFull | None, typer.Option("--when-full", help="At the limit: refuse writes, or write no hints for it.")
    ] = None,
    adopt: Annotated[bool, typer.Option("--adopt", help="Accept a server that has replaced it.")] = False,
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
            adopt=adopt,
        )
    report_state("server", name, "registered", as_json)


@replicas.command("ls")
def list_replicas(dsn: Dsn = None, as_json: Json = False) -> None:
    """List the other servers.

    Example: pgcombine replicas ls
    """
    with open_database(dsn) as connection:
        found = operations.ls(connection)
    columns = ("name", "dsn", "max_rows", "max_bytes", "when_full")
    report_table(found, columns, [[row[column] for column in columns] for row in found], as_json)


@replicas.command()
def rm(name: ServerName, dsn: Dsn = None, as_json: Json = False) -> None:
    """Forget another server; refused while hints wait for it, or it answers and has hints for others.

    Let no writer name it any more. If it doesn't answer, its hints are lost, and the other servers need repair: run
    this on each of them, then hints repair on one.

    Example: pgcombine replicas rm b
    """
    with open_database(dsn) as connection:
        empty = operations.remove(connection, name)
    report_state("server", name, "removed", as_json)
    if not empty:
        note(f"writes that {name} had acknowledged may be missing on other servers: run pgcombine hints repair")


@handoff.command()
def run(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="SERVER", help="Servers to deliver to; all if none is named.")
    ] = None,
    poll: Annotated[
        float, typer.Option("--poll", callback=seconds, help="Seconds between checks for hints.")
    ] = replayer.POLL_SECONDS,
    min_age: Annotated[
        float,
        typer.Option("--min-age", callback=seconds, help="Seconds that a hint is left to the caller that writes it."),
    ] = replayer.MIN_AGE_SECONDS,
    timeout: Annotated[
        float,
        typer.Option("--timeout", callback=seconds, help="Seconds that a server may take for a page of hints."),
    ] = replayer.TIMEOUT_SECONDS,
    once: Annotated[bool, typer.Option("--once", help="Deliver the present hints, then end.")] = False,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = LOOPBACK,
    log_format: LogFormatOption = LogFormat.text,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Deliver this home's hints until SIGTERM or Ctrl-C; start as many as you like.

    Example: pgcombine handoff run --log-format json
    """
    log_to_stderr(log_format)
    stop = stopped_by_signal()
    if once and metrics_port is not None:
        raise typer.BadParameter("not with --once, which ends soon", param_hint="--metrics-port")
    database = resolve_dsn(dsn)
    deliverer = replayer.Replayer(database, names or (), poll=poll, min_age=min_age, timeout=timeout)
    if once:
        done = deliverer.replay(stop=stop)
    else:
        with supervised(deliverer.pulse), Metrics(metrics_port, metrics_host).served(database, deliverer.pulse):
            done = deliverer.run(stop)
    report(done.as_dict(), told(done), as_json)


@handoff.command()
def rebuild(
    name: ServerName,
    sources: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="SERVER", help="Server to copy; repeat it if each holds only some keys."),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Copy even a source that needs repair, or while a home is away; lose writes the sources lack.",
        ),
    ] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", callback=seconds, help="Seconds to wait for hints that the source lacks.")
    ] = rebuilding.TIMEOUT_SECONDS,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Make a server a copy of another one (of this one, if none is named), while writers go on; then it is complete.

    Use it for a server that is empty, was away for too long, lost commits, or needs repair for another reason. Its
    queues' contents are replaced. Its observers aren't called. Exports that it owns deliver every value again. If the
    command is killed, run it again. Exit status 1 means that the server must be rebuilt again: another server couldn't
    be reached, or the server needs repair for a new reason.

    Example: pgcombine handoff rebuild b --from c
    """
    database = resolve_dsn(dsn)
    logging.getLogger("pgcombine").setLevel(logging.CRITICAL)  # failures are reported at the end
    with open_database(database) as connection:
        done = rebuilding.rebuild(connection, database, name, sources or (), force=force, timeout=timeout)
    line = (
        f"rebuilt: {name} from {', '.join(done.sources)}: {len(done.queues)} queues, {done.values} values, "
        f"{done.updates} pending updates, {done.tokens} writes"
    )
    report(rebuilding.as_dict(done), line, as_json)
    if done.unreached:
        reasons = "; ".join(f"{home}: {reason}" for home, reason in done.unreached.items())
        fail(f'server "{name}" gets nothing from servers that don\'t answer; rebuild it again when they do: {reasons}')
    if done.unrepaired:
        fail(f'server "{name}" still needs repair (pgcombine hints ls at {", ".join(done.unrepaired)} shows why)')
