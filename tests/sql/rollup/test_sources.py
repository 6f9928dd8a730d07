"""Rollups in unusual sessions, and changes of their sources' definitions.

The rows of the source must count, or an error or ``verify`` must say why they don't.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from support import eventually
from support.queues import one
from support.rollups import Rollup
from support.servers import Server, names, start
from support.sessions import in_background, waits
from support.states import raises_state
from support.tiers import each_nth

VALUE = ["count(*) as n", "sum(v) as v", "max(w) as w", "count(distinct v) as d"]
OLD_LEVELS = [psycopg.IsolationLevel.REPEATABLE_READ, psycopg.IsolationLevel.SERIALIZABLE]
WHOLE = {
    "a partition": ("src (k text, v int) partition by list (k)", "whole attach partition src default"),
    "an heir": ("src (k text)", "src inherit whole"),
}
STATEMENTS = [
    "insert into src values (20, 'a', 2, 2, 2)",
    "update src set v = 5, k = 'c' where k = 'a'",
    "delete from src where k = 'b'",
    "truncate src",
    "insert into src values (21, 'a', 2, 2, 2)",
]


def filled(src: psycopg.Connection) -> psycopg.Connection:
    src.execute("insert into src select n, chr(97 + n % 3), n, n, n from generate_series(1, 9) n")
    return src


def unwatched(src: psycopg.Connection) -> None:
    """Drop the event triggers. If the schema's owner isn't a superuser, there are none."""
    src.execute("drop event trigger pgcombine_follow_ddl; drop event trigger pgcombine_follow_drop")


@pytest.mark.parametrize("level", each_nth(2, OLD_LEVELS), ids=lambda level: level.name)
@pytest.mark.parametrize("moment", ["before create_rollup", "before backfill", "before drain"])
def test_writer_with_an_old_snapshot_counts_or_gets_a_clear_error(
    src: psycopg.Connection, module_dsn: str, level: psycopg.IsolationLevel, moment: str
) -> None:
    statements = [
        "insert into src values (2, 'a', 2, 2, 2), (3, 'new', 3, 3, 3)",
        "update src set v = 5, k = 'c' where k = 'a'",
        "merge into src using (values (1), (99)) s (id) on src.id = s.id when matched then delete"
        " when not matched then insert (id, k, v) values (s.id, 'b', 3)",
        "delete from src where k = 'b'",
        "truncate src",
    ]
    for statement in statements:
        filled(src)
        with psycopg.connect(module_dsn, options="-c search_path=public") as old:
            old.isolation_level = level
            for step in ["before create_rollup", "before backfill", "before drain"]:
                if step == moment:
                    old.execute("select")
                if step == "before create_rollup":
                    rollup = Rollup.make(src, VALUE)
                else:
                    rollup.call(src, step.removeprefix("before "))
            if statement.startswith("truncate"):
                with raises_state("PC003"):
                    old.execute(statement)
                old.rollback()
            else:
                old.execute(statement)
                old.commit()
        assert rollup.differing(src) == [], statement
        assert rollup.verify(src) == [], statement
        rollup.call(src, "drain")
        assert rollup.differing(src) == [], statement
        src.execute("select pgcombine.drop_rollup('r'); truncate src")


@pytest.mark.parametrize("part", WHOLE)
@pytest.mark.parametrize("watched", [True, False])
def test_source_does_not_silently_become_a_part(tx: psycopg.Connection, part: str, watched: bool) -> None:
    """Statements on the whole table wouldn't fire the source's statement triggers."""
    columns, becomes = WHOLE[part]
    tx.execute("set search_path = public; create table src (k text, v int)")
    tx.execute(f"create table {columns.replace('src', 'whole')}".encode())
    rollup = Rollup.make(tx)
    rollup.call(tx, "backfill")
    if watched:
        with raises_state("PC003") as refused:
            tx.execute(f"alter table {becomes}".encode())
        assert "drop_rollup('r')" in str(refused.value.diag.message_hint)
        tx.execute("insert into src values ('a', 1)")
        assert rollup.differing(tx) == []
        assert rollup.verify(tx) == []
    else:
        unwatched(tx)
        tx.execute(f"alter table {becomes}".encode())
        assert any("public.src has become a part of public.whole" in problem for problem in rollup.verify(tx))


@pytest.mark.parametrize("partitioned", [True, False])
def test_changes_under_session_replication_role_replica_count(src: psycopg.Connection, partitioned: bool) -> None:
    if partitioned:
        src.execute(
            "drop table src; create table src (id int, k text, v int, w numeric, f float8) partition by list (k)"
        )
        src.execute("create table rest partition of src default; create table a partition of src for values in ('a')")
    rollup = Rollup.make(filled(src), VALUE)
    rollup.call(src, "backfill")
    src.execute("set session_replication_role = replica")
    for statement in STATEMENTS:
        src.execute(statement.encode())
        assert rollup.differing(src) == [], statement
    src.execute("reset session_replication_role")
    assert rollup.verify(src) == []


@pytest.mark.slow
@pytest.mark.parametrize("name", names())
def test_changes_of_logical_replication_count(tmp_path: Path, name: str) -> None:
    if name == "given":
        pytest.skip("a server with wal_level = logical is needed")
    with (
        start(name, tmp_path, wal_level="logical") as dsn,
        Server(name, dsn).database() as there,
        psycopg.connect(there, autocommit=True) as publisher,
        Server(name, dsn).migrated() as here,
        psycopg.connect(here, autocommit=True) as src,
    ):
        for conn in publisher, src:
            conn.execute("create table src (id int primary key, k text, v int, w numeric, f float8)")
        filled(publisher).execute("create publication p for table src")
        publisher.execute("select pg_create_logical_replication_slot('s', 'pgoutput')")
        within = make_conninfo(  # the server's address in its own container, if it has one
            host=one(src, "show unix_socket_directories").split(",")[0].strip('"'),
            port=one(src, "show port"),
            **{part: getattr(publisher.info, part) for part in ("dbname", "user", "password")},
        )
        options = "with (create_slot = false, slot_name = 's')"
        src.execute(f"create subscription s connection '{within}' publication p {options}".encode())
        rollup = Rollup.make(src, VALUE)
        rollup.call(src, "backfill")
        for statement in STATEMENTS:
            publisher.execute(statement.encode())
            rows = publisher.execute("select * from src order by id").fetchall()
            eventually(lambda rows=rows: src.execute("select * from src order by id").fetchall() == rows)
            assert rollup.differing(src) == [], statement
        assert rollup.verify(src) == []
        src.execute("drop subscription s")


@pytest.mark.parametrize("watched", [True, False])
def test_renamed_column_is_followed_or_named(src: psycopg.Connection, watched: bool) -> None:
    rollup = Rollup.make(filled(src), VALUE, filter="id < 100")
    rollup.call(src, "backfill", "drain")
    if not watched:
        unwatched(src)
    for old, new in {"v": "amount", "k": "word", "w": "v"}.items():
        src.execute(f"alter table src rename {old} to {new}".encode())
    assert ["was renamed" in problem for problem in rollup.verify(src)] == [True] * (not watched)
    if not watched:
        src.execute("select pgcombine_internal.regenerate('r')")
        assert rollup.verify(src) == []
    src.execute("insert into src values (10, 'a', 1, 1, 1), (11, 'new', 1, 70, 1); delete from src where id = 9")
    src.execute("update src set word = 'b' where word = 'a'")
    query = "select word as k, count(*) as n, sum(amount) as v, max(v) as w, count(distinct amount) as d"
    renamed = replace(rollup, query=f"select k, n, v, w, d from ({query} from src group by 1) as q")  # noqa: S608
    assert renamed.differing(src) == []
    rollup.call(src, "drain")
    assert renamed.differing(src) == []
    assert rollup.verify(src) == []


def test_rows_of_a_partition_that_is_detached_concurrently_are_taken_back(src: psycopg.Connection) -> None:
    src.execute("drop table src; create table src (k text, v int) partition by list (k)")
    src.execute(
        "create table a partition of src for values in ('a'); create table b partition of src for values in ('b')"
    )
    src.execute("insert into src select chr(97 + n % 2), n from generate_series(1, 9) n")
    rollup = Rollup.make(src, ["sum(v) as v", "max(v) as m", "count(distinct v) as d"])
    rollup.call(src, "backfill")
    src.execute("alter table src detach partition a concurrently")
    assert rollup.differing(src) == []
    src.execute("insert into a values ('a', 5); update src set v = v + 1")
    assert rollup.differing(src) == []
    src.execute("alter table src attach partition a for values in ('a')")
    assert rollup.differing(src) == []
    assert rollup.verify(src) == []


@pytest.mark.parametrize("watched", [True, False])
def test_new_owner_of_the_source_may_write_at_once_or_after_an_upgrade(
    src: psycopg.Connection, role: str, watched: bool
) -> None:
    def grantees() -> list[tuple[str]]:
        return src.execute("select role from pgcombine.rights where queue = 'r'").fetchall()

    rollup = Rollup.make(src)
    rollup.call(src, "backfill")
    if not watched:
        unwatched(src)
    src.execute(f"alter table public.src owner to {role}".encode())
    assert ["has a new owner" in problem for problem in rollup.verify(src)] == [True] * (not watched)
    src.execute("select pgcombine_internal.regenerate_rollup('r')")
    assert grantees() == [(role,)]
    src.execute(f"set role {role}".encode())
    src.execute("insert into public.src (id, k, v) values (1, 'a', 1)")
    src.execute("reset role")
    assert rollup.verify(src) == []
    assert one(src, "select n from pgcombine.r") == 1
    src.execute("alter table public.src owner to current_user")
    src.execute("select pgcombine_internal.regenerate_rollup('r')")
    assert grantees() == [], "the former owner keeps no right"
    src.execute("select pgcombine.drop_rollup('r')")


RENAMED = {
    "a label of an enum": "alter type public.mood rename value 'good' to 'fine'",
    "a type": "alter type public.mood rename to feeling",
    "a function": "alter function public.twice(int) rename to doubled",
    "a schema": "alter schema app rename to program",
    "a table": "alter table public.moody rename to moods",
    "a text search configuration": "alter text search configuration public.words rename to texts",
}


@pytest.mark.parametrize("watched", [True, False])
def test_what_an_expression_names_may_be_renamed(src: psycopg.Connection, watched: bool) -> None:
    src.execute("create type public.mood as enum ('good', 'bad'); create schema app")
    src.execute(
        "create domain public.feel as public.mood; create text search configuration public.words (copy = simple)"
    )
    src.execute("create table public.moody (k text, mood public.mood, v int, feel public.feel)")
    for name in "public.twice", "app.once":
        src.execute(f"create function {name}(int) returns int immutable language sql return $1".encode())
    src.execute("insert into public.moody select 'a', 'good', v from generate_series(1, 3) v")
    value = "{0}(app.once(public.twice(v))) filter (where mood = 'good')"
    src.execute(
        "select pgcombine.create_rollup('r', 'public.moody', array['k', 'mood = ''good'' as good', 'mood'], %s, %s)",
        (
            [
                *(value.format(call) + f" as {call}" for call in ("sum", "max", "bit_or")),
                "max(mood) as top",
                "(array_agg(feel order by v))[1] as first",
            ],
            "mood <> 'bad' and app.once(public.twice(v)) > 0 and to_tsvector('public.words', k) @@ 'a'::tsquery",
        ),
    )
    src.execute("call pgcombine.backfill('r')")
    src.execute("call pgcombine.drain('r')")
    if not watched:
        unwatched(src)
    table = "moody"
    for count, (what, statement) in enumerate(RENAMED.items(), 1):
        src.execute(statement.encode())
        if what == "a table":
            table = "moods"
        problems = [row[0] for row in src.execute("select * from pgcombine.verify_rollup('r')").fetchall()]
        if not watched and what != "a table":
            assert ["was renamed" in problem for problem in problems] == [True], what
            src.execute("select pgcombine_internal.regenerate('r')")
        else:
            assert problems == [], what
        assert src.execute("select * from pgcombine.verify('r')").fetchall() == []
        src.execute(f"insert into public.{table} select k, mood, 9 from public.{table} limit 1".encode())  # noqa: S608
        for _ in "pending", "combined":
            found = src.execute("select k, good, sum, max, bit_or from pgcombine.r").fetchall()
            assert found == [("a", True, 6 + 9 * count, 9, 11)], what
            assert src.execute("select * from pgcombine.verify_rollup('r')").fetchall() == [], what
            src.execute("call pgcombine.drain('r')")


@pytest.mark.parametrize("watched", [True, False])
@pytest.mark.parametrize(
    "what",
    [
        "alter table public.made drop column v cascade",
        "drop function public.twice cascade",
        "alter table public.made alter column g set expression as (v * 3 || 'x')",
    ],
)
def test_source_does_not_silently_lose_what_a_rollup_reads(src: psycopg.Connection, what: str, watched: bool) -> None:
    if "expression" in what and src.info.server_version < 170000:
        pytest.skip("before version 17, the expression of a generated column can't be changed")
    src.execute("create table public.made (k text, v int, g text generated always as (v * 2 || 'x') stored)")
    src.execute("insert into public.made values ('a', 1)")
    src.execute("create function public.twice(int) returns int immutable language sql as 'select $1 * 2'")
    src.execute(
        "select pgcombine.create_rollup('r', 'public.made', array['k'], "
        "array['max(g) as g', 'sum(v) as v', 'sum(public.twice(v)) as w'])"
    )
    src.execute("call pgcombine.backfill('r')")
    src.execute("alter table public.made rename v to w")
    assert src.execute("select * from pgcombine.verify_rollup('r')").fetchall() == []
    statement = what.replace("column v", "column w").replace("(v", "(w").encode()
    if watched:
        with raises_state("PC003") as refused:
            src.execute(statement)
        assert "drop_rollup('r')" in str(refused.value.diag.message_hint)
        src.execute("insert into public.made values ('a', 2)")
        assert src.execute("select g, v from pgcombine.r").fetchall() == [("4x", 3)]
        assert src.execute("select * from pgcombine.verify_rollup('r')").fetchall() == []
    else:
        unwatched(src)
        src.execute(statement)
        (problem,) = src.execute("select problem from pgcombine.verify_rollup('r') order by 1 desc limit 1").fetchone()
        assert "make it again" in problem
    src.execute("select pgcombine.drop_rollup('r')")
    src.execute("insert into public.made values ('a')")


def test_source_reassigned_to_another_role_is_named_and_mended(src: psycopg.Connection, role: str) -> None:
    """REASSIGN OWNED fires no event trigger."""
    rollup = Rollup.make(src)
    rollup.call(src, "backfill")
    src.execute(f"create role {role}_heir; alter table public.src owner to {role}".encode())
    try:
        src.execute(f"reassign owned by {role} to {role}_heir".encode())
        assert ["has a new owner" in problem for problem in rollup.verify(src)] == [True]
        src.execute("select pgcombine_internal.regenerate('r')")
        assert rollup.verify(src) == []
        src.execute(f"set role {role}_heir".encode())
        src.execute("insert into public.src (id, k, v) values (1, 'a', 1)")
        src.execute("reset role")
        assert one(src, "select n from pgcombine.r") == 1
    finally:
        src.execute("reset role; select pgcombine.drop_rollup('r')")
        src.execute(f"drop owned by {role}_heir, {role} cascade; drop role {role}_heir".encode())


def test_update_to_an_equal_but_different_value_counts(src: psycopg.Connection) -> None:
    src.execute("create table public.fine (id int, k text, w numeric, i interval, f float8, j jsonb)")
    value = [f"string_agg({column}::text, ',' order by id) as {column}" for column in ("w", "f", "j")]
    rollup = Rollup.make(src, [*value, "array_agg(i order by id) as i"], source="public.fine")
    rollup.call(src, "backfill")
    src.execute("""insert into public.fine values (1, 'a', 1.0, '1 day', 0, '{"a": 1.0}')""")
    rollup.call(src, "drain")
    shown = "select w, i::text, f, j from pgcombine.r"
    for change in "w = 1.00", "i = '24 hours'", "f = '-0'", """j = '{"a": 1.00}'""":
        src.execute(f"update public.fine set {change}".encode())  # noqa: S608
        assert rollup.differing(src) == [], change
    assert src.execute(shown).fetchall() == [("1.00", "{24:00:00}", "-0", '{"a": 1.00}')]
    src.execute("update public.fine set k = 'a'")
    assert one(src, "select count(*) from pgcombine.r_updates") == 5, "unchanged rows are left out"


def test_child_table_in_create_schema_counts(src: psycopg.Connection) -> None:
    rollup = Rollup.make(filled(src), VALUE)
    rollup.call(src, "backfill")
    src.execute("create schema far create table kid (more int) inherits (public.src)")
    src.execute("insert into far.kid (k, v) values ('a', 1)")
    assert rollup.differing(src) == []
    assert rollup.verify(src) == []


def test_schema_with_rollups_can_be_dropped(src: psycopg.Connection) -> None:
    Rollup.make(src)
    src.execute("drop schema pgcombine cascade")
    src.execute("drop schema pgcombine_internal cascade")
    src.execute("insert into public.src (k) values ('a')")


def test_rows_that_another_trigger_deletes_before_truncate_are_taken_back_once(src: psycopg.Connection) -> None:
    filled(src)
    src.execute(
        "create function public.delete_some() returns trigger language plpgsql as "
        "'begin delete from public.src where id < 5; return null; end'"
    )
    src.execute(
        "create trigger zz before truncate on public.src for each statement execute function public.delete_some()"
    )
    rollup = Rollup.make(src, VALUE)
    rollup.call(src, "backfill")
    src.execute("truncate public.src")
    assert rollup.differing(src) == []
    assert rollup.verify(src) == []


@pytest.mark.parametrize("statement", ["alter table public.src add c float default random()", "truncate public.src"])
def test_pass_with_an_older_snapshot_does_not_take_a_rewritten_source_for_empty(
    src: psycopg.Connection, module_dsn: str, statement: str
) -> None:
    rollup = Rollup.make(filled(src), VALUE)
    rollup.call(src, "backfill")
    with psycopg.connect(module_dsn) as old:
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.execute("select")
        src.execute(statement.encode())
        with pytest.raises(psycopg.errors.SerializationFailure):
            old.execute("select pgcombine.combine('r', b) from generate_series(0, 3) b")
        old.rollback()
    rollup.call(src, "drain")
    assert rollup.differing(src) == []
    assert rollup.verify(src) == []


@pytest.mark.parametrize("value", [VALUE, ["count(*) as n", "min(v) as v", "max(w) as w"]], ids=["all", "extremes"])
@pytest.mark.parametrize(
    ("columns", "attach"),
    [
        ("whole (like src)", "part inherit whole"),
        ("whole (like src) partition by list (w)", "whole attach partition part for values in (9)"),
    ],
    ids=["heir", "partition"],
)
def test_pass_with_an_older_snapshot_does_not_read_a_later_part(
    src: psycopg.Connection, module_dsn: str, columns: str, attach: str, value: list[str]
) -> None:
    """A part's rows may have changed after the snapshot, before the part had the source's triggers."""
    src.execute(f"create table {columns}".encode())
    if "partition" in columns:
        src.execute("create table first partition of whole default")
    src.execute("create table part (like src)")
    src.execute("insert into whole (k, v, w) select k, v, v from unnest(array['a', 'b']) k, generate_series(5, 6) v")
    rollup = Rollup.make(src, value, source="whole")
    rollup.call(src, "backfill", "drain")
    src.execute("insert into part (k, v, w) values ('a', 1, 9), ('b', 1, 9)")
    src.execute("delete from whole where v = 5")
    with psycopg.connect(module_dsn) as old:
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.execute("select")
        src.execute("update part set k = 'a', v = 8")
        src.execute(f"alter table {attach}".encode())
        old.execute("select pgcombine.combine('r', b) from generate_series(0, 1) b")
    assert rollup.differing(src) == []
    rollup.call(src, "drain")
    assert rollup.differing(src) == []
    assert rollup.verify(src) == []


@pytest.mark.parametrize("comes", [True, False])
def test_part_whose_rows_an_older_snapshot_does_not_show_is_refused(
    src: psycopg.Connection, module_dsn: str, comes: bool
) -> None:
    src.execute("create table part (like src)")
    if not comes:
        src.execute("alter table part inherit src")
    rollup = Rollup.make(src)
    rollup.call(src, "backfill")
    with psycopg.connect(module_dsn) as old:
        old.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        old.execute("select")
        src.execute("insert into part (k) values ('a')")
        with raises_state("PC003"):
            old.execute(f"alter table public.part {'' if comes else 'no '}inherit public.src".encode())
    assert rollup.differing(src) == []


def test_part_that_comes_waits_for_a_backfill(src: psycopg.Connection, module_dsn: str) -> None:
    src.execute("create table part (like src)")
    src.execute("insert into part (k) values ('a')")
    rollup = Rollup.make(filled(src))
    with psycopg.connect(module_dsn) as other, psycopg.connect(module_dsn, autocommit=True) as third:
        other.execute("select pgcombine_internal.backfill_slice('r')")
        with in_background(lambda: third.execute("alter table public.part inherit public.src")):
            waits(src, third.info.backend_pid)
            other.commit()
    assert rollup.differing(src) == []
    assert rollup.verify(src) == []


def test_truncated_queue_of_a_rollup_is_backfilled_anew(src: psycopg.Connection) -> None:
    src.execute("insert into src (id, k, v) select n, 'a', n from generate_series(1, 3) n")
    rollup = Rollup.make(src, ["count(*) as n", "max(v) as v", "count(distinct v) as d"])
    rollup.call(src, "backfill", "drain")
    src.execute("delete from src where id = 3; insert into src (id, k, v) values (4, 'b', 1)")
    src.execute("select pgcombine.truncate_queue('r')")
    assert not rollup.ready(src)
    src.execute("delete from src where id = 1; insert into src (id, k, v) values (5, 'a', 9)")
    rollup.call(src, "backfill")
    assert (rollup.differing(src), rollup.verify(src)) == ([], [])
    rollup.call(src, "drain")
    assert (rollup.differing(src), rollup.verify(src)) == ([], [])


def test_repairs_at_once_enqueue_what_is_missing_once(src: psycopg.Connection, module_dsn: str) -> None:
    rollup = Rollup.make(filled(src), VALUE)
    rollup.call(src, "backfill", "drain")
    src.execute("set session_replication_role = replica")
    src.execute("delete from pgcombine.r_values")
    with psycopg.connect(module_dsn) as other, psycopg.connect(module_dsn, autocommit=True) as third:
        assert rollup.verify(other, repair=True)
        with in_background(lambda: rollup.verify(third, repair=True)):
            waits(src, third.info.backend_pid)
            other.commit()
    assert rollup.verify(src) == []


def test_rollup_may_read_no_column(src: psycopg.Connection) -> None:
    rollup = Rollup.make(filled(src), ["count(*) as n"], ["1 = 1 as whole"])
    rollup.call(src, "backfill", "drain")
    src.execute("delete from src where id = 1")
    assert rollup.differing(src) == []
    assert rollup.verify(src) == []


def test_functions_of_other_roles_are_refused(src: psycopg.Connection, role: str) -> None:
    """Such a function would run with the rights of the schema's owner, which the function's owner could misuse."""
    src.execute("create function public.f(text) returns text language sql immutable as 'select $1'")
    src.execute(f"alter function public.f(text) owner to {role}".encode())
    with raises_state("PC003"):
        src.execute(
            "select pgcombine.create_rollup('r', 'public.src', array['public.f(k) as k'], array['count(*) as n'])"
        )
    src.execute("drop function public.f")


def test_computed_column_may_have_a_domain_that_refuses_nulls(src: psycopg.Connection) -> None:
    src.execute("create domain public.positive as int not null check (value > 0)")
    src.execute("create table public.measured (k text, v public.positive)")
    src.execute("insert into public.measured values ('a', 1)")
    mode = "mode() within group (order by v) as v"
    src.execute("select pgcombine.create_rollup('m', 'public.measured', array['k'], array[%s])", (mode,))
    src.execute("insert into public.measured values ('b', 2)")
    src.execute("call pgcombine.backfill('m')")
    src.execute("call pgcombine.drain('m')")
    assert src.execute("select k, v from pgcombine.m order by k").fetchall() == [("a", 1), ("b", 2)]


def test_backfill_slices_by_a_column_without_min(src: psycopg.Connection) -> None:
    src.execute("create table public.event (id uuid primary key, k text)")
    src.execute("insert into public.event select gen_random_uuid(), 'a' from generate_series(1, 3)")
    src.execute(
        "select pgcombine.create_rollup('e', 'public.event', array['k'], array['count(*) as n'], slice_by => 'id')"
    )
    src.execute("call pgcombine.backfill('e')")
    assert one(src, "select n from pgcombine.e") == 3
