"""``pgcombine enqueue|initialize|get|top|values``: write updates, read values."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import psycopg
import typer
from psycopg import sql

from pgcombine.cli import CTRL_C
from pgcombine.cli.files import Lines, form_of, open_file, read_rows, with_progress, write_rows
from pgcombine.cli.greatest import Watched, greatest
from pgcombine.cli.options import (
    Dsn,
    Every,
    Json,
    QueueName,
    counted,
    fail,
    note,
    note_quarantined,
    open_database,
    report,
    report_table,
)
from pgcombine.cli.watch import watch
from pgcombine.database.connect import Connection, dicts, one
from pgcombine.database.loading import as_text
from pgcombine.database.sqlfiles import query
from pgcombine.database.steps import run
from pgcombine.errors import InvalidUpdateError
from pgcombine.queue import combine_queue as queues
from pgcombine.queue import content
from pgcombine.queue import status as figures
from pgcombine.queue.combine_queue import CombineQueue

File = Annotated[str, typer.Argument(metavar="FILE|-", help="csv (with a header line) or jsonl; - is stdin.")]
Form = Annotated[
    str | None, typer.Option("--format", help="csv or jsonl; default: by the file's ending, stdin is jsonl.")
]
Load = Callable[[CombineQueue, Connection, Iterable[dict[str, Any]]], int]


def enqueue(
    name: QueueName,
    file: File,
    form: Form = None,
    token: Annotated[
        str | None,
        typer.Option("--token", help="Name of the input. If the queue knows this name, nothing is enqueued."),
    ] = None,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Enqueue the updates of a file in one transaction.

    Example: pgcombine enqueue wc updates.csv --token updates.csv
    """

    def load(queue: CombineQueue, connection: Connection, rows: Iterable[dict[str, Any]]) -> int:
        return run(connection, content.enqueue(queue.name, rows, token), queue=queue.name)

    count = _load(name, file, form, dsn, "enqueue", load)
    line = f"enqueued: {counted(count, 'update')}" if count else f"no updates in {_called(file)}"
    if token and not count:
        line = f'nothing enqueued: queue "{name}" has the token "{token}", or {_called(file)} has no updates'
    report({"queue": name, "updates": count}, line, as_json)


def initialize(
    name: QueueName,
    file: File,
    form: Form = None,
    force: Annotated[
        bool, typer.Option("--force", help="Load even if the queue isn't empty; the keys of the file must be new.")
    ] = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Load the values of a file into a queue in one transaction, without calling the queue's observers.

    Example: pgcombine initialize wc values.jsonl
    """
    count = _load(*(name, file, form, dsn, "initialize"), lambda queue, *rest: queue.initialize(*rest, force=force))
    line = f"initialized: {counted(count, 'key')}" if count else f"no values in {_called(file)}"
    report({"queue": name, "keys": count}, line, as_json)


def get(
    name: QueueName,
    keys: Annotated[list[str], typer.Argument(metavar="KEY", help="A key; a JSON array where it has several columns.")],
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Show the current values of keys. They contain pending updates, but no quarantined updates.

    Example: pgcombine get wc fluo spark
    """
    with open_database(dsn) as connection:
        as_text(connection)
        columns = figures.columns(connection, name)
        several_keys, several_values = (sum(one.role == role for one in columns) > 1 for role in ("key", "value"))
        wanted: list[Any] = [_key(key) for key in keys] if several_keys else list(keys)
        found = CombineQueue(name).get(connection, wanted)
        rows = [
            (*(key if several_keys else (key,)), *(value if several_values else (value,)))
            for key, value in found.items()
        ]
        _print([column.name for column in columns], rows, as_json)
        with suppress(psycopg.errors.InsufficientPrivilege):  # the role may only read values
            note_quarantined(name, *run(connection, content.quarantined(name, wanted)))


def top(
    name: QueueName,
    by: Annotated[
        str | None, typer.Option("--by", help="Column to order by, the greatest first. Default: the only value column.")
    ] = None,
    limit: Annotated[int, typer.Option("-n", "--limit", min=1, help="How many keys.")] = 10,
    every: Every = None,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Show the keys with the greatest combined values.

    Example: pgcombine top wc --by n -n 20 --watch
    """
    if every is not None:
        watched = Watched(name, by, limit)
        watch(dsn, every, watched.poll, as_json=as_json)
        return
    with open_database(dsn) as connection:
        columns, rows, _ = greatest(connection, name, by, limit)
        _print([column.name for column in columns], rows, as_json)
        _note_what_lacks(connection, name)


def values(
    name: QueueName,
    form: Annotated[
        str | None, typer.Option("--format", help="table, csv or jsonl; default: by the file's ending, else table.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="FILE", help="Save the values in this file.")
    ] = None,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Print or save all combined values of one snapshot, unsorted; pgcombine initialize loads a csv or jsonl file.

    Example: pgcombine values wc -o wc.jsonl
    """
    if as_json and output is None and form is not None:
        raise typer.BadParameter("can't be used with --json: leave one of them out", param_hint="--format")
    if form is None and output is not None:
        form = form_of(str(output))
    elif form not in (None, "table", "csv", "jsonl"):
        raise typer.BadParameter(f"{form!r} is none of table, csv and jsonl", param_hint="--format")
    with open_database(dsn) as connection:
        as_text(connection)
        queues.require(connection, [name])
        columns = [column.name for column in figures.columns(connection, name)]
        select = sql.SQL("select {} from {}").format(
            sql.SQL(", ").join(map(sql.Identifier, columns)), sql.Identifier("pgcombine", f"{name}_values")
        )
        count = write_rows(connection, select, columns, form or ("json" if as_json else "table"), output)
        if output is not None:
            line = f"saved: {counted(count, 'value')} in {output}"
            report({"queue": name, "values": count, "file": str(output)}, line, as_json)
        _note_what_lacks(connection, name)


def _load(name: str, file: str, form: str | None, dsn: str | None, what: str, load: Load) -> int:
    """Load the rows of a file in one transaction. Returns their number."""
    form = form_of(file, form)
    with open_database(dsn) as connection:
        queues.require(connection, [name])
        columns = figures.columns(connection, name)
        documents = {column.name for column in columns if column.base in ("json", "jsonb") and not column.is_array}
        lines = Lines()
        transaction = None
        try:
            with open_file(file) as text, connection.transaction():
                rows = read_rows(text, form, name, [column.name for column in columns], documents)
                rows = with_progress(rows, text, file, what)
                count = load(CombineQueue(name), connection, lines.follow(rows))
                # from here on only the server knows whether the transaction commits
                (transaction,) = one(connection, "select pg_current_xact_id()")
        except InvalidUpdateError as error:
            if error.row is None:
                raise
            raise InvalidUpdateError(f"line {lines.of(error.row)}: {error}") from error
        except KeyboardInterrupt:
            if transaction and one(connection, "select pg_xact_status(%s::xid8)", transaction) == ("committed",):
                fail(f"interrupted when {_called(file)} was loaded: all its rows are in {name}", status=CTRL_C)
            fail(f"interrupted: nothing was loaded, all rows of {_called(file)} were rolled back", status=CTRL_C)
    return count


def _called(file: str) -> str:
    return "standard input" if file == "-" else file


def _note_what_lacks(connection: Connection, name: str) -> None:
    """Print on stderr how many updates the combined values lack: pending and quarantined ones."""
    with suppress(psycopg.errors.InsufficientPrivilege):  # the role may only read values
        for stat in dicts(connection, query("queue_stat"), (name,)):
            (count,) = one(connection, "select pgcombine.backlog(%s)", name)
            if count:
                pending = f"{counted(count, 'update')} of {name} {'is' if count == 1 else 'are'} pending"
                note(f"{pending} and not in these values (pgcombine drain {name} combines them)")
            note_quarantined(name, stat["quarantined_keys"], stat["quarantined_updates"])


def _print(columns: list[str], rows: list[tuple[Any, ...]], as_json: bool) -> None:
    report_table([dict(zip(columns, row, strict=True)) for row in rows], columns, rows, as_json)


def _key(text: str) -> list[Any]:
    try:
        key = json.loads(text)
    except ValueError:
        key = None
    if not isinstance(key, list):
        raise typer.BadParameter(f"{text!r} is no JSON array of the key's columns", param_hint="KEY")
    return key
