"""Escaping of control characters in text from outside, for logs and terminals.

Names in databases, error messages and receivers' answers are chosen by others. If such a text contained a line break,
the rest of the text would look like a log line of this program. A terminal would execute an escape sequence in it.
"""

from __future__ import annotations

import json
import logging
import math
import re
from typing import Any

# C0 and C1 controls, line and paragraph separators, and characters that change the direction of text
_CONTROLS = re.compile("[\x00-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")


def printable(text: str) -> str:
    """Return the text in one line, with each control character escaped as in Python."""
    return _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def printable_json(text: str) -> str:
    """Return the JSON text with its control characters escaped as in JSON."""
    return _CONTROLS.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def to_json(data: Any) -> str:
    """Return data as JSON. Values that JSON can't represent (dates, decimals, infinity, bytes) become text."""
    return printable_json(json.dumps(_finite(data), default=text_of, ensure_ascii=False, allow_nan=False))


def _finite(data: Any) -> Any:
    if isinstance(data, dict):
        return {name: _finite(part) for name, part in data.items()}
    if isinstance(data, (list, tuple)):
        return [_finite(part) for part in data]
    return str(data) if isinstance(data, float) and not math.isfinite(data) else data


def text_of(cell: Any) -> str:
    """Return a cell as text: bytes in PostgreSQL's form, other values in Python's form."""
    return rf"\x{bytes(cell).hex()}" if isinstance(cell, (bytes, bytearray, memoryview)) else str(cell)


class PrintableFormatter(logging.Formatter):
    """Formats an event as one line. The lines of its traceback follow, indented."""

    def formatMessage(self, record: logging.LogRecord) -> str:
        record.message = printable(record.message)
        return super().formatMessage(record)

    def formatException(self, ei: object) -> str:
        text = super().formatException(ei)  # type: ignore[arg-type]
        return "\n".join(f"    {printable(line)}" for line in text.split("\n"))
