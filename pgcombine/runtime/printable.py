"""Escaping of control characters in text from outside, for logs and terminals.

Names in databases, error messages and receivers' answers are chosen by others. If such a text contained a line break,
the rest of the text would look like a log line of this program. A terminal would execute an escape sequence in it.
"""

from __future__ import annotations

import logging
import re

# C0 and C1 controls, line and paragraph separators, and characters that change the direction of text
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Return the text in one line, with each control character escaped as in Python."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def printable_json(text: str) -> str:
    """Return the JSON text with its control characters escaped as in JSON."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class PrintableFormatter(logging.Formatter):
    """Formats an event as one line. The lines of its traceback follow, indented."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:
        text = super().formatException(ei)  # type: ignore[arg-type]
        return "\n".join(f"    {printable(line)}" for line in text.split("\n"))
