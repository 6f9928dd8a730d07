"""Measure the processor time of a session that reads the monitoring views in ``VIEWS`` once a second.

``python -m tests.programs.polling --queues 100`` makes 100 queues of 16 buckets on a new embedded server, and a backlog
of 10 million updates, spread over a tenth of the queues. The other queues get 100 updates each. The program reads the
views once a second for 30 seconds: first without a worker, then while an idle worker listens for the other queues.
``--queues``, ``--buckets``, ``--updates`` and ``--seconds`` change these numbers; ``--each`` measures each view alone,
too. The program prints a JSON line for each measurement: the processor seconds of the first read, which fills caches,
and the share of one processor core in percent during the other reads.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
import psycopg
from psycopg import sql

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import eventually, start_cli
from support.queues import make_queue
from support.sessions import worker_listens

from pgcombine import schema
from pgcombine.embedded import EmbeddedServer

VIEWS = [
    *("queue_stat", "bucket_stat", "minute_stat", "pass_recent", "worker", "export_stat", "feed_stat", "hint_stat"),
    *("load_stat", "oldest_snapshot", "segment_stat", "table_size", "destination"),
]


def poll(dsn: str, seconds: int, views: list[str]) -> dict[str, float]:
    """Read the views once a second from a new session, and measure the processor time of the session.

    Returns the seconds that the first read used, and the share of one core in percent during the other reads.
    """
    with psycopg.connect(dsn, autocommit=True) as conn:
        server = psutil.Process(conn.info.backend_pid)

        def used() -> float:
            times = server.cpu_times()
            return times.user + times.system

        def read() -> None:
            for view in views:
                conn.execute(sql.SQL("select * from {}").format(sql.Identifier("pgcombine", view))).fetchall()

        read()
        first, began = used(), time.monotonic()
        for second in range(1, seconds + 1):
            time.sleep(max(0.0, began + second - time.monotonic()))
            read()
        share = 100 * (used() - first) / (time.monotonic() - began)
    return {"percent_of_a_core": round(share, 2), "first_seconds": round(first, 2)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queues", type=int, default=100)
    parser.add_argument("--buckets", type=int, default=16)
    parser.add_argument("--updates", type=int, default=10_000_000)
    parser.add_argument("--seconds", type=int, default=30)
    parser.add_argument("--each", action="store_true", help="each view alone, too")
    options = parser.parse_args()
    behind = [f"q{number}" for number in range(max(1, options.queues // 10))]
    idle = [f"q{number}" for number in range(len(behind), options.queues)]
    with tempfile.TemporaryDirectory() as home, ExitStack() as stack:
        server = EmbeddedServer(Path(home))
        dsn = server.start()
        stack.callback(server.stop)
        schema.upgrade(dsn)
        with psycopg.connect(dsn, autocommit=True) as conn:
            for queue in (*behind, *idle):
                make_queue(conn, queue, buckets=options.buckets)
                updates = options.updates // len(behind) if queue in behind else 100
                insert = sql.SQL("insert into {} select 'w' || i %% 100000, 1 from generate_series(1, %s) i")
                conn.execute(insert.format(sql.Identifier("pgcombine", f"{queue}_updates")), (updates,))
            runs = [("all", VIEWS), *([(view, [view]) for view in VIEWS] if options.each else [])]
            for name, views in runs:
                print(json.dumps({"worker": False, "views": name, **poll(dsn, options.seconds, views)}), flush=True)
            for queue in behind:
                conn.execute("select pgcombine.pause(%s)", (queue,))
            stack.enter_context(start_cli("worker", *idle, "--dsn", dsn))
            eventually(
                lambda: all(worker_listens(conn, queue) for queue in idle), timeout=300, what="the worker listens"
            )
            for name, views in runs:
                print(json.dumps({"worker": True, "views": name, **poll(dsn, options.seconds, views)}), flush=True)


if __name__ == "__main__":
    main()
