"""``pgcombine status``."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Annotated, Any

import typer
from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from pgcombine.cli.options import (
    Dsn,
    Json,
    counted,
    echo,
    fail,
    open_database,
    print_json,
    seconds,
    show_table,
    table_of,
)
from pgcombine.cli.watch import Every, History, Shown, watch
from pgcombine.database.connect import Connection
from pgcombine.doctor.findings import AGAIN
from pgcombine.export.queue import exports
from pgcombine.queue import status as figures
from pgcombine.runtime.printable import printable
from pgcombine.worker.maintenance import old_snapshots, reclaiming

OLD_SECONDS = 5  # an older estimate is shown with its age

Found = dict[str, Any]


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
    """Show about how much is pending by queue, rates, exports, workers, and holders of old snapshots.

    Example: pgcombine status --watch 5
    """
    if every is not None:
        if max_lag is not None:
            raise typer.BadParameter("not with --watch", param_hint="--max-lag")
        history = History()
        watch(dsn, every, lambda connection: _shown(look(connection, exact=exact), history), as_json=as_json)
        return
    with open_database(dsn) as connection:
        found = look(connection, exact=exact, fresh=max_lag is not None)
        if max_lag is not None and figures.late(found["queues"], max_lag):
            time.sleep(AGAIN)  # see Patient.stats
            found = look(connection, exact=exact, fresh=True)
    if as_json:
        print_json(found)
    else:
        for part in parts(found):
            if isinstance(part, Table):
                show_table(part)
            else:
                echo(str(part))
    late = [] if max_lag is None else figures.late(found["queues"], max_lag)
    if late:
        others = f", and that of {len(late) - 1} more" if len(late) > 1 else ""
        fail(
            f'the lag of queue "{late[0]["queue"]}" is {late[0]["lag_seconds"]:.0f} s, more than {max_lag:g} s{others}'
            + ("" if found["workers"] else " (no worker is connected: pgcombine worker)")
        )


def look(connection: Connection, *, exact: bool, fresh: bool = False) -> Found:
    """Return the figures of queues, exports and workers, the old snapshots, and how the log is reclaimed."""
    return {
        "queues": figures.status(connection, exact=exact, fresh=fresh),
        "exports": exports(connection, exact=exact),
        "workers": figures.workers(connection),
        "old_snapshots": old_snapshots(connection),
        "log": reclaiming(connection),
    }


def _shown(found: Found, history: History) -> Shown:
    lines = [
        {
            "queue": q["queue"],
            "backlog": q["backlog"],
            "lag_seconds": q["lag_seconds"],
            "updates_per_second": q["updates_per_second_1m"],
            "quarantined_keys": q["quarantined_keys"],
            "failing_buckets": len(q["failing_buckets"]),
            "paused": q["paused"],
            "workers": len(found["workers"]),
        }
        for q in found["queues"]
    ]
    return Shown(found, parts(found, history), lines)


def parts(found: Found, history: History | None = None) -> list[RenderableType]:
    """Return the tables and lines that are shown. With ``history`` the queues have sparklines."""
    result = _queues(found["queues"], history)
    if found["exports"]:
        columns = ["export", "pending", "lag", "quarantined", "destination", ""]
        rows = [
            (
                *(row["export"], row["pending"], f"{row['lag_seconds']:.0f} s", row["quarantined"]),
                *(row["state"], row["reason"]),
            )
            for row in found["exports"]
        ]
        result += ["", table_of(columns, rows)]
    if found["queues"]:
        result.append("")
        if found["workers"]:
            columns = ["worker", "role", "since", "queues", "state"]
            result.append(table_of(columns, [[_cell(one[column]) for column in columns] for one in found["workers"]]))
        else:
            result.append("no worker is connected")
        if found["log"] != "truncating":
            result.append("log: combined updates are deleted, not truncated (pgcombine doctor)")
    for one in found["old_snapshots"]:
        age = "" if one["age_seconds"] is None else f" for {one['age_seconds']:.0f} s"
        pid = "" if one["pid"] is None else f" (pid {one['pid']})"
        result.append(_line(f"old snapshot held{age} by {one['holder']} {one['name']}{pid}, {one['detail']}"))
    return result


def _queues(found: list[dict[str, Any]], history: History | None) -> list[RenderableType]:
    """Return a row for each queue, and a line for each reason why its updates are in no value."""
    rows: list[list[Any]] = []
    for q in found:
        busy = sum(1 for bucket in q["buckets"] if bucket["backlog"])
        keys = counted(q["quarantined_keys"], "key") if q["quarantined_keys"] else ""
        failing = counted(len(q["failing_buckets"]), "bucket") if q["failing_buckets"] else ""
        rate = f"{q['updates_per_second_1m']:.0f}/s"
        row = [q["queue"], _backlog(q), f"{q['lag_seconds']:.0f} s", rate, f"{busy} of {len(q['buckets'])}"]
        if history is not None:
            row.insert(3, history.line(q["queue"], "lag", figure=q["lag_seconds"]))
            row.insert(5, history.line(q["queue"], "rate", figure=q["updates_per_second_1m"]))
        rows.append([*row, keys, failing, "paused" if q["paused"] else ""])
    backlog = "backlog" if all(q["exact"] for q in found) else "backlog, about"
    spark = [] if history is None else [""]
    columns = ["queue", backlog, "lag", *spark, "updates", *spark, "busy buckets", "quarantined", "failing", ""]
    result: list[RenderableType] = [table_of(columns, rows)]
    for q in found:
        if q["quarantined_keys"]:
            held = counted(q["held_updates"], "held update")
            listed = f"pgcombine quarantine ls {q['queue']}"
            result.append(_line(f"{q['queue']}: {held}, in no value and in no backlog ({listed})"))
        for bucket in q["failing_buckets"]:
            times = counted(bucket["attempts"], "time")
            last = bucket["error"] or bucket["sqlstate"]  # a role that only monitors sees no error
            result.append(_line(f"{q['queue']}: bucket {bucket['bucket']} failed {times}, last: {last}"))
    return result


def _backlog(q: dict[str, Any]) -> str:
    if q["exact"]:
        return str(q["backlog"])
    if q["pending_at"] is None:
        return "?"  # another session has locked its tables
    age = (datetime.now(UTC) - q["pending_at"]).total_seconds()
    return f"{q['backlog']} ({age:.0f} s ago)" if age > OLD_SECONDS and q["backlog"] else str(q["backlog"])


def _line(text: str) -> Text:
    return Text(printable(text))


def _cell(cell: Any) -> Any:
    if isinstance(cell, datetime):
        return f"{cell:%Y-%m-%d %H:%M:%S%z}"
    return ", ".join(cell) if isinstance(cell, list) else cell
