"""Finding the sessions that block another session.

Failures aren't raised. If no connection can be opened, the blocking sessions are named only as "other sessions".
"""

from __future__ import annotations

import threading
from contextlib import closing, suppress
from types import TracebackType

import psycopg

from pgcombine.database.connect import Connection, connect
from pgcombine.database.sqlfiles import query
from pgcombine.errors import PgCombineError

_EVERY_SECONDS = 0.1


class Blockers:
    """Watches, over a separate connection, for which sessions ``pid`` waits until the end of the ``with`` block.

    ``str()`` of the instance names the sessions and prepared transactions that ``pid`` last waited for, or says "other
    sessions" if none was seen. PostgreSQL reports blockers only during the wait, so a query after a timeout would come
    too late.
    """

    def __init__(self, dsn: str, pid: int) -> None:
        self._dsn = dsn
        self._pid = pid
        self._last: list[str] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Blockers:
        with suppress(PgCombineError):
            self._thread = threading.Thread(target=self._watch, args=(connect(self._dsn, timeout=0),), daemon=True)
            self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stop.set()
        if self._thread is not None:
            self._thread.join()

    def __str__(self) -> str:
        return ", ".join(self._last) or "other sessions"

    def _watch(self, connection: Connection) -> None:
        with suppress(psycopg.Error), closing(connection):
            while not self._stop.wait(_EVERY_SECONDS):
                if found := connection.execute(query("blockers"), {"pid": self._pid}).fetchall():
                    self._last = [blocker for (blocker,) in found]
