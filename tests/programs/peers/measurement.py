"""A turn's result, and the order of turns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field

import psutil
import psycopg

from pgcombine.errors import PgCombineError

from .contender import Contender


@dataclass
class Measurement:
    """The result of a turn. ``wrong`` describes wrong totals, ``error`` the reason for missing values."""

    figure: str
    contender: str
    round: int
    values: dict[str, float] = field(default_factory=dict)
    failed: int = 0  # transactions that pgbench counts as failed
    deadlocks: int = 0  # deadlocks that the server counts in the turn's database
    wrong: str | None = None
    error: str | None = None
    note: str = ""  # a remark about the turn
    checkpoint: bool = False  # whether a checkpoint came in a block of ``Turn.used``

    def as_dict(self) -> dict[str, object]:
        return asdict(self)


@contextmanager
def kept(found: Measurement) -> Iterator[None]:
    """Catch an error of one of the types below, store it in the measurement, and drop the measurement's values."""
    try:
        yield
    except (PgCombineError, psycopg.Error, psutil.Error, OSError, ArithmeticError) as error:
        found.values = {}
        found.error = f"{type(error).__name__}: {(str(error).strip().splitlines() or [''])[0]}"


def rotated(contenders: Sequence[Contender], number: int) -> list[Contender]:
    """Return the contenders in the order of round ``number``. Each round begins with the next contender."""
    first = number % max(1, len(contenders))
    return [*contenders[first:], *contenders[:first]]
