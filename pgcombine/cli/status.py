"""``pgcombine status``."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from pgcombine.cli.options import Dsn, Every, Json, echo, fail, open_database, print_json, seconds, show_table


def status(
    max_lag: Annotated[
        float | None,
        typer.Option(
            "--max-lag",
            callback=seconds,
            help="Greatest lag in seconds; exit status 1 if a queue that isn't paused has a greater one.",
        ),
    ] = None,
    exact: Annotated[
        bool, typer.Option("--exact", help="Count each pending update. The cost grows with the backlog.")
    ] = False,
    every: Every = None,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Show workers, old snapshots, problems of rollups, and the figures of queues, shards, exports and feeds.

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
        watch(dsn, every, lambda connection: shown(read(connection, exact=exact), history), as_json=as_json)
        return
    with open_database(dsn) as connection:
        found = read(connection, exact=exact, fresh=max_lag is not None)
        if max_lag is not None and figures.late(queues_of(found), max_lag):
            # the first lag may be too high: if no worker has recorded the time recently, a new update seems old
            time.sleep(AGAIN)
            found = read(connection, exact=exact, fresh=True)
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
    late = [] if max_lag is None else figures.late(queues_of(found), max_lag)
    if late:
        others = f"; other late queues: {len(late) - 1}" if len(late) > 1 else ""
        fail(
            f'the lag of queue "{late[0]["queue"]}" is {late[0]["lag_seconds"]:.0f} s, more than {max_lag:g} s{others}'
            + ("" if found["workers"] else " (no worker is connected: pgcombine worker)")
        )
