"""A daemon's messages to systemd: it is ready, it is alive, it stops (``Type=notify``, ``WatchdogSec=``).

Messages go to the socket that ``NOTIFY_SOCKET`` names. Without that variable nothing is sent. If a message can't be
sent, this is logged once, and the daemon goes on.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager

from pgcombine.runtime.heartbeat import Heartbeat

log = logging.getLogger("pgcombine.systemd")

_POLL_SECONDS = 0.2  # the time between two checks whether the daemon is ready
_SEND_SECONDS = 5.0  # the longest time for sending a message


@contextmanager
def reported(heartbeats: Sequence[Heartbeat]) -> Iterator[None]:
    """Report to systemd about the daemons with these heartbeats, until the end of the block.

    The process is ready when all loops have their connections for the first time. It sends watchdog messages as long as
    no loop is stalled. If systemd gets no watchdog message within the watchdog's time, it kills the process. A unit
    with ``Restart=`` then starts again.
    """
    address = os.environ.get("NOTIFY_SOCKET", "")
    if not address:
        yield
        return
    ended = threading.Event()
    with closing(_Messages(address)) as messages:
        thread = threading.Thread(
            target=_report, args=(messages, heartbeats, ended), name="pgcombine-systemd", daemon=True
        )
        thread.start()
        try:
            yield
        finally:
            ended.set()
            thread.join()
            messages.send("STOPPING=1")


class _Messages:
    def __init__(self, address: str) -> None:
        # a name that begins with @ is in Linux's abstract namespace
        self._address = f"\0{address[1:]}" if address.startswith("@") else address
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(_SEND_SECONDS)
        self._failed = False

    def send(self, message: str) -> None:
        try:
            self._socket.sendto(message.encode(), self._address)
        except OSError as error:
            if not self._failed:
                log.warning("systemd.failed reason=%s", error)
            self._failed = True

    def close(self) -> None:
        self._socket.close()


def _report(messages: _Messages, heartbeats: Sequence[Heartbeat], ended: threading.Event) -> None:
    while not all(heartbeat.ready for heartbeat in heartbeats):
        if ended.wait(_POLL_SECONDS):
            return
    messages.send("READY=1")
    watchdog = _watchdog_seconds()
    while watchdog is not None and not ended.wait(watchdog / 2):
        if all(heartbeat.stalled is None for heartbeat in heartbeats):
            messages.send("WATCHDOG=1")
        else:
            messages.send("STATUS=A loop hangs, so the watchdog will end this process.")


def _watchdog_seconds() -> float | None:
    """Return the time of systemd's watchdog in seconds, or None if systemd expects no messages from this process."""
    microseconds = os.environ.get("WATCHDOG_USEC", "")
    if not microseconds.isdigit() or os.environ.get("WATCHDOG_PID", str(os.getpid())) != str(os.getpid()):
        return None
    return int(microseconds) / 1e6 or None
