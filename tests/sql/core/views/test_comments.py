"""pgcombine's tables, views, sequences, columns and routines have comments, which ``\\d+`` and ``\\df+`` show."""

from __future__ import annotations

import psycopg
import pytest
from support.exports import make_export
from support.queues import make_queue

RELATIONS = """
    select c.relname from pg_class c
    where c.relnamespace = 'pgcombine'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f', 'S')
      and obj_description(c.oid, 'pg_class') is null
    order by 1"""
COLUMNS = """
    select format('%s.%s', c.relname, a.attname) from pg_class c
    join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
    where c.relnamespace = 'pgcombine'::regnamespace and c.relkind in ('r', 'p', 'v', 'm', 'f') and not c.relispartition
      and col_description(c.oid, a.attnum) is null
    order by 1"""
ROUTINES = """
    select p.proname from pg_proc p
    where p.pronamespace = 'pgcombine'::regnamespace and obj_description(p.oid, 'pg_proc') is null
    order by 1"""


@pytest.mark.wc
def test_all_objects_have_a_comment(conn: psycopg.Connection) -> None:
    make_queue(
        conn,
        "orders",
        key=["day date", "shop text"],
        value=["status text last(at)", "at timestamptz max"],
        delete_when=None,
    )
    make_export(conn)
    conn.execute("select pgcombine.rebucket('wc', 2)")
    for missing in (RELATIONS, COLUMNS, ROUTINES):
        assert [name for (name,) in conn.execute(missing)] == []
    conn.execute("create table pgcombine.bare (a integer)")
    assert conn.execute(RELATIONS).fetchall() == [("bare",)], "the query misses a table without a comment"
    assert conn.execute(COLUMNS).fetchall() == [("bare.a",)]


def test_comments_describe_types_and_combiners(conn: psycopg.Connection) -> None:
    make_queue(
        conn,
        "orders",
        key=["day date", "shop text"],
        value=["status text last(at)", "at timestamptz max"],
        delete_when=None,
    )
    found = dict(
        conn.execute(
            "select format('%s.%s', c.relname, a.attname), col_description(c.oid, a.attnum)"
            " from pg_class c join pg_attribute a on a.attrelid = c.oid where c.relname like 'orders\\_%'"
        ).fetchall()
    )
    assert found["orders_updates.day"] == "Key: date."
    assert found["orders_updates.status"] == "The update's operand of last(at)."
    assert found["orders_current.status"] == "Value, combined by last(at)."
    assert found["orders_quarantine_keys.shop"] == "Key: text."
