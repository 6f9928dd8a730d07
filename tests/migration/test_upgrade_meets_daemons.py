"""A daemon ends with status 3 if another program upgrades the schema. Its last line says why. No update is lost."""

from __future__ import annotations

import subprocess
from pathlib import Path

import httpx2
import psycopg
import pytest
from support.cli import start_cli
from support.exports import make_export
from support.page import started
from support.queues import add, current, make_queue, one, values
from support.tiers import each_nth
from support.wait import eventually

from pgcombine import schema

NEWER = "update pgcombine.schema_version set version_num = '9999'"
BACK = "update pgcombine.schema_version set version_num = %s"


def ends(process: subprocess.Popen[str]) -> str:
    """Wait for the command to end with status 3, and return the last line of its output."""
    out, _ = process.communicate(timeout=60)
    assert process.returncode == 3, out
    assert "Traceback" not in out
    return out.strip().splitlines()[-1]


@pytest.mark.wc
@pytest.mark.parametrize("options", each_nth(3, [["--concurrency", "2"], ["--poll", "0.2"], ["--handoff"]]))
def test_worker_ends_after_an_upgrade(conn: psycopg.Connection, dsn: str, options: list[str]) -> None:
    with start_cli("worker", *options, "--dsn", dsn) as worker:
        add(conn, {"a": 1})
        eventually(lambda: values(conn) == {"a": 1}, what="the worker combines")
        conn.execute(NEWER)
        line = ends(worker)
    assert "newer than this program (revision 9999" in line
    assert "install the newer pgcombine" in line
    conn.execute(BACK, (schema.head(),))
    add(conn, {"a": 2})
    assert current(conn) == {"a": 3}


def test_worker_whose_functions_are_missing_records_no_failure(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, quarantine_after=1)
    with start_cli("worker", "--dsn", dsn) as worker:
        add(conn, {"a": 1})
        eventually(lambda: values(conn) == {"a": 1}, what="the worker combines")
        with conn.transaction():
            conn.execute(NEWER)
            conn.execute("alter function pgcombine_internal.plan_pass rename to plan_pass_anew")
            add(conn, {"a": 2})
        assert "revision 9999" in ends(worker)
    assert one(conn, "select count(*) from pgcombine.failure") == 0
    assert one(conn, "select count(*) from pgcombine.quarantined_key") == 0
    assert current(conn) == {"a": 3}


@pytest.mark.wc
@pytest.mark.parametrize(
    ("command", "name", "sessions"),
    [
        pytest.param(["export", "run", "out"], "pgcombine export worker", 2, marks=pytest.mark.slow),
        (["replicas", "run", "--poll", "0.2"], "pgcombine handoff", 1),
    ],
)
def test_other_daemons_end_after_an_upgrade(
    conn: psycopg.Connection, dsn: str, tmp_path: Path, command: list[str], name: str, sessions: int
) -> None:
    make_export(conn, export="out", exporter="files", target=str(tmp_path))
    with start_cli(*command, "--dsn", dsn) as daemon:
        connected = "select count(*) from pg_stat_activity where starts_with(application_name, %s)"
        eventually(lambda: one(conn, connected, name) >= sessions, what="the daemon works")
        conn.execute(NEWER)
        assert "revision 9999" in ends(daemon)


@pytest.mark.parametrize("command", [["worker"], ["replicas", "run"], ["export", "run", "out"]])
def test_daemon_without_a_schema_ends(empty_dsn: str, command: list[str]) -> None:
    with start_cli(*command, "--dsn", empty_dsn) as daemon:
        assert "has no pgcombine schema: run 'pgcombine db upgrade'" in ends(daemon)


@pytest.mark.slow
def test_page_waits_for_a_schema(empty_dsn: str) -> None:
    """The page says that there is no schema. Once the program has seen a schema, it ends if the schema changes."""
    with started("--dsn", empty_dsn) as (url, page):
        early = httpx2.get(url, trust_env=False, timeout=60)
        assert early.status_code == 503
        assert "has no pgcombine schema" in early.text
        schema.upgrade(empty_dsn)
        eventually(lambda: httpx2.get(url, trust_env=False, timeout=60).status_code == 200, what="the page is shown")
        assert page.stdout is not None
        assert any("web.database_back" in line for line in page.stdout), (
            "the page has not logged that it has seen its schema"
        )
        with psycopg.connect(empty_dsn, autocommit=True) as conn:
            conn.execute(NEWER)
        assert "revision 9999" in ends(page)
