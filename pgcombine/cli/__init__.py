"""The command line ``pgcombine``.

The exit status is 0 if the command succeeded, 1 if it failed (with one line on stderr), 2 for wrong usage, 3 if a
command that runs on met a schema of another version, and 130 after Ctrl-C. With ``--json`` only the data are on stdout.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

CTRL_C = 130  # a shell's status for a program that SIGINT ended


def main() -> None:
    """Entry point of the console script."""
    os.umask(0o077)  # files that a command writes, logs too, are private to the user
    _on_ctrl_c(_end)  # an interrupted import, or an interrupted exit of Python, would print a traceback
    from pgcombine.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a phrase may have characters that the terminal can't show
    try:
        _on_ctrl_c(signal.default_int_handler)
        app()
    except KeyboardInterrupt:
        sys.exit(CTRL_C)
    finally:
        _on_ctrl_c(_end)


def _on_ctrl_c(handler: Callable[..., Any]) -> None:
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # the program's parent may have switched it off
        signal.signal(signal.SIGINT, handler)


def _end(*_: Any) -> None:
    os._exit(CTRL_C)
