"""Texts of values and names, as parts of statements and as parameters."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from psycopg import sql
from psycopg.adapt import PyFormat

_PLAIN = re.compile(r"[A-Za-z0-9_.:+-]+")  # other texts get quotes in an array, and so does the text NULL


def plain(text: str) -> str:
    """Return a part of a :class:`Statement` that isn't read for placeholders."""
    return text.replace("%", "%%")


def name_of(*names: str) -> sql.Composable:
    """Return the name of a column or table for a statement with parameters, in which ``%`` would be a placeholder."""
    return sql.SQL(plain(sql.Identifier(*names).as_string(None)))


def text_of(value: Any, transformer: Any) -> str | None:
    """Return the text of a value as COPY sends it. Raises psycopg.Error or UnicodeError if there is none."""
    if value is None:
        return None
    if isinstance(value, (bytes, bytearray, memoryview)):  # libpq's form depends on settings of the last connection
        return rf"\x{bytes(value).hex()}"
    dumped = transformer.get_dumper(value, PyFormat.TEXT).dump(value)
    return None if dumped is None else bytes(dumped).decode(transformer.encoding)


def array_of(texts: Iterable[str | None]) -> str:
    """Return the text form of a PostgreSQL array."""
    return f"{{{','.join(map(element_of, texts))}}}"


def element_of(text: str | None) -> str:
    """Return an element of an array's text form."""
    if text is None:
        return "NULL"
    if _PLAIN.fullmatch(text) and text.upper() != "NULL":
        return text
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'
