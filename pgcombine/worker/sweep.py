"""What a worker's threads share: the buckets that a look has found, and their passes.

One thread looks for buckets with pending updates and offers them; the loops take them, one pass each. So a hot bucket
doesn't keep the others waiting, and looks cost the same however many loops there are.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import psycopg

from pgcombine.database.connect import Connection
from pgcombine.errors import AppNeeded, InvalidDefinition, NotGranted, PassError, QueueNotFound
from pgcombine.queue.callbacks import Functions
from pgcombine.runtime.wakeup import Bell
from pgcombine.worker import quarantine
from pgcombine.worker.totals import Pass

log = logging.getLogger("pgcombine.worker")

Bucket = tuple[str, int]  # the queue's name, and the number

# A pass costs about a millisecond before it does anything: passes that take few updates each are worth a rest, after
# which they take more.
_FEW_UPDATES = 50_000
_REFUSED_PAUSE = 60.0  # seconds that a queue is left alone whose functions aren't here
_TROUBLE_PAUSE = 5.0  # seconds that a bucket is left alone whose failure can't be recorded, for want of a right say
_SHORT_PASS = 0.02  # seconds; a pass that takes longer isn't waited for before the next look
_TICK = 1.0  # seconds between two moments by which pending updates are dated


class Sweep:
    """Passes over all buckets with pending updates of the queues ``only`` (none named: all).

    Leaves alone, for a while, queues whose ``functions`` it lacks, and buckets that another worker has claimed: that
    one looks again itself when its pass is done. Buckets whose pass failed aren't due for a while.
    ``count`` is called after each pass that took updates; the ``bell`` is rung then. ``poll`` is in seconds.
    """

    def __init__(
        self,
        only: Sequence[str],
        functions: Mapping[str, Functions],
        count: Callable[[Pass], None],
        bell: Bell,
        *,
        poll: float,
    ) -> None:
        self._only = only
        self._functions = functions
        self._count = count
        self._bell = bell
        self._poll = poll
        self._next_tick = 0.0
        self._changed = threading.Condition()  # of what is below
        self._offered: deque[Bucket] = deque()
        self._under_way: set[Bucket] = set()
        self._waiting = 0  # loops without a bucket
        self._claimed: dict[Bucket, float] = {}  # elsewhere: not before
        self._refused: dict[str, float] = {}  # queue: not before
        self._passes = self._updates = 0  # since the last offer, of passes that took updates

    def look(self, connection: Connection) -> list[Bucket]:
        """Buckets with pending updates that nobody here works on."""
        self._bell.silence()  # what it was rung for is seen now
        found = connection.execute("select queue, bucket from pgcombine.due()").fetchall()
        now = time.monotonic()
        if found and now >= self._next_tick:
            connection.execute("select pgcombine.tick()")  # dates what is pending
            self._next_tick = now + _TICK
        with self._changed:
            return [
                (queue, bucket)
                for queue, bucket in found
                if (not self._only or queue in self._only)
                and (queue, bucket) not in self._under_way
                and self._claimed.get((queue, bucket), 0.0) <= now
                and self._refused.get(queue, 0.0) <= now
            ]

    def offer(self, found: list[Bucket]) -> None:
        """Let loops take these buckets, in random order."""
        random.shuffle(found)
        with self._changed:
            self._offered = deque(found)
            self._passes = self._updates = 0
            self._changed.notify_all()

    def settle(self, stop: threading.Event, check: float) -> None:
        """Return when all buckets were taken and their passes are done, or take long while a loop has nothing to do.

        ``check`` is the longest time, in seconds, until it is seen that ``stop`` is set.
        """
        with self._changed:
            while self._offered and not stop.is_set():
                self._changed.wait(check)
            until = time.monotonic() + _SHORT_PASS
            while self._under_way and not stop.is_set():
                left = until - time.monotonic()
                if left <= 0 and self._waiting:
                    break
                self._changed.wait(left if left > 0 else check)

    def forget_claims(self) -> None:
        """Try buckets again that other workers had claimed."""
        with self._changed:
            self._claimed.clear()

    @property
    def worked(self) -> bool:
        """Whether passes since the last offer took updates."""
        return self._passes > 0

    @property
    def thin(self) -> bool:
        """Whether the passes since the last offer took few updates each."""
        return self._updates < _FEW_UPDATES * self._passes

    def next_pass(self, connection: Connection, stop: threading.Event, *, timeout: float = 0.0) -> bool:
        """A pass over the next of the buckets; False: there was none within ``timeout`` seconds.

        Raises psycopg.OperationalError when the connection is lost, ServerNotReady when the server takes no writes.
        """
        with self._changed:
            if not self._offered:
                self._waiting += 1
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._offered, timeout)
                self._waiting -= 1
            if not self._offered or stop.is_set():
                return False
            bucket = self._offered.popleft()
            self._under_way.add(bucket)
        worked = True  # if it fails, look again
        try:
            worked = self._pass(connection, stop, *bucket)
        finally:
            with self._changed:
                self._under_way.remove(bucket)
                self._changed.notify_all()
            if worked:
                self._bell.ring()
        return True

    def _pass(self, connection: Connection, stop: threading.Event, queue: str, bucket: int) -> bool:
        """Whether updates were taken."""
        try:
            worked = quarantine.attempt(
                *(connection, queue, bucket, self._functions.get(queue)), on_pass=self._took, stopped=stop.is_set
            )
        except (InvalidDefinition, NotGranted, QueueNotFound):
            return False  # dropped, has fewer buckets now, or the right was taken away
        except AppNeeded as error:
            self._refused[queue] = time.monotonic() + _REFUSED_PAUSE
            log.error("queue.refused queue=%s error=%s", queue, error)
            return False
        except PassError:
            return False  # recorded: it isn't due for a while
        except psycopg.DatabaseError as trouble:  # what is wrong with one bucket must not end the worker
            if connection.closed or isinstance(trouble, psycopg.OperationalError):
                raise
            log.error(
                "bucket.trouble queue=%s bucket=%d error=%s",
                *(queue, bucket, (str(trouble).strip().splitlines() or [""])[0]),
            )
            self._leave(queue, bucket, _TROUBLE_PAUSE)
            return False
        if worked is None:
            self._leave(queue, bucket, self._poll)
        return bool(worked)

    def _leave(self, queue: str, bucket: int, seconds: float) -> None:
        with self._changed:
            self._claimed[queue, bucket] = time.monotonic() + seconds

    def _took(self, done: Pass) -> None:
        with self._changed:
            self._passes += 1
            self._updates += done.updates
        self._count(done)
