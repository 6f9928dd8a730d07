"""pgcombine: contended counters and aggregates on PostgreSQL without collisions.

Transactions append updates to a :class:`CombineQueue`. A :class:`Worker`, or :func:`drain`, combines them into new
values. ``pgcombine.operations`` has operations for Alembic migrations, ``pgcombine.testing`` has fixtures for pytest.
Names are imported at their first use, so that ``import pgcombine`` is fast.
"""

# ruff: noqa: F405 (a type checker sees the exceptions through the star)

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pgcombine.errors import *  # noqa: F403
    from pgcombine.export.entries import Entry
    from pgcombine.export.queue import ExportQueue
    from pgcombine.export.worker import ExportWorker
    from pgcombine.handoff.reading import Reading
    from pgcombine.handoff.replayer import Replayer
    from pgcombine.handoff.replicated import Receipt, ReplicatedQueue
    from pgcombine.queue.callbacks import Change, ChangeStream
    from pgcombine.queue.combine_queue import CombineQueue
    from pgcombine.worker.drain import drain
    from pgcombine.worker.totals import Pass, Totals
    from pgcombine.worker.worker import Worker

    __version__: str

__all__ = [
    "AppNeeded",
    "BacklogFull",
    "BeingRebuilt",
    "Change",
    "ChangeStream",
    "CombineQueue",
    "ConfigError",
    "ConnectError",
    "DestinationDown",
    "DestinationError",
    "DestinationNotFound",
    "DestinationRejected",
    "Entry",
    "ExportError",
    "ExportNotFound",
    "ExportQueue",
    "ExportWorker",
    "Fenced",
    "HandoffError",
    "HintsFull",
    "Indeterminate",
    "InvalidDefinition",
    "InvalidUpdate",
    "LoadError",
    "NotAdopted",
    "NotGranted",
    "NotQuarantined",
    "Pass",
    "PassError",
    "PgCombineError",
    "QueueError",
    "QueueExists",
    "QueueMismatch",
    "QueueNotEmpty",
    "QueueNotFound",
    "Reading",
    "Receipt",
    "Replayer",
    "ReplicaError",
    "ReplicatedQueue",
    "SchemaError",
    "SchemaMismatch",
    "SchemaMissing",
    "ServerNotReady",
    "TokenConflict",
    "TokenExpired",
    "TooManyLocks",
    "Totals",
    "Unavailable",
    "WaitTimeout",
    "Worker",
    "WrongServer",
    "__version__",
    "drain",
]

_HOMES = {
    "Change": "queue.callbacks",
    "ChangeStream": "queue.callbacks",
    "CombineQueue": "queue.combine_queue",
    "Entry": "export.entries",
    "ExportQueue": "export.queue",
    "ExportWorker": "export.worker",
    "Pass": "worker.totals",
    "Reading": "handoff.reading",
    "Receipt": "handoff.replicated",
    "Replayer": "handoff.replayer",
    "ReplicatedQueue": "handoff.replicated",
    "Totals": "worker.totals",
    "Worker": "worker.worker",
    "drain": "worker.drain",
}


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        value: Any = version("pgcombine")
    elif name in __all__:
        value = getattr(import_module(f"pgcombine.{_HOMES.get(name, 'errors')}"), name)
    else:
        raise AttributeError(f"module 'pgcombine' has no attribute {name!r}")
    globals()[name] = value  # the next look-up finds the name without this function
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
