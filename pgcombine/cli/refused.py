"""``pgcombine export quarantine|show|retry|discard``: the entries that destinations refused."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from pgcombine.cli.options import Dsn, Json, echo, open_database, print_json, report, report_table, whole
from pgcombine.errors import NotQuarantinedError
from pgcombine.export.queue import ExportQueue, exports, quarantined

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the export.")]
Numbers = Annotated[
    list[int] | None, typer.Argument(metavar="SEQ", callback=whole(64), help="Sequence numbers of entries.")
]
Every = Annotated[bool, typer.Option("--all", help="All quarantined entries of the export.")]


def quarantine(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="An export; all if none is named.")] = None,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """List the entries whose data a destination refused, with its reason.

    Example: pgcombine export quarantine words
    """
    with open_database(dsn) as connection:
        if name is not None:
            exports(connection, name)
        found = quarantined(connection, name)
    rows = [
        (one["export"], one["seq"], f"{one['since']:%F %T}", json.dumps(one["entry"], ensure_ascii=False), one["error"])
        for one in found
    ]
    report_table(found, ["export", "seq", "since", "entry", "error"], rows, as_json)


def show(
    name: Name,
    seq: Annotated[int, typer.Argument(metavar="SEQ", help="Sequence number of the entry.")],
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Show a quarantined entry: its key, the old and the new value, and why it was refused.

    Example: pgcombine export show words 42
    """
    with open_database(dsn) as connection:
        exports(connection, name)
        for found in quarantined(connection, name):
            if found["seq"] == seq:
                break
        else:
            raise NotQuarantinedError(
                f'export "{name}" has no quarantined entry {seq} (pgcombine export quarantine {name} lists them)'
            )
    if as_json:
        print_json(found)
        return
    entry = found.pop("entry")
    for field, content in {**found, **{field: entry[field] for field in entry if field != "seq"}}.items():
        echo(f"{field + ':':10} {content}")


def retry(name: Name, seqs: Numbers = None, every: Every = False, dsn: Dsn = None, as_json: Json = False) -> None:
    """Deliver quarantined entries again, with the same sequence numbers.

    Example: pgcombine export retry words 42 43
    """
    _release(name, seqs, every, dsn, as_json, put_back=True)


def discard(name: Name, seqs: Numbers = None, every: Every = False, dsn: Dsn = None, as_json: Json = False) -> None:
    """Forget quarantined entries.

    Example: pgcombine export discard words --all
    """
    _release(name, seqs, every, dsn, as_json, put_back=False)


def _release(name: str, seqs: list[int] | None, every: bool, dsn: str | None, as_json: bool, *, put_back: bool) -> None:
    if bool(seqs) == every:
        raise typer.BadParameter("give the sequence numbers, or --all", param_hint="SEQ")
    with open_database(dsn) as connection, connection.transaction():
        queue = ExportQueue(name)
        release = queue.retry if put_back else queue.discard
        wanted: list[int | None] = [*seqs] if seqs else [None]
        entries = sum(release(connection, seq) for seq in wanted)
    state = "pending" if put_back else "discarded"
    line = f"{'pending again' if put_back else state}: {entries} entries"
    report({"export": name, "state": state, "entries": entries}, line, as_json)
