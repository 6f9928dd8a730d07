"""The templates' filters: they make figures and texts readable.

Keys and errors in the database come from other programs. So ``shown`` and ``key`` escape control characters, and cut
long texts. The templates escape HTML. A dash stands for a missing figure.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Any

from pgcombine.runtime.printable import printable

LONGEST = 200  # characters of a key or a value
NOTHING = "\N{EN DASH}"
_SIZES = ("B", "kB", "MB", "GB")
_LARGE = ((1e12, 1e12, "T"), (1e9, 1e9, "G"), (1e6, 1e6, "M"), (1e4, 1e3, "k"))


def number(value: float | Decimal | None) -> str:
    """Return a number in few characters: ``1,234``, ``12.3k``, ``4.56M``."""
    if value is None:
        return NOTHING
    amount = float(value)
    for bound, divisor, letter in _LARGE:
        if abs(amount) >= bound:
            short = amount / divisor
            return f"{short:.{2 if abs(short) < 9.995 else 1 if abs(short) < 99.95 else 0}f}{letter}"
    if amount == round(amount):
        return f"{round(amount):,}"
    return f"{amount:,.{2 if abs(amount) < 0.995 else 1 if abs(amount) < 99.95 else 0}f}"


def counted(value: int | Decimal, noun: str, nouns: str = "") -> str:
    """Return a number with its noun, or with ``nouns`` if it isn't 1: ``1 update``, ``12.3k updates``."""
    return f"{number(value)} {noun if value == 1 else nouns or noun + 's'}"


def seconds(value: float | None) -> str:
    """Return a duration: ``12 ms``, ``3.4 s``, ``5 min``, ``2 h``, ``2 h 5 min``, ``3 d 4 h``."""
    if value is None or not math.isfinite(value):
        return NOTHING
    if value == 0:
        return "0 s"
    if value < 0.9995:
        return f"{value * 1000:.{0 if value >= 0.01 else 1}f} ms"
    if value < 119.5:
        return f"{value:.{1 if value < 9.95 and value != round(value) else 0}f} s"
    if value < 3570:
        return f"{value / 60:.0f} min"
    minutes = round(value / 60)
    days, hours = minutes // 1440, minutes // 60 % 24
    parts = [(days, "d"), (hours, "h"), (0 if days else minutes % 60, "min")]
    return " ".join(f"{amount} {unit}" for amount, unit in parts if amount)


def size(value: float | Decimal | None) -> str:
    """Return a number of bytes: ``12 kB``, ``3.4 MB``."""
    if value is None:
        return NOTHING
    amount = float(value)
    for unit in _SIZES:
        if amount < 1024:
            return f"{amount:.{1 if amount < 10 and unit != 'B' else 0}f} {unit}"
        amount /= 1024
    return f"{amount:.1f} TB"


def when(value: datetime | None) -> str:
    """Return a time in UTC with its date."""
    return NOTHING if value is None else f"{value.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def clock(value: datetime | float | None) -> str:
    """Return the hour and the minute of a time, in UTC."""
    if value is None:
        return NOTHING
    return f"{value.astimezone(UTC) if isinstance(value, datetime) else datetime.fromtimestamp(value, UTC):%H:%M}"


def age(value: datetime | None) -> str:
    """Return how long ago a time was."""
    if value is None:
        return NOTHING
    return seconds(max(0.0, round((datetime.now(UTC) - value) / timedelta(seconds=1))))


def until(value: datetime | None) -> str:
    """Return in how much time a time is: ``in 12 s``, or ``now`` if it has passed."""
    left = 0.0 if value is None else round((value - datetime.now(UTC)) / timedelta(seconds=1))
    return f"in {seconds(left)}" if left > 0 else "now"


def shown(value: Any, longest: int = LONGEST) -> str:
    """Return a value as one line of text, with control characters escaped, or ``null`` for None.

    A text of more than ``longest`` characters is cut, and its length is appended.
    """
    if value is None:
        return "null"
    text = str(value)
    return printable(text[:longest]) + (f"… ({len(text):,} characters)" if len(text) > longest else "")


def key(value: Mapping[str, Any], longest: int = LONGEST) -> str:
    """Return a key as text: the value of its only column, or the values of its columns in parentheses."""
    parts = [shown(part, longest) for part in value.values()]
    return parts[0] if len(parts) == 1 else f"({', '.join(parts)})"


FILTERS: dict[str, Callable[..., str]] = {
    "number": number,
    "counted": counted,
    "seconds": seconds,
    "size": size,
    "when": when,
    "clock": clock,
    "age": age,
    "until": until,
    "shown": shown,
    "key": key,
}
