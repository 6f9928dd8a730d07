"""Unusual sessions and changes of definition: all rows of a source count, or an error or ``verify`` says why not."""

from __future__ import annotations

from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import make_conninfo
from support import eventually
from support.queues import one
from support.rollups import Rollup
from support.servers import Server, names, start
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
    """Drop the event triggers, since some owners can't make any."""
    src.execute("drop event trigger pgcombine_follow_ddl; drop event trigger pgcombine_follow_drop")


@pytest.mark.parametrize("level", each_nth(2, OLD_LEVELS), ids=lambda level: level.name)
@pytest.mark.parametrize("moment", ["before create_rollup", "before backfill", "before drain"])
def test_writer_with_an_old_snapshot_counts_or_gets_a_clear_error(
    src: psycopg.Connection, dsn: str, level: psycopg.IsolationLevel, moment: str
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
        with psycopg.connect(dsn, options="-c search_path=public") as old:
            old.isolation_level = level
            for step in ["before create_rollup", "before backfill", "before drain"]:
                if step == moment:
                    old.execute("select")
                if step == "before create_rollup":
                    rollup = Rollup.make(src, VALUE)
                else:
                    rollup.call(src, step.removeprefix("before "))
            if statement.startswith("truncate"):
                with pytest.raises(psycopg.Error, match="needs isolation level read committed") as refused:
                    old.execute(statement)
                assert refused.value.sqlstate == "PC003"
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
def test_source_does_not_silently_become_a_part(conn: psycopg.Connection, part: str, watched: bool) -> None:
    """Statements that name the whole table would fire none of the source's statement triggers."""
    columns, becomes = WHOLE[part]
    conn.execute("set search_path = public; create table src (k text, v int)")
    conn.execute(f"create table {columns.replace('src', 'whole')}".encode())
    rollup = Rollup.make(conn)
    rollup.call(conn, "backfill")
    if watched:
        with pytest.raises(
            psycopg.Error, match=r"src, the source of .*, can't become a part of public\.whole"
        ) as refused:
            conn.execute(f"alter table {becomes}".encode())
        assert refused.value.sqlstate == "PC003"
        assert "drop_rollup('r')" in str(refused.value.diag.message_hint)
        conn.execute("insert into src values ('a', 1)")
        assert rollup.differing(conn) == []
        assert rollup.verify(conn) == []
    else:
        unwatched(conn)
        conn.execute(f"alter table {becomes}".encode())
        assert any("public.src has become a part of public.whole" in problem for problem in rollup.verify(conn))


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
        within = make_conninfo(  # the server's own address; outside of a container the port differs
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
    told = rollup.verify(src)
    assert told == [] if watched else all("were renamed" in problem for problem in told), told
    assert watched or told
    if not watched:
        src.execute("select pgcombine_internal.regenerate('r')")
        assert rollup.verify(src) == []
    src.execute("insert into src values (10, 'a', 1, 1, 1), (11, 'new', 1, 70, 1); delete from src where id = 9")
    src.execute("update src set word = 'b' where word = 'a'")
    query = "select word as k, count(*) as n, sum(amount) as v, max(v) as w, count(distinct amount) as d"
    renamed = Rollup("r", rollup.view, f"select k, n, v, w, d from ({query} from src group by 1) as q")  # noqa: S608
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


def test_new_owner_of_the_source_is_named_and_may_write_after_an_upgrade(src: psycopg.Connection, role: str) -> None:
    rollup = Rollup.make(src)
    rollup.call(src, "backfill")
    unwatched(src)
    src.execute(f"alter table public.src owner to {role}".encode())
    assert ["another owner" in problem for problem in rollup.verify(src)] == [True]
    src.execute("select pgcombine_internal.regenerate_rollup('r')")
    src.execute(f"set role {role}".encode())
    src.execute("insert into public.src (id, k, v) values (1, 'a', 1)")
    src.execute("reset role")
    assert rollup.verify(src) == []
    assert one(src, "select n from pgcombine.r") == 1
    src.execute("alter table public.src owner to current_user; select pgcombine.drop_rollup('r')")


def test_functions_of_other_roles_are_refused(src: psycopg.Connection, role: str) -> None:
    """The owner of the schema evaluates the expressions, so nobody else may replace what they call."""
    src.execute("create function public.f(text) returns text language sql immutable as 'select $1'")
    src.execute(f"alter function public.f(text) owner to {role}".encode())
    with pytest.raises(psycopg.Error, match="calls a function of another role") as refused:
        src.execute(
            "select pgcombine.create_rollup('r', 'public.src', array['public.f(k) as k'], array['count(*) as n'])"
        )
    assert refused.value.sqlstate == "PC003"
    src.execute("drop function public.f")


def test_computed_column_of_a_domain_that_refuses_nulls(src: psycopg.Connection) -> None:
    src.execute("create domain public.positive as int not null check (value > 0)")
    src.execute("create table public.measured (k text, v public.positive)")
    src.execute("insert into public.measured values ('a', 1)")
    mode = "mode() within group (order by v) as v"
    src.execute("select pgcombine.create_rollup('m', 'public.measured', array['k'], array[%s])", (mode,))
    src.execute("insert into public.measured values ('b', 2)")
    src.execute("call pgcombine.backfill('m')")
    src.execute("call pgcombine.drain('m')")
    assert src.execute("select k, v from pgcombine.m order by k").fetchall() == [("a", 1), ("b", 2)]


def test_slices_by_a_column_without_min(src: psycopg.Connection) -> None:
    src.execute("create table public.event (id uuid primary key, k text)")
    src.execute("insert into public.event select gen_random_uuid(), 'a' from generate_series(1, 3)")
    src.execute(
        "select pgcombine.create_rollup('e', 'public.event', array['k'], array['count(*) as n'], slice_by => 'id')"
    )
    src.execute("call pgcombine.backfill('e')")
    assert one(src, "select n from pgcombine.e") == 3
