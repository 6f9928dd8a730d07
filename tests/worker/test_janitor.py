"""``pgcombine spark clean`` and workers remove the staging tables of Spark loads that died.

The command also removes old run ids.
"""

from __future__ import annotations

import json
from uuid import uuid4

import psycopg
import pytest
from support import eventually, run_cli
from support.queues import one
from support.servers import embedded_only
from support.sessions import workers

pytestmark = embedded_only


def begin_dead_load(conn: psycopg.Connection, age: str) -> None:
    """Begin a load whose job has shown no sign of life for ``age``."""
    load = uuid4()
    conn.execute("select pgcombine_internal.begin_load(%s, 'wc', %s)", (load, str(load)))
    conn.execute("update pgcombine.spark_load set seen_at = now() - %s::interval where load = %s", (age, load))


def stages(conn: psycopg.Connection) -> int:
    return one(conn, r"select count(*) from pg_class where relname ~ '^spark_stage_\d+$'")


@pytest.mark.wc
def test_command_removes_dead_loads(dsn: str, conn: psycopg.Connection) -> None:
    for age in ("25 hours", "3 hours", "0 s"):
        begin_dead_load(conn, age)
    for run, age in (("r", "40 days"), ("s", "4 days")):
        conn.execute(
            "insert into pgcombine.token (queue, token, updates, at) values ('wc', %s, 1, now() - %s::interval)",
            (run, age),
        )
    for options, cleaned in (([], (1, 1)), (["--older-than", "1"], (1, 0)), (["--runs-older-than", "3.5"], (0, 1))):
        answer = run_cli("spark", "clean", "--json", *options, "--dsn", dsn)
        assert answer.returncode == 0, answer.stderr
        assert tuple(json.loads(answer.stdout).values()) == cleaned
    assert stages(conn) == 1
    assert run_cli("spark", "clean", "--dsn", dsn).stdout == "cleaned: 0 loads, 0 run ids\n"
    assert run_cli("spark", "clean", "--older-than", "-1", "--dsn", dsn).returncode == 2


@pytest.mark.wc
def test_worker_removes_dead_loads(dsn: str, conn: psycopg.Connection) -> None:
    begin_dead_load(conn, "25 hours")
    begin_dead_load(conn, "1 hour")
    with workers(dsn):
        eventually(lambda: stages(conn) == 1)
    assert stages(conn) == 1
