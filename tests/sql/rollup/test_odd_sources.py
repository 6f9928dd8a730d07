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
def test_rows_with_a_long_key_can_be_taken_away(tx: psycopg.Connection, type_: str) -> None:
    long = TYPES[type_]
    tx.execute(f"create table src (k {type_}, n int, note text)".encode())
    tx.execute(f"insert into src values ({long}, 1, ''), (null, 2, '')".encode())  # noqa: S608
    tx.execute("select pgcombine.create_rollup('r', 'src', '{k}', '{sum(n) as n,max(n) as m}')")
    tx.execute("call pgcombine.backfill('r')")
    tx.execute("update src set note = 'a'")
    with pytest.raises(psycopg.errors.CheckViolation):
        tx.execute(f"insert into src values ({long}, 1)".encode())  # noqa: S608
    told = tx.execute("select problem from pgcombine.verify_rollup('r')").fetchall()
    assert told == [("1 rows of public.src don't count, since their keys have more than 2600 bytes",)]
    tx.execute("delete from src where k is not null")
    tx.execute("truncate src")
    tx.execute("call pgcombine.drain('r')")
    assert tx.execute("table pgcombine.r").fetchall() == []
    assert tx.execute("select problem from pgcombine.verify_rollup('r')").fetchall() == []


def test_rows_with_a_long_extreme_can_be_taken_away(tx: psycopg.Connection) -> None:
    tx.execute("create table src (k int, t text)")
    tx.execute(f"insert into src values (1, {LONG_VALUE}), (1, 'a'), (2, {LONG_VALUE})".encode())  # noqa: S608
    tx.execute("select pgcombine.create_rollup('r', 'src', '{k}', '{max(t) as t,count(*) as n}')")
    tx.execute("call pgcombine.backfill('r')")
    tx.execute("update src set k = k")
    with pytest.raises(psycopg.errors.CheckViolation):
        tx.execute(f"insert into src values (3, {LONG_VALUE})".encode())  # noqa: S608
    tx.execute("delete from src where t <> 'a'")
    tx.execute("call pgcombine.drain('r')")
    assert tx.execute("select k, t, n from pgcombine.r").fetchall() == [(1, "a", 1)]
    assert tx.execute("select problem from pgcombine.verify_rollup('r')").fetchall() == []


def test_key_with_a_null_field_counts(tx: psycopg.Connection) -> None:
    tx.execute("create type pair as (x int, y int); create table src (p pair)")
    tx.execute("insert into src values ((1, 2)), ((1, null))")
    tx.execute("select pgcombine.create_rollup('r', 'src', '{p}', '{count(*) as n}')")
    tx.execute("call pgcombine.backfill('r')")
    tx.execute("insert into src values ((1, null)), ((null, null)), (null)")
    query = "select p::text, count(*) from src where p is distinct from null group by p"
    assert tx.execute(f"(select p::text, n from pgcombine.r) except all ({query})".encode()).fetchall() == []  # noqa: S608
    assert tx.execute("select sum(n) from pgcombine.r").fetchone() == (4,)


def test_verify_leaves_expired_keys_alone(tx: psycopg.Connection) -> None:
    tx.execute("create table src (k text, day date); insert into src values ('old', '2020-01-01')")
    tx.execute("select pgcombine.create_rollup('r', 'src', '{k,day}', '{count(*) as n}')")
    tx.execute("call pgcombine.backfill('r')")
    tx.execute("select pgcombine.set_expiry('r', 'day < now() - interval ''30 days''')")
    tx.execute("insert into src values ('new', current_date)")
    tx.execute("call pgcombine.drain('r')")
    tx.execute("call pgcombine.expire('r')")
    verify = "select problem from pgcombine.verify_rollup('r', repair => true)"
    assert tx.execute(verify).fetchall() == []
    tx.execute("insert into pgcombine.r_updates (k, day, n) values ('new', current_date, 1)")
    assert len(tx.execute(verify).fetchall()) == 1
    assert tx.execute("select k, n from pgcombine.r").fetchall() == [("new", 1)]


def test_writer_of_a_source_can_be_prepared(tx: psycopg.Connection, module_dsn: str) -> None:
    """A worker that listens holds the idle lock; then writers of a queue notify, which can't be prepared."""
    tx.execute("create table src (k text)")
    tx.execute("select pgcombine.create_rollup('r', 'src', '{k}', '{count(*) as n}')")
    with psycopg.connect(module_dsn, autocommit=True) as worker:
        worker.execute("select pgcombine_internal.take_idle_lock('pgcombine.r_updates'::regclass)")
        tx.execute("begin; insert into src values ('a'); prepare transaction 'pgcombine_test'")
        tx.execute("commit prepared 'pgcombine_test'")
    assert tx.execute("select k, n from pgcombine.r").fetchall() == [("a", 1)]


def test_unlogged_source_is_refused(tx: psycopg.Connection) -> None:
    tx.execute("create unlogged table src (k text)")
    create = "select pgcombine.create_rollup('r', 'src', '{k}', '{count(*) as n}')"
    with raises_state("PC003"):
        tx.execute(create)
    tx.execute("alter table src set logged")
    tx.execute(create)
    tx.execute("alter table src set unlogged")
    problems = "select problem from pgcombine_internal.rollup_problems('r') where problem like '%unlogged%'"
    assert len(tx.execute(problems).fetchall()) == 1


def test_drop_needs_foreign_keys(tx: psycopg.Connection) -> None:
    tx.execute("create table src (k text)")
    tx.execute("select pgcombine.create_rollup('r', 'src', '{k}', '{count(*) as n}')")
    tx.execute("set session_replication_role = replica")
    with raises_state("PC003"):
        tx.execute("select pgcombine.drop_rollup('r')")
    tx.execute("reset session_replication_role; select pgcombine.drop_rollup('r')")
    tx.execute("select pgcombine.create_queue('r', '{k text}', '{n int sum}')")
