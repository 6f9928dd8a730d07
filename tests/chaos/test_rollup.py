"""A rollup equals its query, also in older snapshots, while sessions write, and workers and backfills are killed.

``PGCOMBINE_TEST_CHAOS_SECONDS`` sets the length of the test.
"""

from __future__ import annotations

import random
import time
from contextlib import suppress
from dataclasses import replace

import psycopg
import pytest
from support import eventually, start_cli
from support.audit import seconds

from ..sql.rollup.statements import Table, change, crowd

WRITERS = 8
# statistics with which a backfill has 64 slices
MANY_ROWS = "update pg_class set reltuples = 6e7 where oid = 'doc'::regclass"
PROGRESS = """
select r.boundary, r.done, r.ready_at, (select max(p.pass) from pgcombine.pass p where p.queue = r.queue)
from pgcombine.rollup r"""


def kill(conn: psycopg.Connection, dsn: str, *command: object) -> None:
    """Run a command, and kill it up to 0.2 seconds after its first slice or pass, unless it has ended."""
    before = conn.execute(PROGRESS).fetchall()
    with start_cli(*command, "--dsn", dsn) as process:
        eventually(lambda: process.poll() is not None or conn.execute(PROGRESS).fetchall() != before)
        time.sleep(random.uniform(0, 0.2))
        assert process.stdout
        if process.poll() not in (None, 0):
            output = process.stdout.read()
            assert "deadlock detected" in output, output  # a writer locked a table below the source, then the source
        process.kill()


@pytest.mark.slow
@pytest.mark.timeout(3600)
@pytest.mark.parametrize("shape", ["deep"])  # the random tests of sql/rollup have all shapes
def test_view_equals_its_query_after_kill_9(conn: psycopg.Connection, dsn: str, shape: str) -> None:
    seed = random.randrange(10**6)
    table = Table.make(conn, random.Random(seed), shape, secured=False, cascade=False)
    conn.execute("set allow_system_table_mods = on")
    deadline = time.monotonic() + seconds(20)
    with crowd(table, dsn, WRITERS) as at_work:
        while not at_work.over.is_set() and (time.monotonic() < deadline or at_work.fewer_than(0, snapshots=5)):
            with suppress(psycopg.OperationalError):  # a deadlock
                table.make_rollup()
                assert table.rollup
                conn.execute(MANY_ROWS)
                kill(conn, dsn, "rollup", "backfill", table.rollup.name)
                for _ in range(3):
                    kill(conn, dsn, "worker", table.rollup.name, "--concurrency", 2)
                    table.compare(f"a kill with seed {seed}")
                    change(replace(table, rollup=None), "change_parts", alone=False)
                table.rollup.call(conn, "backfill")
    assert all(at_work.done), (seed, at_work.done)
    table.settle()
