"""The life cycle of workers: ``run``, which returns when the work ends; ``start`` and ``stop``; or a ``with`` block."""

from __future__ import annotations

import logging
import threading
from types import TracebackType
from typing import Self

from pgcombine.errors import ConfigError, WaitTimeoutError, first_line

log = logging.getLogger("pgcombine.worker")


class Background:
    """The base of classes whose ``run`` works until an event is set.

    ``with Worker(dsn): …`` starts and stops a worker.
    """

    def __init__(self) -> None:
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        self._failure: BaseException | None = None

    def run(self, stop: threading.Event | None = None) -> object:
        """Work until ``stop`` is set; without ``stop``, until :meth:`stop` is called."""
        raise NotImplementedError

    def start(self) -> None:
        """Call :meth:`run` in a background thread until :meth:`stop`.

        Raises ConfigError if this was called before, and :meth:`stop` hasn't ended that thread. An error ends the
        thread. It is logged at once, and :meth:`stop` raises it.
        """
        if self._thread is not None:
            raise ConfigError(f"this {type(self).__name__} is started already: stop it before the next start")
        self._stop.clear()
        self._thread = threading.Thread(target=self._work, name=f"pgcombine-{type(self).__name__}", daemon=True)
        self._thread.start()

    def stop(self, timeout: float | None = None) -> None:
        """End :meth:`run`, and wait until the thread of :meth:`start` has finished what it was doing.

        A ``run`` that was given an event ends only when the event is set. Raises WaitTimeoutError if the
        thread hasn't ended after ``timeout`` seconds (None: no limit), and the error that has ended the thread. Without
        :meth:`start` the call doesn't wait. A callback of the worker must not call ``stop``: the call would wait for
        the thread, and the thread waits for the callback.
        """
        self._stop.set()
        thread = self._thread
        if thread is None:
            return
        thread.join(timeout)
        if thread.is_alive():
            raise WaitTimeoutError(f"the {type(self).__name__} hasn't ended after {timeout} s: call stop again later")
        failure, self._thread, self._failure = self._failure, None, None
        if failure is not None:
            raise failure

    def _until_stopped(self) -> threading.Event:
        """Return the event of a new :meth:`run`, which :meth:`stop` sets."""
        self._stop = threading.Event()
        return self._stop

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        try:
            self.stop()
        except Exception:
            if error is None:  # Otherwise the block's own error is raised. The thread's error is logged already.
                raise

    def _work(self) -> None:
        try:
            self.run(self._stop)
        except BaseException as error:
            self._failure = error
            log.error("worker.failed class=%s reason=%s", type(self).__name__, first_line(error))
