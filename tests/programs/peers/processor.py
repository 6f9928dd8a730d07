"""Processor time of the server, if it runs on this machine and its processes can be read."""

from __future__ import annotations

from types import TracebackType
from typing import TYPE_CHECKING

from pgcombine.database.connect import Connection, one

if TYPE_CHECKING:
    from psutil import Process


class ServerTime:
    """Measures the processor seconds of the server's processes during the block, also of those that end meanwhile.

    The operating system adds the time of ended children to their parent, the server's first process. ``readable`` is
    False and ``seconds`` is 0 if the processes can't be read, for example because the server runs elsewhere or psutil
    isn't installed.
    """

    def __init__(self, connection: Connection) -> None:
        self.seconds = 0.0
        self._first = _first_process(connection)
        self.readable = self._first is not None
        self._before = 0.0

    def __enter__(self) -> ServerTime:
        self._before = self._read()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.seconds = self._read() - self._before

    def _read(self) -> float:
        return 0.0 if self._first is None else family_seconds(self._first)


def family_seconds(process: Process) -> float:
    """Return the processor seconds of a process, of its ended children, and of its running children.

    Raises psutil.Error if the process itself can't be read.
    """
    import psutil

    while True:
        before = process.cpu_times()
        total = before.user + before.system + before.children_user + before.children_system
        for child in process.children():
            try:
                times = child.cpu_times()
            except psutil.Error:
                continue
            total += times.user + times.system
        after = process.cpu_times()
        if (after.children_user, after.children_system) == (before.children_user, before.children_system):
            return float(total)
        # a child ended during the reading, so the total may lack its time, or have it twice: read again


def _first_process(connection: Connection) -> Process | None:
    try:
        import psutil
    except ImportError:
        return None
    try:
        backend = psutil.Process(one(connection, "select pg_backend_pid()")[0])
        first = backend.parent()
        if first is None or not (backend.name().startswith("postgres") and first.name().startswith("postgres")):
            return None
        first.cpu_times()
    except psutil.Error:
        return None
    return first
