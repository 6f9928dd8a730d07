"""``python -m tests.programs.backfill --rows 10000000``: backfill a rollup of a filled table under writers and kills.

Eight client processes insert, update and delete rows of the table. Meanwhile the program creates a rollup of the table,
and starts ``pgcombine rollup backfill`` several times, each time with a time limit after which it kills the process.
The last backfill runs to its end, beside a worker. A session looks, with pauses of 5 ms, for writers that wait for a
lock of a backfill. When the writers have ended, the rollup must equal its query, before and after all updates are
combined.

The program starts its own embedded server, or uses the database of ``--dsn``. It prints one JSON line. Its status is 1
if rows differ or ``verify`` finds a problem.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import random
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2]))  # the client processes import this module

from support.sessions import workers

from pgcombine import schema
from pgcombine.database.connect import one
from pgcombine.embedded import EmbeddedServer
from pgcombine.rollup.rollup import Rollup
from pgcombine.worker.drain import drain

CLIENTS = 8
CUSTOMERS = 20_000
ROLLUP = Rollup(
    "spend",
    source="request",
    key=["customer"],
    value=["count(*) as requests", "sum(tokens) as tokens", "avg(price) as price", "max(id) as last_id"],
)
DIFFERENCE = """select count(*) from (
    select customer, count(*), sum(tokens), avg(price), max(id) from request group by customer
    except all
    select customer, requests, tokens, price, last_id from pgcombine.spend) d"""
STATEMENTS = (
    "insert into request (customer, tokens, price) values ({customer}, {n}, {n} / 4.0)",
    "insert into request (customer, tokens, price) select {customer} + i, {n}, i from generate_series(1, 10) i",
    "update request set tokens = {n}, customer = {customer} where id = {id}",
    "delete from request where id = {id}",
)
# writers' sessions that wait for a lock of a backfill, and the seconds since each began its statement
BLOCKED = """select a.pid, extract(epoch from clock_timestamp() - a.state_change)
from pg_stat_activity a where a.application_name = 'writer' and a.wait_event_type = 'Lock'
    and exists (select from pg_stat_activity b where b.pid = any (pg_blocking_pids(a.pid))
                and b.query ilike '%%backfill_slice%%')"""


@dataclass
class Outcome:
    rows: int
    writes: int
    create_seconds: float  # the duration of create_rollup
    backfill_seconds: float
    killed: int
    blocked_ms: float  # the age of the oldest statement that was seen to wait for a backfill
    wrong: int


def write(dsn: str, client: int, rows: int, writes: Any, stop: Any) -> None:
    dice = random.Random(client)
    with psycopg.connect(dsn, autocommit=True, application_name="writer") as conn:
        conn.execute("set synchronous_commit = off")
        while not stop.value:
            statement = dice.choice(STATEMENTS).format(
                customer=dice.randrange(CUSTOMERS), n=dice.randrange(100), id=dice.randrange(1, rows)
            )
            with suppress(psycopg.errors.DeadlockDetected):
                conn.execute(statement.encode())
            writes[client] += 1


def backfill(dsn: str, rows: int, kills: int) -> Outcome:
    context = multiprocessing.get_context("spawn")
    writes, stop = context.RawArray("q", CLIENTS), context.RawValue("b", 0)
    blocked, done = [0.0], threading.Event()

    def watch() -> None:
        with psycopg.connect(dsn, autocommit=True) as watcher:
            while not done.wait(0.005):
                blocked[0] = max([blocked[0], *(float(age) for _, age in watcher.execute(BLOCKED.encode()).fetchall())])

    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(
            "create table request (id bigint generated always as identity primary key, customer int not null, "
            "tokens int, price numeric(10, 4))"
        )
        conn.execute(
            "insert into request (customer, tokens, price) select random() * %s, random() * 100, random()"
            " from generate_series(1, %s)",
            (CUSTOMERS - 1, rows),
        )
        conn.execute("create index on request (customer)")
        conn.execute("vacuum analyze request")
        clients = [
            context.Process(target=write, args=(dsn, n, rows, writes, stop), daemon=True) for n in range(CLIENTS)
        ]
        for client in clients:
            client.start()
        while not all(writes):
            time.sleep(0.05)
        watcher = threading.Thread(target=watch)
        watcher.start()
        began = time.monotonic()
        ROLLUP.create(conn)
        created = time.monotonic()
        killed = 0
        command = [str(Path(sys.executable).with_name("pgcombine")), "rollup", "backfill", "spend", "--dsn", dsn]
        # later runs have longer time limits on average
        for number in range(kills):
            with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
                try:
                    process.wait(2 + number * random.random())
                except subprocess.TimeoutExpired:
                    process.kill()
                    killed += 1
        with workers(dsn, "spend"):
            subprocess.run(command, check=True)
            filled = time.monotonic()
            time.sleep(1)
            stop.value = 1
            for client in clients:
                client.join()
        done.set()
        watcher.join()
        before = one(conn, DIFFERENCE.encode())[0]
        drain(dsn, "spend", timeout=1200)
        return Outcome(
            rows=rows,
            writes=sum(writes),
            create_seconds=round(created - began, 3),
            backfill_seconds=round(filled - created, 1),
            killed=killed,
            blocked_ms=round(blocked[0] * 1000, 1),
            wrong=before + one(conn, DIFFERENCE.encode())[0] + len(ROLLUP.verify(conn)),
        )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=10_000_000)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--dsn", help="of an empty database")
    options = parser.parse_args()
    with ExitStack() as stack:
        dsn = options.dsn
        if dsn is None:
            home = stack.enter_context(tempfile.TemporaryDirectory())
            server = EmbeddedServer(Path(home))
            dsn = server.start()
            stack.callback(server.stop)
        schema.upgrade(dsn)
        outcome = backfill(dsn, options.rows, options.kills)
    print(json.dumps(asdict(outcome)))
    return int(outcome.wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
