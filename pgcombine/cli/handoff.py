"""``pgcombine replicas add|ls|rm``, ``hints ls|show|pause|resume|replay|retry|drop|truncate|verify``, and
``handoff run|rebuild``."""

from __future__ import annotations

import logging
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from typing import Annotated, Any
from uuid import UUID

import typer

from pgcombine.cli.options import (
    Dsn,
    Json,
    fail,
    open_database,
    print_json,
    print_table,
    resolve_dsn,
    seconds,
    whole,
)
from pgcombine.handoff import operations, rebuilding, replayer
from pgcombine.handoff.verifying import compare

replicas = typer.Typer(no_args_is_help=True, help="The other servers that hold the same queues.")
hints = typer.Typer(no_args_is_help=True, help="What other servers have not acknowledged yet.")
handoff = typer.Typer(no_args_is_help=True, help="Deliver hints; rebuild servers.")

ServerName = Annotated[str, typer.Argument(metavar="SERVER", help="Name of the other server.")]
Token = Annotated[UUID | None, typer.Argument(metavar="TOKEN", help="The write, as hints show tells it.")]
Number = Annotated[
    int | None, typer.Argument(metavar="NUMBER", callback=whole(32), help="The update in it; all if it isn't given.")
]
Every = Annotated[bool, typer.Option("--all", help="All that it refused.")]


class WhenFull(StrEnum):
    """What to do when the quota of a server's hints is reached."""

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
    _done("registered", name, as_json)


@replicas.command("ls")
def list_replicas(dsn: Dsn = None, as_json: Json = False) -> None:
    """List the other servers."""
    with open_database(dsn) as connection:
        found = operations.ls(connection)
    if as_json:
        print_json(found)
    else:
        columns = ("name", "dsn", "max_rows", "max_bytes", "when_full")
        print_table(columns, [[row[column] for column in columns] for row in found])


@replicas.command()
def rm(name: ServerName, dsn: Dsn = None, as_json: Json = False) -> None:
    """Forget another server; refused while hints wait for it."""
    with open_database(dsn) as connection:
        operations.remove(connection, name)
    _done("removed", name, as_json)


@hints.command("ls")
def list_hints(dsn: Dsn = None, as_json: Json = False) -> None:
    """Show what waits for each server, its state, and what was delivered."""
    with open_database(dsn) as connection:
        found = operations.status(connection)
    if as_json:
        print_json(found)
        return
    columns = ("destination", "state", "rows", "bytes", "oldest_age", "delivered", "deduplicated", "quarantined")
    print_table(columns, [[row[column] for column in columns] for row in found])
    for row in found:
        if row["needs_repair"]:
            typer.echo(f"{row['destination']} needs repair: {row['needs_repair']}")
        elif row["reason"]:
            typer.echo(f"{row['destination']} is {row['state']}: {row['reason']}")


@hints.command()
def show(
    name: ServerName,
    limit: Annotated[int, typer.Option("-n", min=1, help="How many to show.")] = 20,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Show the first hints for a server with their updates, and the updates that it refused."""
    with open_database(dsn) as connection:
        (status,) = operations.status(connection, name)
        waiting = operations.hints_for(connection, name, limit)
        held = operations.quarantined(connection, name, limit)
    if as_json:
        print_json({**status, "hints": waiting, "quarantine": held})
        return
    for field, content in status.items():
        typer.echo(f"{field + ':':14} {'' if content is None else content}")
    for rows in (waiting, held):
        if rows:
            typer.echo()
            print_table(list(rows[0]), [list(row.values()) for row in rows])


@hints.command()
def pause(name: ServerName, dsn: Dsn = None, as_json: Json = False) -> None:
    """Stop deliveries to a server; its hints are kept."""
    with open_database(dsn) as connection:
        operations.pause(connection, name)
    _done("paused", name, as_json)


@hints.command()
def resume(name: ServerName, dsn: Dsn = None, as_json: Json = False) -> None:
    """Let deliveries to a server go on, whatever stopped them."""
    with open_database(dsn) as connection:
        operations.resume(connection, name)
    _done("resumed", name, as_json)


@hints.command()
def replay(name: ServerName, dsn: Dsn = None, as_json: Json = False) -> None:
    """Deliver the hints for a server now; exit status 1 if some are left."""
    database = resolve_dsn(dsn)
    logging.getLogger("pgcombine").setLevel(logging.CRITICAL)  # what fails is told at the end
    with open_database(database) as connection:
        operations.status(connection, name)
        done = replayer.Replayer(database, [name], min_age=0).replay(force=True)
        (status,) = operations.status(connection, name)
    if as_json:
        print_json({"server": name, **done.as_dict(), "left": status["rows"]})
    else:
        typer.echo(_told(done))
    if status["rows"]:
        fail(f'{status["rows"]} updates still wait for server "{name}": {status["reason"] or "they are new"}')


@hints.command()
def retry(
    name: ServerName,
    token: Token = None,
    number: Number = None,
    every: Every = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Make hints again of updates that a server refused: each a write of its own, for that server alone."""
    _one_or_all(token, every)
    with open_database(dsn) as connection:
        updates = operations.retry(connection, name, token, number)
    _counted("hinted again", name, updates, as_json)


@hints.command()
def drop(
    name: ServerName,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept until the server is rebuilt.")],
    token: Token = None,
    number: Number = None,
    every: Every = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Delete updates that a server refused; it lacks them, so it needs repair."""
    _one_or_all(token, every)
    with open_database(dsn) as connection:
        updates = operations.discard(connection, name, reason, token, number)
    _counted("dropped", name, updates, as_json)


@hints.command()
def truncate(
    name: ServerName,
    reason: Annotated[str, typer.Option("--reason", help="Why; kept until the server is repaired.")],
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Delete all hints and quarantined updates for a server, which then needs repair."""
    with open_database(dsn) as connection:
        updates = operations.truncate(connection, name, reason)
    _counted("truncated", name, updates, as_json)


@hints.command()
def verify(name: ServerName, dsn: Dsn = None, as_json: Json = False) -> None:
    """Compare the writes of a server with those here; exit status 1 if they differ beyond what hints deliver."""
    with open_database(dsn) as connection:
        found = compare(connection, name)
    if as_json:
        print_json({**vars(found), "equal": found.equal})
    else:
        for what, tokens in (
            ("lacks", found.lacking),
            ("has, and here it is missing,", found.surplus),
            ("has with other updates", found.conflicting),
        ):
            for token in tokens:
                typer.echo(f"{name} {what} {token}")
    if not found.equal:
        count = len(found.lacking) + len(found.surplus) + len(found.conflicting)
        fail(f'server "{name}" differs in {count} {"write" if count == 1 else "writes"}')
    if not as_json:
        typer.echo(f"verified: {name}, {found.hinted} writes are under way")


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
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    stop = threading.Event()

    def end(*_: Any) -> None:
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, end)
    deliverer = replayer.Replayer(resolve_dsn(dsn), names or (), poll=poll, min_age=min_age, timeout=timeout)
    done = deliverer.replay(stop=stop) if once else deliverer.run(stop)
    if as_json:
        print_json(done.as_dict())
    else:
        typer.echo(_told(done))


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
    logging.getLogger("pgcombine").setLevel(logging.CRITICAL)  # what fails is told at the end
    with open_database(database) as connection:
        done = rebuilding.rebuild(connection, database, name, sources or (), force=force, timeout=timeout)
    if as_json:
        print_json(rebuilding.as_dict(done))
    else:
        typer.echo(
            f"rebuilt: {name} from {', '.join(done.sources)}: {len(done.queues)} queues, {done.values} values, "
            f"{done.updates} pending updates, {done.tokens} writes"
        )
    if done.unreached:
        reasons = "; ".join(f"{home}: {reason}" for home, reason in done.unreached.items())
        fail(f'server "{name}" is to be rebuilt again when these answer, which deliver nothing to it: {reasons}')
    if done.unrepaired:
        fail(f'server "{name}" still needs repair, as {", ".join(done.unrepaired)} can tell (pgcombine hints ls)')


@contextmanager
def replaying(database: str, stop: threading.Event) -> Iterator[None]:
    """A replayer beside what is done in the block, until ``stop`` is set; if it fails, it sets that and is raised."""
    failure: list[BaseException] = []

    def run() -> None:
        try:
            replayer.Replayer(database).run(stop)
        except BaseException as error:
            failure.append(error)
            stop.set()

    thread = threading.Thread(target=run, name="pgcombine-replayer")
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()
    if failure:
        raise failure[0]


def register(app: typer.Typer) -> None:
    """Add the commands."""
    app.add_typer(replicas, name="replicas")
    app.add_typer(hints, name="hints")
    app.add_typer(handoff, name="handoff")


def _told(done: replayer.Replayed) -> str:
    return (
        f"delivered: {done.delivered} writes ({done.deduplicated} were there), quarantined: {done.quarantined} updates"
    )


def _one_or_all(token: UUID | None, every: bool) -> None:
    if (token is None) != every:
        raise typer.BadParameter("give the token of a write, or --all", param_hint="TOKEN")


def _counted(what: str, name: str, updates: int, as_json: bool) -> None:
    if as_json:
        print_json({"server": name, "state": what, "updates": updates})
    else:
        typer.echo(f"{what}: {updates} updates")


def _done(what: str, name: str, as_json: bool) -> None:
    if as_json:
        print_json({"server": name, "state": what})
    else:
        typer.echo(f"{what}: {name}")
