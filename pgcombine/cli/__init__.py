"""The command line ``pgcombine``.

Exit status 0: done; 1: failed, with one line on stderr; 2: wrong usage; 130: ended by Ctrl-C. With ``--json`` the
data, and nothing else, are on stdout.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Any

CTRL_C = 130  # what a shell reports of a program that SIGINT ended


def main() -> None:
    """Entry point of the console script."""
    os.umask(0o077)  # what it writes, logs too, is nobody else's to read
    _on_ctrl_c(_end)  # an import that is interrupted prints a traceback, and so does the interpreter's end
    from pgcombine.cli.app import app

    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")  # a phrase that the terminal can't show
    try:
        _on_ctrl_c(signal.default_int_handler)
        app()
    except KeyboardInterrupt:
        sys.exit(CTRL_C)
    finally:
        _on_ctrl_c(_end)


def _on_ctrl_c(handler: Callable[..., Any]) -> None:
    if signal.getsignal(signal.SIGINT) != signal.SIG_IGN:  # whoever started the program may have switched it off
        signal.signal(signal.SIGINT, handler)


def _end(*_: Any) -> None:
    os._exit(CTRL_C)
