"""Encoding updates as a *payload*, a text that means the same on every server.

A payload is a ``text[]`` with one element for each column of the queue, in order. Each element is the text of an array
with the updates' values (``handoff_insert_sql``). If a row is a mapping without a value column, the payload has the
column's default.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import psycopg
from psycopg.adapt import Transformer

from pgcombine.database.texts import array_of, element_of, text_of
from pgcombine.errors import InvalidUpdateError
from pgcombine.queue.rows import Row, columns_of


@dataclass(frozen=True)
class Definition:
    """The definition of a queue.

    ``columns`` begins with the key columns, and ``keys`` is their number. ``defaults`` has the columns' defaults as
    text. ``shape`` is the digest of the definition.
    """

    shape: UUID
    columns: tuple[str, ...]
    keys: int
    defaults: Mapping[str, str | None]


def encode(queue: str, definition: Definition, rows: Iterable[Row]) -> tuple[str, int]:
    """Return the payload and the number of updates in it.

    Raises InvalidUpdateError for a row that doesn't fit the columns, and for a value without a text form.
    """
    names = list(definition.columns)
    values: list[list[str]] = [[] for _ in names]
    missing = [element_of(definition.defaults.get(name)) for name in names]
    transformer = Transformer()
    count = 0
    for count, row in enumerate(rows, 1):  # noqa: B007
        columns_of(row, names, queue)  # raises if the row doesn't fit
        if isinstance(row, Mapping):
            for name, default, column in zip(names, missing, values, strict=True):
                column.append(_text(row[name], queue, transformer) if name in row else default)
        else:
            for value, column in zip(row, values, strict=True):
                column.append(_text(value, queue, transformer))
    return array_of(f"{{{','.join(column)}}}" for column in values), count


def encode_keys(queue: str, definition: Definition, keys: Iterable[Sequence[Any]]) -> str:
    """Return keys as a payload that has the key columns only. Raises InvalidUpdateError as :func:`encode` does."""
    transformer = Transformer()
    parts = [[_text(part, queue, transformer) for part in column] for column in zip(*keys, strict=True)]
    return array_of(f"{{{','.join(column)}}}" for column in parts)


def lines(payload: str) -> bytes | None:
    """Return the updates of a payload in COPY's text format.

    Returns None if the payload has a quoted element, or if the columns differ in length. Only the server can read such
    a payload.
    """
    if "\\" in payload:
        return None
    columns = []
    for column in payload[2:-2].split('","'):
        elements = column[1:-1].split(",")
        columns.append(
            [r"\N" if element == "NULL" else element for element in elements] if "NULL" in column else elements
        )
    if len({len(column) for column in columns}) > 1:
        return None
    text = "\n".join(map("\t".join, zip(*columns, strict=True)))
    return f"{text}\n".encode() if text else b""


def _text(value: Any, queue: str, transformer: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str) and value.isprintable():  # so it has no zero byte, and no part of a surrogate pair
        return element_of(value)
    if type(value) is int:
        return str(value)
    try:
        return element_of(text_of(value, transformer))
    except (psycopg.Error, UnicodeError) as error:  # the value has no text that PostgreSQL can take
        raise InvalidUpdateError(f'an update doesn\'t fit queue "{queue}": {value!r}: {error}', queue=queue) from error
