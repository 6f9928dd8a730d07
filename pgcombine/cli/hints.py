"""``pgcombine hints ls|show|pause|resume|replay|retry|drop|truncate|verify|repair``."""

from __future__ import annotations

import logging
from typing import Annotated
from uuid import UUID

import typer

from pgcombine.cli.options import (
    Dsn,
    Json,
    echo,
    fail,
    open_database,
    print_json,
    print_table,
    report,
    report_state,
    resolve_dsn,
    whole,
)
from pgcombine.handoff import operations, repairing, replayer
from pgcombine.handoff.verifying import Difference, compare

hints = typer.Typer(no_args_is_help=True, help="Writes that other servers haven't acknowledged yet.")

ServerName = Annotated[str, typer.Argument(metavar="SERVER", help="Name of the other server.")]
AnyServer = Annotated[
    str | None, typer.Argument(metavar="SERVER", help="Name of the other server; all if none is named.")
]
Token = Annotated[UUID | None, typer.Argument(metavar="TOKEN", help="Token of the write, as hints show prints it.")]
Number = Annotated[
    int | None, typer.Argument(metavar="NUMBER", callback=whole(32), help="Number of an update; all if none is given.")
]
Every = Annotated[bool, typer.Option("--all", help="All updates that the server refused.")]


@hints.command("ls")
def list_hints(dsn: Dsn = None, as_json: Json = False) -> None:
    """Show each server's state, and its waiting and delivered hints.

    Example: pgcombine hints ls --json
    """
    with open_database(dsn) as connection:
        found = operations.status(connection)
        own = operations.own_state(connection)
    if as_json:
        print_json(found)
        return
    columns = ("destination", "state", "rows", "bytes", "oldest_age", "delivered", "deduplicated", "quarantined")
    print_table(columns, [[row[column] for column in columns] for row in found])
    for row in found:
        if row["needs_repair"]:
            echo(f"{row['destination']} needs repair: {row['needs_repair']}")
        elif row["reason"]:
            echo(f"{row['destination']} is {row['state']}: {row['reason']}")
    for line in own:
        echo(line)


@hints.command()
def show(
    name: ServerName,
    limit: Annotated[int, typer.Option("-n", min=1, help="How many to show.")] = 20,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Show the first hints for a server with their updates, and the updates that it refused.

    Example: pgcombine hints show b -n 20
    """
    with open_database(dsn) as connection:
        (status,) = operations.status(connection, name)
        waiting = operations.hints_for(connection, name, limit)
        held = operations.quarantined(connection, name, limit)
    if as_json:
        print_json({**status, "hints": waiting, "quarantine": held})
        return
    for field, content in status.items():
        echo(f"{field + ':':14} {'' if content is None else content}")
    for rows in (waiting, held):
        if rows:
            typer.echo()
            print_table(list(rows[0]), [list(row.values()) for row in rows])


@hints.command()
def pause(name: ServerName, dsn: Dsn = None, as_json: Json = False) -> None:
    """Stop deliveries to a server; its hints are kept.

    Example: pgcombine hints pause b
    """
    with open_database(dsn) as connection:
        operations.pause(connection, name)
    report_state("server", name, "paused", as_json)


@hints.command()
def resume(name: ServerName, dsn: Dsn = None, as_json: Json = False) -> None:
    """Let deliveries to a server go on, for whatever reason they stopped.

    Example: pgcombine hints resume b
    """
    with open_database(dsn) as connection:
        operations.resume(connection, name)
    report_state("server", name, "resumed", as_json)


@hints.command()
def replay(name: AnyServer = None, dsn: Dsn = None, as_json: Json = False) -> None:
    """Deliver the hints for a server, or for all, now; exit status 1 if some are left.

    Example: pgcombine hints replay b
    """
    database = resolve_dsn(dsn)
    logging.getLogger("pgcombine").setLevel(logging.CRITICAL)  # failures are reported at the end
    told_json = []
    left = []
    with open_database(database) as connection:
        for server in [found["destination"] for found in operations.status(connection, name)]:
            done = replayer.Replayer(database, [server], min_age=0).replay(force=True)
            (status,) = operations.status(connection, server)
            told_json.append({"server": server, **done.as_dict(), "left": status["rows"]})
            if not as_json:
                typer.echo(told(done) if name else f"{server}: {told(done)}")
            if status["rows"]:
                left.append(
                    f'{status["rows"]} updates still wait for server "{server}": {status["reason"] or "they are new"}'
                )
    if as_json:
        print_json(told_json[0] if name else told_json)
    if left:
        fail("; ".join(left))


@hints.command()
def retry(
    name: ServerName,
    token: Token = None,
    number: Number = None,
    every: Every = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Turn updates that a server refused into hints again. Each is a write of its own, for that server alone.

    Example: pgcombine hints retry b --all
    """
    _one_or_all(token, every)
    with open_database(dsn) as connection:
        updates = operations.retry(connection, name, token, number)
    _counted("hinted again", name, updates, as_json)


@hints.command()
def drop(
    name: ServerName,
    reason: Annotated[str, typer.Option("--reason", help="Reason; kept until the server is rebuilt.")],
    token: Token = None,
    number: Number = None,
    every: Every = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Delete updates that a server refused; it lacks them, so it needs repair.

    Example: pgcombine hints drop b --all --reason 'the queue is gone'
    """
    _one_or_all(token, every)
    with open_database(dsn) as connection:
        updates = operations.discard(connection, name, reason, token, number)
    _counted("dropped", name, updates, as_json)


@hints.command()
def truncate(
    name: ServerName,
    reason: Annotated[str, typer.Option("--reason", help="Reason; kept until the server is repaired.")],
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Delete all hints and quarantined updates for a server, which then needs repair.

    Example: pgcombine hints truncate b --reason 'b will be rebuilt'
    """
    with open_database(dsn) as connection:
        updates = operations.truncate(connection, name, reason)
    _counted("truncated", name, updates, as_json)


@hints.command()
def verify(name: AnyServer = None, dsn: Dsn = None, as_json: Json = False) -> None:
    """Compare the writes of a server, or of all, with those here; exit status 1 if hints won't remove a difference.

    Example: pgcombine hints verify b
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


@hints.command()
def repair(dsn: Dsn = None, as_json: Json = False) -> None:
    """Compare all servers and give each what it lacks and another has; then none needs repair.

    Run it after a server was lost and removed (replicas rm on each of the others), while writers go on. Exit status 1
    means that a server didn't answer, or lacks writes whose text nobody keeps: rebuild it from one that has them.

    Example: pgcombine hints repair
    """
    database = resolve_dsn(dsn)
    with open_database(database) as connection:
        done = repairing.repair(connection, database)
    counts = ", ".join(f"{name} got {writes}" for name, writes in done.delivered.items())
    report(repairing.as_dict(done), f"compared {', '.join(done.servers)}: {counts} writes", as_json)
    problems = [f"{name} wasn't compared: {reason}" for name, reason in done.unreached.items()]
    for name, lacking in done.lacking.items():
        token, reason = min(lacking.items())
        problems.append(f"{name} lacks {len(lacking)} writes, such as {token}: {reason}")
    if marked := sorted(set(done.marked) - done.lacking.keys() - done.unreached.keys()):
        problems.append(f"{', '.join(marked)} must be rebuilt (pgcombine hints ls shows why)")
    if problems:
        fail("; ".join(problems))


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
        typer.echo(f"verified: {found.server}, {found.hinted} writes are under way")


def told(done: replayer.Replayed) -> str:
    """Return a line with the counts of a replayer."""
    there = f"{done.deduplicated} were there already"
    return f"delivered: {done.delivered} writes ({there}), quarantined: {done.quarantined} updates"


def _one_or_all(token: UUID | None, every: bool) -> None:
    if (token is None) != every:
        raise typer.BadParameter("give the token of a write, or --all", param_hint="TOKEN")


def _counted(what: str, name: str, updates: int, as_json: bool) -> None:
    report({"server": name, "state": what, "updates": updates}, f"{what}: {updates} updates", as_json)
