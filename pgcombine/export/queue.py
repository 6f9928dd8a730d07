"""``ExportQueue``: an export as Python sees it, in the caller's transaction on the caller's connection.

Connections are as for :class:`~pgcombine.CombineQueue`. On an asynchronous connection a method returns an awaitable.
All methods but ``create`` and ``quarantined`` raise ExportNotFoundError if the export doesn't exist.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any

from pgcombine.database.caller import in_transaction
from pgcombine.database.sqlfiles import query
from pgcombine.database.steps import Statement, Steps, run
from pgcombine.errors import ExportNotFoundError


@dataclass(eq=False, repr=False)
class ExportQueue:
    """An export by name: the changes of ``queue``, delivered by an exporter to a target.

    ``exporter`` is ``postgres``, ``files``, ``webhook``, or ``python`` for a function or class that the worker gets.
    ``target`` depends on the exporter: a connection string without a password, a directory, or a URL. ``target_table``
    is the table that ``postgres`` fills (None: the table has the export's name). With ``existing`` the values that
    exist now are exported, too. With ``compact`` the entries of a key in a batch are delivered as one. ``batch`` is the
    largest number of entries in a delivery. With ``format="cloudevents"`` the exporter ``webhook`` sends CloudEvents.
    Only :meth:`create` needs arguments other than the name.
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
    format: str | None = None

    def __repr__(self) -> str:
        return f"ExportQueue({self.name!r})"

    @in_transaction(queue="queue")
    def create(self) -> Steps[None]:
        """Create the export.

        Raises QueueNotFoundError, QueueExistsError if the name is taken, and InvalidDefinitionError.
        """
        yield Statement(
            "select pgcombine.create_export(%s, queue => %s, exporter => %s, target => %s, target_table => %s, "
            "existing => %s, compact => %s, batch => %s, format => %s)",
            (
                *(self.name, self.queue, self.exporter, self.target, self.target_table),
                *(self.existing, self.compact, self.batch, self.format),
            ),
        )

    @in_transaction(queue="queue")
    def drop(self, *, force: bool = False) -> Steps[None]:
        """Drop the export, and with ``force`` also its waiting and quarantined entries.

        Without ``force``, raises QueueNotEmptyError while there are such entries, and InvalidDefinitionError unless the
        transaction is read committed.
        """
        yield Statement("select pgcombine.drop_export(%s, force => %s)", (self.name, force))

    @in_transaction(queue="queue")
    def pause(self, reason: str | None = None) -> Steps[None]:
        """Pause the deliveries until :meth:`resume`. Entries are kept. A delivery in progress isn't stopped."""
        yield Statement("select pgcombine.pause_export(%s, %s)", (self.name, reason))

    @in_transaction(queue="queue")
    def resume(self) -> Steps[None]:
        """Let deliveries go on at once, after a pause or after failures of the destination."""
        yield Statement("select pgcombine.resume_export(%s)", (self.name,))

    @in_transaction(queue="queue")
    def backlog(self) -> Steps[int]:
        """Return the number of waiting entries."""
        ((waiting,),) = yield Statement("select entries from pgcombine_internal.export_backlog(%s)", (self.name,))
        return int(waiting)

    @in_transaction(queue="queue")
    def quarantined(self) -> Steps[list[dict[str, Any]]]:
        """Return the quarantined entries: dicts of ``export``, ``seq``, ``entry``, ``error``, ``since``."""
        yield Statement("select from pgcombine_internal.require_export(%s)", (self.name,))  # names the right to grant
        return (yield from _dicts(query("export_quarantine"), _QUARANTINED, self.name))

    @in_transaction(queue="queue")
    def retry_quarantined(self, seq: int | None = None) -> Steps[int]:
        """Make the quarantined entry ``seq`` and those of the same key wait for delivery again (None: all).

        Returns the number of entries. Raises NotQuarantinedError if the entry ``seq`` isn't quarantined.
        """
        return (yield from self._release(seq, again=True))

    @in_transaction(queue="queue")
    def drop_quarantined(self, seq: int | None = None) -> Steps[int]:
        """Delete the quarantined entry ``seq`` (None: all quarantined entries).

        Returns the number of entries. Raises NotQuarantinedError if the entry ``seq`` isn't quarantined.
        """
        return (yield from self._release(seq, again=False))

    def _release(self, seq: int | None, *, again: bool) -> Steps[int]:
        call = "select pgcombine_internal.export_release(%s, %s, %s)"
        ((released,),) = yield Statement(call, (self.name, seq, again))
        return int(released)


_STATUS = (
    *("export", "queue", "exporter", "target", "state", "reason", "retry_at"),
    *("pending", "lag_seconds", "delivered", "delivered_at", "quarantined", "owner", "epoch"),
)
_QUARANTINED = ("export", "seq", "entry", "error", "since")


def _dicts(statement: str, columns: Sequence[str], parameter: str | None) -> Steps[list[dict[str, Any]]]:
    found = yield Statement(statement, (parameter,))
    return [dict(zip(columns, row, strict=True)) for row in found]


def exports(connection: Any, name: str | None = None) -> list[dict[str, Any]]:
    """Return the exports, or the one named ``name``: dicts of columns of the view ``pgcombine.export_stat``.

    The role needs the right monitor. Raises ExportNotFoundError if there is no export of that name.
    """
    found: list[dict[str, Any]] = run(connection, _dicts(query("exports"), _STATUS, name))
    if name is not None and not found:
        raise ExportNotFoundError(f'there is no export "{name}" (pgcombine export ls lists them)')
    return found


def quarantined(connection: Any, name: str | None = None) -> list[dict[str, Any]]:
    """Return the quarantined entries of one export or of all, longest in quarantine first."""
    found: list[dict[str, Any]] = run(connection, _dicts(query("export_quarantine"), _QUARANTINED, name))
    return found
