"""Measure the processor time of an idle worker and of its sessions, over queues without pending updates.

``python -m tests.programs.idle_workers`` makes 100 queues of 16 buckets on a new embedded server and runs
``pgcombine worker`` with one loop, then with four, for 20 seconds each; then it reads the view ``status`` five times.
``--queues``, ``--buckets``, ``--loops`` and ``--seconds`` change these numbers. The program prints a JSON line for each
number of loops, with shares of one processor core in percent, and one with the median time of the reads in seconds.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import eventually, start_cli
from support.queues import make_queue

from pgcombine import schema
from pgcombine.embedded import EmbeddedServer

SESSIONS = "select pid from pg_stat_activity where application_name like 'pgcombine worker%'"
LISTENING = "select count(*) from pg_locks where locktype = 'advisory' and mode = 'ExclusiveLock' and granted"


def seconds_of(pids: list[int]) -> float:
    """Return the processor seconds that these processes have used since they started."""
    times = [psutil.Process(pid).cpu_times() for pid in pids]
    return sum(each.user + each.system for each in times)


def measure(conn: psycopg.Connection, dsn: str, loops: int, seconds: float) -> dict[str, float]:
    """Measure an idle worker for ``seconds``. Returns how many percent of a core its process and its sessions use."""
    with start_cli("worker", "--concurrency", loops, "--dsn", dsn) as worker:
        eventually(lambda: conn.execute(LISTENING).fetchone() != (0,), what="the worker listens")
        sessions = [pid for (pid,) in conn.execute(SESSIONS)]
        began, server, program = time.monotonic(), seconds_of(sessions), seconds_of([worker.pid])
        time.sleep(seconds)
        share = 100 / (time.monotonic() - began)
        return {
            "loops": loops,
            "server_percent": round(share * (seconds_of(sessions) - server), 1),
            "worker_percent": round(share * (seconds_of([worker.pid]) - program), 1),
        }


def status_seconds(conn: psycopg.Connection) -> Iterator[float]:
    """Read the view ``status`` five times. Yields the seconds of each read."""
    for _ in range(5):
        began = time.monotonic()
        conn.execute("select * from pgcombine.status").fetchall()
        yield time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--queues", type=int, default=100)
    parser.add_argument("--buckets", type=int, default=16)
    parser.add_argument("--loops", type=int, nargs="+", default=[1, 4])
    parser.add_argument("--seconds", type=float, default=20)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as home:
        server = EmbeddedServer(Path(home))
        dsn = server.start()
        try:
            schema.upgrade(dsn)
            with psycopg.connect(dsn, autocommit=True) as conn:
                for number in range(options.queues):
                    make_queue(conn, f"q{number}", buckets=options.buckets)
                for loops in options.loops:
                    print(json.dumps(measure(conn, dsn, loops, options.seconds)), flush=True)
                print(json.dumps({"status_seconds": round(statistics.median(status_seconds(conn)), 2)}), flush=True)
        finally:
            server.stop()


if __name__ == "__main__":
    main()
