"""``pgcombine replicas add|ls|rm`` and ``pgcombine handoff run|rebuild``."""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import Annotated

import typer

from pgcombine.cli.hints import ServerName, told
from pgcombine.cli.loops import log_to_stderr, stopped_by_signal
from pgcombine.cli.options import (
    Dsn,
    Json,
    fail,
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
    address: Annotated[str, typer.Argument(metavar="DSN", help="Where it is, without a password.")],
    max_rows: Annotated[
        int | None, typer.Option("--max-rows", callback=whole(64), help="Updates that may wait for it.")
    ] = None,
    max_bytes: Annotated[
        int | None, typer.Option("--max-bytes", callback=whole(64), help="Bytes that may wait for it.")
    ] = None,
    when_full: Annotated[
        WhenFull | None, typer.Option("--when-full", help="Refuse writes then, or take them without a hint for it.")
    ] = None,
    adopt: Annotated[bool, typer.Option("--adopt", help="Another server has taken its place.")] = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Register another server, or change what is registered of it."""
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
    """List the other servers."""
    with open_database(dsn) as connection:
        found = operations.ls(connection)
    columns = ("name", "dsn", "max_rows", "max_bytes", "when_full")
    report_table(found, columns, [[row[column] for column in columns] for row in found], as_json)


@replicas.command()
def rm(name: ServerName, dsn: Dsn = None, as_json: Json = False) -> None:
    """Forget another server; refused while hints wait for it."""
    with open_database(dsn) as connection:
        operations.remove(connection, name)
    report_state("server", name, "removed", as_json)


@handoff.command()
def run(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="SERVER", help="Deliver to these; to all if none is named.")
    ] = None,
    poll: Annotated[
        float, typer.Option("--poll", callback=seconds, help="Seconds between looks for hints.")
    ] = replayer.POLL_SECONDS,
    min_age: Annotated[
        float,
        typer.Option("--min-age", callback=seconds, help="Seconds that a hint is left to the caller that wrote it."),
    ] = replayer.MIN_AGE_SECONDS,
    timeout: Annotated[
        float,
        typer.Option("--timeout", callback=seconds, help="Seconds that a server may take for a page of hints."),
    ] = replayer.TIMEOUT_SECONDS,
    once: Annotated[bool, typer.Option("--once", help="Deliver what is there, then end.")] = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Deliver this home's hints until SIGTERM or Ctrl-C; start as many as you like."""
    log_to_stderr()
    stop = stopped_by_signal()
    deliverer = replayer.Replayer(resolve_dsn(dsn), names or (), poll=poll, min_age=min_age, timeout=timeout)
    done = deliverer.replay(stop=stop) if once else deliverer.run(stop)
    report(done.as_dict(), told(done), as_json)


@handoff.command()
def rebuild(
    name: ServerName,
    sources: Annotated[
        list[str] | None,
        typer.Option("--from", metavar="SERVER", help="The server to copy; give more where each holds some keys only."),
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Although the source needs repair itself.")] = False,
    timeout: Annotated[
        float, typer.Option("--timeout", callback=seconds, help="Seconds to wait for hints that the source lacks.")
    ] = rebuilding.TIMEOUT_SECONDS,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Make a server a copy of another one (of this one, if none is named), while writers go on; then it is complete.

    For a server that is empty, was away for too long, lost commits, or needs repair for another reason. What it holds
    of the queues is replaced. Its observers aren't told; exports that it owns deliver everything anew. Killed in the
    middle, it can be run again. Exit status 1 where a server that can't be reached doesn't know of it, or what
    happened meanwhile makes another repair necessary.
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
        fail(f'server "{name}" is to be rebuilt again when these answer, which deliver nothing to it: {reasons}')
    if done.unrepaired:
        fail(f'server "{name}" still needs repair, as {", ".join(done.unrepaired)} can tell (pgcombine hints ls)')
