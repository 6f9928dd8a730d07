"""``python -m tests.programs.feed_cost``: what a feed costs a pass, beside an export, and neither.

Three queues with one bucket get the same number of updates in turn, and one session runs a pass over each. The program
prints a JSON line for each queue: milliseconds of the session's processor time for a pass, and bytes of the log for a
change. The first passes don't count.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

import psutil
import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.queues import make_queue

from pgcombine import schema
from pgcombine.database.connect import one

from .peers import server

QUEUES = ("without", "exported", "fed")
ENQUEUE = "select pgcombine.{0}_enqueue(array_agg('w' || n), array_agg(1)) from generate_series(1, {1}) n"
WARM_UP = 20


def used(conn: psycopg.Connection) -> float:
    times = psutil.Process(conn.info.backend_pid).cpu_times()
    return times.user + times.system


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--passes", type=int, default=1000)
    parser.add_argument("--updates", type=int, default=10, help="updates of a pass, each of another key")
    options = parser.parse_args()
    seconds = dict.fromkeys(QUEUES, 0.0)
    log = dict.fromkeys(QUEUES, 0)
    with server.own(18) as dsn:
        schema.upgrade(dsn)
        with psycopg.connect(dsn, autocommit=True) as conn:
            for queue in QUEUES:
                make_queue(conn, queue, buckets=1)
            conn.execute("select pgcombine.create_export('out', 'exported')")
            conn.execute("select pgcombine.create_feed('feed', 'fed')")
            for number in range(options.passes + WARM_UP):
                for queue in QUEUES:
                    conn.execute(ENQUEUE.format(queue, options.updates).encode())
                    (place,) = one(conn, "select pg_current_wal_insert_lsn()::text")
                    before = used(conn)
                    conn.execute("select pgcombine.combine(%s, 0)", (queue,))
                    if number >= WARM_UP:
                        seconds[queue] += used(conn) - before
                        (written,) = one(conn, "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s::pg_lsn)", place)
                        log[queue] += int(written)
    for queue in QUEUES:
        pass_ms = 1000 * seconds[queue] / options.passes
        change_bytes = log[queue] / options.passes / options.updates
        print(json.dumps({"queue": queue, "pass_ms": round(pass_ms, 2), "log_bytes_a_change": round(change_bytes)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
