"""Entries of export queues, and the interface of an exporter.

An *entry* is a change of a key's value, or delivers a value that the key has already. The sequence numbers of a key's
entries grow in the order in which the entries commit. Entries are delivered at least once: if a process dies between a
delivery and its commit, the same entries are delivered again, possibly together with others. A call of
``Exporter.deliver`` gets a key's entries in ascending order. A receiver that stores the highest sequence number of each
key, and ignores entries up to that number, applies no entry twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple, Protocol, runtime_checkable

# the default time limit of one batch in seconds, for the exporters postgres and webhook; less than PROBE_SECONDS, since
# after that time another worker may try a destination that was failing
TIMEOUT_SECONDS = 30.0


class Interrupted(Exception):
    """A delivery was given up because the worker must stop. The destination has not failed."""


class Entry(NamedTuple):
    """A change of a key's value. ``old`` and ``new`` are as in :class:`~pgcombine.Change`, but have no columns' names.

    ``old`` is also None if the entry delivers a value that the key has already: at the start of an export with
    ``existing``, for a new owner, and after a resync.

    ``seq`` is the sequence number. ``json`` is the entry as a JSON object: key columns, ``old_…``, ``new_…``, ``seq``,
    and for CloudEvents ``pgcombine_at``.
    """

    key: Any
    old: Any
    new: Any
    seq: int
    json: str


class Exporter(Protocol):
    """Delivers batches to a destination. One thread at a time uses it.

    ``ExportWorker(exporter=…)`` takes a class with these methods, and makes an instance for each of its loops. It makes
    and closes another instance at the start, and makes new ones after a lost connection. An installed package names its
    class by an entry point of the group ``pgcombine.exporters``. The worker finds the class by this name:
    ``ExportWorker(exporter="name")``.

    ``deliver`` delivers all the entries or raises: DestinationDownError if the same delivery may work later,
    DeliveryRejectedError if the destination refuses an entry's data. OSError and psycopg.OperationalError count as the
    former, and other exceptions as the latter. ``close`` closes connections.
    """

    def __init__(self, target: str | None, export: str) -> None:
        """Prepare to deliver entries of ``export``.

        ``target`` is the worker's target, or the export's if the worker has none. It is None if neither has one.
        """

    def deliver(self, entries: Sequence[Entry]) -> None:
        """Deliver the entries, which are ordered by key and sequence number."""
        ...

    def close(self) -> None:
        """Close all connections."""
        ...


@runtime_checkable
class RawExporter(Exporter, Protocol):
    """An exporter that takes a batch in COPY's text format, so that Python doesn't have to parse the rows."""

    def load(self, chunks: Iterable[bytes], ready: Callable[[], object]) -> None:
        """Deliver rows in COPY's text format. The columns are the key columns, ``new_…`` and ``seq``.

        The rows have no particular order. A key may have several rows.

        The exporter calls ``ready`` when it has read all rows, and before any of them takes effect.
        """
        ...


@runtime_checkable
class OwnedExporter(Exporter, Protocol):
    """An exporter for an export that several servers may have.

    The destination accepts only deliveries of its latest owner, the one with the highest epoch. If that is another
    server, ``deliver``, ``sweep`` and the ``load`` of a RawExporter raise FencedError.
    """

    def owned(self, owner: str, epoch: int, drawn: int | None) -> None:
        """Deliver from now on for the server ``owner``, which has owned the export since ``epoch``.

        ``owner`` is empty if no owner was chosen. ``drawn`` is an upper bound of the sequence numbers that this server
        has drawn for the export, or None if the role may not read it.
        """
        ...

    def sweep(self, epoch: int) -> None:
        """Delete the keys that were last delivered before ``epoch``, or mark them as deleted.

        The owner has delivered all its values since then.
        """
        ...
