"""Text of others, fit to be shown in a log or on a terminal: control characters are escaped.

Names, errors and answers come from databases and receivers that others write to. A line break in one would begin a
line that the program didn't write, an escape sequence would be obeyed by the terminal.
"""

from __future__ import annotations

import logging
import re

# C0 and C1 controls, line and paragraph separators, and what changes the direction of text
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """The text in one line, each control character as Python escapes it."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def printable_json(text: str) -> str:
    """The JSON text with control characters escaped as JSON does it."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class PrintableFormatter(logging.Formatter):
    """Formats an event as one line; the lines of a traceback below it are indented."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:
        text = super().formatException(ei)  # type: ignore[arg-type]
        return "\n".join(f"    {printable(line)}" for line in text.split("\n"))
