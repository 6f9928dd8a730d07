"""Figures and texts as people read them: the filters of the templates.

Keys and errors come from whoever writes to the database. Their control characters are escaped, they are cut to a length
that a page can show, and the templates escape what HTML would read as markup.
"""

from __future__ import annotations

import math
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from pgcombine.runtime.printable import printable

LONGEST = 200  # characters of a key or a value
_UNITS = ((86400, "d"), (3600, "h"), (60, "min"))


def number(value: float | Decimal | None) -> str:
    """Return a number in few characters: ``1,234``, ``12.3k``, ``4.56M``; ``–`` for None."""
    if value is None:
        return "–"
    size = abs(float(value))
    for bound, divisor, letter in ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k")):
        if size >= bound:
            return (
                f"{float(value) / divisor:.{2 if size / divisor < 10 else 1 if size / divisor < 100 else 0}f}{letter}"
            )
    if size == round(size):
        return f"{round(float(value)):,}"
    return f"{float(value):.{2 if size < 1 else 1 if size < 100 else 0}f}"


def seconds(value: float | None) -> str:
    """Return a duration: ``12 ms``, ``3.4 s``, ``5 min``, ``2 h 5 min``, ``3 d 4 h``; ``–`` for None."""
    if value is None or not math.isfinite(value):
        return "–"
    if value == 0:
        return "0 s"
    if value < 0.9995:
        return f"{value * 1000:.{0 if value >= 0.01 else 1}f} ms"
    if value < 120:
        return f"{value:.{1 if value < 9.95 else 0}f} s"
    if value < 3600:
        return f"{value / 60:.0f} min"
    for (large, name), (small, part) in ((_UNITS[0], _UNITS[1]), (_UNITS[1], _UNITS[2])):
        if value >= large:
            whole, rest = divmod(value, large)
            return f"{whole:.0f} {name} {rest // small:.0f} {part}"
    raise AssertionError(value)


def size(value: float | Decimal | None) -> str:
    """Return a number of bytes: ``12 kB``, ``3.4 MB``; ``–`` for None."""
    if value is None:
        return "–"
    amount = float(value)
    for unit in ("B", "kB", "MB", "GB", "TB"):
        if amount < 1024 or unit == "TB":
            return f"{amount:.{1 if amount < 10 and unit != 'B' else 0}f} {unit}"
        amount /= 1024
    raise AssertionError(value)


def when(value: datetime | None) -> str:
    """Return a time in UTC as in logs; ``–`` for None."""
    return "–" if value is None else f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def clock(value: datetime | float | None) -> str:
    """Return the hour and minute of a time, in UTC."""
    if value is None:
        return "–"
    return f"{datetime.fromtimestamp(value, UTC) if isinstance(value, (int, float)) else value.astimezone(UTC):%H:%M}"


def age(value: datetime | None) -> str:
    """Return how long ago a time is; ``–`` for None."""
    if value is None:
        return "–"
    return seconds(max(0.0, round((datetime.now(UTC) - value) / timedelta(seconds=1))))


def shown(value: Any, longest: int = LONGEST) -> str:
    """Return a text from elsewhere in one line without control characters, cut to ``longest`` characters."""
    if value is None:
        return "null"
    text = value if isinstance(value, str) else str(value)
    cut = text[:longest]
    return printable(cut) + (f"… ({len(text):,} characters)" if len(text) > longest else "")


def key(value: dict[str, Any], longest: int = LONGEST) -> str:
    """Return a key: its only part, or its parts in a list."""
    parts = [shown(part, longest) for part in value.values()]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


FILTERS = {
    "number": number,
    "seconds": seconds,
    "size": size,
    "when": when,
    "clock": clock,
    "age": age,
    "shown": shown,
    "key": key,
}
