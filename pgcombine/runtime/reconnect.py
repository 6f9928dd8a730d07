"""Connecting with back-off, until a connection is open, the time is up, or an event ends the attempts.

If another attempt follows the first failure, the failure is logged as ``worker.waiting`` with its reason.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from typing import TypeVar

import psycopg
from tenacity import RetryCallState, Retrying, retry_if_exception
from tenacity.nap import sleep_using_event
from tenacity.stop import stop_when_event_set

from pgcombine.database.connect import BACK_OFF
from pgcombine.errors import ConnectError, ServerNotReadyError

T = TypeVar("T")

log = logging.getLogger("pgcombine.worker")


def retry(
    call: Callable[[], T], stop: threading.Event, *, unlimited: Callable[[BaseException], bool], timeout: float = 0.0
) -> T:
    """Call ``call``, which connects, until it returns. Returns its result.

    After an error for which ``unlimited`` returns True, ``call`` is called again without limit. After any other
    ConnectError it is called again for ``timeout`` seconds. Then, or when ``stop`` is set, the last error is raised. An
    error of another class is raised at once.
    """
    deadline = time.monotonic() + timeout

    def may_succeed(error: BaseException) -> bool:
        return unlimited(error) or (isinstance(error, ConnectError) and time.monotonic() < deadline)

    def log_first(attempt: RetryCallState) -> None:
        if attempt.attempt_number == 1 and attempt.outcome is not None:
            log.warning("worker.waiting reason=%s", attempt.outcome.exception())

    retrying = Retrying(
        retry=retry_if_exception(may_succeed),
        wait=BACK_OFF,
        stop=stop_when_event_set(stop),
        sleep=sleep_using_event(stop),
        before_sleep=log_first,
        reraise=True,
    )
    return retrying(call)


def when_ready(call: Callable[[], object], stop: threading.Event, *, timeout: float = 0.0) -> bool:
    """Call ``call``, which connects, until it returns. Returns False if ``stop`` is set while the server isn't ready.

    While the server isn't ready (see :func:`not_ready`), ``call`` is repeated without limit. After another ConnectError
    it is repeated for ``timeout`` seconds. Then the error is raised. An error of another class is raised at once.
    """
    try:
        retry(call, stop, unlimited=not_ready, timeout=timeout)
    except (ServerNotReadyError, psycopg.OperationalError) as error:
        if stop.is_set() and not_ready(error):
            return False
        raise
    return True


def unreachable(error: BaseException) -> bool:
    """Whether a connection couldn't be opened or was lost, or the driver reports another operational error."""
    return isinstance(error, (ConnectError, psycopg.OperationalError))


def not_ready(error: BaseException) -> bool:
    """Whether the error means that a server isn't ready yet, or that a connection was lost."""
    if isinstance(error, psycopg.OperationalError):
        return error.sqlstate is None or error.sqlstate.startswith(("57P", "08"))
    return isinstance(error, ServerNotReadyError)
