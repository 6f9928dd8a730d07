"""What the commands share: options, the database they work on, output, and errors as one line."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import Annotated, Any

import psycopg
import typer
from psycopg.types.string import TextLoader
from rich.console import Console
from rich.table import Table
from typer.core import TyperGroup

from pgcombine import config, schema
from pgcombine.database import PATIENCE_SECONDS, Connection, connect
from pgcombine.errors import PgCombineError, SchemaError, translate
from pgcombine.printable import printable, printable_json
from pgcombine.wakeup import pooled

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
QueueName = Annotated[str, typer.Argument(metavar="QUEUE", help="Name of the queue.")]

LONGEST_SECONDS = 2_000_000.0  # 23 days: the server's timeouts are milliseconds in 32 bits

# what Python shows otherwise than PostgreSQL, or cannot hold, as infinite dates
_TEXTS = ("date", "interval", "time", "timestamp", "timestamptz", "timetz")


class Group(TyperGroup):
    """Turns errors that a user can do something about into one line on stderr and exit status 1."""

    def invoke(self, ctx: Any) -> Any:
        """Run the command."""
        try:
            return super().invoke(ctx)
        except PgCombineError as error:
            fail(str(error))
        except psycopg.Error as error:
            own = translate(error)
            message = error.diag.message_primary or str(error).strip() or type(error).__name__
            hint = f" ({error.diag.message_hint})" if error.diag.message_hint else ""
            fail(str(own) if own else message + hint)
        except BrokenPipeError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # the reader, head say, has enough
            raise typer.Exit(1) from None
        except OSError as error:
            fail(f"{error.strerror or error}{f': {error.filename}' if error.filename else ''}")


def fail(message: str) -> None:
    """Say what failed in one line, and exit with status 1."""
    echo(f"pgcombine: {' '.join(message.split())}", err=True)
    raise typer.Exit(1)


def resolve_dsn(dsn: str | None) -> str:
    """The database to work on: the one given, else the embedded one, started and migrated as needed."""
    given = config.given_dsn(dsn)
    if given is not None:
        return given
    from pgcombine import embedded

    own = embedded.ensure(config.home())
    try:
        schema.check(own)
    except SchemaError:
        schema.upgrade(own)
    return own


def open_database(dsn: str | None, *, patience: float | None = PATIENCE_SECONDS) -> Connection:
    """An autocommit connection to the database to work on, its schema checked; ``patience`` as for ``connect``.

    What the server warns of is told on stderr. Where the command is killed, the server ends what it does for it.
    """
    connection = connect(resolve_dsn(dsn), name="pgcombine cli", patience=patience)
    connection.add_notice_handler(_warn)
    try:
        schema.check_connection(connection)
        if not pooled(connection):
            with suppress(psycopg.errors.InvalidParameterValue):  # a server that can't, on Windows say
                connection.execute("set client_connection_check_interval = '1s'")
    except BaseException:
        connection.close()
        raise
    return connection


def _warn(notice: psycopg.errors.Diagnostic) -> None:
    if notice.severity_nonlocalized == "WARNING":
        hint = f" ({notice.message_hint})" if notice.message_hint else ""
        echo(f"pgcombine: warning: {notice.message_primary}{hint}", err=True)


def echo(text: str, *, err: bool = False) -> None:
    """Print a line, in which there may be texts of others."""
    typer.echo(printable(text), err=err)


def print_json(data: Any) -> None:
    """Print data as JSON; what JSON has no form for (dates, decimals, infinity, bytes) as text."""
    typer.echo(printable_json(json.dumps(_finite(data), default=_text, ensure_ascii=False, allow_nan=False)))


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _finite(part) for name, part in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(part) for part in data]
    return str(data) if isinstance(data, float) and not math.isfinite(data) else data


def _text(cell: Any) -> str:
    """As PostgreSQL writes it, where Python has another form."""
    return rf"\x{bytes(cell).hex()}" if isinstance(cell, (bytes, bytearray, memoryview)) else str(cell)


def seconds(value: float | None) -> float | None:
    """As an option's callback: refuses what is no span of time."""
    if value is not None and not 0 <= value <= LONGEST_SECONDS:
        raise typer.BadParameter(f"give seconds from 0 to {LONGEST_SECONDS:.0f}, not {value:g}")
    return value


def whole(bits: int) -> Callable[[Any], Any]:
    """An option's callback: refuses numbers, in a list as well, that the server has no integer of so many bits for."""

    def check(value: Any) -> Any:
        for number in value if isinstance(value, (list, tuple)) else [value]:
            if number is not None and abs(number) >= 1 << (bits - 1):
                raise typer.BadParameter(f"{number} is too large")
        return value

    return check


def as_text(connection: Connection) -> None:
    """Let the connection give texts for values that JSON has no form for, as PostgreSQL writes and reads them."""
    for name in _TEXTS:
        connection.adapters.register_loader(name, TextLoader)


def print_table(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
    """Print rows as a table; plain where stdout is no terminal."""
    table = Table(*columns, box=None, pad_edge=False, header_style="bold")
    for row in rows:
        table.add_row(*("" if cell is None else printable(_text(cell)) for cell in row))
    width = None if sys.stdout.isatty() else 100_000  # never cut what another program reads
    Console(width=width, markup=False, highlight=False, emoji=False).print(table)
