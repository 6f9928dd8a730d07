"""Entries of export queues, and what an exporter is.

An *entry* says how the value of a key changed, with a sequence number that grows per key in commit order. Entries are
delivered at least once: a process may die after the delivery and before the note of it, and then *at least* the same
entries come again, possibly more. A key's entries come together and ascending, so whoever keeps the highest sequence of
each key and ignores lower ones is told everything effectively once.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

TIMEOUT_SECONDS = 30.0  # that a destination may take for a batch; less than PROBE_SECONDS


class Interrupted(Exception):
    """A delivery was given up since the program ends; it says nothing about the destination."""


class Entry(NamedTuple):
    """A change of a key's value: ``old`` and ``new`` as in :class:`~pgcombine.Change`.

    ``seq`` is its sequence number; ``json`` the entry as a JSON object: key columns, ``old_…``, ``new_…``, ``seq``.
    """

    key: Any
    old: Any
    new: Any
    seq: int
    json: str


class Exporter(Protocol):
    """Delivers batches to a destination; used by one thread at a time.

    ``deliver`` takes the entries as a whole or raises: DestinationDown where the same may work later,
    DestinationRejected where it is for their data. ``close`` lets go of connections; the exporter may be used again
    afterwards.
    """

    def deliver(self, entries: Sequence[Entry]) -> None:
        """Deliver the entries; they are ordered by key and sequence."""
        ...

    def close(self) -> None:
        """Let go of what is open."""
        ...


@runtime_checkable
class RawExporter(Exporter, Protocol):
    """An exporter that takes a batch as it comes out of PostgreSQL, which spares reading it in Python."""

    def load(self, chunks: Iterable[bytes], ready: Callable[[], object]) -> None:
        """Deliver rows in COPY's text format (key columns, new_…, seq; in no order, not compacted).

        ``ready`` is called when all are read and before any of them takes effect.
        """
        ...


@runtime_checkable
class OwnedExporter(Exporter, Protocol):
    """An exporter whose destination obeys one of several servers that have the export: the last that came to own it.

    Where it obeys another one, ``deliver`` and ``load`` raise Fenced.
    """

    def owned(self, owner: str, epoch: int, drawn: int | None) -> None:
        """Deliver from now on for this server, which owns the export since this epoch.

        It has drawn no sequence number beyond ``drawn``, if that is known.
        """
        ...

    def sweep(self, epoch: int) -> None:
        """Delete what was delivered before this epoch; its full state is delivered."""
        ...
