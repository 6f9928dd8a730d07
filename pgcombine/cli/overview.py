"""Reads the figures of ``pgcombine status``, and shows them as tables and lines."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from pgcombine.cli.feeds import COLUMNS, cells
from pgcombine.cli.options import counted, table_of
from pgcombine.cli.watch import WIDTH, History, Shown
from pgcombine.database.connect import Connection
from pgcombine.export.queue import exports
from pgcombine.feed.feed import feeds
from pgcombine.queue import status as figures
from pgcombine.rollup.rollup import rollups
from pgcombine.runtime.printable import printable
from pgcombine.shard.nodes import shards
from pgcombine.worker.maintenance import old_snapshots, reclaiming

OLD_SECONDS = 5  # an older count of the backlog is shown with its age, unless it is 0

Found = dict[str, Any]


def read(connection: Connection, *, fresh: bool = False) -> Found:
    """Return the figures of queues, rollups, fronts, exports, feeds, workers and old snapshots.

    The entry ``log`` says how workers of this role reclaim the log of updates: by truncating or by deleting.
    """
    return {
        "queues": figures.status(connection, fresh=fresh),
        "rollups": rollups(connection),
        "fronts": shards(connection),
        "exports": exports(connection),
        "feeds": feeds(connection),
        "workers": figures.workers(connection),
        "old_snapshots": old_snapshots(connection),
        "log": reclaiming(connection),
    }


def queues_of(found: Found) -> list[dict[str, Any]]:
    """Return the queues and the shards whose nodes have answered. A shard has the form of a queue that isn't paused."""
    shards = (
        {"queue": f"{s['front']}, shard {s['shard']}", "paused": False, "lag_seconds": s["lag_seconds"]}
        for s in found["fronts"]
        if not s["problem"]
    )
    return [*found["queues"], *shards]


def shown(found: Found, history: History) -> Shown:
    """Return the figures in the forms that ``--watch`` prints."""
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
    """Return tables and lines for a terminal. With ``history`` the queues have sparklines if the terminal has room."""
    result = _queues(found["queues"], history) if found["queues"] or not found["fronts"] else []
    if found["fronts"]:
        result += [_shards(found["fronts"])]
    for rollup in found["rollups"]:
        wrong = [*rollup["problems"], *([] if rollup["ready_at"] else [f"{rollup['state']}, rows may be missing"])]
        result += [_line(f"{rollup['rollup']}: {problem}") for problem in wrong]
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
    if found["feeds"]:
        result += ["", table_of(COLUMNS, cells(found["feeds"]))]
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


def _shards(found: list[dict[str, Any]]) -> Table:
    columns = ["front", "shard", "node", "backlog, about", "lag", "combined", "quarantined", "failing", ""]
    rows = [
        (s["front"], s["shard"], s["node"], "", "", "", "", "", s["problem"])
        if s["problem"]
        else (
            *(s["front"], s["shard"], s["node"], s["backlog"], f"{s['lag_seconds']:.0f} s"),
            *(f"{s['updates_per_second_1m']:.0f}/s", s["quarantined_keys"], s["failing_buckets"], ""),
        )
        for s in found
    ]
    return table_of(columns, rows)


def _queues(found: list[dict[str, Any]], history: History | None) -> list[RenderableType]:
    if not found:
        return ["no queues yet: pgcombine queue create wc --key 'word text' --value 'n bigint sum' makes one"]
    result = [_fitting(found, history)]
    for q in found:
        if q["quarantined_keys"]:
            updates = counted(q["quarantined_updates"], "quarantined update")
            listed = f"pgcombine quarantine ls {q['queue']}"
            result.append(_line(f"{q['queue']}: {updates}, in no value and in no backlog ({listed})"))
        for bucket in q["failing_buckets"]:
            times = counted(bucket["attempts"], "time")
            # a role that only monitors can't read error messages, so it gets the SQLSTATE
            last = bucket["error"] or bucket["sqlstate"]
            result.append(_line(f"{q['queue']}: bucket {bucket['bucket']} failed {times}, last: {last}"))
    return result


def _fitting(found: list[dict[str, Any]], history: History | None) -> RenderableType:
    if history is None:
        return _table(found, {})
    width, endless = Console().width, Console(width=10_000)
    lines = {
        q["queue"]: (
            history.line(q["queue"], "lag", figure=q["lag_seconds"]),
            history.line(q["queue"], "rate", figure=q["updates_per_second_1m"]),
        )
        for q in found
    }
    for length in range(WIDTH, 2, -1):
        table = _table(found, {queue: (lag[-length:], rate[-length:]) for queue, (lag, rate) in lines.items()})
        if endless.measure(table).maximum <= width:
            return table
    return _table(found, {})


def _table(found: list[dict[str, Any]], lines: dict[str, tuple[str, str]]) -> Table:
    columns: dict[str, list[Any]] = {
        "queue": [q["queue"] for q in found],
        "backlog": [_backlog(q) for q in found],
        "lag": [f"{q['lag_seconds']:.0f} s" for q in found],
        " ": [lines.get(q["queue"], ("", ""))[0] for q in found],
        "combined": [f"{q['updates_per_second_1m']:.0f}/s" for q in found],
        "  ": [lines.get(q["queue"], ("", ""))[1] for q in found],
        "behind": [f"{sum(bool(b['backlog']) for b in q['buckets'])} of {len(q['buckets'])}" for q in found],
        "quarantined": [counted(q["quarantined_keys"], "key") if q["quarantined_keys"] else "" for q in found],
        "failing": [counted(len(q["failing_buckets"]), "bucket") if q["failing_buckets"] else "" for q in found],
        "   ": ["paused" if q["paused"] else "" for q in found],
    }
    shown = {name: cells for name, cells in columns.items() if any(cells)}
    return table_of([name.strip() for name in shown], list(zip(*shown.values(), strict=True)))


def _backlog(q: dict[str, Any]) -> str:
    if q["pending_at"] is None:
        return "?"  # it was never counted, for example because another session has locked the queue's tables
    age = (datetime.now(UTC) - q["pending_at"]).total_seconds()
    return f"{q['backlog']} ({age:.0f} s ago)" if age > OLD_SECONDS and q["backlog"] else str(q["backlog"])


def _line(text: str) -> Text:
    return Text(printable(text))


def _cell(cell: Any) -> Any:
    if isinstance(cell, datetime):
        return f"{cell:%Y-%m-%d %H:%M:%S%z}"
    return ", ".join(cell) if isinstance(cell, list) else cell
