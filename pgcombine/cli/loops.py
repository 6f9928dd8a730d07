"""For commands that run until they are stopped: the log on stderr, and how a signal or an upgrade ends a command."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from enum import StrEnum
from typing import Annotated, Any

import typer

from pgcombine.cli import leave_to_thread
from pgcombine.cli.options import fail
from pgcombine.errors import SchemaError
from pgcombine.runtime.heartbeat import Heartbeat
from pgcombine.runtime.json_lines import JsonFormatter
from pgcombine.runtime.printable import PrintableFormatter
from pgcombine.runtime.systemd import reported

OTHER_SCHEMA = 3  # exit status on a SchemaError in ``supervised``


class LogFormat(StrEnum):
    """The form of a line of the log."""

    text = "text"
    json = "json"


LogFormatOption = Annotated[
    LogFormat, typer.Option("--log-format", help="Log lines as text, or as JSON with each field by its name.")
]


def log_to_stderr(form: LogFormat = LogFormat.text, *, verbose: bool = False) -> None:
    """Log to stderr, from the level INFO on, or from DEBUG on if ``verbose``."""
    handler = logging.StreamHandler(sys.stderr)
    text = PrintableFormatter("%(asctime)s %(levelname)s %(message)s")
    handler.setFormatter(JsonFormatter() if form == LogFormat.json else text)
    logging.basicConfig(level=logging.DEBUG if verbose else logging.INFO, handlers=[handler])
    logging.getLogger("alembic").setLevel(logging.WARNING)


def stopped_by_signal() -> threading.Event:
    """Handle SIGTERM and Ctrl-C from now on: each sets the returned event.

    The interpreter runs handlers in the main thread, which may wait for a lock when another thread gets the signal. So
    nothing is left to them: at a signal, the interpreter itself writes to a pipe, and a thread sets the event.
    """
    stop = threading.Event()
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    signal.set_wakeup_fd(writer, warn_on_full_buffer=False)

    def wait() -> None:
        os.read(reader, 1)
        stop.set()

    threading.Thread(target=wait, name="pgcombine-signals", daemon=True).start()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, leave_to_thread)
    return stop


@contextmanager
def interrupted_by_signal() -> Iterator[None]:
    """End the block at the first SIGTERM or Ctrl-C. Later signals are ignored, so they don't disturb the end."""

    def end(*_: Any) -> None:
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        for number in (signal.SIGTERM, signal.SIGINT):
            if signal.getsignal(number) != signal.SIG_IGN:  # a signal that the caller ignores stays ignored
                signal.signal(number, end)
        yield


@contextmanager
def supervised(*heartbeats: Heartbeat) -> Iterator[None]:
    """Tell systemd when the daemons in the block are ready, and that they make progress.

    On a SchemaError from the block the command prints the message and exits with the status OTHER_SCHEMA.
    """
    try:
        with reported(heartbeats):
            yield
    except SchemaError as error:
        fail(str(error), status=OTHER_SCHEMA)
