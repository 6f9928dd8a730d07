"""Connecting again and again, with back-off, until it works or an event ends it.

The first failure is logged as ``worker.waiting`` with its reason; the last is raised.
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
from pgcombine.errors import ConnectError, ServerNotReady

T = TypeVar("T")

log = logging.getLogger("pgcombine.worker")


def retry(
    call: Callable[[], T],
    stop: threading.Event,
    *,
    for_ever: Callable[[BaseException], bool],
    timeout: float = 0.0,
) -> T:
    """What ``call``, which connects, returns at last.

    It is called again as long as it raises what ``for_ever`` holds for, and for ``timeout`` seconds while it raises
    ConnectError; what it raised last is raised when that is over, or ``stop`` is set.
    """
    deadline = time.monotonic() + timeout

    def passes(error: BaseException) -> bool:
        return for_ever(error) or (isinstance(error, ConnectError) and time.monotonic() < deadline)

    def tell(attempt: RetryCallState) -> None:
        if attempt.attempt_number == 1 and attempt.outcome is not None:
            log.warning("worker.waiting reason=%s", attempt.outcome.exception())

    retrying = Retrying(
        retry=retry_if_exception(passes),
        wait=BACK_OFF,
        stop=stop_when_event_set(stop),
        sleep=sleep_using_event(stop),
        before_sleep=tell,
        reraise=True,
    )
    return retrying(call)


def when_ready(call: Callable[[], object], stop: threading.Event, *, timeout: float = 0.0) -> bool:
    """Call what connects, again while the server isn't ready, as long as that takes; False: ``stop`` was set before.

    A server that doesn't answer at all is asked again for ``timeout`` seconds. Raises what ``call`` does.
    """
    try:
        retry(call, stop, for_ever=there_but_away, timeout=timeout)
    except (ServerNotReady, psycopg.OperationalError) as error:
        if stop.is_set() and there_but_away(error):
            return False
        raise
    return True


def away(error: BaseException) -> bool:
    """Whether there is no connection yet, or it was lost at once."""
    return isinstance(error, (ConnectError, psycopg.OperationalError))


def there_but_away(error: BaseException) -> bool:
    """Whether a server isn't ready yet, or ended the connection that it had taken."""
    if isinstance(error, psycopg.OperationalError):
        return error.sqlstate is None or error.sqlstate.startswith(("57P", "08"))
    return isinstance(error, ServerNotReady)
