"""Failing buckets: back-off, the search for the keys at fault, their quarantine.

A failed pass rolls back; :func:`failed` records it for all workers, which then leave the bucket alone for a growing
while. When it is time, :func:`isolate` combines the keys that don't fail and quarantines those that do. The function
``pgcombine.isolate`` does that. Where a queue has functions in Python, the bucket is tried in slices of its keys, each
in a transaction of its own: slices that pass are committed, those that fail are halved, in random order, down to
single keys. These are quarantined, provided that others pass: if everything fails, the cause is common (an observer's
table is gone), and the bucket only waits. Killed at any moment, nothing is lost: the next attempt starts anew with what
is left.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from psycopg import sql
from psycopg.types.json import Jsonb

from pgcombine.database import Connection, dicts
from pgcombine.errors import AppNeeded, PassError, translated
from pgcombine.functions import Functions
from pgcombine.model import Isolation, Pass
from pgcombine.passes import run_isolation, run_pass

log = logging.getLogger("pgcombine.worker")

_TRIES = 1000  # in one search: then the other buckets have their turn
_HOPELESS = 200  # tries of which none passed
_ONE_KEY = -1  # a mask of all bits


def failed(connection: Connection, error: PassError) -> tuple[int, bool]:
    """Record a failed pass; how many there were in a row, and whether it is time to :func:`isolate`.

    Raises QueueNotFound if the queue was dropped meanwhile.
    """
    with translated(queue=error.queue):
        row = connection.execute(
            "select attempts, isolate from pgcombine.fail_pass(%s, %s, %s, %s)",
            (error.queue, error.bucket, error.sqlstate, error.reason),
        ).fetchone()
    assert row is not None
    log.error(
        "pass.failed queue=%s bucket=%s attempts=%d sqlstate=%s error=%s",
        *(error.queue, error.bucket, row[0], error.sqlstate, error.reason),
    )
    return int(row[0]), bool(row[1])


def isolate(
    connection: Connection,
    queue: str,
    bucket: int,
    attempts: int,
    *,
    functions: Functions | None = None,
    on_pass: Callable[[Pass], None] = lambda done: None,
    stopped: Callable[[], bool] = lambda: False,
) -> bool:
    """Combine what doesn't fail and quarantine the keys that fail; whether that made progress.

    ``connection`` as :func:`~pgcombine.passes.run_pass` wants it, which also tells what is raised, but for PassError.
    """
    if functions:
        found = _Search(connection, queue, bucket, attempts, functions, on_pass).run(stopped)
    else:
        isolated = run_isolation(connection, queue, bucket, attempts)
        if isolated is None:
            return False
        found = isolated
        if found.taken.updates:
            on_pass(found.taken)
    log.warning(
        "bucket.isolated queue=%s bucket=%d tries=%d changes=%d quarantined=%d settled=%s",
        *(queue, bucket, found.tries, found.taken.changes, found.quarantined, found.settled),
    )
    return found.settled or found.taken.updates > 0 or found.quarantined > 0


@dataclass
class _Search:
    connection: Connection
    queue: str
    bucket: int
    attempts: int
    functions: Functions | None
    on_pass: Callable[[Pass], None]
    tries: int = 0
    updates: int = 0  # of slices that passed
    keys: int = 0
    changes: int = 0  # the proof that not everything fails
    quarantined: int = 0
    suspects: list[tuple[int, PassError]] = field(default_factory=list)  # hashes of keys that fail on their own

    def run(self, stopped: Callable[[], bool]) -> Isolation:
        settled = self._search(stopped)
        if settled or self.updates or self.quarantined:
            self.connection.execute("select pgcombine.forget_failure(%s, %s, %s)", (self.queue, self.bucket, settled))
        taken = Pass(self.queue, self.bucket, self.updates, self.keys, self.changes, not settled)
        return Isolation(taken, self.tries, self.quarantined, settled)

    def _search(self, stopped: Callable[[], bool]) -> bool:
        """Whether nothing is left that fails."""
        slices = self._slices()
        while slices:
            if stopped() or self.tries >= _TRIES or (self.tries >= _HOPELESS and not self.changes):
                return False
            mask, part = slices.pop()
            self.tries += 1
            try:
                done = run_pass(self.connection, self.queue, self.bucket, self.functions, (mask, part))
            except AppNeeded:
                raise
            except PassError as error:
                if mask == _ONE_KEY:
                    self.suspects.append((part, error))
                else:
                    slices.extend(self._parts(mask, part))
            else:
                if done is None:
                    return False  # another worker has the bucket, or the queue is paused
                self.updates += done.updates
                self.keys += done.keys
                self.changes += done.changes
                if done.updates:
                    self.on_pass(done)
            if self.changes:
                self._quarantine(proven=True)
        if len(self.suspects) == 1 and not self.changes:
            self._quarantine(proven=False)
        return not self.suspects

    def _slices(self) -> list[tuple[int, int]]:
        """The whole bucket, in slices that a pass may take at once."""
        row = self.connection.execute(
            "select s.updates / q.pass_limit from pgcombine.queue q, pgcombine.slice_keys(q.queue, %s, 0, 0) s "
            "where q.queue = %s",
            (self.bucket, self.queue),
        ).fetchone()
        count = 1 << int(row[0] if row else 0).bit_length()
        return _shuffled([(count - 1, number) for number in range(count)])

    def _parts(self, mask: int, part: int) -> list[tuple[int, int]]:
        """What to try of a slice that failed: its halves, or its one key."""
        row = self.connection.execute(
            "select keys, hash from pgcombine.slice_keys(%s, %s, %s, %s)", (self.queue, self.bucket, mask, part)
        ).fetchone()
        keys, key_hash = row or (0, None)
        if keys == 0:
            return []  # another worker has passed over it
        if keys == 1:
            return [(_ONE_KEY, int(key_hash))]
        return _shuffled([(2 * mask + 1, part), (2 * mask + 1, part + mask + 1)])

    def _quarantine(self, *, proven: bool) -> None:
        for suspect in list(self.suspects):
            key_hash, error = suspect
            row = self.connection.execute(
                "select pgcombine.quarantine_key(%s, %s, %s, %s, %s, %s, %s)",
                (self.queue, self.bucket, key_hash, self.attempts, error.sqlstate, error.reason, proven),
            ).fetchone()
            updates = row[0] if row else None
            if updates is None:
                continue  # refused: nothing proves that it is this key
            self.suspects.remove(suspect)
            if updates:
                self.quarantined += 1
                log.error(
                    "key.quarantined queue=%s bucket=%d updates=%d error=%s",
                    *(self.queue, self.bucket, updates, error.reason),
                )


def _shuffled(slices: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The slices in random order, so that a search doesn't meet the keys of the one before again."""
    random.shuffle(slices)
    return slices


def ls(connection: Connection, queue: str | None = None) -> list[dict[str, Any]]:
    """The quarantined keys, the longest held first: queue, key, updates, attempts, sqlstate, error, since."""
    return dicts(
        connection,
        "select queue, key, updates, attempts, sqlstate, error, since from pgcombine.quarantine "
        "where queue = coalesce(%s, queue) order by since, queue, key",
        (queue,),
    )


def updates(connection: Connection, queue: str, key: Mapping[str, Any], limit: int) -> list[dict[str, Any]]:
    """The first ``limit`` of the updates that are held of a quarantined key, by column."""
    columns = [
        str(name)
        for (name,) in connection.execute(
            "select name from pgcombine.queue_column where queue = %s order by position", (queue,)
        )
    ]
    cursor = connection.execute(
        sql.SQL(
            "select {} from {} where pgcombine_key in "
            "(select id from pgcombine.quarantine where queue = %s and key = %s) limit %s"
        ).format(
            sql.SQL(", ").join(sql.SQL(sql.Identifier(c).as_string(None).replace("%", "%%")) for c in columns),
            sql.Identifier("pgcombine", f"{queue}_quarantine"),
        ),
        (queue, Jsonb(key), limit),
    )
    return [dict(zip(columns, row, strict=True)) for row in cursor]


def retry(connection: Connection, queue: str, key: Mapping[str, Any] | None = None) -> int:
    """Make the updates of a quarantined key (of all keys: None) pending again; how many.

    ``key`` by column. Raises QueueNotFound, NotQuarantined, InvalidUpdate for what is no key of the queue.
    """
    return _release(connection, "select pgcombine.quarantine_retry(%s, %s)", queue, key)


def drop(connection: Connection, queue: str, key: Mapping[str, Any] | None = None) -> int:
    """Delete the updates of a quarantined key (of all keys: None); how many. Raises as :func:`retry`."""
    return _release(connection, "select pgcombine.quarantine_drop(%s, %s)", queue, key)


def _release(connection: Connection, statement: str, queue: str, key: Mapping[str, Any] | None) -> int:
    with translated(queue=queue):
        row = connection.execute(statement, (queue, None if key is None else Jsonb(key))).fetchone()
    assert row is not None
    return int(row[0])
