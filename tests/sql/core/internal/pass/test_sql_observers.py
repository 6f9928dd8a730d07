"""SQL observers: statements that read ``changes`` or ``arrived``, and run as a part of the pass's own statement."""

from __future__ import annotations

import re

import psycopg
import pytest
from psycopg import sql
from support.queues import add, combine_all, hold, make_queue, one, rows, values
from support.states import raises_state

from pgcombine import schema


def observe(conn: psycopg.Connection, name: str, statement: str) -> None:
    conn.execute("select pgcombine.add_observer('wc', %s, %s)", (name, statement))


@pytest.mark.wc(buckets=1)
def test_several_observers_see_the_same_changes(conn: psycopg.Connection) -> None:
    make_queue(conn, "totals", key=["first text"], buckets=1)
    conn.execute("create table audit (word text, old_n bigint, new_n bigint)")
    conn.execute("create table seen (words text[])")
    conn.execute("create function see(words text[]) returns void language sql as $$ insert into seen values (words) $$")
    observe(conn, "audit", "insert into audit select word, old_n, new_n from changes;")
    observe(
        *(conn, "totals"),
        "insert into pgcombine.totals_updates "
        "select left(word, 1), coalesce(new_n, 0) - coalesce(old_n, 0) from changes",
    )
    observe(conn, "see", "select see(array_agg(word order by word)) from changes")
    add(conn, [("ab", 1), ("ac", 2), ("b", 1), ("b", -1)])
    combine_all(conn)
    add(conn, [("ab", -1), ("ac", 1)])
    combine_all(conn)
    combine_all(conn, "totals")
    assert values(conn, "totals") == {"a": 3}
    assert sorted(conn.execute("select * from audit").fetchall(), key=str) == sorted(
        [("ab", None, 1), ("ac", None, 2), ("ab", 1, None), ("ac", 2, 3)], key=str
    )
    assert conn.execute("select words from seen").fetchall() == [(["ab", "ac"],), (["ab", "ac"],)]

    conn.execute("select pgcombine.drop_observer('wc', 'audit')")
    add(conn, {"ab": 1})
    combine_all(conn)
    assert one(conn, "select count(*) from audit") == 4
    assert one(conn, "select count(*) from seen") == 3


@pytest.mark.wc(buckets=1)
@pytest.mark.parametrize(
    "statement",
    [
        "select see(word) from changes",
        "(select see(word) from changes)",
        "-- what changed\nselect see(word) from changes",
        "/* what (changed) **/ -- here\n select see(word) from changes",
        "with words as (select word from changes) select see(word) from words",
        "with words as (select word from changes) insert into seen select word from words returning *",
        "table changes union all (select see(word), null, null from changes)",
        "values (see((select word from changes)))",
    ],
)
def test_observer_runs_whatever_keyword_it_begins_with(conn: psycopg.Connection, statement: str) -> None:
    conn.execute("create table seen (word text)")
    conn.execute(
        "create function see(word text) returns text language sql "
        "as $$ insert into seen values (word) returning word $$"
    )
    observe(conn, "see", statement)
    add(conn, {"a": 1})
    combine_all(conn)
    assert conn.execute("select word from seen").fetchall() == [("a",)]


@pytest.mark.wc(buckets=1)
def test_observer_that_postgresql_would_skip_is_refused(conn: psycopg.Connection) -> None:
    """PostgreSQL skips a CTE that only reads and whose result is unused."""
    statement = "with words as (select 'delete ' || word as word from changes) select quote_literal(word) from words"
    with raises_state("PC003"):
        observe(conn, "see", statement)
    observe(conn, "see", f"select * from ({statement}) as quoted")  # noqa: S608


@pytest.mark.wc
@pytest.mark.parametrize(
    ("name", "statement", "sqlstate"),
    [
        ("x", "insert into nowhere select * from changes", "PC003"),
        ("x", "insert into audit select nothing from changes", "PC003"),
        ("x", "insert into audit select word from changes; drop table audit", "PC003"),
        ("x", "drop table audit", "PC003"),
        ("x", " ", "PC003"),
        ("", "select 1", "PC003"),
        ("taken", "select 1", "PC002"),
    ],
)
def test_invalid_statements_are_refused(conn: psycopg.Connection, name: str, statement: str, sqlstate: str) -> None:
    conn.execute("create table audit (word text)")
    observe(conn, "taken", "insert into audit select word from changes")
    with raises_state(sqlstate):
        observe(conn, name, statement)
    add(conn, {"a": 1})
    combine_all(conn)
    assert conn.execute("select * from audit").fetchall() == [("a",)]


@pytest.mark.wc(buckets=1)
def test_an_observer_that_raises_rolls_the_pass_back(conn: psycopg.Connection) -> None:
    conn.execute("create table audit (word text check (word <> 'bad'))")
    observe(conn, "audit", "insert into audit select word from changes")
    add(conn, {"good": 1, "bad": 1})
    with pytest.raises(psycopg.errors.CheckViolation):
        combine_all(conn)
    assert rows(conn, "wc_pending") == [("bad", 1), ("good", 1)]
    assert values(conn) == {}
    conn.execute("alter table audit drop constraint audit_word_check")
    combine_all(conn)
    assert values(conn) == {"good": 1, "bad": 1}
    assert sorted(conn.execute("select word from audit").fetchall()) == [("bad",), ("good",)]


PARTS = ["updates", "held", "counted", "folded", "combined", "removed", "updated", "inserted", "observer_1"]
TAKEN = ["quarantining", "counted", "folded", "combined", "removed", "updated", "inserted", "observer_1"]


@pytest.mark.wc(buckets=1)
def test_ctes_of_a_pass_have_a_prefix(conn: psycopg.Connection) -> None:
    conn.execute("create table audit (word text)")
    observe(conn, "audit", "insert into audit select word from changes")
    hold(conn, word="held")
    add(conn, {"a": 1})
    conn.execute("set plan_cache_mode = force_generic_plan")
    name = one(conn, "select pgcombine_internal.prepare_pass(q, 0) from pgcombine.queue q")
    plan = conn.execute(f"explain (costs off) execute {name} ({', '.join(['null'] * 9)})".encode())
    parts = {line.split()[-1] for (line,) in plan if line.strip().startswith("CTE ")}
    assert parts == {"changes", *(f"pgcombine_{name}" for name in TAKEN)}


@pytest.mark.wc(buckets=1)
@pytest.mark.parametrize(
    "form", ["insert into audit select 'x' from {}", "with f as (select from {}) select word from changes, f"]
)
def test_observer_reads_no_internal_cte(conn: psycopg.Connection, form: str) -> None:
    conn.execute("create table audit (word text)")
    observe(conn, "first", "insert into audit select word from changes returning word")
    hold(conn, word="quarantined")
    for name in (*PARTS, *(f"pgcombine_{name}" for name in TAKEN), 'U&"pgcombine\\005Ffolded"', "unnest($1)"):
        with raises_state("PC003") as refused:
            observe(conn, "second", form.format(name))
        shown = {"unnest($1)": "$1"}.get(name, name if name.islower() else "pgcombine_folded")
        assert shown in str(refused.value)


@pytest.mark.wc(buckets=1)
def test_observer_may_use_tables_named_like_ctes(conn: psycopg.Connection) -> None:
    """A pass's internal CTEs have the prefix ``pgcombine_``, so a table may have a CTE's name without the prefix."""
    conn.execute("create table audit (word text, n int)")
    for number, name in enumerate(PARTS):
        table = sql.Identifier(name)
        conn.execute(sql.SQL("create table {} (n int)").format(table))
        conn.execute(sql.SQL("insert into {} values ({})").format(table, number))
        observe(conn, name, f"insert into audit select word, n from changes, {name}")  # noqa: S608
    add(conn, {"a": 1})
    hold(conn, word="held")
    assert sorted(n for _, n in conn.execute("select * from audit")) == list(range(len(PARTS)))
    conn.execute("create view pgcombine_folded as select 1")
    with raises_state("PC003") as refused:
        observe(conn, "last", "insert into audit select word, 1 from changes")
    assert refused.value.diag.message_hint == "rename the table or view"


def test_no_observer_is_added_beside_a_relation_named_like_a_part(conn: psycopg.Connection) -> None:
    """The test takes the names from the statement of a pass with an observer, computed columns and expiry."""
    make_queue(conn, buckets=1, expire_when="n > 5")
    conn.execute("create table audit (word text)")
    observe(conn, "audit", "insert into audit select word from changes")
    conn.execute(
        "update pgcombine.queue set computed = "
        """'{"columns": ["n"], "query": "select word, 1::bigint as n from pgcombine_touched"}'"""
    )
    statement = one(conn, "select pgcombine_internal.pass_template('wc')")
    parts = set(re.findall(r"\bpgcombine_\w+(?= as (?:not materialized |materialized )?\()", statement))
    assert len(parts) == len(TAKEN) + 3  # TAKEN lacks updates, touched and computed
    for part in parts | {"pgcombine_quarantined"}:
        conn.execute(sql.SQL("create view {} as select 1").format(sql.Identifier(part)))
        with raises_state("PC003", part):
            conn.execute("select pgcombine_internal.check_observer('wc', 'audit')")
        conn.execute(sql.SQL("drop view {}").format(sql.Identifier(part)))


@pytest.mark.wc(buckets=1)
def test_upgrade_refuses_an_observer_of_a_former_cte(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table audit (word text)")
    observe(conn, "audit", "insert into audit select word from changes")
    conn.execute("alter table audit rename to gone")
    schema.upgrade(dsn)
    conn.execute(
        "insert into pgcombine.observer (queue, observer, language, statement)"
        " values ('wc', 'former', 'sql', 'insert into public.gone select word from folded')"
    )
    with pytest.raises(Exception, match='"former"'):
        schema.upgrade(dsn)
    conn.execute("select pgcombine.drop_observer('wc', 'former')")
    schema.upgrade(dsn)


@pytest.mark.wc(buckets=1)
def test_observer_may_contain_a_control_character(conn: psycopg.Connection) -> None:
    conn.execute("create table audit (word text)")
    observe(conn, "audit", "insert into audit select 'a\x01b' from changes")
    add(conn, {"a": 1})
    combine_all(conn)
    assert conn.execute("select * from audit").fetchall() == [("a\x01b",)]


def test_an_observer_reads_the_folded_updates(conn: psycopg.Connection) -> None:
    """``arrived`` has the folded updates of each key, even if they change nothing, but no quarantined keys."""
    make_queue(conn, value=["n bigint sum", "top int max"], buckets=1)
    conn.execute("create table audit (word text, n bigint, top int)")
    observe(conn, "audit", "insert into audit select word, n, top from arrived")
    insert = "insert into pgcombine.wc_updates (word, n, top) values "
    arrived = "delete from audit returning word, n, top"
    conn.execute(f"{insert} ('a', 1, 5), ('a', 2, 3), ('b', 1, 1), ('b', -1, null)".encode())
    combine_all(conn)
    assert sorted(conn.execute(arrived).fetchall()) == [("a", 3, 5), ("b", 0, 1)]
    conn.execute(f"{insert} ('a', 4, 2), ('a', -4, 4)".encode())
    assert [changes for _, _, _, changes, _ in combine_all(conn)] == [0]
    assert conn.execute(arrived).fetchall() == [("a", 0, 4)]
    hold(conn, word="held")
    conn.execute(f"{insert} ('held', 1, 1), ('c', 1, 1)".encode())
    combine_all(conn)
    assert conn.execute(arrived).fetchall() == [("c", 1, 1)]
    conn.execute("select pgcombine.retry_quarantined('wc')")
    combine_all(conn)
    assert conn.execute(arrived).fetchall() == [("held", 1, 1)]


@pytest.mark.wc(buckets=1)
def test_keys_that_expire_dont_arrive_but_their_late_updates_do(conn: psycopg.Connection) -> None:
    conn.execute("create table audit (word text, n bigint)")
    observe(conn, "audit", "insert into audit select word, n from arrived")
    observe(conn, "read", "select count(*) from arrived")
    add(conn, {"a": 1, "b": 2})
    combine_all(conn)
    assert sorted(conn.execute("delete from audit returning word, n").fetchall()) == [("a", 1), ("b", 2)]
    conn.execute("select pgcombine.set_expiry('wc', 'n = 1')")
    conn.execute("call pgcombine.expire('wc')")
    assert values(conn) == {"b": 2}
    assert conn.execute("select * from audit").fetchall() == []
    conn.execute("select pgcombine.set_expiry('wc', 'true')")
    add(conn, {"late": 7})
    combine_all(conn)
    assert "late" not in values(conn)
    assert conn.execute("select * from audit").fetchall() == [("late", 7)]


@pytest.mark.wc(buckets=1)
def test_the_plan_has_no_folded_updates_for_observers_that_dont_read_them(conn: psycopg.Connection) -> None:
    conn.execute("create table audit (word text)")
    observe(conn, "audit", "insert into audit select word from changes")

    def scans() -> int:
        name = one(conn, "select pgcombine_internal.prepare_pass(q, 0) from pgcombine.queue q")
        plan = conn.execute(f"explain (costs off) execute {name} ({', '.join(['null'] * 9)})".encode()).fetchall()
        return sum("CTE Scan on pgcombine_folded" in line for (line,) in plan)

    conn.execute("set plan_cache_mode = force_generic_plan")
    without = scans()
    observe(conn, "feed", "insert into audit select word from arrived")
    assert scans() == without + 1
