"""Backlogs far beyond ``pass_limit``: how long, how many passes, how much memory and temporary space.

``python -m tests.programs.bounded_passes`` drains 20 million pending updates, of each shape in turn, by one
``pgcombine drain`` process on an embedded server of its own (about 10 GB of disk); ``--updates`` makes it less,
``--shape`` picks, ``--dsn`` names another, empty database. One JSON line a shape; status 1 if a bound is broken:
the worker takes less than 200 MiB, the server's temporary files at any moment less than ``--temp`` MiB, and every
key is reported once, with the total of all its updates (so it was never reported half-combined).

Shapes: ``unique`` (as many keys as updates, one bucket), ``repeated`` (300,000 keys, one bucket), ``giant`` (a
quarter of all updates on one key, the others as in repeated), ``spread`` (half repeated, half unique, 16 buckets).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil
import psycopg
from psycopg import sql

sys.path.insert(0, str(Path(__file__).parents[1]))

from support import run_cli, start_cli
from support.queues import make_queue, one

WORKER_MIB = 200
SHAPES = {  # buckets, and the key of update i of n
    "unique": (1, "'k' || i"),
    "repeated": (1, "'k' || (i::bigint * 7919) %% 300000"),
    "giant": (1, "case when i %% 4 = 0 then 'giant' else 'k' || i %% 300000 end"),
    "spread": (16, "'k' || case when i %% 2 = 0 then i %% 300000 else i end"),
}

FILL = "insert into pgcombine.wc_updates (word, n) select {}, 1 from generate_series(1, %s) i"


@dataclass
class Drained:
    """``temp_mib`` is the most at any moment, ``temp_total_mib`` all that was written; ``reported`` counts changes."""

    shape: str
    updates: int
    pass_limit: int
    keys: int
    passes: int
    reported: int
    seconds: float
    worker_mib: float
    temp_mib: float
    temp_total_mib: float
    right: bool


def fill(conn: psycopg.Connection, shape: str, updates: int, pass_limit: int | None) -> None:
    """Queue ``wc`` with ``updates`` pending +1, and an observer that sums up what each pass reports."""
    buckets, key = SHAPES[shape]
    options = {} if pass_limit is None else {"pass_limit": pass_limit}
    make_queue(conn, buckets=buckets, **options)
    conn.execute("create table public.report (changes bigint, known bigint, total numeric)")
    conn.execute(
        "select pgcombine.add_observer('wc', 'report', "
        "'insert into public.report select count(*), count(old_n), sum(new_n) from changes')"
    )
    conn.execute(sql.SQL(FILL).format(sql.SQL(key)), (updates,))


def drain(conn: psycopg.Connection, dsn: str, shape: str, updates: int, pass_limit: int | None = None) -> Drained:
    """Fill a queue and drain it by a process of its own. ``dsn`` is an empty database with the schema."""
    fill(conn, shape, updates, pass_limit)
    keys = one(conn, "select count(distinct word) from pgcombine.wc_pending")
    limit = one(conn, "select pass_limit from pgcombine.queue")
    conn.execute("select pg_stat_force_next_flush()")
    temp_before = temp_bytes(conn)
    worker_bytes = temp = 0
    started = time.monotonic()
    with start_cli("drain", "wc", "--json", "--dsn", dsn) as worker:
        process = psutil.Process(worker.pid)
        while worker.poll() is None:
            try:
                worker_bytes = max(worker_bytes, process.memory_info().rss)
            except psutil.NoSuchProcess:
                break
            temp = max(temp, one(conn, "select coalesce(sum(size), 0)::bigint from pg_ls_tmpdir()"))
            time.sleep(0.05)
        output = worker.communicate()[0]
    seconds = time.monotonic() - started
    assert worker.returncode == 0, output
    changes, known, total = (
        conn.execute("select sum(changes), sum(known), sum(total) from public.report").fetchone() or ()
    )
    stored = conn.execute("select count(*), sum(n) from pgcombine.wc_values").fetchone()
    mib = 1 << 20
    return Drained(
        shape,
        updates,
        limit,
        keys,
        json.loads(output)["passes"],
        int(changes),
        round(seconds, 1),
        round(worker_bytes / mib, 1),
        round(temp / mib, 1),
        round((temp_bytes(conn) - temp_before) / mib, 1),
        (changes, known, total) == (keys, 0, updates)
        and stored == (keys, updates)
        and one(conn, "select pgcombine.backlog('wc')") == 0,
    )


def temp_bytes(conn: psycopg.Connection) -> int:
    return int(one(conn, "select temp_bytes from pg_stat_database where datname = current_database()"))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--updates", type=int, default=20_000_000)
    parser.add_argument("--shape", action="append", choices=SHAPES)
    parser.add_argument("--pass-limit", type=int)
    parser.add_argument("--temp", type=int, default=1024, help="MiB")
    parser.add_argument("--dsn")
    arguments = parser.parse_args()
    broken = 0
    with tempfile.TemporaryDirectory(prefix="bounded-passes-") as home:
        env = {"PGCOMBINE_HOME": home}
        dsn = arguments.dsn or run_cli("dsn", env=env).stdout.strip()
        try:
            for shape in arguments.shape or SHAPES:
                run_cli("db", "upgrade", "--dsn", dsn)
                with psycopg.connect(dsn, autocommit=True) as conn:
                    done = drain(conn, dsn, shape, arguments.updates, arguments.pass_limit)
                    conn.execute("select pgcombine.drop_queue('wc', force => true)")
                    conn.execute("drop table public.report")
                broken += not done.right or done.worker_mib >= WORKER_MIB or done.temp_mib >= arguments.temp
                print(json.dumps(asdict(done)), flush=True)
        finally:
            if not arguments.dsn:
                run_cli("server", "stop", env=env)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
