"""How a connection turns PostgreSQL's values into Python's.

Python's dates and times lack infinity, years before 1 and after 9999, and 24:00, and its durations have at most a
billion days. Such a value becomes the ``str`` that PostgreSQL writes for it, and so does an array or a range with such
a value in it. PostgreSQL also reads this text. An integer in JSON that has more than 4300 digits becomes a Decimal.
"""

from __future__ import annotations

import json
from decimal import Decimal
from functools import cache
from threading import local
from typing import Any

import psycopg
from psycopg.abc import AdaptContext, Buffer, Loader
from psycopg.adapt import AdaptersMap
from psycopg.adapt import Loader as BaseLoader
from psycopg.pq import Format
from psycopg.types.string import TextLoader

# Python prints values of these types in another form than PostgreSQL, or can't hold them, such as infinite dates.
_TIMES = ("date", "interval", "time", "timestamp", "timestamptz", "timetz")
_RANGES = ("daterange", "tsrange", "tstzrange", "datemultirange", "tsmultirange", "tstzmultirange")
_JSON = {psycopg.adapters.types[name].oid for name in ("json", "jsonb")}
_OIDS = {
    *_JSON,
    *(
        oid
        for name in (*_TIMES, *_RANGES)
        if (found := psycopg.adapters.types[name])
        for oid in (found.oid, found.array_oid)
    ),
}


def hold_all(adapters: AdaptersMap) -> None:
    """Let a connection or a cursor return every value, as this module describes."""
    for oid in _OIDS:
        found = adapters.get_loader(oid, Format.TEXT)
        if found is not None and found not in _made:
            adapters.register_loader(oid, _or_text(found))


def as_text(connection: psycopg.Connection[Any]) -> None:
    """Let the connection return dates and times as text, as PostgreSQL writes and reads them."""
    for name in _TIMES:
        connection.adapters.register_loader(name, TextLoader)


class _OrText(BaseLoader):
    """Loads a value by the loader ``first``, or returns its text if that fails."""

    first: type[Loader]

    def __init__(self, oid: int, context: AdaptContext | None = None) -> None:
        super().__init__(oid, context)
        self._load = self.first(oid, context).load

    def load(self, data: Buffer) -> Any:
        nested, _whole.begun = _whole.begun, True
        try:
            return self._load(data)
        except (ValueError, OverflowError, psycopg.DataError):
            if self.oid in _JSON:
                return json.loads(bytes(data), parse_int=_number)
            if nested:
                raise
            return bytes(data).decode()
        finally:
            _whole.begun = nested


class _Whole(local):
    begun = False  # whether this thread is loading a value


_whole = _Whole()


def _number(digits: str) -> int | Decimal:
    try:
        return int(digits)
    except ValueError:
        return Decimal(digits)


_made: set[type[Loader]] = set()


@cache
def _or_text(first: type[Loader]) -> type[_OrText]:
    made = type("_OrText", (_OrText,), {"first": first})
    _made.add(made)
    return made
