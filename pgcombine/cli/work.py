"""``pgcombine worker``, ``pgcombine drain`` and ``pgcombine wait``."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Annotated

import typer

from pgcombine.cli.application import load
from pgcombine.cli.loops import LogFormat, LogFormatOption, log_to_stderr, stopped_by_signal, supervised
from pgcombine.cli.metrics import LOOPBACK, Metrics, MetricsHost, MetricsPort
from pgcombine.cli.options import (
    Dsn,
    Json,
    QueueName,
    counted,
    note_quarantined,
    open_database,
    quarantined_fields,
    report,
    resolve_dsn,
    seconds,
)
from pgcombine.handoff.replayer import Replayer
from pgcombine.queue import combine_queue as queues
from pgcombine.queue import status as figures
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.runtime.loops import run_together
from pgcombine.shard.nodes import node_dsns
from pgcombine.worker.drain import drain as drain_queue
from pgcombine.worker.totals import Totals
from pgcombine.worker.worker import MAX_DELAY_SECONDS, POLL_SECONDS, Worker

App = Annotated[
    str | None, typer.Option("--app", metavar="MODULE:ATTRIBUTE", help="The queues whose observers are in Python.")
]

Timeout = Annotated[float | None, typer.Option("--timeout", callback=seconds, help="Seconds until the command fails.")]


def worker(
    names: Annotated[list[str] | None, typer.Argument(metavar="QUEUE", help="Queues; all if none is named.")] = None,
    drain: Annotated[
        bool, typer.Option("--drain", help="Combine one bucket at a time; end when no updates are pending.")
    ] = False,
    concurrency: Annotated[
        int,
        typer.Option(
            "--concurrency",
            min=1,
            help="How many buckets are combined at once. N buckets need N + 2 connections.",
        ),
    ] = 1,
    poll: Annotated[
        float, typer.Option("--poll", callback=seconds, help="Seconds between checks of some queues, in turn.")
    ] = POLL_SECONDS,
    max_delay: Annotated[
        float,
        typer.Option(
            "--max-delay",
            callback=seconds,
            help="Seconds that updates of a busy queue may wait, so that a pass combines more of them.",
        ),
    ] = MAX_DELAY_SECONDS,
    lock_timeout: Annotated[
        float | None,
        typer.Option(
            "--lock-timeout", callback=seconds, help="Seconds that a pass waits for a lock; 0: no limit. Default: 10."
        ),
    ] = None,
    statement_timeout: Annotated[
        float | None,
        typer.Option(
            "--statement-timeout",
            callback=seconds,
            help="Seconds after which a pass is cancelled. The next one takes half as many updates. 0: never. "
            "Default: 300.",
        ),
    ] = None,
    connect_timeout: Annotated[
        float,
        typer.Option(
            "--connect-timeout",
            callback=seconds,
            help="Seconds to go on trying a server that doesn't answer at the start; "
            "the worker always waits for a server that is starting up or recovering.",
        ),
    ] = 0,
    app: App = None,
    handoff: Annotated[
        bool, typer.Option("--handoff", help="Deliver this server's hints to the other servers, too.")
    ] = False,
    front: Annotated[
        bool, typer.Option("--front", help="Combine on all nodes of this database's fronts, also while some are down.")
    ] = False,
    metrics_port: MetricsPort = None,
    metrics_host: MetricsHost = LOOPBACK,
    verbose: Annotated[bool, typer.Option("--verbose", "-v", help="Log every pass.")] = False,
    log_format: LogFormatOption = LogFormat.text,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Combine pending updates until SIGTERM or Ctrl-C; start as many workers as you like.

    Example: pgcombine worker --concurrency 4 --log-format json
    """
    log_to_stderr(log_format, verbose=verbose)
    if drain and handoff:
        raise typer.BadParameter(
            "can't be used with --drain: for the hints run pgcombine replicas run --once", param_hint="--handoff"
        )
    if drain and metrics_port is not None:
        raise typer.BadParameter(
            "can't be used with --drain, which ends soon: leave one of them out", param_hint="--metrics-port"
        )
    if front and (drain or handoff or names or app):
        raise typer.BadParameter(
            "can't be used with QUEUE, --drain, --handoff or --app: leave these out", param_hint="--front"
        )
    served = load(app) if app else []
    database = resolve_dsn(dsn)
    databases = list(node_dsns(database).values()) if front else [database]
    if drain:
        _report(_drained(database, names, served, lock_timeout, statement_timeout), as_json)
        return
    stop = stopped_by_signal()
    metrics = Metrics(metrics_port, metrics_host)
    workers = [
        Worker(
            one,
            list(names or ()),
            app=served,
            concurrency=concurrency,
            poll=poll,
            max_delay=max_delay,
            lock_timeout=lock_timeout,
            statement_timeout=statement_timeout,
            connect_timeout=math.inf if front else connect_timeout,
            on_pass=metrics.on_pass,
            on_failure=metrics.on_failure,
        )
        for one in databases
    ]
    daemons: list[Worker | Replayer] = [*workers, *([Replayer(database)] if handoff else [])]
    heartbeats = [daemon.heartbeat for daemon in daemons]
    with supervised(*heartbeats), metrics.served(database, *heartbeats):
        run_together([daemon.run for daemon in daemons], stop, "pgcombine")
    totals = Totals()
    for worker in workers:
        totals.merge(worker.totals)
    _report(totals, as_json)


def _drained(
    database: str,
    names: Sequence[str] | None,
    served: Sequence[CombineQueue],
    lock_timeout: float | None,
    statement_timeout: float | None,
) -> Totals:
    totals = Totals()
    given = {queue.name: queue for queue in served}
    with open_database(database, timeout=None) as connection:
        wanted = list(names or queues.queues(connection))
    for name in wanted:
        queue = given.get(name, name)
        totals.merge(drain_queue(database, queue, lock_timeout=lock_timeout, statement_timeout=statement_timeout))
    return totals


def drain(name: QueueName, timeout: Timeout = None, app: App = None, dsn: Dsn = None, as_json: Json = False) -> None:
    """Combine a queue's updates until none are pending.

    Example: pgcombine drain wc --timeout 60
    """
    served = {queue.name: queue for queue in load(app)} if app else {}
    database = resolve_dsn(dsn)
    _report(drain_queue(database, served.get(name, name), timeout=timeout), as_json)
    with open_database(database) as connection:
        note_quarantined(name, *figures.quarantined(connection, name))


def wait(name: QueueName, timeout: Timeout = None, dsn: Dsn = None, as_json: Json = False) -> None:
    """Wait until the updates that are pending now are combined or quarantined.

    Example: pgcombine wait wc --timeout 60
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    with open_database(dsn, timeout=timeout) as connection:
        left = None if deadline is None else max(0.0, round(deadline - time.monotonic(), 1))
        CombineQueue(name).wait(connection, timeout=left)
        quarantined = figures.quarantined(connection, name)
    report({"queue": name, "state": "combined", **quarantined_fields(*quarantined)}, f"combined: {name}", as_json)
    note_quarantined(name, *quarantined)


def _report(totals: Totals, as_json: bool) -> None:
    passes = f"{totals.passes} {'pass' if totals.passes == 1 else 'passes'}"
    updates, changes = counted(totals.updates, "update"), counted(totals.changes, "change")
    report(totals.as_dict(), f"combined: {updates} in {passes}, {changes}", as_json)
