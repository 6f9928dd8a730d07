"""Export to a function in Python: ``fn(entries)`` gets a list of :class:`~pgcombine.export.entries.Entry`.

It delivers all of them or raises. DestinationDown, and what usually means that something can't be reached (OSError, so
timeouts and refused connections; psycopg's OperationalError), have the same tried again later; DestinationRejected and
any other exception mean that an entry can't be delivered for its data: it is looked for and quarantined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import psycopg

from pgcombine.errors import DestinationDown, DestinationError, DestinationRejected
from pgcombine.export.entries import Entry


class FunctionExporter:
    """Calls a function with each batch."""

    def __init__(self, function: Callable[[list[Entry]], object]) -> None:
        self._function = function

    def deliver(self, entries: Sequence[Entry]) -> None:
        """Call it."""
        try:
            self._function(list(entries))
        except DestinationError:
            raise
        except (OSError, psycopg.OperationalError) as error:
            raise DestinationDown(f"{type(error).__name__}: {error}") from error
        except Exception as error:
            raise DestinationRejected(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Nothing is open."""
