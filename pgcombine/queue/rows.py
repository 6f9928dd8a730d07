"""The rows that callers pass: mappings from column names to values, or sequences of the values of all columns.

A row that doesn't fit the queue's columns raises InvalidUpdateError.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pgcombine.errors import InvalidUpdateError

Row = Mapping[str, Any] | Sequence[Any]


def columns_of(row: Row, columns: list[str], queue: str) -> tuple[str, ...]:
    """Return the columns for which the row has values. ``columns`` are the queue's columns, and give the order.

    Raises InvalidUpdateError for a row with other columns or with none, and for an object that isn't a row.
    """
    if isinstance(row, Mapping):
        unknown = [name for name in row if name not in columns]
        if unknown:
            raise InvalidUpdateError(
                f'queue "{queue}" has no column "{unknown[0]}"; its columns: {", ".join(columns)}', queue=queue
            )
        if not row:
            raise InvalidUpdateError(
                f'an update of queue "{queue}" is empty, so it has no key; columns: {", ".join(columns)}', queue=queue
            )
        return tuple(name for name in columns if name in row)
    if isinstance(row, (str, bytes)) or not isinstance(row, Sequence):
        raise InvalidUpdateError(
            f'an update of queue "{queue}" must be a mapping, or a sequence with a value for each column, not {row!r}',
            queue=queue,
        )
    if len(row) != len(columns):
        raise InvalidUpdateError(
            f'update {row!r} of queue "{queue}" has {len(row)} columns, not {len(columns)}: {", ".join(columns)}',
            queue=queue,
        )
    return tuple(columns)
