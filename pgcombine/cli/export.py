"""``pgcombine export create|run|ls|pause|resume|verify|resync|own|drop``, and ``export quarantine``."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from pgcombine.cli import refused
from pgcombine.cli.application import attribute
from pgcombine.cli.loops import LogFormat, LogFormatOption, log_to_stderr, stopped_by_signal, supervised
from pgcombine.cli.metrics import LOOPBACK, Metrics, MetricsHost, MetricsPort
from pgcombine.cli.options import (
    Dsn,
    Json,
    Yes,
    confirm,
    counted,
    echo,
    fail,
    group,
    note,
    open_database,
    print_json,
    report,
    report_state,
    report_table,
    resolve_dsn,
    seconds,
    whole,
)
from pgcombine.cli.refused import Name
from pgcombine.export.entries import TIMEOUT_SECONDS
from pgcombine.export.files import FILE_MODE
from pgcombine.export.queue import ExportQueue, exports
from pgcombine.export.verifying import Difference, differences
from pgcombine.export.verifying import resync as send_again
from pgcombine.export.worker import POLL_SECONDS, ExportWorker
from pgcombine.handoff import ownership

SECRETS = "PGCOMBINE_WEBHOOK_SECRETS"


def _mode(value: str) -> str:
    if not re.fullmatch("0?[0-7]{3}", value) or not int(value, 8) & 0o200:
        raise typer.BadParameter(f"give permissions in octal digits that let the owner write, such as 640, not {value}")
    return value


export = group("Deliver the changes of queues to other systems.")


@export.command()
def create(
    name: Name,
    queue: Annotated[str, typer.Option("--queue", help="The queue whose changes are delivered.")],
    exporter: Annotated[str, typer.Option("--exporter", help="postgres, files, webhook or python.")] = "python",
    target: Annotated[
        str | None, typer.Option("--target", help="Connection string without a password, directory, or URL.")
    ] = None,
    table: Annotated[str | None, typer.Option("--table", help="Table of the exporter postgres. Default: NAME.")] = None,
    existing: Annotated[bool, typer.Option("--existing", help="Deliver the present values, too.")] = False,
    compact: Annotated[bool, typer.Option(help="Deliver a key's waiting changes as one entry.")] = True,
    batch: Annotated[
        int, typer.Option("--batch", min=1, callback=whole(32), help="Greatest number of entries in a delivery.")
    ] = 10_000,
    body: Annotated[
        str | None, typer.Option("--format", help="Format of the exporter webhook: cloudevents sends CloudEvents.")
    ] = None,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Make an export: from now on the queue's changes wait to be delivered.

    Example: pgcombine export create words --queue wc --exporter files --target /var/lib/words
    """
    with open_database(dsn) as connection:
        ExportQueue(
            name,
            queue=queue,
            exporter=exporter,
            target=target,
            target_table=table,
            existing=existing,
            compact=compact,
            batch=batch,
            format=body,
        ).create(connection)
    report_state("export", name, "created", as_json)


@export.command()
def run(
    name: Name,
    drain: Annotated[bool, typer.Option("--drain", help="Deliver the waiting entries, then end.")] = False,
    timeout: Annotated[
        float | None, typer.Option("--timeout", callback=seconds, help="With --drain: seconds until the command fails.")
    ] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", min=1, help="How many buckets are delivered at once.")
    ] = 1,
    poll: Annotated[
        float, typer.Option("--poll", callback=seconds, help="Seconds between checks if no notification comes.")
    ] = POLL_SECONDS,
    delivery_timeout: Annotated[
        float,
        typer.Option("--delivery-timeout", callback=seconds, help="Seconds that a destination may take for a batch."),
    ] = TIMEOUT_SECONDS,
    file_mode: Annotated[
        str, typer.Option("--file-mode", callback=_mode, help="Permissions of exported files, in octal digits.")
    ] = f"{FILE_MODE:o}",
    secret_file: Annotated[
        Path | None,
        typer.Option(
            "--secret-file",
            help="The file with the secrets that sign webhooks, read at each delivery. "
            f"Default: the variable {SECRETS}.",
        ),
    ] = None,
    app: Annotated[
        str | None,
        typer.Option(
            "--app",
            metavar="MODULE:ATTRIBUTE",
            help="The exporter: a function that takes a list of entries, a class, or an installed exporter's name.",
        ),
    ] = None,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = LOOPBACK,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every batch.")] = False,
    log_format: LogFormatOption = LogFormat.text,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Deliver the entries of an export until SIGTERM or Ctrl-C; several processes can share the work.

    Example: pgcombine export run words --concurrency 2
    """
    log_to_stderr(log_format, verbose=verbose)
    if drain and metrics_port is not None:
        raise typer.BadParameter(
            "can't be used with --drain, which ends soon: leave one of them out", param_hint="--metrics-port"
        )
    exporter = attribute(app) if app and ":" in app else app
    database = resolve_dsn(dsn)
    worker = ExportWorker(
        database,
        name,
        exporter,
        concurrency=concurrency,
        poll=poll,
        timeout=delivery_timeout,
        file_mode=int(file_mode, 8),
        secrets=partial(secret_file.read_text, "utf-8", "replace") if secret_file else os.environ.get(SECRETS) or None,
    )
    if drain:
        delivered = worker.drain(timeout)
    else:
        stop = stopped_by_signal()
        with supervised(worker.heartbeat), Metrics(metrics_port, metrics_host).served(database, worker.heartbeat):
            delivered = worker.run(stop)
    report({"export": name, "entries": delivered}, f"delivered: {delivered} entries", as_json)


@export.command("ls")
def list_exports(dsn: Dsn = None, as_json: Json = False) -> None:
    """List the exports, each with its pending entries, the state of its destination, and the reason for that state.

    Example: pgcombine export ls --json
    """
    with open_database(dsn) as connection:
        found = exports(connection)
    columns = ["export", "queue", "exporter", "state", "owner", "pending", "lag", "delivered", "quarantined", "reason"]
    cells = [{**row, "lag": f"{row['lag_seconds']:.0f} s"} for row in found]
    report_table(found, columns, [[row[column] for column in columns] for row in cells], as_json)


@export.command()
def pause(
    name: Name,
    reason: Annotated[str | None, typer.Option("--reason", help="Reason, shown by pgcombine export ls.")] = None,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Stop the deliveries of an export; its entries wait until it is resumed.

    Example: pgcombine export pause words --reason 'the disk is being changed'
    """
    with open_database(dsn) as connection:
        ExportQueue(name).pause(connection, reason)
    report_state("export", name, "paused", as_json)


@export.command()
def resume(name: Name, dsn: Dsn = None, as_json: Json = False) -> None:
    """Let the deliveries of a paused or failing export go on at once.

    Example: pgcombine export resume words
    """
    with open_database(dsn) as connection:
        ExportQueue(name).resume(connection)
    report_state("export", name, "resumed", as_json)


@export.command()
def verify(
    name: Name,
    limit: Annotated[int, typer.Option("--limit", min=0, help="How many keys to name.")] = 20,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Compare the target table of a postgres export with the queue's values; exit status 1 if keys differ.

    Workers can combine and deliver meanwhile. A change that still waits to be delivered isn't a difference.

    Example: pgcombine export verify words
    """
    counts: Counter[str] = Counter()
    named: list[Difference] = []
    with open_database(dsn) as connection:
        for found in differences(connection, name):
            counts[found.problem] += 1
            if len(named) < limit:
                named.append(found)
    moving = counts.pop("moving", 0)
    if as_json:
        keys = [{"key": json.loads(found.key), "problem": found.problem} for found in named]
        print_json({"export": name, "differences": counts.total(), **counts, "moving": moving, "keys": keys})
    else:
        for found in named:
            echo(f"{found.problem}: {found.key}")
    if moving:
        note(f"{counted(moving, 'key')} of {name} kept changing, or wait to be delivered")
    if counts:
        remedy = "own" if counts["ahead"] else "resync"
        kinds = ", ".join(f"{count} {problem}" for problem, count in sorted(counts.items()))
        fail(f'export "{name}" differs in {counted(counts.total(), "key")}: {kinds} (pgcombine export {remedy} {name})')
    if not as_json:
        typer.echo(f"verified: {name}")


@export.command()
def resync(
    name: Name,
    every: Annotated[
        bool, typer.Option("--all", help="Deliver every key that has a value, without reading the destination.")
    ] = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Deliver again the keys that verify finds; for exporters other than postgres, every key that has a value.

    The command enqueues the keys as entries, which the export's workers deliver. If it is interrupted, run it again.
    Without --all, it fails if the destination is ahead of this server: then run export own.

    Example: pgcombine export resync words --all
    """
    with open_database(dsn) as connection:
        keys, moving = send_again(connection, name, every=every)
    report({"export": name, "keys": keys, "moving": moving}, f"pending again: {counted(keys, 'key')}", as_json)
    if moving:
        note(f"{counted(moving, 'key')} of {name} kept changing, or wait to be delivered")


@export.command()
def own(name: Name, dsn: Dsn = None, as_json: Json = False) -> None:
    """Make this server the one that delivers the export, if several servers have it.

    The command begins an epoch: each key that has a value gets a new entry, with a higher sequence number than in
    earlier epochs. After the first delivery of the epoch, a destination of the exporter postgres refuses deliveries of
    other servers. On a single server, run the command after a restore from an older backup, when the destination has
    newer data than the server.

    Example: pgcombine export own words
    """
    with open_database(dsn) as connection:
        done = ownership.own(connection, name)
    if as_json:
        print_json(vars(done))
        return
    typer.echo(f"owned: {name} by {done.owner or 'this server'} since epoch {done.epoch}")
    for other, reason in done.unreached.items():
        echo(
            f"{other} doesn't know the new owner yet, but a destination of the exporter postgres refuses its entries: "
            f"{reason}"
        )


@export.command()
def drop(
    name: Name,
    force: Annotated[bool, typer.Option("--force", help="Drop it even if entries wait; they are lost.")] = False,
    yes: Yes = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """End an export; delivered data stay at the destination.

    Example: pgcombine export drop words --force --yes
    """
    with open_database(dsn) as connection:
        (found,) = exports(connection, name)
        waiting = f"{found['pending']} pending and {found['quarantined']} quarantined entries"
        confirm(f'export "{name}" will be dropped, with {waiting}', yes=yes)
        ExportQueue(name).drop(connection, force=force)
    report_state("export", name, "dropped", as_json)


export.add_typer(refused.quarantine, name="quarantine")
