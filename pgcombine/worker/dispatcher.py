"""The state that a worker's threads share: the buckets that are due for a pass, and the passes over them.

One thread, the poller, finds the due buckets and dispatches them. The loops take the buckets and run one pass over
each. So the cost of polling doesn't grow with the number of loops.
"""

from __future__ import annotations

import logging
import random
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Mapping, Sequence

import psycopg

from pgcombine.database.connect import Connection
from pgcombine.errors import (
    InvalidDefinitionError,
    NotGrantedError,
    ObserversMissingError,
    PassError,
    QueueNotFoundError,
    first_line,
)
from pgcombine.queue.callbacks import NO_OBSERVERS, Observers
from pgcombine.runtime.wakeup import Waker
from pgcombine.worker import quarantine
from pgcombine.worker.passes import run_pass
from pgcombine.worker.totals import Pass

log = logging.getLogger("pgcombine.worker")

Bucket = tuple[str, int]  # name of the queue, number of the bucket

_REFUSED_PAUSE = 60.0  # seconds without passes over a queue whose Python observers are missing
_TROUBLE_PAUSE = 5.0  # seconds for which a bucket is deferred at most after an unexpected error of the database
_SHORT_PASS = 0.02  # seconds for which wait() waits for passes in progress although a loop has nothing to do
# due buckets, and queues with a failure (with null as the bucket): passes of others may end it while updates wait
_DUE = """
select queue, bucket from pgcombine_internal.due(%s)
union all
select distinct f.queue, null::integer from pgcombine.failure f
"""
_TICK = 1.0  # least number of seconds between two calls of pgcombine_internal.tick


class Dispatcher:
    """Dispatches the due buckets of the queues ``only`` (empty: of all queues), and runs the passes.

    ``observers`` are the Python observers by queue. If a queue has Python observers that aren't among them, no pass
    over the queue is tried for a minute. If no pass can run over a bucket now, for example because another worker has
    it, the bucket is deferred for ``poll`` seconds. After an unexpected error of the database it is deferred for five
    seconds. :meth:`retry_deferred` ends all deferrals.

    ``count`` is called with the result of each pass, and of each search for failing keys, that took updates. ``failed``
    is called with the error of each pass or search that failed. ``waker`` wakes the poller after a pass if its queue
    may need another pass.
    """

    def __init__(
        self,
        only: Sequence[str],
        observers: Mapping[str, Observers],
        count: Callable[[Pass], None],
        waker: Waker,
        *,
        poll: float,
        failed: Callable[[PassError], None] = lambda _: None,
    ) -> None:
        self._only = only
        self._observers = observers
        self._count = count
        self._waker = waker
        self._poll = poll
        self._failed = failed
        self._next_tick = 0.0
        self._changed = threading.Condition()
        self._dispatched: deque[Bucket] = deque()
        self._in_progress: set[Bucket] = set()
        self._waiting = 0  # number of loops that wait for a bucket
        self._deferred: dict[Bucket, float] = {}  # by bucket: the monotonic time before which the bucket isn't tried
        # by queue: the monotonic time before which no pass over the queue is tried
        self._refused: dict[str, float] = {}
        # queues that the next poll covers, too: since the last poll, passes may have left due buckets in them, or the
        # last poll found due buckets that it didn't return
        self._again: set[str] = set()
        # numbers of the passes since the last dispatch that took updates, and of these updates
        self.passes = self.updates = 0

    def poll(self, connection: Connection, queues: Collection[str] | None = None) -> list[Bucket]:
        """Return the due buckets (see the function ``due``), except those in progress, deferred or refused.

        The poll looks for pending updates in ``queues`` (None: in all queues), and in queues where passes or the last
        poll have left due buckets. Queues that this object doesn't serve are left out.
        """
        self._waker.drain()  # this poll sees what earlier wake-ups were about, so they need no other poll
        with self._changed:
            again, self._again = self._again, set()
        names = None if queues is None else [*again.union(queues)]
        rows = connection.execute(_DUE, (names,)).fetchall()
        found = [(queue, bucket) for queue, bucket in rows if bucket is not None]
        now = time.monotonic()
        if found and now >= self._next_tick:
            connection.execute("select pgcombine_internal.tick()")  # records the time, for the age of pending updates
            self._next_tick = now + _TICK
        with self._changed:
            mine = {(queue, bucket) for queue, bucket in found if not self._only or queue in self._only}
            ready = {
                (queue, bucket)
                for queue, bucket in mine - self._in_progress
                if self._deferred.get((queue, bucket), 0.0) <= now and self._refused.get(queue, 0.0) <= now
            }
            self._again.update(queue for queue, _ in mine - ready)
            self._again.update(queue for queue, bucket in rows if bucket is None)
            return [*ready]

    def dispatch(self, found: list[Bucket]) -> None:
        """Dispatch these buckets to the loops, in random order."""
        random.shuffle(found)
        with self._changed:
            self._dispatched = deque(found)
            self.passes = self.updates = 0
            self._changed.notify_all()

    def wait(self, stop: threading.Event, check: float, beat: Callable[[], None]) -> None:
        """Wait until the loops have taken all dispatched buckets, and then until their passes are done.

        The wait for the passes ends early if a loop has nothing to do after _SHORT_PASS seconds. The call also returns
        when ``stop`` is set. It checks this, and calls ``beat``, every ``check`` seconds.
        """
        with self._changed:
            while self._dispatched and not stop.is_set():
                beat()
                self._changed.wait(check)
            until = time.monotonic() + _SHORT_PASS
            while self._in_progress and not stop.is_set():
                beat()
                left = until - time.monotonic()
                if left <= 0 and self._waiting:
                    break
                self._changed.wait(left if left > 0 else check)

    def refuses(self, queue: str) -> bool:
        """Whether this worker can't run passes over the queue, although others perhaps can."""
        return self._refused.get(queue, 0.0) > time.monotonic()

    def retry_deferred(self) -> None:
        """Let the next poll return deferred buckets, too."""
        with self._changed:
            self._deferred.clear()

    def next_pass(self, connection: Connection, stop: threading.Event, *, timeout: float = 0.0) -> bool:
        """Run a pass over the next dispatched bucket.

        Returns False if ``stop`` is set, or if no bucket is dispatched within ``timeout`` seconds. Raises
        psycopg.OperationalError, for example if the connection is lost, ServerNotReadyError if the server takes no
        writes, and SchemaError if the schema is of another version now.
        """
        with self._changed:
            if not self._dispatched:
                self._waiting += 1
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._dispatched, timeout)
                self._waiting -= 1
            if not self._dispatched or stop.is_set():
                return False
            bucket = self._dispatched.popleft()
            self._in_progress.add(bucket)
        worked = True  # if _pass raises, the bucket may still be due
        try:
            worked = self._pass(connection, stop, *bucket)
        finally:
            with self._changed:
                self._in_progress.remove(bucket)
                self._changed.notify_all()
                self._again.add(bucket[0])
            if worked:
                self._waker.wake()
        return True

    def _pass(self, connection: Connection, stop: threading.Event, queue: str, bucket: int) -> bool:
        """Run a pass over the bucket, and handle its failure. Returns whether to poll the queue again at once."""
        observers = self._observers.get(queue, NO_OBSERVERS)
        try:
            try:
                done = run_pass(connection, queue, bucket, observers)
            except ObserversMissingError as error:
                self._refused[queue] = time.monotonic() + _REFUSED_PAUSE
                log.error("queue.refused queue=%s error=%s", queue, error)
                return False
            except PassError as error:
                return quarantine.recover(connection, error, observers, on_failure=self._failed, stopped=stop.is_set)
        except InvalidDefinitionError:  # the bucket is gone
            self._defer(queue, bucket, self._poll)
            return False
        except (NotGrantedError, QueueNotFoundError):
            self._refused[queue] = time.monotonic() + self._poll
            return False
        except PassError:
            return False  # the failure is recorded, and the bucket isn't due for a while
        except psycopg.DatabaseError as trouble:  # trouble with one bucket must not end the worker
            if connection.closed or isinstance(trouble, psycopg.OperationalError):
                raise
            log.error("bucket.trouble queue=%s bucket=%d error=%s", queue, bucket, first_line(trouble))
            self._defer(queue, bucket, _TROUBLE_PAUSE)
            return False
        if done is None:
            self._defer(queue, bucket, self._poll)
            return False
        if done.updates:
            self._record(done)
        return done.updates > 0 or done.unfinished

    def _defer(self, queue: str, bucket: int, seconds: float) -> None:
        with self._changed:
            self._deferred[queue, bucket] = time.monotonic() + seconds

    def _record(self, done: Pass) -> None:
        with self._changed:
            self.passes += 1
            self.updates += done.updates
        self._count(done)
