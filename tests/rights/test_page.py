"""The page ``rights.md``: its statements work, and its table lists each right."""

from __future__ import annotations

import re
from importlib import resources

import psycopg
import pytest
from psycopg import sql
from support.queues import one

PAGE = resources.files("pgcombine").joinpath("docs", "rights.md").read_text(encoding="utf-8")


@pytest.mark.wc
def test_statements_of_the_page_run(conn: psycopg.Connection) -> None:
    role = f"counter_{conn.info.backend_pid}"
    for block in re.findall(r"^```sql\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL):
        conn.execute(block.replace("counter", role).encode())
    left = {privilege for (privilege,) in conn.execute('select "right" from pgcombine.rights where role = %s', (role,))}
    assert left == {"enqueue"}
    for end in ("drop owned by {}", "drop role {}"):
        conn.execute(sql.SQL(end).format(sql.Identifier(role)))


@pytest.mark.wc
def test_table_of_the_page_lists_each_right(conn: psycopg.Connection) -> None:
    calls = re.findall(r"^\| .* \| `(grant_right\('(\w+)', 'app'.*?\))` \|$", PAGE, re.MULTILINE)
    assert sorted(right for _, right in calls) == sorted(
        one(conn, 'select array_agg(distinct "right") from pgcombine.right_privilege')
    )
    role = f"app_{conn.info.backend_pid}"
    conn.execute(sql.SQL("create role {}").format(sql.Identifier(role)))
    for call, _ in calls:
        conn.execute(f"select pgcombine.{call.replace('app', role)}".encode())
    for end in ("drop owned by {}", "drop role {}"):
        conn.execute(sql.SQL(end).format(sql.Identifier(role)))
