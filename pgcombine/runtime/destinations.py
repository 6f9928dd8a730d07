"""Destinations: where exports and hinted handoff deliver to, whether they may be tried, and what they refuse.

A *destination* has a kind (``export`` or ``server``), a name and a state that all processes share, in the database:
``up``, ``suspect`` after a failure, ``down`` after several in a row, ``paused`` by somebody. Before delivering, ask
:meth:`Destination.attempt` for a ticket; afterwards report :meth:`~Destination.delivered` or
:meth:`~Destination.failed` with it. While the destination is up this writes nothing. After a failure it is left alone
for a while that doubles each time; then one deliverer tries again while the others wait.

Two kinds of failure are told apart by what a delivery raises:

* :class:`~pgcombine.errors.DestinationDown`: the destination's *health* (not reachable, times out, has no such table).
  Nothing is wrong with what was delivered: it stays and is delivered again.
* :class:`~pgcombine.errors.DestinationRejected`: the *data*. The same would be refused again, and would hold up
  everything behind it: :func:`bisect` delivers the rest and finds the entries at fault, which go into quarantine.

What is refused for its data never makes a destination down, however much it is: what comes behind goes on. Whoever
delivers must bear that the same comes again: a process may die between the delivery and the note of it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, Literal, TypeVar

from pgcombine.database.connect import Connection
from pgcombine.errors import DestinationDown, DestinationRejected, translated

log = logging.getLogger("pgcombine.destination")

Kind = Literal["export", "server"]
PROBE_SECONDS = 60.0

E = TypeVar("E")


class Destination:
    """A destination by kind and name, on a connection in autocommit: each call is a transaction of its own.

    All methods raise DestinationNotFound if it isn't known (``pgcombine.add_destination``).
    """

    def __init__(self, connection: Connection, kind: Kind, name: str) -> None:
        self.kind = kind
        self.name = name
        self._connection = connection
        self._state: str | None = None  # as last reported from here

    def attempt(self, *, probe: float = PROBE_SECONDS) -> int | None:
        """A ticket if the destination may be tried now, else None.

        Where it was failing, the caller has it for itself for ``probe`` seconds, or until it reports.
        """
        ticket: int | None = self._call(
            "select pgcombine.try_destination(%s, %s, %s * interval '1 second')", self.kind, self.name, probe
        )
        return ticket

    def delivered(self, ticket: int | None = None) -> str:
        """Report that an attempt succeeded; the state that follows."""
        return self._changed("select pgcombine.destination_delivered(%s, %s, %s)", self.kind, self.name, ticket)

    def failed(self, reason: object, ticket: int | None = None) -> str:
        """Report that an attempt failed for the destination's health; the state that follows."""
        return self._changed(
            "select pgcombine.destination_failed(%s, %s, %s, %s)", self.kind, self.name, str(reason), ticket
        )

    def retry_in(self) -> float:
        """Seconds until it may be tried again, as far as that is known: infinite for one that is paused."""
        seconds = self._call(
            "select case state when 'paused' then 'inf' else greatest(0, coalesce(extract(epoch from retry_at "
            "- clock_timestamp()), 0))::float end from pgcombine.require_destination(%s, %s)",
            *(self.kind, self.name),
        )
        return float(seconds)

    def pause(self, reason: str | None = None) -> None:
        """Deliver nothing until :meth:`resume`; what waits for the destination is kept."""
        self._call("select pgcombine.pause_destination(%s, %s, %s)", self.kind, self.name, reason)

    def resume(self) -> None:
        """Deliver again, at once."""
        self._call("select pgcombine.resume_destination(%s, %s)", self.kind, self.name)

    def _changed(self, statement: str, *parameters: Any) -> str:
        state = str(self._call(statement, *parameters))
        if state != self._state:
            if state in ("suspect", "down"):
                log.warning("destination.%s kind=%s name=%s reason=%s", state, self.kind, self.name, parameters[2])
            elif self._state is not None:
                log.info("destination.%s kind=%s name=%s", state, self.kind, self.name)
            self._state = state
        return state

    def _call(self, statement: str, *parameters: Any) -> Any:
        with translated():
            row = self._connection.execute(statement, parameters).fetchone()
        assert row is not None
        return row[0]


@dataclass
class Outcome(Generic[E]):
    """What became of a batch: what was delivered, what was refused and why, and what ended it early."""

    delivered: list[E] = field(default_factory=list)
    rejected: list[tuple[E, DestinationRejected]] = field(default_factory=list)
    down: DestinationDown | None = None
    attempts: int = 0


def bisect(batch: Sequence[E], deliver: Callable[[Sequence[E]], object]) -> Outcome[E]:
    """Deliver the batch, without the entries in it that the destination refuses for their data.

    ``deliver`` takes a part of the batch as a whole, or raises: DestinationRejected has the part halved, down to
    single entries (about 2·log2(n) attempts for one at fault among n); DestinationDown ends it. Parts come in the order
    of the batch. Neither error is raised, both are in the :class:`Outcome`; any other exception is.
    """
    outcome: Outcome[E] = Outcome()
    parts = [batch] if batch else []
    while parts:
        part = parts.pop()
        outcome.attempts += 1
        try:
            deliver(part)
        except DestinationDown as error:
            outcome.down = error
            break
        except DestinationRejected as error:
            if len(part) > 1:
                middle = len(part) // 2
                parts += [part[middle:], part[:middle]]
            else:
                outcome.rejected.append((part[0], error))
        else:
            outcome.delivered.extend(part)
    return outcome
