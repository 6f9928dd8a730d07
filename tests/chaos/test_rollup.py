"""A rollup under writers, while workers and backfills are killed: at the end it equals its query.

``PGCOMBINE_TEST_CHAOS_SECONDS`` makes the test longer.
"""

from __future__ import annotations

import os
import random
import subprocess
import threading
import time
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial

import psycopg
import pytest
from support import eventually, start_cli
from support.servers import embedded_only
from support.sessions import in_background

from ..sql.rollup.statements import SHAPES, Table, change

WRITERS = 8
pytestmark = pytest.mark.slow


def progresses(conn: psycopg.Connection, name: str, process: subprocess.Popen[str]) -> None:
    """Wait until a slice is done, a pass has ended, or the process has."""
    state = "select boundary, done, ready_at, (select max(pass) from pgcombine.pass p where p.queue = r.queue)"
    state += " from pgcombine.rollup r where queue = %s"
    before = conn.execute(state, (name,)).fetchall()
    eventually(lambda: process.poll() is not None or conn.execute(state, (name,)).fetchall() != before)


@embedded_only
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shape", SHAPES)
def test_view_equals_its_query_after_kill_9(conn: psycopg.Connection, dsn: str, shape: str) -> None:
    seconds = float(os.environ.get("PGCOMBINE_TEST_CHAOS_SECONDS", "20"))
    seed = random.randrange(10**6)
    dice = random.Random(seed)
    table = Table.make(conn, random.Random(seed), shape, secured=False, cascade=False)
    conn.execute("set allow_system_table_mods = on")
    writing = threading.Event()
    writing.set()

    def write(number: int) -> int:
        with psycopg.connect(dsn, autocommit=True, options="-c search_path=public") as session:
            mine = replace(table, conn=session, chance=random.Random(f"{seed} {number}"), rollup=None)
            done = 0
            while writing.is_set():
                done += " " not in change(mine, alone=False)
        return done

    kills = rounds = 0
    with ExitStack() as stack, in_background(*[partial(write, number) for number in range(WRITERS)]) as writers:
        try:
            deadline = time.monotonic() + seconds
            while time.monotonic() < deadline:
                with suppress(psycopg.OperationalError):  # a deadlock
                    table.make_rollup()
                assert table.rollup, seed
                rounds += 1
                # the backfill takes many slices
                conn.execute("update pg_class set reltuples = 3e8 where oid = 'doc'::regclass")
                name = table.rollup.name
                while not table.rollup.ready(conn) and time.monotonic() < deadline:
                    kind = dice.choice([["rollup", "backfill", name], ["worker", name, "--concurrency", 2]])
                    process = stack.enter_context(start_cli(*kind, "--dsn", dsn))
                    progresses(conn, name, process)
                    time.sleep(dice.uniform(0, 0.2))  # kill at a random moment
                    if process.poll():
                        print("ENDED", kind, process.poll(), process.stdout.read())
                    process.kill()
                    process.wait(timeout=30)
                    kills += 1
                table.compare(f"kills with seed {seed}")
        finally:
            writing.clear()
    assert all(writer.result() for writer in writers), seed
    assert kills, seed
    print(
        "KILLS",
        kills,
        rounds,
        [writer.result() for writer in writers],
        conn.execute("select slices, done from pgcombine.rollup").fetchall(),
        conn.execute("select count(*) from doc").fetchall(),
    )
    table.settle()
