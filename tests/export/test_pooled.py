"""Export workers reach the queue and the destination through PgBouncer in transaction mode."""

from __future__ import annotations

import threading

import psycopg
from support.exports import exported, make_exported, quarantined, run_at, waiting, watched, worker_to
from support.pgbouncer import left_behind, pgbouncer
from support.queues import combine, values
from support.servers import embedded_only
from support.sessions import in_background
from support.wait import eventually

SERVERS = 6  # server connections of each PgBouncer


@embedded_only
def test_export_works_through_poolers(conn: psycopg.Connection, dsn: str, target: str) -> None:
    make_exported(conn, target, batch=5)
    stop = threading.Event()
    with pgbouncer(dsn, servers=SERVERS) as here, pgbouncer(target, servers=SERVERS) as there:
        worker = worker_to(here, there, concurrency=2)
        with watched(target), in_background(lambda: worker.run(stop)):
            try:
                for round_ in range(30):
                    combine(conn, {f"w{number}": (-1) ** round_ * (number % 3 + 1) for number in range(round_ % 7, 20)})
                eventually(lambda: waiting(conn) == 0)
            finally:
                stop.set()
        # the destination refuses one entry of the next batch, so the worker searches for this entry
        run_at(target, "alter table search add constraint refused check (word <> 'poison')")
        combine(conn, {"poison": 1, "x": 1})
        worker_to(here, there).drain()
        assert exported(target) == {word: n for word, n in values(conn).items() if word != "poison"}
        assert quarantined(conn) == 1
        assert left_behind(here, SERVERS) == []
        assert left_behind(there, SERVERS) == []
