"""A load: Spark writes rows in parallel into a table, the stage. Then one transaction moves the rows into a queue.

The rows become updates, or values of an empty queue. This module calls the SQL functions of loads (``begin_load``,
``end_load`` and others) in tasks, and in the program that runs the Spark job. A load that can't be completed raises
:class:`LoadError`.
"""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

import psycopg
from tenacity import RetryCallState, Retrying, stop_after_delay, wait_exponential, wait_random

from pgcombine.database.connect import Connection, connect, one
from pgcombine.database.steps import Statement, Steps, run
from pgcombine.errors import ConnectError, InvalidUpdateError, PgCombineError, translated
from pgcombine.runtime.spans import span

log = logging.getLogger("pgcombine.spark")

NAME = "pgcombine spark"  # application_name
_TIMEOUT = 120.0  # seconds for which the end of a load waits for an unreachable server
_LEAVE_SECONDS = 3.0  # seconds for which give_up() waits for the load's tasks


@dataclass(frozen=True)
class Outcome:
    """The result of a run. ``updates`` is the number of updates or values that the run added.

    ``applied`` is False if the run was applied before.
    """

    updates: int
    applied: bool


@dataclass(frozen=True)
class Load:
    """One execution of the run ``run_id``, which writes into ``queue``. ``load`` is the id of the execution.

    ``kind`` is ``stage`` for rows that become updates, or ``values`` for rows of an initial load. With ``source`` the
    rows replace what the source contributes, or add to it.
    """

    conninfo: str = field(repr=False)
    queue: str
    run_id: str
    kind: str = "stage"
    load: UUID = field(default_factory=uuid4)
    source: str | None = None
    whole: bool = False

    @property
    def adds(self) -> bool:
        """Whether the rows add to what the source contributes.

        They do in later batches of a stream than the first one, unless each batch is ``whole``.
        """
        batch = re.fullmatch("stream:.+:([0-9]+)", self.run_id)
        return self.source is not None and batch is not None and int(batch[1]) > 0 and not self.whole

    def begin(self, connection: Connection, *, join_only: bool = False) -> str | None:
        """Begin or join the load. Returns the table to write to, or None if the run was applied already.

        Raises LoadError if the load has ended, or the role has too many loads; with ``join_only``, also if the load
        hasn't begun. Raises InvalidDefinitionError for a source if the queue takes no contributions.
        """
        with translated(queue=self.queue):
            if self.source is not None and not join_only:  # else end_load would raise the errors, after all tasks
                connection.execute("select pgcombine_internal.open_contributions(%s)", (self.queue,))
            (table,) = one(
                connection,
                "select pgcombine_internal.begin_load(%s, %s, %s, %s, %s)",
                *(self.load, self.queue, self.run_id, self.kind, join_only),
            )
        return None if table is None else str(table)

    def skipped(self) -> str:
        """Log, and return as a sentence, that the run was applied before."""
        log.info("load.skipped queue=%s run_id=%s reason=applied_before", self.queue, self.run_id)
        return f'run "{self.run_id}" of queue "{self.queue}" was applied before: nothing is written'

    def prepare(self, connection: Connection, attempts: Sequence[str], expected: int) -> None:
        """Store which attempts of tasks succeeded, for the session that ends the load.

        ``attempts`` are their transaction ids, and ``expected`` is the number of rows that they wrote. Raises LoadError
        if the load has ended.
        """
        with translated(queue=self.queue):
            connection.execute(
                "select pgcombine_internal.prepare_load(%s, %s::text[]::xid8[], %s)",
                (self.load, list(attempts), expected),
            )

    def apply(self, connection: Any, *, preaggregate: bool = False) -> Outcome:
        """Do the same as :meth:`end` without ``attempts``, but in the caller's transaction, and don't try again."""
        with span("load", self.queue) as count:
            outcome = self.end_in(connection, None, None, preaggregate=preaggregate)
            count(outcome.updates)
        return outcome

    def end(
        self, attempts: Sequence[str] | None = None, expected: int | None = None, *, preaggregate: bool = False
    ) -> Outcome:
        """Move the rows of the successful attempts into the queue, unless the run was applied before.

        ``attempts`` are the transaction ids of the attempts, and ``expected`` is the number of their rows. None stands
        for what :meth:`prepare` stored. If it stored nothing, the first attempt at each partition counts.

        If the server can't be reached, or the connection is lost, the method tries again for two minutes. Raises
        LoadError if rows were lost or the load was given up, and InvalidUpdateError for rows that the queue refuses.
        """
        with span("load", self.queue) as count:
            for attempt in patiently():
                with attempt, closing(connect(self.conninfo, name=NAME)) as connection, connection.transaction():
                    outcome = self.end_in(connection, attempts, expected, preaggregate=preaggregate)
            count(outcome.updates)
        return outcome

    def end_in(
        self, connection: Any, attempts: Sequence[str] | None, expected: int | None, *, preaggregate: bool
    ) -> Outcome:
        """Do the same as :meth:`end`, but in the transaction of ``connection``, and don't try again."""

        def steps() -> Steps[Outcome]:
            ((updates, applied),) = yield Statement(
                "select updates, applied "
                "from pgcombine_internal.end_load(%s, %s, %s, %s::text[]::xid8[], %s, %s, %s, %s)",
                (
                    *(self.load, self.queue, self.run_id, None if attempts is None else list(attempts), expected),
                    *(preaggregate, self.source, self.adds),
                ),
            )
            return Outcome(updates, applied)

        with refused(self.queue):
            outcome: Outcome = run(connection, steps(), queue=self.queue)
        return outcome

    def give_up(self) -> None:
        """Remove the load and its stage. Rows that were applied stay in the queue. Errors of the database are ignored.

        If the stage is still in use after some seconds, workers remove the load later.
        """
        with (
            suppress(psycopg.Error, PgCombineError),
            closing(connect(self.conninfo, name=NAME)) as connection,
        ):
            connection.execute("select set_config('lock_timeout', '3s', false)")
            deadline = time.monotonic() + _LEAVE_SECONDS
            while one(connection, "select pgcombine_internal.give_up_load(%s)", self.load) != (True,):
                if time.monotonic() > deadline:
                    break
                time.sleep(0.1)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Keep workers from removing the load during the block, even if tasks write no row for a long time."""
        with closing(connect(self.conninfo, name=NAME, autocommit=False)) as connection:
            connection.execute("select pgcombine_internal.hold_load(%s)", (self.load,))
            yield
            with suppress(psycopg.OperationalError):  # for example, the server was restarted meanwhile
                # joining stores that the load is alive, since the lock of hold_load ends with this transaction
                self.begin(connection, join_only=True)
                connection.commit()


@contextmanager
def refused(queue: str, *, context: bool = False) -> Iterator[None]:
    """Raise InvalidUpdateError in place of the driver's errors for a row that doesn't fit the queue.

    With ``context``, the message has the error's context, which tells the line and column of a COPY.
    """
    try:
        yield
    except (psycopg.DataError, psycopg.IntegrityError, psycopg.errors.ProgramLimitExceeded) as error:
        detail = (error.diag.context if context else None) or error.diag.message_detail
        where = f" ({detail})" if detail else ""
        raise InvalidUpdateError(
            f'a row doesn\'t fit queue "{queue}": {error.diag.message_primary or error}{where}',
            queue=queue,
            sqlstate=error.sqlstate,
        ) from error


def patiently() -> Retrying:
    """Return attempts that go on for two minutes while a server can't be reached or the connection is lost."""
    return Retrying(
        retry=_is_away,
        wait=wait_exponential(multiplier=0.1, max=5) + wait_random(0, 0.2),
        stop=stop_after_delay(_TIMEOUT),
        reraise=True,
    )


def _is_away(state: RetryCallState) -> bool:
    error = state.outcome.exception() if state.outcome else None
    return isinstance(error, (ConnectError, psycopg.OperationalError))
