"""Export to Python: to a function ``fn(entries)`` that takes a list of entries, or to a class that is an Exporter.

The function, or the exporter's ``deliver``, delivers all entries or raises an exception. After DestinationDownError,
OSError (which includes timeouts and refused connections) or psycopg's OperationalError, the same entries are delivered
again later. Other exceptions, such as DeliveryRejectedError, mean that an entry can't be delivered because of its data.
Then smaller parts of the batch are delivered until this entry is found, and the entry is quarantined.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import TypeAlias

import psycopg

from pgcombine.errors import ConfigError, DeliveryRejectedError, DestinationDownError, DestinationError
from pgcombine.export.entries import Entry, Exporter

GROUP = "pgcombine.exporters"  # the group of the entry points that name exporters

Function: TypeAlias = Callable[[list[Entry]], object]


class CustomExporter:
    """Delivers by calling a function, or the method ``deliver`` of an instance of an exporter class."""

    def __init__(self, exporter: Function | type[Exporter], target: str | None, export: str) -> None:
        self._exporter: Exporter | None = None
        self._deliver: Function
        if isinstance(exporter, type) and hasattr(exporter, "deliver"):
            self._exporter = exporter(target, export)
            self._deliver = self._exporter.deliver
        else:
            self._deliver = exporter

    def deliver(self, entries: Sequence[Entry]) -> None:
        """Deliver all entries."""
        try:
            self._deliver(list(entries))
        except DestinationError:
            raise
        except (OSError, psycopg.OperationalError) as error:
            raise DestinationDownError(f"{type(error).__name__}: {error}") from error
        except Exception as error:
            raise DeliveryRejectedError(f"{type(error).__name__}: {error}") from error

    def close(self) -> None:
        """Close the exporter. A function has nothing to close."""
        if self._exporter is not None:
            self._exporter.close()


def installed(name: str) -> type[Exporter]:
    """Return the exporter class that an installed package calls ``name``. Raises ConfigError if there is none."""
    points = {point.name: point for point in entry_points(group=GROUP)}
    if name not in points:
        known = ", ".join(sorted(points)) or "none"
        raise ConfigError(f'no installed package has an exporter "{name}" (entry points of {GROUP}: {known})')
    found: type[Exporter] = points[name].load()
    return found
