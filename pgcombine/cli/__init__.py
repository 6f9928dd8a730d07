"""The command line ``pgcombine``.

The exit status of a command is

- 0 if it succeeded, or if SIGTERM or Ctrl-C ended ``feed tail`` or a command that runs until it is stopped, such as
  ``worker``,
- 1 if it failed; stderr says why,
- 2 for wrong usage,
- 3 if ``worker``, ``export run`` or ``replicas run`` found no schema of this program's version, or if the schema got
  another version while ``web`` ran; with ``--drain`` or ``--once`` the status is 1 instead,
- 130 if Ctrl-C interrupted another command.

With ``--json`` a command prints only JSON to stdout.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

CTRL_C = 130  # the status that a shell reports for a program that SIGINT ended


def main() -> None:
    """Entry point of the console script."""
    os.umask(0o077)  # by default only the user can read the files that a command creates
    _on_ctrl_c(_end)  # otherwise Ctrl-C during an import, or while Python exits, prints a traceback
    from pgcombine.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # data may have characters that a terminal can't show
    try:
        _on_ctrl_c(signal.default_int_handler)
        app()
    except KeyboardInterrupt:
        sys.exit(CTRL_C)
    finally:
        if signal.getsignal(signal.SIGINT) != leave_to_thread:  # else a late signal would change the status 0
            _on_ctrl_c(_end)


def leave_to_thread(*_: Any) -> None:
    """Do nothing: a handler of signals at which a thread ends the command."""


def _on_ctrl_c(handler: Callable[..., Any]) -> None:
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # a SIGINT that the caller ignores stays ignored
        signal.signal(signal.SIGINT, handler)


def _end(*_: Any) -> None:
    os._exit(CTRL_C)
