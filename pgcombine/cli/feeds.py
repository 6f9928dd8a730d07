"""``pgcombine feed create|ls|show|tail|drop``."""

from __future__ import annotations

import json
import os
import signal
import sys
from datetime import timedelta
from pathlib import Path
from typing import Annotated, Any

import typer

from pgcombine.cli.loops import interrupted_by_signal
from pgcombine.cli.options import (
    Dsn,
    Json,
    Yes,
    confirm,
    counted,
    echo,
    fail,
    group,
    megabytes,
    open_database,
    print_json,
    print_table,
    report_state,
    report_table,
    whole,
)
from pgcombine.database.connect import dicts
from pgcombine.database.loading import as_text
from pgcombine.database.sqlfiles import query
from pgcombine.feed.feed import Feed, feeds
from pgcombine.runtime.printable import to_json

feed = group("Keep the changes of queues for consumers that read at their own pace.")

COLUMNS = ["feed", "queue", "kept", "size", "consumers", "behind", "lag"]
Name = Annotated[str, typer.Argument(metavar="FEED", help="Name of the feed.")]


@feed.command()
def create(
    name: Name,
    queue: Annotated[str, typer.Option("--queue", help="The queue whose changes are kept.")],
    retention: Annotated[float, typer.Option("--retention", help="How many days changes are kept at least.")] = 7,
    max_bytes: Annotated[
        int | None,
        typer.Option(
            "--max-bytes",
            callback=whole(64),
            help="Size up to which older changes are kept for registered consumers. Default: none are kept.",
        ),
    ] = None,
    if_not_exists: Annotated[
        bool, typer.Option("--if-not-exists", help="Accept a feed that exists with the same definition.")
    ] = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Make a feed: from now on the queue's changes are kept.

    Example: pgcombine feed create wc_feed --queue wc --retention 7
    """
    with open_database(dsn) as connection:
        Feed(name, queue=queue, retention=timedelta(days=retention), max_bytes=max_bytes).create(
            connection, if_not_exists=if_not_exists
        )
    report_state("feed", name, "created", as_json)


@feed.command("ls")
def list_feeds(dsn: Dsn = None, as_json: Json = False) -> None:
    """List the feeds.

    Example: pgcombine feed ls
    """
    with open_database(dsn) as connection:
        found = feeds(connection)
    report_table(found, COLUMNS, cells(found), as_json)


@feed.command()
def show(name: Name, dsn: Dsn = None, as_json: Json = False) -> None:
    """Show a feed, its present offset, and the offsets of its consumers.

    Example: pgcombine feed show wc_feed
    """
    with open_database(dsn) as connection:
        (found,) = feeds(connection, name)
        found["offset"] = Feed(name).offset(connection)
        consumers = dicts(connection, query("feed_consumers"), [name])
    for consumer in consumers:
        consumer["after"] = json.loads(consumer["after"])
    if as_json:
        print_json(found | {"consumers": consumers})
        return
    for field, content in found.items():
        echo(f"{field + ':':18} {'' if content is None else to_json(content) if field == 'offset' else content}")
    if consumers:
        rows = [(c["consumer"], to_json(c["after"]), c["committed_at"]) for c in consumers]
        print_table(["consumer", "after", "committed_at"], rows)


@feed.command()
def tail(
    name: Name,
    follow: Annotated[bool, typer.Option("--follow", "-f", help="Wait for further changes until stopped.")] = False,
    offset_file: Annotated[
        Path | None,
        typer.Option("--offset-file", help="File with the offset: read at the start, and written after each batch."),
    ] = None,
    after: Annotated[
        str | None,
        typer.Option("--after", metavar="JSON", help="Offset to begin with; {} (default): all that is kept."),
    ] = None,
    most: Annotated[
        int, typer.Option("--most", min=1, callback=whole(32), help="Greatest number of changes in a batch.")
    ] = 10_000,
    compact: Annotated[bool, typer.Option("--compact", help="Print one change for each key in a batch.")] = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Print changes: all that are kept, or those after an offset.

    With an offset file each change is printed at least once, even if the command is killed: the offset is stored
    after its batch is printed.

    Example: pgcombine feed tail wc_feed --follow --json --offset-file wc.offset
    """
    start = _start(offset_file, after)
    with interrupted_by_signal(), open_database(dsn) as connection:
        as_text(connection)
        for batch in Feed(name).read(connection, after=start, most=most, compact=compact, follow=follow):
            for row in batch.rows:
                if as_json:
                    print_json(row)
                else:
                    echo(_line(row))
            sys.stdout.flush()
            if offset_file is not None:
                _store(offset_file, batch.after)


@feed.command()
def drop(name: Name, yes: Yes = False, dsn: Dsn = None, as_json: Json = False) -> None:
    """Drop a feed with its changes.

    Example: pgcombine feed drop wc_feed --yes
    """
    with open_database(dsn) as connection:
        (found,) = feeds(connection, name)
        confirm(f'feed "{name}" with {counted(found["kept"], "change")} will be dropped', yes=yes)
        Feed(name).drop(connection)
    report_state("feed", name, "dropped", as_json)


def cells(found: list[dict[str, Any]]) -> list[tuple[Any, ...]]:
    """Return the rows of a table of feeds, which has the columns ``COLUMNS``."""
    return [
        (
            *(f["feed"], f["queue"], f["kept"], megabytes(f["bytes"]), f["consumers"]),
            *((f["behind"], f"{f['lag_seconds']:.0f} s") if f["consumers"] else ("", "")),
        )
        for f in found
    ]


def _line(row: dict[str, Any]) -> str:
    columns = {name: value for name, value in row.items() if not name.startswith("_c")}
    place = f"{columns.pop('_bucket')}:{columns.pop('_sequence')}"
    return " ".join(
        [f"{row['_change_type']:6}", place, *(f"{name}={to_json(value)}" for name, value in columns.items())]
    )


def _start(file: Path | None, after: str | None) -> dict[str, int]:
    text, source = after or "{}", "--after"
    if file is not None and file.exists():
        text, source = file.read_text(encoding="utf-8"), str(file)
    try:
        found = json.loads(text)
    except ValueError as error:
        fail(f"{source} has no offset: {error}", status=2)
    if not isinstance(found, dict):
        fail(f"{source} has no offset, but {text}", status=2)
    return found


def _store(file: Path, offset: dict[str, int]) -> None:
    """Replace the file by a rename, so that after a crash it has the former offset or the new one."""
    new = file.with_name(f".{file.name}.new")
    signals = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, signals)
    with new.open("w", encoding="utf-8") as opened:
        opened.write(json.dumps(offset) + "\n")
        opened.flush()
        os.fsync(opened.fileno())
    new.replace(file)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signals)
