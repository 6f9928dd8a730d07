"""The sessions that another session waits for.

An instance never raises: without a connection it watches nothing, and names the blockers only as "other sessions".
"""

from __future__ import annotations

import threading
from contextlib import closing, suppress
from types import TracebackType

import psycopg

from pgcombine.database.connect import Connection, connect
from pgcombine.errors import PgCombineError

_EVERY_SECONDS = 0.1
# a prepared transaction has no session, and its number is 0
_BLOCKERS = """
    select format('session %%s (role "%%s"%%s)', a.pid, a.usename, ', ' || nullif(a.application_name, ''))
    from unnest(pg_blocking_pids(%(pid)s)) b (pid) join pg_stat_activity a using (pid)
    union
    select format('the prepared transaction "%%s" (role "%%s")', p.gid, p.owner)
    from pg_locks w
    join pg_locks h on h.granted and h.pid is null
        and (h.locktype, h.database, h.relation) is not distinct from (w.locktype, w.database, w.relation)
    join pg_locks x on x.locktype = 'transactionid' and x.pid is null and x.virtualtransaction = h.virtualtransaction
    join pg_prepared_xacts p on p.transaction = x.transactionid
    where w.pid = %(pid)s and not w.granted and 0 = any (pg_blocking_pids(%(pid)s))
    order by 1
"""


class Blockers:
    """Watches, over its own connection, which sessions the session ``pid`` waits for while the block runs.

    ``str()`` of the instance names the sessions that were waited for last. PostgreSQL knows them only during the wait,
    so they can't be asked for after a timeout.
    """

    def __init__(self, dsn: str, pid: int) -> None:
        self._dsn = dsn
        self._pid = pid
        self._last: list[str] = []
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None

    def __enter__(self) -> Blockers:
        with suppress(PgCombineError):
            self._thread = threading.Thread(target=self._watch, args=(connect(self._dsn, patience=0),), daemon=True)
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
                if found := connection.execute(_BLOCKERS, {"pid": self._pid}).fetchall():
                    self._last = [blocker for (blocker,) in found]
