"""Any role can set the settings ``pgcombine.*`` that functions and triggers read, and gains little by it."""

from __future__ import annotations

import re

import psycopg
import pytest
from support.queues import add, combine_all, one, values
from support.roles import Login
from support.states import raises_state

from pgcombine.database import sqlfiles

READ = re.compile(r"(?:current_setting|set_config|quote_literal)\('pgcombine\.(\w+)'")
FOUND = sorted({name for _, text in sqlfiles.repeatables() for name in READ.findall(text)})
KEPT = """select pgcombine.create_rollup('kept', source => 'source', key => array['k'], value => array['sum(n) as n'],
    keep => 'n > 0')"""


@pytest.mark.wc
@pytest.mark.parametrize("value", ["", "on", "off", "999"])
def test_settings_give_a_role_no_right_and_spoil_no_value(conn: psycopg.Connection, login: Login, value: str) -> None:
    conn.execute("create table source (k text, n int)")
    conn.execute(KEPT.encode())
    conn.execute("call pgcombine.backfill('kept')")
    role = login("insert, delete on source")
    conn.execute("select pgcombine.grant_right('enqueue', %s, 'wc')", (role.info.user,))
    assert {"cluster_identity", "fresh", "initialize_", "moving_"} <= set(FOUND)
    for name in FOUND:
        for queue in ("wc", "kept") if name.endswith("_") else ("",):
            role.execute("select set_config(%s, %s, false)", (f"pgcombine.{name}{queue}", value))
    add(role, {"a": 2})
    role.execute("insert into source values ('a', 5), ('a', -2)")
    role.execute("delete from source")
    for refused in "insert into pgcombine.wc_values values ('a', 9)", "select pgcombine_internal.sample('pending')":
        with raises_state("42501"):
            role.execute(refused.encode())
    combine_all(conn)
    combine_all(conn, "kept")
    assert values(conn) == {"a": 2}
    assert one(conn, "select n from pgcombine.kept") == 5
    for queue in "wc", "kept":
        assert conn.execute("select * from pgcombine.verify(%s)", (queue,)).fetchall() == []


def test_role_that_deletes_from_a_partitioned_source_decides_what_is_kept(
    conn: psycopg.Connection, login: Login
) -> None:
    """By the setting, or without it by a statement that also updates (see rollup_triggers)."""
    conn.execute("create table source (k text, n int) partition by list (n)")
    conn.execute("create table source_all partition of source default")
    conn.execute(KEPT.encode())
    conn.execute("call pgcombine.backfill('kept')")
    role = login("select, insert, update, delete on source")
    sums = []
    for before, delete in [
        ("select", "delete from source"),
        ("select", "with u as (update source set k = k where n is null) delete from source"),
        ("set pgcombine.moving_kept = 999", "delete from source"),
    ]:
        role.execute("insert into source values ('a', 5)")
        role.execute(before.encode())
        role.execute(delete.encode())
        sums.append(one(conn, "select sum(n)::int from pgcombine.kept"))
    assert sums == [5, 5, 5]
