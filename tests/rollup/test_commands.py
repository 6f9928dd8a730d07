"""The verbs of ``pgcombine rollup``, and what ``pgcombine status`` says about rollups."""

from __future__ import annotations

import json

import psycopg
import pytest
from support import run_cli
from support.queues import one, rows


@pytest.fixture
def spend(conn: psycopg.Connection, dsn: str) -> str:
    """The URI of a database with a rollup that isn't backfilled."""
    conn.execute("create table public.requests (customer text, tokens int)")
    conn.execute("create index on public.requests (customer)")
    conn.execute("insert into public.requests values ('acme', 5), ('acme', 7), ('duck', 1)")
    values = ("--value", "count(*) as requests", "--value", "max(tokens) as most")
    made = run_cli(
        *("rollup", "create", "spend", "--source", "requests", "--key", "customer", *values),
        *("--filter", "tokens > 1", "--keep", "tokens < 9", "--slice-by", "tokens", "--dsn", dsn),
    )
    assert (made.returncode, made.stdout) == (0, "created: spend\n"), made.stderr
    return dsn


def test_rollup_is_listed_shown_backfilled_verified_and_dropped(conn: psycopg.Connection, spend: str) -> None:
    listed = run_cli("rollup", "ls", "--dsn", spend).stdout
    assert "not backfilled" in listed
    assert "count(*) as requests, max(tokens) as most" in listed
    refused = run_cli("rollup", "verify", "spend", "--dsn", spend)
    assert (refused.returncode, refused.stderr) == (
        1,
        "pgcombine: rollup \"spend\" isn't backfilled yet (call pgcombine.backfill('spend'))\n",
    )
    filled = run_cli("rollup", "backfill", "spend", "--dsn", spend)
    assert (filled.stdout, filled.stderr) == ("backfilled: spend\n", "")
    assert rows(conn, "spend") == [("acme", 2, 7)]
    lines = [line.split(":", 1) for line in run_cli("rollup", "show", "spend", "--dsn", spend).stdout.splitlines()]
    shown = [(name, text.strip()) for name, text in lines if name != "ready_at"]
    assert shown == [
        ("rollup", "spend"),
        ("source", "requests"),
        ("key", "customer"),
        ("value", "count(*) as requests"),
        ("value", "max(tokens) as most"),
        ("filter", "tokens > 1"),
        ("keep", "tokens < 9"),
        ("slice_by", "tokens"),
        ("state", "ready"),
    ]
    assert run_cli("rollup", "verify", "spend", "--dsn", spend).stdout == "verified: spend\n"
    asked = run_cli("rollup", "drop", "spend", "--dsn", spend)
    assert 'rollup "spend" of requests will be dropped' in asked.stderr
    dropped = run_cli("rollup", "drop", "spend", "--yes", "--json", "--dsn", spend)
    assert json.loads(dropped.stdout)["rollup"] == "spend"
    assert one(conn, "select count(*) from pgcombine.queue") == 0
    missing = run_cli("rollup", "show", "spend", "--dsn", spend)
    assert missing.stderr == 'pgcombine: there is no rollup "spend" (pgcombine rollup ls lists them)\n'


def test_verify_reports_and_repairs_keys_that_differ(conn: psycopg.Connection, spend: str) -> None:
    run_cli("rollup", "backfill", "spend", "--dsn", spend)
    conn.execute("insert into pgcombine.spend_updates (customer, requests) values ('acme', 3)")
    told = run_cli("rollup", "verify", "spend", "--dsn", spend)
    assert (told.returncode, told.stdout) == (1, "key (acme): requests lacks -3\n")
    assert told.stderr == 'pgcombine: rollup "spend" has 1 problem\n'
    repaired = run_cli("rollup", "verify", "spend", "--repair", "--json", "--dsn", spend)
    assert repaired.stderr == 'pgcombine: rollup "spend" had 1 problem\n'
    assert json.loads(repaired.stdout) == {
        "rollup": "spend",
        "problems": ["key (acme): requests lacks -3"],
        "repaired": True,
    }
    assert run_cli("rollup", "verify", "spend", "--dsn", spend).returncode == 0


def test_status_and_show_say_what_is_missing(conn: psycopg.Connection, spend: str) -> None:
    assert "spend: not backfilled, rows may be missing\n" in run_cli("status", "--dsn", spend).stdout
    run_cli("rollup", "backfill", "spend", "--dsn", spend)
    assert "spend:" not in run_cli("status", "--dsn", spend).stdout
    conn.execute("drop event trigger if exists pgcombine_follow_ddl")
    conn.execute("alter table public.requests disable trigger pgcombine_spend_insert")
    problem = "trigger pgcombine_spend_insert of requests is disabled: run pgcombine db upgrade"
    assert f"spend: {problem}\n" in run_cli("status", "--dsn", spend).stdout
    (found,) = json.loads(run_cli("status", "--json", "--dsn", spend).stdout)["rollups"]
    assert (found["rollup"], found["state"], found["problems"]) == ("spend", "ready", [problem])
    assert problem in run_cli("rollup", "show", "spend", "--dsn", spend).stdout
    assert json.loads(run_cli("rollup", "show", "spend", "--json", "--dsn", spend).stdout)["problems"] == [problem]
