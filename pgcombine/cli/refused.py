"""``pgcombine export quarantine ls|show|retry|drop``: the entries that destinations refused."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from pgcombine.cli.options import (
    Dsn,
    Json,
    Yes,
    confirm,
    echo,
    group,
    open_database,
    print_json,
    report,
    report_table,
    whole,
)
from pgcombine.errors import NotQuarantinedError
from pgcombine.export.queue import ExportQueue, exports, quarantined

Name = Annotated[str, typer.Argument(metavar="NAME", help="Name of the export.")]
Numbers = Annotated[
    list[int] | None, typer.Argument(metavar="SEQ", callback=whole(64), help="Sequence numbers of entries.")
]
Every = Annotated[bool, typer.Option("--all", help="All quarantined entries of the export.")]


quarantine = group("Show, retry and drop entries that a destination refused.")


@quarantine.command("ls")
def list_entries(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="An export; all if none is named.")] = None,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """List the entries whose data a destination refused, each with the reason for the refusal.

    Example: pgcombine export quarantine ls words
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


@quarantine.command()
def show(
    name: Name,
    seq: Annotated[int, typer.Argument(metavar="SEQ", help="Sequence number of the entry.")],
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Show a quarantined entry: its key, the old and the new value, and why it was refused.

    Example: pgcombine export quarantine show words 42
    """
    with open_database(dsn) as connection:
        exports(connection, name)
        for found in quarantined(connection, name):
            if found["seq"] == seq:
                break
        else:
            raise NotQuarantinedError(
                f'export "{name}" has no quarantined entry {seq} (pgcombine export quarantine ls {name} lists them)'
            )
    if as_json:
        print_json(found)
        return
    entry = found.pop("entry")
    for field, content in {**found, **{field: entry[field] for field in entry if field != "seq"}}.items():
        echo(f"{field + ':':10} {content}")


@quarantine.command()
def retry(name: Name, seqs: Numbers = None, every: Every = False, dsn: Dsn = None, as_json: Json = False) -> None:
    """Make quarantined entries wait for delivery again, with the same sequence numbers.

    Example: pgcombine export quarantine retry words 42 43
    """
    _release(name, seqs, every, dsn, as_json, put_back=True)


@quarantine.command()
def drop(
    name: Name, seqs: Numbers = None, every: Every = False, yes: Yes = False, dsn: Dsn = None, as_json: Json = False
) -> None:
    """Delete quarantined entries; the destination never gets them.

    Example: pgcombine export quarantine drop words --all --yes
    """
    _release(name, seqs, every, dsn, as_json, put_back=False, yes=yes)


def _release(
    name: str, seqs: list[int] | None, every: bool, dsn: str | None, as_json: bool, *, put_back: bool, yes: bool = True
) -> None:
    if bool(seqs) == every:
        raise typer.BadParameter("give the sequence numbers, or --all", param_hint="SEQ")
    with open_database(dsn) as connection:
        (found,) = exports(connection, name)
        entries = _entries(len(seqs) if seqs else found["quarantined"])
        confirm(f'{entries} of export "{name}" will be lost, and its destination never gets them', yes=yes)
        queue = ExportQueue(name)
        release = queue.retry_quarantined if put_back else queue.drop_quarantined
        wanted: list[int | None] = [*seqs] if seqs else [None]
        with connection.transaction():
            count = sum(release(connection, seq) for seq in wanted)
    state = "pending" if put_back else "dropped"
    line = f"{'pending again' if put_back else state}: {_entries(count)}"
    report({"export": name, "state": state, "entries": count}, line, as_json)


def _entries(count: int) -> str:
    return f"{count} {'entry' if count == 1 else 'entries'}"
