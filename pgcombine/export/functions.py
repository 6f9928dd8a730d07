"""Export to a Python function: ``fn(entries)`` takes a list of :class:`~pgcombine.export.entries.Entry`.

The function delivers all entries or raises. After DestinationDownError, OSError (timeouts and refused connections are
such) or psycopg's OperationalError, the same entries are tried again later. DeliveryRejectedError and any other
exception mean that an entry can't be delivered for its data: the entry is searched for and quarantined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import psycopg

from pgcombine.errors import DeliveryRejectedError, DestinationDownError, DestinationError
from pgcombine.export.entries import Entry


class FunctionExporter:
    """Calls a function with each batch."""

    def __init__(self, function: Callable[[list[Entry]], object]) -> None:
        self._function = function

    def deliver(self, entries: Sequence[Entry]) -> None:
        """Call the function with all entries."""
        try:
            self._function(list(entries))
        except DestinationError:
            raise
        except (OSError, psycopg.OperationalError) as error:
            raise DestinationDownError(f"{type(error).__name__}: {error}") from error
        except Exception as error:
            raise DeliveryRejectedError(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Do nothing: no connection is open."""
