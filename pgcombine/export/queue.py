"""``ExportQueue``: an export as Python sees it, in the caller's transaction on the caller's connection.

Connections are as for :class:`~pgcombine.CombineQueue`. On an asynchronous connection a method returns an awaitable.
All methods but ``create`` raise ExportNotFoundError if the export doesn't exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from pgcombine.database.caller import Statement, Steps, run
from pgcombine.database.sqlfiles import query
from pgcombine.errors import ExportNotFoundError


@dataclass(eq=False, repr=False)
class ExportQueue:
    """An export by name: the changes of ``queue``, delivered by an exporter to a target.

    ``exporter`` is ``postgres``, ``files`` or ``webhook``, or ``python`` for a function that the worker has. ``target``
    is a connection string without a password, a directory, or a URL. ``target_table`` is the table of ``postgres``.
    With ``existing`` the values that exist now are exported, too. With ``compact`` all waiting entries of a key are
    delivered as one. ``batch`` is the largest number of entries in a delivery. ``buckets`` bounds the workers. All but
    the name are needed for :meth:`create` only.
    """

    name: str
    _: KW_ONLY
    queue: str = ""
    exporter: str = "python"
    target: str | None = None
    target_table: str | None = None
    existing: bool = False
    compact: bool = True
    batch: int = 10_000
    buckets: int = 4

    def __repr__(self) -> str:
        return f"ExportQueue({self.name!r})"

    def create(self, connection: Any) -> Any:
        """Create the export.

        Raises QueueNotFoundError, QueueExistsError if the name is taken, and InvalidDefinitionError.
        """
        return self._run(
            connection,
            "select pgcombine.create_export(%s, queue => %s, exporter => %s, target => %s, target_table => %s, "
            "existing => %s, compact => %s, batch => %s, buckets => %s)",
            *(self.name, self.queue, self.exporter, self.target, self.target_table),
            *(self.existing, self.compact, self.batch, self.buckets),
        )

    def drop(self, connection: Any, *, force: bool = False) -> Any:
        """Drop the export. Without ``force``, raises QueueNotEmptyError while entries wait or are quarantined."""
        return self._run(connection, "select pgcombine.drop_export(%s, force => %s)", self.name, force)

    def pause(self, connection: Any, reason: str | None = None) -> Any:
        """Deliver nothing until :meth:`resume`. Entries are kept."""
        return self._run(connection, "select pgcombine.pause_export(%s, %s)", self.name, reason)

    def resume(self, connection: Any) -> Any:
        """Let deliveries go on at once, also if the destination was down."""
        return self._run(connection, "select pgcombine.resume_export(%s)", self.name)

    def backlog(self, connection: Any) -> Any:
        """Return the number of waiting entries."""
        return self._value(connection, "select entries from pgcombine_internal.export_backlog(%s)", self.name)

    def quarantined(self, connection: Any) -> Any:
        """Return the refused entries: dicts of ``export``, ``seq``, ``entry``, ``error``, ``since``."""
        return run(connection, _dicts("export_quarantine", _QUARANTINED, self.name))

    def retry(self, connection: Any, seq: int | None = None) -> Any:
        """Make a quarantined entry wait again, or all for None. Returns their number. Raises NotQuarantinedError."""
        return self._value(connection, "select pgcombine_internal.export_release(%s, %s, true)", self.name, seq)

    def discard(self, connection: Any, seq: int | None = None) -> Any:
        """Delete a quarantined entry, or all for None. Returns their number. Raises NotQuarantinedError."""
        return self._value(connection, "select pgcombine_internal.export_release(%s, %s, false)", self.name, seq)

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


def exports(connection: Any, name: str | None = None, *, exact: bool = True) -> list[dict[str, Any]]:
    """Return the exports, or the one named ``name``, as rows of the view ``pgcombine.export_status``.

    Unless ``exact``, ``pending`` is an estimate, and nothing is counted. Raises ExportNotFoundError if there is no
    export of that name.
    """
    found: list[dict[str, Any]] = run(connection, _dicts("exports" if exact else "exports_about", _STATUS, name))
    if name is not None and not found:
        raise ExportNotFoundError(f'there is no export "{name}" (pgcombine export ls lists them)')
    return found


def quarantined(connection: Any, name: str | None = None) -> list[dict[str, Any]]:
    """Return the entries that destinations refuse, of one export or of all, longest held first."""
    found: list[dict[str, Any]] = run(connection, _dicts("export_quarantine", _QUARANTINED, name))
    return found
