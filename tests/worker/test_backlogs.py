"""``drain`` combines a backlog of many passes in bounded memory."""

from __future__ import annotations

import json
import time

import psutil
import psycopg
import pytest
from psycopg import sql
from support import start_cli
from support.queues import make_queue, one
from support.servers import embedded_only

pytestmark = [pytest.mark.slow, embedded_only]

UPDATES = 120_000
PASS_LIMIT = 8_000
MIB = 1 << 20
SHAPES = {  # the number of buckets, and an SQL expression for the key of update i
    "unique": (1, "'k' || i"),
    "repeated": (1, "'k' || (i::bigint * 7919) %% 6000"),
    "giant": (1, "case when i %% 4 = 0 then 'giant' else 'k' || i %% 6000 end"),
    "spread": (16, "'k' || case when i %% 2 = 0 then i %% 6000 else i end"),
}
FILL = "insert into pgcombine.wc_updates (word, n) select {}, 1 from generate_series(1, %s) i"


@pytest.mark.parametrize("shape", SHAPES)
def test_drain_combines_a_large_backlog_in_bounded_memory(conn: psycopg.Connection, dsn: str, shape: str) -> None:
    buckets, key = SHAPES[shape]
    make_queue(conn, buckets=buckets, pass_limit=PASS_LIMIT)
    conn.execute("create table public.report (changes bigint, known bigint, total numeric)")
    conn.execute(
        "select pgcombine.add_observer('wc', 'report', "
        "'insert into public.report select count(*), count(old_n), sum(new_n) from changes')"
    )
    conn.execute(sql.SQL(FILL).format(sql.SQL(key)), (UPDATES,))
    keys = one(conn, "select count(distinct word) from pgcombine.wc_pending")
    memory = files = 0
    with start_cli("drain", "wc", "--json", "--dsn", dsn) as worker:
        process = psutil.Process(worker.pid)
        while worker.poll() is None:
            try:
                memory = max(memory, process.memory_info().rss)
            except psutil.NoSuchProcess:
                break
            files = max(files, one(conn, "select coalesce(sum(size), 0)::bigint from pg_ls_tmpdir()"))
            time.sleep(0.05)
        output = worker.communicate()[0]
    assert worker.returncode == 0, output
    assert memory < 200 * MIB
    assert files < 64 * MIB
    # drain must not split the backlog into many small passes
    assert json.loads(output)["passes"] <= 4 * UPDATES / PASS_LIMIT + buckets
    reported = conn.execute("select sum(changes), sum(known), sum(total) from public.report").fetchone()
    assert reported == (keys, 0, UPDATES), "a key was reported twice, or without some of its updates"
    assert conn.execute("select count(*), sum(n) from pgcombine.wc_values").fetchone() == (keys, UPDATES)
    assert one(conn, "select pgcombine.backlog('wc')") == 0
