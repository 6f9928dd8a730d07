"""Destinations of deliveries: when a destination may be tried, and which entries it refuses.

The state of a *destination* is in the database, so all processes share it: ``up``, ``suspect`` after a failure,
``down`` after several in a row, ``paused`` by an operator. Before a delivery, :meth:`Destination.attempt` returns a
ticket. After the delivery, the caller calls :meth:`~Destination.delivered` or :meth:`~Destination.failed` with the
ticket. After a failure, ``attempt`` returns None for a time that doubles with each failure, up to a limit. Then one
process gets a ticket, and the others wait for the outcome. A destination must accept the same entries twice: a process
may die after a delivery, before the delivery is recorded. A delivery that fails raises one of two errors:

* :class:`~pgcombine.errors.DestinationDownError`: the cause is the destination's *health* (it can't be reached, times
  out, or lacks the table). The entries stay and are delivered again.
* :class:`~pgcombine.errors.DeliveryRejectedError`: the cause is the *data*. The destination would refuse the entries
  again, and they would block all entries behind them. :func:`bisect` finds the failing entries and delivers the rest,
  and the caller quarantines the failing ones. This error doesn't change the destination's state.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

from pgcombine.database.connect import Connection, one
from pgcombine.database.sqlfiles import query
from pgcombine.errors import DeliveryRejectedError, DestinationDownError, translated

log = logging.getLogger("pgcombine.destination")

PROBE_SECONDS = 60.0

E = TypeVar("E")


class Destination:
    """A destination, by kind and name. The connection is in autocommit, so each call is a separate transaction.

    All methods raise DestinationNotFoundError if the destination isn't registered
    (``pgcombine_internal.add_destination``). Without the needed right, all but :meth:`retry_in` raise
    NotGrantedError or psycopg's InsufficientPrivilege.
    """

    def __init__(self, connection: Connection, kind: str, name: str) -> None:
        self.kind = kind
        self.name = name
        self._connection = connection
        self._state: str | None = None  # the state after this instance's last report

    def attempt(self, *, probe: float = PROBE_SECONDS) -> int | None:
        """Return a ticket if the destination may be tried now, else None.

        If the destination was failing, nobody else gets a ticket until the caller reports the outcome, or until
        ``probe`` seconds have passed.
        """
        ticket: int | None = self._call(
            "select pgcombine_internal.try_destination(%s, %s, %s * interval '1 second')", self.kind, self.name, probe
        )
        return ticket

    def delivered(self, ticket: int | None = None) -> str:
        """Report that an attempt succeeded. Returns the state that follows.

        If the destination has another ticket than ``ticket`` by now, the report changes nothing. With None the tickets
        aren't compared.
        """
        return self._report(ticket, None)

    def failed(self, reason: object, ticket: int | None = None) -> str:
        """Report that an attempt failed because of the destination's health. Returns the state that follows.

        ``ticket`` is as for :meth:`delivered`. If ``reason`` is an error with ``retry_after``, the destination isn't
        tried earlier.
        """
        return self._report(ticket, str(reason), getattr(reason, "retry_after", None))

    def retry_in(self) -> float:
        """Return the seconds until the destination may be tried again, or infinity if it is paused."""
        return float(self._call(query("destination_retry"), self.kind, self.name))

    def pause(self, reason: str | None = None) -> None:
        """Stop deliveries until :meth:`resume`. The waiting entries stay."""
        self._call("select pgcombine_internal.pause_destination(%s, %s, %s)", self.kind, self.name, reason)

    def resume(self) -> None:
        """Let deliveries go on at once."""
        self._call("select pgcombine_internal.resume_destination(%s, %s)", self.kind, self.name)

    def _report(self, ticket: int | None, failure: str | None, wait: float | None = None) -> str:
        report = "select pgcombine_internal.report_destination(%s, %s, %s, %s, make_interval(secs => %s))"
        state = str(self._call(report, self.kind, self.name, ticket, failure, wait))
        if state != self._state:
            if state in ("suspect", "down"):
                log.warning("destination.%s kind=%s name=%s reason=%s", state, self.kind, self.name, failure)
            elif self._state is not None:
                log.info("destination.%s kind=%s name=%s", state, self.kind, self.name)
            self._state = state
        return state

    def _call(self, statement: str, *parameters: Any) -> Any:
        with translated():
            return one(self._connection, statement, *parameters)[0]


@dataclass
class Outcome(Generic[E]):
    """The result of a batch: entries delivered, entries refused with their errors, and the error that ended delivery.

    ``attempts`` counts the calls that delivered a part of the batch, or tried to.
    """

    delivered: list[E] = field(default_factory=list)
    rejected: list[tuple[E, DeliveryRejectedError]] = field(default_factory=list)
    down: DestinationDownError | None = None
    attempts: int = 0


def bisect(batch: Sequence[E], deliver: Callable[[Sequence[E]], object]) -> Outcome[E]:
    """Deliver the batch, except for the entries that the destination refuses for their data.

    ``deliver`` delivers a whole part of the batch, or raises. After DeliveryRejectedError the part is halved, down to
    single entries. DestinationDownError ends the delivery. Parts are delivered in the order of the batch. The
    :class:`Outcome` has the errors of both classes. Any other exception is raised.
    """
    outcome: Outcome[E] = Outcome()
    parts = [batch] if batch else []
    while parts:
        part = parts.pop()
        outcome.attempts += 1
        try:
            deliver(part)
        except DestinationDownError as error:
            outcome.down = error
            break
        except DeliveryRejectedError as error:
            if len(part) > 1:
                middle = len(part) // 2
                parts += [part[middle:], part[:middle]]
            else:
                outcome.rejected.append((part[0], error))
        else:
            outcome.delivered.extend(part)
    return outcome
