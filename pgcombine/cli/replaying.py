"""``pgcombine replicas run|replay|verify|repair|rebuild``: deliver writes to other servers, and compare them."""

from __future__ import annotations

import logging
from typing import Annotated

import typer

from pgcombine.cli.loops import LogFormat, LogFormatOption, log_to_stderr, stopped_by_signal, supervised
from pgcombine.cli.metrics import LOOPBACK, Metrics, MetricsHost, MetricsPort
from pgcombine.cli.options import (
    Dsn,
    Json,
    Yes,
    confirm,
    counted,
    fail,
    open_database,
    print_json,
    report,
    resolve_dsn,
    seconds,
)
from pgcombine.cli.refused_writes import ServerName
from pgcombine.handoff import operations, rebuilding, repairing, replayer
from pgcombine.handoff.verifying import Difference, compare

AnyServer = Annotated[
    str | None, typer.Argument(metavar="SERVER", help="Name of the other server; all if none is named.")
]


def run(
    names: Annotated[
        list[str] | None, typer.Argument(metavar="SERVER", help="Servers to deliver to; all if none is named.")
    ] = None,
    poll: Annotated[
        float, typer.Option("--poll", callback=seconds, help="Seconds between checks for hints.")
    ] = replayer.POLL_SECONDS,
    min_age: Annotated[
        float,
        typer.Option(
            "--min-age", callback=seconds, help="Age in seconds below which a hint is left to the client that wrote it."
        ),
    ] = replayer.MIN_AGE_SECONDS,
    timeout: Annotated[
        float, typer.Option("--timeout", callback=seconds, help="Seconds that a server may take for a page of hints.")
    ] = replayer.TIMEOUT_SECONDS,
    once: Annotated[bool, typer.Option("--once", help="Deliver the present hints, then end.")] = False,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = LOOPBACK,
    log_format: LogFormatOption = LogFormat.text,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Deliver this server's hints until SIGTERM or Ctrl-C; several processes can share the work.

    Example: pgcombine replicas run --log-format json
    """
    log_to_stderr(log_format)
    stop = stopped_by_signal()
    if once and metrics_port is not None:
        raise typer.BadParameter(
            "can't be used with --once, which ends soon: leave one of them out", param_hint="--metrics-port"
        )
    database = resolve_dsn(dsn)
    deliverer = replayer.Replayer(database, names or (), poll=poll, min_age=min_age, timeout=timeout)
    if once:
        done = deliverer.replay(stop=stop)
    else:
        with supervised(deliverer.heartbeat), Metrics(metrics_port, metrics_host).served(database, deliverer.heartbeat):
            done = deliverer.run(stop)
    report(done.as_dict(), _told(done), as_json)


def replay(name: AnyServer = None, dsn: Dsn = None, as_json: Json = False) -> None:
    """Deliver all hints for a server, or for all servers, now; exit status 1 if some are left.

    Example: pgcombine replicas replay b
    """
    database = resolve_dsn(dsn)
    logging.getLogger("pgcombine").setLevel(logging.CRITICAL)  # the command itself reports failures, at its end
    told_json = []
    left = []
    with open_database(database) as connection:
        for server in [found["destination"] for found in operations.status(connection, name)]:
            done = replayer.Replayer(database, [server], min_age=0).replay(force=True)
            (status,) = operations.status(connection, server)
            told_json.append({"server": server, **done.as_dict(), "left": status["rows"]})
            if not as_json:
                typer.echo(_told(done) if name else f"{server}: {_told(done)}")
            if status["rows"]:
                left.append(
                    f'server "{server}" still lacks {counted(status["rows"], "update")}: '
                    f"{status['reason'] or 'the hints are new'}"
                )
    if as_json:
        print_json(told_json[0] if name else told_json)
    if left:
        fail("; ".join(left))


def verify(name: AnyServer = None, dsn: Dsn = None, as_json: Json = False) -> None:
    """Compare the writes on other servers with those here; exit status 1 for differences that hints won't remove.

    Example: pgcombine replicas verify b
    """
    told_json = []
    differ = []
    with open_database(dsn) as connection:
        for server in [found["destination"] for found in operations.status(connection, name)]:
            found = compare(connection, server)
            told_json.append({**vars(found), "equal": found.equal})
            if not as_json:
                _tell(found)
            if not found.equal:
                count = len({*found.lacking, *found.surplus, *found.conflicting, *found.refused})
                differ.append(f'server "{server}" differs in {count} {"write" if count == 1 else "writes"}')
    if as_json:
        print_json(told_json[0] if name else told_json)
    if differ:
        fail("; ".join(differ))


def repair(dsn: Dsn = None, as_json: Json = False) -> None:
    """Compare all servers, and give each server the writes that it lacks and whose updates another server has.

    Run the command after a server was lost and replicas rm removed it from each of the others. Writers can go on. The
    exit status is also 1 if a server didn't answer, still lacks writes (for example because no server retains their
    updates), or needs repair for another reason. A server that still lacks writes must be rebuilt from one that has
    them.

    Example: pgcombine replicas repair
    """
    database = resolve_dsn(dsn)
    with open_database(database) as connection:
        done = repairing.repair(connection, database)
    counts = ", ".join(f"{name} got {writes}" for name, writes in done.delivered.items())
    report(repairing.as_dict(done), f"compared {', '.join(done.servers)}: {counts} writes", as_json)
    problems = [f"{name} wasn't compared: {reason}" for name, reason in done.unreached.items()]
    for name, lacking in done.lacking.items():
        token, reason = min(lacking.items())
        problems.append(f"{name} lacks {counted(len(lacking), 'write')}, such as {token}: {reason}")
    if marked := sorted(set(done.marked) - done.lacking.keys() - done.unreached.keys()):
        problems.append(f"marked as in need of repair: {', '.join(marked)} (pgcombine replicas ls shows why)")
    if problems:
        fail("; ".join(problems))


def rebuild(
    name: ServerName,
    sources: Annotated[
        list[str] | None,
        typer.Option(
            "--from", metavar="SERVER", help="Server to copy; repeat for several. Default: this server and all others."
        ),
    ] = None,
    force: Annotated[
        bool,
        typer.Option(
            "--force",
            help="Go on if a source needs repair or a server doesn't answer; writes that the sources lack are lost.",
        ),
    ] = False,
    timeout: Annotated[
        float,
        typer.Option(
            "--timeout",
            callback=seconds,
            help="Seconds to wait for hints that the sources lack, and for writes in progress.",
        ),
    ] = rebuilding.TIMEOUT_SECONDS,
    yes: Yes = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Replace the contents of a server with those of other servers, while writers go on.

    Use the command for a server that is empty, was away for too long, lost commits, or needs repair for another reason.
    The server's observers aren't called. Exports that the server owns deliver every value again. If the command is
    killed, run it again. The exit status is also 1 if another server couldn't be reached, or if the server still needs
    repair, for example because a source does.

    Example: pgcombine replicas rebuild b --from c --yes
    """
    database = resolve_dsn(dsn)
    confirm(f'the contents of all queues on server "{name}" will be replaced', yes=yes)
    logging.getLogger("pgcombine").setLevel(logging.CRITICAL)  # the command itself reports failures, at its end
    with open_database(database) as connection:
        done = rebuilding.rebuild(connection, database, name, sources or (), force=force, timeout=timeout)
    line = (
        f"rebuilt: {name} from {', '.join(done.sources)}: {len(done.queues)} queues, {done.values} values, "
        f"{done.updates} pending updates, {done.tokens} writes"
    )
    report(rebuilding.as_dict(done), line, as_json)
    if done.unreached:
        reasons = "; ".join(f"{name}: {reason}" for name, reason in done.unreached.items())
        fail(f'server "{name}" gets nothing from servers that don\'t answer; rebuild it again when they do: {reasons}')
    if done.unrepaired:
        fail(f'server "{name}" still needs repair (pgcombine replicas ls at {", ".join(done.unrepaired)} shows why)')


def _tell(found: Difference) -> None:
    for what, tokens in (
        ("lacks", found.lacking),
        ("alone has", found.surplus),
        ("has with other updates", found.conflicting),
        ("has refused updates of", found.refused),
    ):
        for token in tokens:
            typer.echo(f"{found.server} {what} {token}")
    if found.equal:
        typer.echo(f"verified: {found.server}, {found.hinted} writes are in progress")


def _told(done: replayer.Replayed) -> str:
    there = f"{done.deduplicated} were there already"
    return f"delivered: {done.delivered} writes ({there}), quarantined: {done.quarantined} updates"
