"""``ExportQueue``: an export as Python sees it, in the caller's transaction on the caller's connection.

Connections as for :class:`~pgcombine.CombineQueue`; on asynchronous ones, await the call. All methods but
``create`` raise ExportNotFound where there is no such export.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pgcombine.database.caller import Statement, Steps, run
from pgcombine.database.sqlfiles import query
from pgcombine.errors import ExportNotFound


class ExportQueue:
    """An export by name: the changes of ``queue``, delivered by an exporter to a target.

    ``exporter`` is ``postgres``, ``files``, ``webhook``, or ``python`` for one that the worker is given; ``target`` a
    connection string without a password, a directory, or a URL; ``target_table`` the table of ``postgres``.
    ``existing`` exports the values that are there, too; ``compact`` delivers what waits of a key as one entry;
    ``batch`` bounds the entries that are delivered at once, ``buckets`` the workers. They are needed for :meth:`create`
    only.
    """

    def __init__(
        self,
        name: str,
        *,
        queue: str = "",
        exporter: str = "python",
        target: str | None = None,
        target_table: str | None = None,
        existing: bool = False,
        compact: bool = True,
        batch: int = 10_000,
        buckets: int = 4,
    ) -> None:
        self.name = name
        self.queue = queue
        self.exporter = exporter
        self.target = target
        self.target_table = target_table
        self.existing = existing
        self.compact = compact
        self.batch = batch
        self.buckets = buckets

    def __repr__(self) -> str:
        return f"ExportQueue({self.name!r})"

    def create(self, connection: Any) -> Any:
        """Make the export. Raises QueueNotFound, QueueExists for a name that is taken, InvalidDefinition."""
        return self._run(
            connection,
            "select pgcombine.create_export(%s, queue => %s, exporter => %s, target => %s, target_table => %s, "
            "existing => %s, compact => %s, batch => %s, buckets => %s)",
            *(self.name, self.queue, self.exporter, self.target, self.target_table),
            *(self.existing, self.compact, self.batch, self.buckets),
        )

    def drop(self, connection: Any, *, force: bool = False) -> Any:
        """End the export. Raises QueueNotEmpty while entries wait or are quarantined, unless ``force``."""
        return self._run(connection, "select pgcombine.drop_export(%s, force => %s)", self.name, force)

    def pause(self, connection: Any, reason: str | None = None) -> Any:
        """Deliver nothing until :meth:`resume`; entries are kept."""
        return self._run(connection, "select pgcombine.pause_export(%s, %s)", self.name, reason)

    def resume(self, connection: Any) -> Any:
        """Deliver again, at once, also where the destination was down."""
        return self._run(connection, "select pgcombine.resume_export(%s)", self.name)

    def backlog(self, connection: Any) -> Any:
        """How many entries wait."""
        return self._value(connection, "select entries from pgcombine.export_backlog(%s)", self.name)

    def quarantined(self, connection: Any) -> Any:
        """Entries that the destination refuses: dicts with ``export``, ``seq``, ``entry``, ``error``, ``since``."""
        return run(connection, _dicts("export_quarantine", _QUARANTINED, self.name))

    def retry(self, connection: Any, seq: int | None = None) -> Any:
        """Deliver a quarantined entry (all: None) once more; how many. Raises NotQuarantined."""
        return self._value(connection, "select pgcombine.export_release(%s, %s, true)", self.name, seq)

    def discard(self, connection: Any, seq: int | None = None) -> Any:
        """Forget a quarantined entry (all: None); how many. Raises NotQuarantined."""
        return self._value(connection, "select pgcombine.export_release(%s, %s, false)", self.name, seq)

    def _run(self, connection: Any, statement: str, *parameters: Any) -> Any:
        def steps() -> Steps[None]:
            yield Statement(statement, parameters)

        return run(connection, steps(), queue=self.queue or None)

    def _value(self, connection: Any, statement: str, *parameters: Any) -> Any:
        def steps() -> Steps[int]:
            ((found,),) = yield Statement(statement, parameters)
            return int(found)

        return run(connection, steps(), queue=self.queue or None)


_STATUS = (
    *("export", "queue", "exporter", "target", "state", "reason", "retry_at"),
    *("pending", "lag_seconds", "delivered", "delivered_at", "quarantined", "owner", "epoch"),
)
_QUARANTINED = ("export", "seq", "entry", "error", "since")


def _dicts(name: str, columns: Sequence[str], parameter: str | None) -> Steps[list[dict[str, Any]]]:
    found = yield Statement(query(name), (parameter,))
    return [dict(zip(columns, row, strict=True)) for row in found]


def exports(connection: Any, name: str | None = None) -> list[dict[str, Any]]:
    """The exports, or the one of that name, as the view ``pgcombine.export_status`` tells them.

    Raises ExportNotFound for a name that isn't there.
    """
    found: list[dict[str, Any]] = run(connection, _dicts("exports", _STATUS, name))
    if name is not None and not found:
        raise ExportNotFound(f'there is no export "{name}" (pgcombine export ls lists them)')
    return found


def quarantined(connection: Any, name: str | None = None) -> list[dict[str, Any]]:
    """Entries that destinations refuse, of one export or of all, the longest held first."""
    found: list[dict[str, Any]] = run(connection, _dicts("export_quarantine", _QUARANTINED, name))
    return found
