"""Reads rows from csv and jsonl files. Writes the rows of a query as a table, csv, jsonl or json.

For a line that can't be read, InvalidUpdateError names the line's number.
"""

from __future__ import annotations

import csv
import itertools
import json
import os
import re
import sys
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import typer
from psycopg import sql
from rich.console import Console

from pgcombine.cli.options import counted, print_table
from pgcombine.database.connect import Connection
from pgcombine.errors import InvalidUpdateError
from pgcombine.queue.rows import columns_of
from pgcombine.runtime.printable import to_json

ENDINGS = {".csv": "csv", ".jsonl": "jsonl", ".ndjson": "jsonl"}
_EMPTY = "\0\0"  # no text of PostgreSQL has this character
_PORTION = 1000  # rows that are fetched at a time

Row = dict[str, Any]


def form_of(file: str, form: str | None = None) -> str:
    """Return the format, csv or jsonl: ``form`` if given, else jsonl for ``-``, else by the file's ending."""
    if form is not None:
        if form not in ("csv", "jsonl"):
            raise typer.BadParameter(f"{form!r} is neither csv nor jsonl", param_hint="--format")
        return form
    if file == "-":
        return "jsonl"
    found = ENDINGS.get(Path(file).suffix.lower())
    if found is None:
        raise typer.BadParameter(
            f"the format of {file!r} is unknown: its name ends in none of {', '.join(ENDINGS)}; give csv or jsonl",
            param_hint="--format",
        )
    return found


class Lines:
    """Finds the line of a file on which a row begins.

    Most rows begin on the line after the line of the previous row. The object stores the line of the first row, and
    the lines of the rows for which this isn't so.
    """

    def __init__(self) -> None:
        self._count = 0
        self._rows = array("Q")
        self._lines = array("Q")

    def follow(self, rows: Iterator[tuple[int, Row]]) -> Iterator[Row]:
        """Yield each row without its line, and store what :meth:`of` needs."""
        for line, row in rows:
            self._count += 1
            if not self._rows or line - self._lines[-1] != self._count - self._rows[-1]:
                self._rows.append(self._count)
                self._lines.append(line)
            yield row

    def of(self, row: int) -> int:
        """Return the line of a row. The first row has the number 1."""
        at = bisect_right(self._rows, row) - 1
        return self._lines[at] + row - self._rows[at]


def open_file(file: str) -> IO[str]:
    """Open a file, or standard input for ``-``. :func:`read_rows` reports bytes that aren't UTF-8."""
    return open(
        sys.stdin.fileno() if file == "-" else file,
        encoding="utf-8-sig",  # spreadsheets write a byte order mark
        errors="surrogateescape",
        newline="",
        closefd=file != "-",
    )


def read_rows(
    text: IO[str], form: str, queue: str, columns: list[str], documents: set[str]
) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a text, each with the line on which it begins.

    ``documents`` are the columns whose values are JSON. Raises InvalidUpdateError with the number of a line that can't
    be read.
    """
    lines = _decoded(text)
    return _csv(lines, queue, columns) if form == "csv" else _jsonl(lines, documents)


def _decoded(lines: IO[str]) -> Iterator[str]:
    for number, line in enumerate(lines, 1):
        if not line.isascii():
            try:
                line.encode("utf-8", "surrogateescape").decode("utf-8")
            except UnicodeDecodeError as error:
                raise InvalidUpdateError(f"line {number} can't be read: {error}") from error
        yield line


def _marked(lines: Iterator[str]) -> Iterator[str]:
    """Put a mark into each empty quoted field. It is an empty text, but without quotes it is null, as in COPY."""
    inside = False  # whether the line begins within a quoted field
    for line in lines:
        before = 0  # quotes of the line before the place
        marked = []
        for place, part in enumerate(re.split(r'((?:(?<=,)|^)""(?=,|\r?\n?$))', line)):
            outside = not (inside + before) % 2
            marked.append(f'"{_EMPTY}"' if place % 2 and outside else part)
            before += part.count('"')
        inside = bool((inside + before) % 2)
        yield "".join(marked)


def _csv(lines: Iterator[str], queue: str, columns: list[str]) -> Iterator[tuple[int, Row]]:
    reader = csv.reader(_marked(lines), strict=True)
    header: list[str] | None = None
    line = 1  # the line on which the next record begins
    try:
        for fields in reader:
            begin, line = line, reader.line_num + 1
            if not fields:
                continue
            if header is None:
                header = fields
                if twice := [name for name in header if header.count(name) > 1]:
                    raise InvalidUpdateError(f'line {begin}: the header has the column "{twice[0]}" twice')
                try:
                    columns_of(dict.fromkeys(header), columns, queue)
                except InvalidUpdateError as error:
                    raise InvalidUpdateError(f"line {begin}: {error}") from error
                continue
            if len(fields) != len(header):
                raise InvalidUpdateError(
                    f"line {begin} has {counted(len(fields), 'field')}, but the header has {len(header)}"
                )
            texts = ["" if field == _EMPTY else field or None for field in fields]
            yield begin, dict(zip(header, texts, strict=True))
    except csv.Error as error:
        raise InvalidUpdateError(f"line {line} can't be read: {error}") from error


def _jsonl(lines: Iterator[str], documents: set[str]) -> Iterator[tuple[int, Row]]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except ValueError as error:
            raise InvalidUpdateError(f"line {number} can't be read: {getattr(error, 'msg', error)}") from error
        if not isinstance(row, dict):
            raise InvalidUpdateError(f"line {number} is no JSON object: {line.strip()[:60]}")
        yield (
            number,
            {
                name: json.dumps(v) if isinstance(v, dict) or (name in documents and v is not None) else v
                for name, v in row.items()
            },
        )


def with_progress(rows: Iterator[tuple[int, Row]], text: IO[str], file: str, what: str) -> Iterator[tuple[int, Row]]:
    """Yield the rows. Shows a progress bar if stderr is a terminal and the rows aren't from standard input."""
    console = Console(stderr=True)
    if not console.is_terminal or file == "-":
        yield from rows
        return
    from rich.progress import Progress

    with Progress(console=console, transient=True) as progress:
        bar = progress.add_task(what, total=Path(file).stat().st_size)
        for number, row in enumerate(rows):
            if number % 1000 == 0:
                progress.update(bar, completed=text.buffer.tell())  # type: ignore[attr-defined]
            yield row


def write_rows(
    connection: Connection, query: sql.Composed, columns: Sequence[str], form: str, file: Path | None
) -> int:
    """Write a query's rows to a file or stdout: as table, csv, jsonl, or json (one array). Returns their number.

    A regular file is created or replaced only when the new file is complete. Raises OSError.
    """
    with _written(file) as out, connection.transaction():
        if form == "csv":  # PostgreSQL's csv distinguishes null from an empty string, but Python's doesn't
            with connection.cursor().copy(
                sql.SQL("copy ({}) to stdout with (format csv, header)").format(query)
            ) as copy:
                count = -1  # the first line, the header, isn't a row
                for count, line in enumerate(copy):  # noqa: B007
                    out.write(bytes(line).decode(connection.info.encoding))
            return count
        with connection.cursor(name="pgcombine_values") as cursor:
            cursor.itersize = _PORTION
            found = iter(cursor.execute(query))
            count = 0
            if form == "json":
                out.write("[")
            while portion := list(itertools.islice(found, _PORTION)):
                if form == "table":
                    print_table(columns, portion, header=not count, file=out)
                else:
                    objects = [to_json(dict(zip(columns, row, strict=True))) for row in portion]
                    out.write(",\n" if form == "json" and count else "")
                    out.write((",\n" if form == "json" else "\n").join(objects) + ("" if form == "json" else "\n"))
                count += len(portion)
            if form == "json":
                out.write("]\n")
            elif form == "table" and not count:
                print_table(columns, [], file=out)
    return count


@contextmanager
def _written(file: Path | None) -> Iterator[IO[str]]:
    if file is None:
        yield sys.stdout
        sys.stdout.flush()
    elif file.exists() and not file.is_file():  # a pipe or a device can't be replaced, so it is written directly
        with file.open("w", encoding="utf-8", newline="") as out:
            yield out
    else:
        part = file.with_name(f".{file.name}.{os.getpid()}.part")
        try:
            with part.open("x", encoding="utf-8", newline="") as out:
                yield out
            part.replace(file)
        except BaseException:
            part.unlink(missing_ok=True)
            raise
