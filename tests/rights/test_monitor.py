"""A role with the right to monitor sees statistics, but no key in columns, web pages or the output of commands."""

from __future__ import annotations

import json
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from support import run_cli
from support.exports import make_export
from support.queues import add, combine_all, hold, make_queue, one
from support.roles import Roles, as_role
from support.servers import embedded_only
from support.site import served

from pgcombine.doctor import examine

KEY = "secretkey"
COLUMNS = """
    select c.oid::regclass::text, array_agg(a.attname::text order by a.attnum)
    from pg_class c join pg_namespace n on n.oid = c.relnamespace join pg_attribute a on a.attrelid = c.oid
    where n.nspname in ('pgcombine', 'pgcombine_internal', 'information_schema') and c.relkind in ('r', 'p', 'v', 'm')
      and a.attnum > 0 and not a.attisdropped and has_column_privilege(c.oid, a.attnum, 'select')
    group by c.oid
"""


@pytest.fixture
def failing(conn: psycopg.Connection) -> psycopg.Connection:
    """A queue with errors of a pass, of expiry, of the quarantine and of a destination. The errors name a key."""
    make_queue(conn)
    make_export(conn)
    add(conn, {KEY: 7, "other": 1})
    combine_all(conn)
    add(conn, {KEY: 1})
    hold(conn, "wc", 5, f"can't take {KEY}", word=KEY)
    add(conn, {KEY: 1})
    conn.execute("select pgcombine_internal.fail_pass('wc', 0, '22003', %s)", (f"{KEY} is out of range",))
    conn.execute(
        "insert into pgcombine.expiry (queue, bucket, page, due, sqlstate, error, failed_at, failed_page) "
        "values ('wc', 1, 0, now(), 'P0001', %s, now(), 0)",
        (f"{KEY} stays",),
    )
    conn.execute("select pgcombine_internal.report_destination('export', 'search', null, %s)", (f"HTTP 500: no {KEY}",))
    return conn


def seen(role: psycopg.Connection) -> dict[str, str]:
    """Return the text of the columns that a role can read, by relation."""
    found = {}
    for relation, columns in role.execute(COLUMNS).fetchall():
        statement = sql.SQL("select coalesce(string_agg(({})::text, ' '), '') from (select {} from {}) t").format(
            sql.SQL("t.*"), sql.SQL(", ").join(map(sql.Identifier, columns)), sql.SQL(relation)
        )
        try:
            found[relation] = one(role, statement.as_string())
        except psycopg.errors.InsufficientPrivilege:  # a view of a table that the role may not read
            continue
    return found


def test_columns_show_no_key(failing: psycopg.Connection, dsn: str) -> None:
    with Roles(failing, dsn) as roles:
        monitor = roles.login()
        failing.execute("select pgcombine.grant_right('monitor', %s)", (monitor.info.user,))
        found = seen(monitor)
        assert {"pgcombine.bucket_stat", "pgcombine.destination"} <= set(found)
        assert [relation for relation, text in found.items() if KEY in text] == []
        assert "22003" in found["pgcombine.bucket_stat"]
        errors = monitor.execute(
            "select expires, sqlstate, error from pgcombine_internal.failures() order by 1"
        ).fetchall()
        assert errors == [(False, "22003", None), (True, "P0001", None)]


def test_workers_see_errors(failing: psycopg.Connection, dsn: str) -> None:
    with Roles(failing, dsn) as roles:
        role = roles.login()
        failing.execute("select pgcombine.grant_right('work', %s)", (role.info.user,))
        errors = role.execute("select error from pgcombine_internal.failures() order by 1").fetchall()
        assert errors == [(f"{KEY} is out of range",), (f"{KEY} stays",)]
        assert one(role, "select error from pgcombine.failure") == f"{KEY} is out of range"


@embedded_only
def test_pages_and_commands_show_no_key(failing: psycopg.Connection, dsn: str, tmp_path: Path) -> None:
    with Roles(failing, dsn) as roles:
        user = roles.login().info.user
        failing.execute("select pgcombine.grant_right('monitor', %s)", (user,))
        mine = as_role(dsn, user)
        with served(mine) as client:
            for path in (
                "/",
                "/queues/wc",
                "/queues/wc/keys",
                "/queues/wc/quarantine/1",
                "/exports",
                "/servers",
                "/loads",
            ):
                assert KEY not in client.get(path).text, path
        told = [finding for finding in examine.examine(mine) if finding.subject in ("wc", "search")]
        assert any("SQLSTATE 22003" in finding.found for finding in told)
        assert KEY not in str(told)
        for arguments in (["status"], ["status", "--json"], ["export", "ls", "--json"]):
            done = run_cli(*arguments, "--dsn", mine)
            assert done.returncode == 0, done.stderr
            assert KEY not in done.stdout + done.stderr
        (queue,) = json.loads(run_cli("status", "--json", "--dsn", mine).stdout)["queues"]
        assert [bucket["sqlstate"] for bucket in queue["failing_buckets"]] == ["22003"]
