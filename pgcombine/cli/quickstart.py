"""``pgcombine quickstart``: a queue and a rollup under a little load, with a worker and the web page."""

from __future__ import annotations

import logging
import os
import sys
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Annotated

import psycopg
import typer
from rich.console import Console

import pgcombine
from pgcombine import schema
from pgcombine.cli.loops import stopped_by_signal
from pgcombine.cli.options import Dsn, fail, resolve_dsn
from pgcombine.cli.web import serving
from pgcombine.database.connect import Connection, connect, one, require_writable
from pgcombine.database.sqlfiles import query
from pgcombine.errors import ConfigError, ConnectError, PgCombineError, SchemaMissingError, first_line, translated
from pgcombine.rollup.rollup import Rollup
from pgcombine.runtime.loops import run_together
from pgcombine.worker.drain import drain
from pgcombine.worker.worker import Worker

NAME = "pgcombine quickstart"  # of its sessions: quickstart_found.sql looks for it
QUEUE, ROLLUP = "quickstart_visits", "quickstart_spend"
PORT = 8432  # the port of pgcombine web, if it is free
_WRITERS = 2
_PAUSE = 0.05  # seconds between two transactions of a writer
_VIEWS = 50  # views that a transaction of quickstart_load.sql appends


def quickstart(
    seconds: Annotated[
        float, typer.Option("--seconds", min=1, help="Seconds until it ends by itself; Ctrl-C ends it at any time.")
    ] = 600,
    dsn: Dsn = None,
) -> None:
    """Make a queue and a rollup, write to them, run a worker, show the web page, and remove it all at the end.

    The names of all that it makes begin with quickstart_, or are in the schema pgcombine_quickstart. If the database
    has no pgcombine schema, the command makes it, and removes it at the end unless it has other queues by then.

    Example: pgcombine quickstart --seconds 60
    """
    server = serving()
    began = time.monotonic()
    # the page and the summary show what goes wrong; a worker's warnings, such as of a superuser, are for production
    logging.getLogger("pgcombine").setLevel(logging.ERROR)

    console = Console(markup=False, highlight=False, emoji=False)

    def tell(text: str) -> None:
        console.print(f"{time.monotonic() - began:5.1f} s  {text}", soft_wrap=True)

    tell("preparing the database")
    database = resolve_dsn(dsn)
    stop = stopped_by_signal()
    with _schema(database, tell), _objects(database, tell):
        try:
            sock = server.listening("127.0.0.1", PORT)
        except ConfigError:
            sock = server.listening("127.0.0.1", 0)
        url = f"http://127.0.0.1:{sock.getsockname()[1]}/"
        worker = Worker(database, [QUEUE, ROLLUP])
        appended = [0] * _WRITERS

        def write(number: int) -> None:
            with closing(connect(database, name=NAME)) as connection:
                while not stop.wait(_PAUSE):
                    connection.execute(query("quickstart_load").encode())
                    appended[number] += _VIEWS

        def watch(_: threading.Event) -> None:
            with closing(connect(database, name=NAME)) as connection, console.status("") as line:
                while not _counted(connection):
                    if stop.wait(0.05):
                        return
                tell(f"the first views are counted (the view pgcombine.{QUEUE}_current)")
                tell(f"the figures as a web page: {url}  (Ctrl-C ends it and removes everything)")
                _open_browser(url)
                while not stop.wait(0.5):
                    line.update(
                        f"{sum(appended):,} views appended, {_counted(connection):,} counted "
                        f"in {worker.totals.passes:,} passes"
                    )
                    if time.monotonic() - began > seconds:
                        stop.set()

        def page(_: threading.Event) -> None:
            server.serve(database, sock, stop, version=pgcombine.__version__)

        writers = [lambda _, number=number: write(number) for number in range(_WRITERS)]
        run_together([worker.run, page, watch, *writers], stop, "pgcombine-quickstart")
        for name in (QUEUE, ROLLUP):
            drain(database, name, timeout=60)
        with closing(connect(database, name=NAME)) as connection:
            wrong = Rollup(ROLLUP).verify(connection)
            counted = _counted(connection)
        if wrong or counted != sum(appended):
            raise PgCombineError(f"{sum(appended)} views were appended, and {counted} are counted; {'; '.join(wrong)}")
        tell(f"checked: {sum(appended):,} views were appended, and {counted:,} are counted; the rollup fits its table")


def _counted(connection: Connection) -> int:
    return int(one(connection, f"select coalesce(sum(views), 0)::bigint from pgcombine.{QUEUE}_values".encode())[0])  # noqa: S608


@contextmanager
def _schema(database: str, tell: Callable[[str], None]) -> Iterator[None]:
    """Make pgcombine's schema if there is none. At the end remove a schema made here, unless it has queues."""
    try:
        schema.check(database)
        made = False
    except SchemaMissingError:
        with closing(connect(database)) as connection:
            _require_create(connection)
        schema.upgrade(database)
        tell("made: the schemas pgcombine and pgcombine_internal, since the database had none")
        made = True
    try:
        yield
    finally:
        with closing(connect(database)) as connection:
            if made and not one(connection, "select exists (select from pgcombine.queue)")[0]:
                schema.remove(database)
                tell("removed: the schemas pgcombine and pgcombine_internal")


@contextmanager
def _objects(database: str, tell: Callable[[str], None]) -> Iterator[None]:
    """Make the queue, the rollup and its table, and remove them at the end. First remove what a killed run has left.

    Raises ConfigError if another run goes on, if a name is taken, or if the role may not create a schema.
    """
    with closing(connect(database, name=NAME)) as connection, translated():
        require_writable(connection)
        left_over, taken, runs = one(connection, query("quickstart_found"))
        if runs is not None:
            raise ConfigError(
                f"another pgcombine quickstart runs in this database (process {runs} of the server): end it"
            )
        if taken is not None:
            raise ConfigError(
                f"{taken} exists, and pgcombine quickstart hasn't made it "
                "(drop or rename it, or choose another database with --dsn)"
            )
        _require_create(connection)
        if left_over:
            _remove(database)
        with connection.transaction():
            connection.execute(query("quickstart_make").encode())
        tell(f"made: the queue {QUEUE}, and the rollup {ROLLUP} of the table pgcombine_quickstart.request")
        try:
            for _ in Rollup(ROLLUP).backfill(connection):
                pass
            yield
        finally:
            _remove(database)
            tell("removed: the queue, the rollup and the table")


def _remove(database: str) -> None:
    try:
        with closing(connect(database)) as connection, connection.transaction():
            connection.execute(query("quickstart_remove").encode())
    except (psycopg.Error, ConnectError) as error:
        detail = error.diag.message_detail if isinstance(error, psycopg.Error) else None
        fail(
            f"{QUEUE}, {ROLLUP} and pgcombine_quickstart aren't removed: {first_line(error)} {detail or ''} "
            "(remove the obstacle; the next pgcombine quickstart removes them)"
        )


def _require_create(connection: Connection) -> None:
    role, name, may = one(
        connection,
        "select current_user, current_database(), has_database_privilege(current_database(), 'create')",
    )
    if not may:
        raise ConfigError(
            f'role "{role}" may not create schemas in database "{name}" '
            f'(grant create on database "{name}" to "{role}", or choose another database with --dsn)'
        )


def _open_browser(url: str) -> None:
    """Open the page in a graphical browser, if the command has a terminal and a screen."""
    screen = sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY"))
    if screen and sys.stdout.isatty():
        webbrowser.open(url)
