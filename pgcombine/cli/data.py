"""``pgcombine enqueue|initialize|get|top``: updates in, values out."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Annotated, Any

import typer
from psycopg import sql
from rich.console import Console
from rich.progress import Progress

from pgcombine import queue as queues
from pgcombine import status as figures
from pgcombine.cli.options import Dsn, Json, QueueName, as_text, open_database, print_json, print_table
from pgcombine.database import Connection
from pgcombine.errors import InvalidUpdate
from pgcombine.queue import CombineQueue

File = Annotated[str, typer.Argument(metavar="FILE|-", help="csv (with a header line) or jsonl; - is stdin.")]
Form = Annotated[
    str | None, typer.Option("--format", help="csv or jsonl; default: by the file's ending, stdin is jsonl.")
]


def enqueue(
    name: QueueName,
    file: File,
    form: Form = None,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Enqueue the updates of a file: all of them, or on any error none."""
    form = _form(file, form)
    with open_database(dsn) as connection:
        queues.require(connection, [name])
        with _open(file) as lines, connection.transaction():
            rows = _csv(lines) if form == "csv" else _jsonl(lines, _documents(connection, name))
            count = CombineQueue(name).enqueue(connection, _with_progress(rows, lines, file, "enqueue"))
    if as_json:
        print_json({"queue": name, "updates": count})
    else:
        typer.echo(f"enqueued: {count} updates")


def initialize(
    name: QueueName,
    file: File,
    form: Form = None,
    force: Annotated[
        bool, typer.Option("--force", help="Also where the queue isn't empty: other keys beside those that are there.")
    ] = False,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Load the values of a file straight into a queue, past its observers: all of them, or on any error none."""
    form = _form(file, form)
    with open_database(dsn) as connection:
        queues.require(connection, [name])
        with _open(file) as lines:
            rows = _csv(lines) if form == "csv" else _jsonl(lines, _documents(connection, name))
            count = CombineQueue(name).initialize(
                connection, _with_progress(rows, lines, file, "initialize"), force=force
            )
    if as_json:
        print_json({"queue": name, "keys": count})
    else:
        typer.echo(f"initialized: {count} keys")


def get(
    name: QueueName,
    keys: Annotated[list[str], typer.Argument(metavar="KEY", help="A key; a JSON array where it has several columns.")],
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Show current values: combined ones together with what is pending."""
    with open_database(dsn) as connection:
        as_text(connection)
        definition = figures.definition(connection, name)
        wanted: list[Any] = list(keys)
        if len(definition["key"]) > 1:
            wanted = [_key(key) for key in keys]
        found = CombineQueue(name).get(connection, wanted)
        columns = _columns(connection, name)
    several_keys, several_values = (len(definition[role]) > 1 for role in ("key", "value"))
    rows = [
        (*(key if several_keys else (key,)), *(value if several_values else (value,))) for key, value in found.items()
    ]
    _print(columns, rows, as_json)


def top(
    name: QueueName,
    by: Annotated[str, typer.Option("--by", help="Value column to order by, the greatest first.")],
    limit: Annotated[int, typer.Option("-n", min=1, help="How many keys.")] = 10,
    dsn: Dsn = None,
    as_json: Json = False,
) -> None:
    """Show the keys with the greatest combined values."""
    with open_database(dsn) as connection:
        as_text(connection)
        columns = _columns(connection, name)
        queues.require(connection, [name])
        if by not in columns:
            raise typer.BadParameter(f"{by!r} is no column of {name}; columns: {', '.join(columns)}", param_hint="--by")
        rows = connection.execute(
            sql.SQL("select {} from {} order by {} desc nulls last, {} limit %s").format(
                sql.SQL(", ").join(map(sql.Identifier, columns)),
                sql.Identifier("pgcombine", f"{name}_values"),
                sql.Identifier(by),
                sql.Identifier(columns[0]),
            ),
            (limit,),
        ).fetchall()
    _print(columns, rows, as_json)


def register(app: typer.Typer) -> None:
    """Add the commands."""
    for command in (enqueue, initialize, get, top):
        app.command()(command)


def _print(columns: list[str], rows: list[tuple[Any, ...]], as_json: bool) -> None:
    if as_json:
        print_json([dict(zip(columns, row, strict=True)) for row in rows])
    else:
        print_table(columns, rows)


def _columns(connection: Connection, name: str) -> list[str]:
    found = connection.execute("select name from pgcombine.queue_column where queue = %s order by position", (name,))
    return [str(column) for (column,) in found]


def _key(text: str) -> list[Any]:
    try:
        key = json.loads(text)
    except ValueError:
        key = None
    if not isinstance(key, list):
        raise typer.BadParameter(f"{text!r} is no JSON array of the key's columns", param_hint="KEY")
    return key


def _form(file: str, form: str | None) -> str:
    form = form or ("csv" if file.lower().endswith(".csv") else "jsonl")
    if form not in ("csv", "jsonl"):
        raise typer.BadParameter(f"{form!r} is neither csv nor jsonl", param_hint="--format")
    return form


def _open(file: str) -> IO[str]:
    if file == "-":
        return open(sys.stdin.fileno(), encoding="utf-8-sig", newline="", closefd=False)
    return Path(file).open(encoding="utf-8-sig", newline="")  # spreadsheets write a mark of the byte order


def _csv(lines: IO[str]) -> Iterator[dict[str, Any]]:
    reader = csv.DictReader(lines, strict=True)
    try:
        header = list(reader.fieldnames or ())
        if twice := [name for name in header if header.count(name) > 1]:
            raise InvalidUpdate(f'the header has the column "{twice[0]}" twice')
        for row in reader:
            if None in row or None in row.values():
                raise InvalidUpdate(f"line {reader.line_num} doesn't have the {len(header)} fields of the header")
            yield {name: (None if value == "" else value) for name, value in row.items()}
    except (csv.Error, UnicodeDecodeError) as error:
        raise InvalidUpdate(f"line {reader.line_num + 1} can't be read: {error}") from error


def _documents(connection: Connection, queue: str) -> set[str]:
    """The columns whose values are JSON themselves."""
    found = connection.execute(
        "select name from pgcombine.queue_column where queue = %s "
        "and pgcombine.base_type(type::regtype) in ('json'::regtype, 'jsonb'::regtype)",
        (queue,),
    )
    return {name for (name,) in found}


def _jsonl(lines: IO[str], documents: set[str]) -> Iterator[dict[str, Any]]:
    number = 0
    try:
        for number, line in enumerate(lines, 1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
            except ValueError as error:
                raise InvalidUpdate(f"line {number} can't be read: {getattr(error, 'msg', error)}") from error
            if not isinstance(row, dict):
                raise InvalidUpdate(f"line {number} is no JSON object: {line.strip()[:60]}")
            yield {
                name: json.dumps(v) if isinstance(v, dict) or (name in documents and v is not None) else v
                for name, v in row.items()
            }
    except UnicodeDecodeError as error:  # the file is decoded ahead of its lines
        raise InvalidUpdate(f"a line after line {number} can't be read: {error}") from error


def _with_progress(rows: Iterator[dict[str, Any]], lines: IO[str], file: str, what: str) -> Iterator[dict[str, Any]]:
    """The rows, with a progress bar on stderr if that is a terminal and the size is known."""
    console = Console(stderr=True)
    if not console.is_terminal or file == "-":
        yield from rows
        return
    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task(what, total=Path(file).stat().st_size)
        for number, row in enumerate(rows):
            if number % 1000 == 0:
                progress.update(bar, completed=lines.buffer.tell())  # type: ignore[attr-defined]
            yield row
