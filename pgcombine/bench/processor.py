"""Processor time of the server's processes, if the server runs on this machine.

A process that can't be read is left out.
"""

from __future__ import annotations

import threading
from types import TracebackType

from pgcombine.database.connect import Connection

_EVERY = 0.5  # seconds; a process that ends is counted up to the last look


class ServerTime:
    """Adds up the processor seconds of all processes in ``pg_stat_activity`` while the block runs.

    ``seconds`` is 0 if the processes can't be read: the server runs elsewhere, or psutil isn't installed.
    """

    def __init__(self, connection: Connection) -> None:
        self.seconds = 0.0
        self._connection = connection
        self._stop = threading.Event()
        self._first: dict[int, float] = {}
        self._last: dict[int, float] = {}
        self._thread = threading.Thread(target=self._run)

    def __enter__(self) -> ServerTime:
        for pid, seconds in self._look().items():
            self._first[pid] = seconds
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()
        self.seconds = sum(seconds - self._first.get(pid, 0.0) for pid, seconds in self._last.items())

    def _run(self) -> None:
        while True:
            self._last.update(self._look())
            if self._stop.wait(_EVERY):
                return

    def _look(self) -> dict[int, float]:
        try:
            import psutil
        except ImportError:
            return {}
        found = {}
        for (pid,) in self._connection.execute("select pid from pg_stat_activity").fetchall():
            try:
                process = psutil.Process(pid)
                if process.name().startswith("postgres"):
                    times = process.cpu_times()
                    found[int(pid)] = times.user + times.system
            except psutil.Error:
                continue
        return found
