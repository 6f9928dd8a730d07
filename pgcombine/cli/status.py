"""``pgcombine status``."""

from __future__ import annotations

import time
from typing import Annotated, Any

import typer

from pgcombine.cli.options import Dsn, Every, Json, echo, fail, open_database, print_json, seconds, show_table

LATE_SECONDS = 300.0  # the threshold of the alert PgcombineLag
UNATTENDED_SECONDS = 60.0  # doctor's limit, too


def status(
    max_lag: Annotated[
        float | None,
        typer.Option(
            "--max-lag",
            callback=seconds,
            help="Exit with status 1 if a queue has updates that have been pending for more seconds. "
            "Default: 300; 60 for a queue that nobody works on.",
        ),
    ] = None,
    every: Every = None,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Show workers, old snapshots, problems of rollups, and the figures of queues, shards, exports and feeds.

    Nobody works on a queue if it isn't paused, no worker that has all its connections works on it, and no pass over it
    that took updates has ended in the last 60 s.

    Example: pgcombine status --watch 5
    """
    from rich.table import Table

    from pgcombine.cli.overview import parts, queues_of, read, shown
    from pgcombine.cli.watch import History, watch
    from pgcombine.doctor.findings import AGAIN
    from pgcombine.queue import status as figures

    if every is not None:
        if max_lag is not None:
            raise typer.BadParameter("can't be used with --watch: leave one of them out", param_hint="--max-lag")
        history = History()
        watch(dsn, every, lambda connection: shown(read(connection), history), as_json=as_json)
        return
    limit = LATE_SECONDS if max_lag is None else max_lag

    def failing() -> list[dict[str, Any]]:
        late = figures.late(queues_of(found), limit)
        if late or max_lag is not None:
            return late
        return figures.unattended(found["queues"], found["workers"], UNATTENDED_SECONDS)

    with open_database(dsn) as connection:
        found = read(connection, fresh=max_lag is not None)
        if failing():
            # the first lag may be too high: if no worker has recorded the time recently, a new update seems old
            time.sleep(AGAIN)
            found = read(connection, fresh=True)
    if as_json:
        print_json(found)
    else:
        for part in parts(found):
            if isinstance(part, Table):
                show_table(part)
            else:
                echo(str(part))
    if max_lag is not None:
        for shard in found["fronts"]:
            if shard["problem"]:
                fail(f'node "{shard["node"]}" tells nothing of a shard of "{shard["front"]}": {shard["problem"]}')
    if late := failing():
        others = f"; other late queues: {len(late) - 1}" if len(late) > 1 else ""
        lag = late[0]["lag_seconds"]
        fail(
            f'the lag of queue "{late[0]["queue"]}" is {lag:.0f} s'
            + (f", more than {limit:g} s" if lag > limit else ", and nobody works on it")
            + others
            + (f" (paused: pgcombine queue resume {late[0]['queue']})" if late[0]["paused"] else "")
            + ("" if found["workers"] else " (no worker is connected: pgcombine worker)")
        )
