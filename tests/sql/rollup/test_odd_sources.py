"""Sources with rows that a queue can't take, keys with null fields, expired keys, prepared transactions."""

from __future__ import annotations

import psycopg
import pytest
from support.states import raises_state

LONG = "(select string_agg(md5(i::text), '') from generate_series(1, {}) i)"
TYPES = {  # a key of this type that is too long for a queue
    "text": LONG.format(200),
    "varchar": LONG.format(200),
    "bytea": f"decode({LONG.format(200)}, 'hex')",
    "jsonb": f"to_jsonb({LONG.format(200)})",
    "text[]": f"array[{LONG.format(200)}]",
    "numeric": "repeat('123456789', 900)::numeric",
}
LONG_VALUE = LONG.format(40_000)  # 1.2 MB


@pytest.mark.parametrize("type_", TYPES)
def test_rows_with_a_long_key_can_be_taken_away(conn: psycopg.Connection, type_: str) -> None:
    long = TYPES[type_]
    conn.execute(f"create table src (k {type_}, n int, note text)".encode())
    conn.execute(f"insert into src values ({long}, 1, ''), (null, 2, '')".encode())  # noqa: S608
    conn.execute("select pgcombine.create_rollup('r', 'src', '{k}', '{sum(n) as n,max(n) as m}')")
    conn.execute("call pgcombine.backfill('r')")
    conn.execute("update src set note = 'a'")
    with pytest.raises(psycopg.errors.CheckViolation):
        conn.execute(f"insert into src values ({long}, 1)".encode())  # noqa: S608
    told = conn.execute("select problem from pgcombine.verify_rollup('r')").fetchall()
    assert told == [("1 rows of public.src don't count, since their keys have more than 2600 bytes",)]
    conn.execute("delete from src where k is not null")
    conn.execute("truncate src")
    conn.execute("call pgcombine.drain('r')")
    assert conn.execute("table pgcombine.r").fetchall() == []
    assert conn.execute("select problem from pgcombine.verify_rollup('r')").fetchall() == []


def test_rows_with_a_long_extreme_can_be_taken_away(conn: psycopg.Connection) -> None:
    conn.execute("create table src (k int, t text)")
    conn.execute(f"insert into src values (1, {LONG_VALUE}), (1, 'a'), (2, {LONG_VALUE})".encode())  # noqa: S608
    conn.execute("select pgcombine.create_rollup('r', 'src', '{k}', '{max(t) as t,count(*) as n}')")
    conn.execute("call pgcombine.backfill('r')")
    conn.execute("update src set k = k")
    with pytest.raises(psycopg.errors.CheckViolation):
        conn.execute(f"insert into src values (3, {LONG_VALUE})".encode())  # noqa: S608
    conn.execute("delete from src where t <> 'a'")
    conn.execute("call pgcombine.drain('r')")
    assert conn.execute("select k, t, n from pgcombine.r").fetchall() == [(1, "a", 1)]
    assert conn.execute("select problem from pgcombine.verify_rollup('r')").fetchall() == []


def test_key_with_a_null_field_counts(conn: psycopg.Connection) -> None:
    conn.execute("create type pair as (x int, y int); create table src (p pair)")
    conn.execute("insert into src values ((1, 2)), ((1, null))")
    conn.execute("select pgcombine.create_rollup('r', 'src', '{p}', '{count(*) as n}')")
    conn.execute("call pgcombine.backfill('r')")
    conn.execute("insert into src values ((1, null)), ((null, null)), (null)")
    query = "select p::text, count(*) from src where p is distinct from null group by p"
    assert conn.execute(f"(select p::text, n from pgcombine.r) except all ({query})".encode()).fetchall() == []  # noqa: S608
    assert conn.execute("select sum(n) from pgcombine.r").fetchone() == (4,)


def test_verify_leaves_expired_keys_alone(conn: psycopg.Connection) -> None:
    conn.execute("create table src (k text, day date); insert into src values ('old', '2020-01-01')")
    conn.execute("select pgcombine.create_rollup('r', 'src', '{k,day}', '{count(*) as n}')")
    conn.execute("call pgcombine.backfill('r')")
    conn.execute("select pgcombine.set_expiry('r', 'day < now() - interval ''30 days''')")
    conn.execute("insert into src values ('new', current_date)")
    conn.execute("call pgcombine.drain('r')")
    conn.execute("call pgcombine.expire('r')")
    verify = "select problem from pgcombine.verify_rollup('r', repair => true)"
    assert conn.execute(verify).fetchall() == []
    conn.execute("insert into pgcombine.r_updates (k, day, n) values ('new', current_date, 1)")
    assert len(conn.execute(verify).fetchall()) == 1
    assert conn.execute("select k, n from pgcombine.r").fetchall() == [("new", 1)]


def test_writer_of_a_source_can_be_prepared(conn: psycopg.Connection, dsn: str) -> None:
    """A worker that listens holds the idle lock; then writers of a queue notify, which can't be prepared."""
    conn.execute("create table src (k text)")
    conn.execute("select pgcombine.create_rollup('r', 'src', '{k}', '{count(*) as n}')")
    with psycopg.connect(dsn, autocommit=True) as worker:
        worker.execute("select pgcombine_internal.take_idle_lock('pgcombine.r_updates'::regclass)")
        conn.execute("begin; insert into src values ('a'); prepare transaction 'pgcombine_test'")
        conn.execute("commit prepared 'pgcombine_test'")
    assert conn.execute("select k, n from pgcombine.r").fetchall() == [("a", 1)]


def test_unlogged_source_is_refused(conn: psycopg.Connection) -> None:
    conn.execute("create unlogged table src (k text)")
    create = "select pgcombine.create_rollup('r', 'src', '{k}', '{count(*) as n}')"
    with raises_state("PC003"):
        conn.execute(create)
    conn.execute("alter table src set logged")
    conn.execute(create)
    conn.execute("alter table src set unlogged")
    problems = "select problem from pgcombine_internal.rollup_problems('r') where problem like '%unlogged%'"
    assert len(conn.execute(problems).fetchall()) == 1


def test_drop_needs_foreign_keys(conn: psycopg.Connection) -> None:
    conn.execute("create table src (k text)")
    conn.execute("select pgcombine.create_rollup('r', 'src', '{k}', '{count(*) as n}')")
    conn.execute("set session_replication_role = replica")
    with raises_state("PC003"):
        conn.execute("select pgcombine.drop_rollup('r')")
    conn.execute("reset session_replication_role; select pgcombine.drop_rollup('r')")
    conn.execute("select pgcombine.create_queue('r', '{k text}', '{n int sum}')")
