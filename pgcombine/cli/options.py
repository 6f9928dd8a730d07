"""Parts of all commands: common options, the choice of the database, output, and errors in one line."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import IO, TYPE_CHECKING, Annotated, Any, NoReturn

import typer
from typer.core import TyperCommand, TyperGroup

from pgcombine.runtime.printable import printable, text_of, to_json

if TYPE_CHECKING:
    import psycopg
    from rich.table import Table

    from pgcombine.database.connect import Connection
    from pgcombine.embedded.server import ServerStatus
    from pgcombine.queue.status import Contents

LONGEST_SECONDS = 2_000_000.0  # 23 days: the server's timeouts are milliseconds in 32 bits
WATCH_SECONDS = 2.0


def seconds(value: float | None) -> float | None:
    """Refuse an option's number of seconds that is negative or too large. Returns the number."""
    if value is not None and not 0 <= value <= LONGEST_SECONDS:
        raise typer.BadParameter(f"give seconds from 0 to {LONGEST_SECONDS:.0f}, not {value:g}")
    return value


def whole(bits: int) -> Callable[[Any], Any]:
    """Return a callback for an option that is a number or a list of numbers.

    The callback refuses numbers that don't fit PostgreSQL's integer of ``bits`` bits.
    """

    def check(value: Any) -> Any:
        for number in value if isinstance(value, (list, tuple)) else [value]:
            if number is not None and not -(1 << (bits - 1)) <= number < 1 << (bits - 1):
                raise typer.BadParameter(f"{number} doesn't fit an integer of {bits} bits")
        return value

    return check


Dsn = Annotated[
    str | None,
    typer.Option(
        "--dsn",
        metavar="DSN",
        help="PostgreSQL to work on: URI or key=value. Default: PGCOMBINE_DSN, else PG* variables, "
        "else the embedded server of PGCOMBINE_HOME.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do it without asking.")]
Buckets = Annotated[int, typer.Option("--buckets", callback=whole(32), help="Number of buckets, 1 to 1024.")]
Every = Annotated[
    float | None,
    typer.Option(
        "--watch",
        metavar="[SECONDS]",
        callback=seconds,
        help=f"Repeat every SECONDS (default: {WATCH_SECONDS:g}) until Ctrl-C; with --json, one line each time.",
    ),
]
QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue.")]


class Group(TyperGroup):
    """A group of commands. An error that needs no traceback is printed in one line on stderr, and the status is 1."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except (typer.Exit, typer.Abort):
            raise
        except Exception as error:
            if isinstance(error, BrokenPipeError):  # the program that reads the output, such as head, has ended
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                raise typer.Exit(1) from None
            message = _explained(error)
            if message is None:
                raise
            fail(message)


def _explained(error: Exception) -> str | None:
    """Return the message of an error that needs no traceback, else None."""
    try:
        from pgcombine.errors import PgCombineError, translate
    except ImportError as missing:  # psycopg doesn't find libpq
        return str(missing)
    import psycopg

    if isinstance(error, PgCombineError):
        return str(error)
    if isinstance(error, psycopg.Error):
        if (known := translate(error)) is not None:
            return str(known)
        message = error.diag.message_primary or str(error).strip() or type(error).__name__
        return message + (f" ({error.diag.message_hint})" if error.diag.message_hint else "")
    if isinstance(error, OSError):
        return f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}"
    return None


class Watching(TyperCommand):
    """A command whose option ``--watch`` may stand without a number."""

    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Add the default number to a ``--watch`` that no number follows."""
        given: list[str] = []
        for place, word in enumerate(args):
            following = args[place + 1] if place + 1 < len(args) else ""
            bare = word == "--watch" and "--" not in args[:place] and not _number(following)
            given.append(f"--watch={WATCH_SECONDS}" if bare else word)
        return super().parse_args(ctx, given)


def _number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def group(summary: str) -> typer.Typer:
    """Return a group of commands. Its help is plain text, since Typer's rich help is slow to import."""
    return typer.Typer(no_args_is_help=True, help=summary, add_completion=False, rich_markup_mode=None)


def fail(message: str, status: int = 1) -> NoReturn:
    """Print the failure in one line on stderr, and exit."""
    echo(f"pgcombine: {' '.join(message.split())}", err=True)
    raise typer.Exit(status)


def note(message: str) -> None:
    """Print a remark about a result in one line on stderr."""
    echo(f"pgcombine: note: {message}", err=True)


def note_quarantined(name: str, keys: int, updates: int) -> None:
    """Print how many keys and updates are quarantined, unless ``keys`` is 0."""
    if keys:
        found = f"{counted(keys, 'quarantined key')} of {name} with {counted(updates, 'update')}"
        note(f"{found}, which no value contains (pgcombine quarantine ls {name})")


def quarantined_fields(keys: int, updates: int) -> dict[str, int]:
    """Return the numbers as fields of a JSON object, or no fields if ``keys`` is 0."""
    return {"quarantined_keys": keys, "quarantined_updates": updates} if keys else {}


def counted(count: int, noun: str) -> str:
    """Return the count with its noun: ``1 update``, ``2 updates``."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def described(found: Sequence[Contents]) -> str:
    """Return what queues contain as text, such as ``3 values and 1 pending update``."""

    def total(field: str) -> int:
        return sum(getattr(one, field) for one in found)

    parts = [counted(total("values"), "value"), counted(total("pending"), "pending update")]
    if keys := total("quarantined_keys"):
        parts.append(f"{counted(keys, 'quarantined key')} with {counted(total('quarantined_updates'), 'update')}")
    if waiting := total("waiting"):
        parts.append(f"{counted(waiting, 'change')} in exports and feeds")
    return f"{', '.join(parts[:-1])} and {parts[-1]}"


def confirm(loss: str, *, yes: bool) -> None:
    """Unless ``yes``, ask the user before an action that can't be undone. Without a terminal, ``--yes`` is required."""
    if yes:
        return
    if not sys.stdin.isatty():
        fail(f"{loss}; there is no terminal to ask on: pass --yes to do it", status=2)
    # typer.confirm would write a space to stdout, which is for results only
    typer.echo(f"{printable(loss)}. Go on? [y/N] ", err=True, nl=False)
    answer = sys.stdin.readline()
    if not answer.endswith("\n"):
        typer.echo(err=True)
    if answer.strip().lower() not in ("y", "yes"):
        fail("nothing was done")


def resolve_dsn(dsn: str | None) -> str:
    """Return the DSN that the option or the environment gives, else that of the embedded server.

    The embedded server is started, and its schema made or upgraded, if necessary.
    """
    from pgcombine import config, schema
    from pgcombine.errors import SchemaError
    from pgcombine.runtime.reconnect import when_ready

    given = config.given_dsn(dsn)
    if given is not None:
        return given
    own = start_embedded()
    try:
        when_ready(partial(schema.check, own), threading.Event())  # the server may be recovering from a crash
    except SchemaError:
        schema.upgrade(own)
    return own


def start_embedded() -> str:
    """Return the URI of the embedded server, which is started if it doesn't run. A start is reported on stderr."""
    from pgcombine import config
    from pgcombine.embedded.server import ensure

    def tell(status: ServerStatus) -> None:
        typer.echo(
            f"pgcombine: started PostgreSQL {status.version} in {home} ({megabytes(status.size)} on disk); "
            "it keeps running; pgcombine server stop stops it",
            err=True,
        )

    home = config.home()
    return ensure(home, tell)


def megabytes(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"


def open_database(dsn: str | None, **options: Any) -> Connection:
    """Open an autocommit connection to the chosen database, and check its schema. ``options`` are as for ``connect``.

    The server's warnings are printed on stderr. If the command is killed, a server that supports
    ``client_connection_check_interval`` ends the command's statement, unless the connection goes through a pooler.
    """
    import psycopg

    from pgcombine import schema
    from pgcombine.database.connect import closed_on_error, connect
    from pgcombine.runtime.wakeup import pooled

    connection = connect(resolve_dsn(dsn), name="pgcombine cli", **options)
    connection.add_notice_handler(_warn)
    with closed_on_error(connection):
        schema.check_connection(connection)
        if not pooled(connection):
            with suppress(psycopg.errors.InvalidParameterValue):  # not supported by some servers, such as on Windows
                connection.execute("set client_connection_check_interval = '1s'")
    return connection


def _warn(notice: psycopg.errors.Diagnostic) -> None:
    from pgcombine.database.connect import warning

    if (text := warning(notice)) is not None:
        print_warning(text)


def print_warning(text: str) -> None:
    echo(f"pgcombine: warning: {text}", err=True)


def echo(text: str, *, err: bool = False) -> None:
    """Print a line. Control characters are escaped, since the line may contain users' data."""
    typer.echo(printable(text), err=err)


def print_json(data: Any) -> None:
    typer.echo(to_json(data))


def report(data: Any, line: str, as_json: bool) -> None:
    """Print data as JSON, or a line that says the same."""
    if as_json:
        print_json(data)
    else:
        echo(line)


def report_table(
    found: Sequence[dict[str, Any]], columns: Sequence[str], rows: Sequence[Sequence[Any]], as_json: bool
) -> None:
    """Print what was found as JSON, or as a table of these columns and rows."""
    if as_json:
        print_json(found)
    else:
        print_table(columns, rows)


def report_state(kind: str, name: str, state: str, as_json: bool) -> None:
    """Print the new state of an object. ``kind`` is ``queue``, ``rollup``, ``feed``, ``export`` or ``server``."""
    report({kind: name, "state": state}, f"{state}: {name}", as_json)


def report_problems(kind: str, name: str, problems: Sequence[str], as_json: bool, **fields: Any) -> None:
    """Print the problems of an object, or JSON with further ``fields``. If there are any, exit with status 1."""
    if as_json:
        print_json({kind: name, "problems": problems, **fields})
    else:
        for problem in problems:
            echo(problem)
    if problems:
        verb = "had" if fields.get("repaired") else "has"
        fail(f'{kind} "{name}" {verb} {counted(len(problems), "problem")}')
    if not as_json:
        typer.echo(f"verified: {name}")


def print_table(
    columns: Sequence[str], rows: Sequence[Sequence[Any]], *, header: bool = True, file: IO[str] | None = None
) -> None:
    """Print rows as a table."""
    show_table(table_of(columns, rows, header=header), file=file)


def show_table(table: Table, *, file: IO[str] | None = None) -> None:
    """Print a table."""
    from rich.console import Console

    width = None if (file or sys.stdout).isatty() else 100_000  # other programs need each row on one line
    Console(width=width, markup=False, highlight=False, emoji=False, file=file).print(table)


def table_of(columns: Sequence[str], rows: Sequence[Sequence[Any]], *, header: bool = True) -> Table:
    """Return rows as a table for a terminal. A cell that is too wide for its column goes on in the next line."""
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold", show_header=header)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*("" if cell is None else printable(text_of(cell)) for cell in row))
    return table
