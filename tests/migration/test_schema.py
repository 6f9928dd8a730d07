"""Upgrades and removals of the schema: what they create and remove, and which schemas they refuse."""

from __future__ import annotations

import itertools
import json
import re
import subprocess
from contextlib import closing
from pathlib import Path

import psycopg
import pytest
from support import run_cli
from support.queues import add, combine_all, current, make_queue, one, values
from support.servers import Server, embedded_only, start

from pgcombine import schema
from pgcombine.database import sqlfiles
from pgcombine.embedded import programs
from pgcombine.errors import QueueNotEmptyError, SchemaMismatchError, SchemaMissingError
from pgcombine.queue.combine_queue import CombineQueue


def dump(dsn: str, *options: str) -> list[str]:
    """The sorted lines of pg_dump's output, since rows may have another order.

    COMMENT statements and lines with random keys are left out.
    """
    command = [programs.find().path("pg_dump"), "--no-comments", *options, "--dbname", dsn]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return sorted(line for line in done.stdout.splitlines() if not re.match(r"\\(un)?restrict ", line))


def with_queues(dsn: str) -> None:
    """Create queues of several shapes with values and pending updates."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        make_queue(conn)
        make_queue(
            conn, "plain", key=["a int", "b date"], value=["n int max"], delete_when=None, buckets=1, notify=False
        )
        make_queue(conn, "notes", value=["v jsonb jsonb_merge", "t text max"], delete_when=None, buckets=1)
        conn.execute("select pgcombine.notes_enqueue(array['a', 'b'], array['{}', '{}']::jsonb[], array['x', 'y'])")
        combine_all(conn, "notes")
        add(conn, {"a": 1, "b": 2})
        combine_all(conn)
        add(conn, {"a": 10, "b": -2, "c": 5})
        conn.execute("insert into pgcombine.plain_updates values (1, '2024-02-29', 7)")


def holds(dsn: str) -> None:
    """Check that the queues of ``with_queues`` are complete and work."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        assert one(conn, "select pgcombine.backlog('wc')") == 3
        assert (values(conn), current(conn)) == ({"a": 1, "b": 2}, {"a": 11, "c": 5})
        combine_all(conn)
        combine_all(conn, "plain")
        assert values(conn) == {"a": 11, "c": 5}
        assert one(conn, "select (a, b, n)::text from pgcombine.plain_values") == "(1,2024-02-29,7)"
        add(conn, {"a": -11})
        combine_all(conn)
        assert values(conn) == {"c": 5}


def test_upgrade_regenerates_objects_of_queues(dsn: str) -> None:
    with_queues(dsn)
    before = dump(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("update pgcombine.queue set pass = '{}'")
        conn.execute("drop view pgcombine.wc_current, pgcombine.wc_pending cascade")
        conn.execute("drop trigger pgcombine_wake on pgcombine.wc_updates")
        conn.execute("drop function pgcombine.combine cascade")
        conn.execute("update pgcombine.schema_version set digest = 'older'")
    schema.upgrade(dsn)
    assert dump(dsn) == before
    holds(dsn)


def test_removal_leaves_an_empty_database(dsn: str, empty_dsn: str) -> None:
    with_queues(dsn)
    with pytest.raises(QueueNotEmptyError):
        schema.remove(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn:
        combine_all(conn)
        combine_all(conn, "plain")
        conn.execute("create table public.mine as select 1 as n")
    schema.remove(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn:
        assert one(conn, "select n from public.mine") == 1
        conn.execute("drop table public.mine")
    assert dump(dsn) == dump(empty_dsn)
    with pytest.raises(SchemaMissingError):
        schema.remove(dsn)
    schema.upgrade(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn:
        make_queue(conn)


@pytest.mark.parametrize("statement", [0, 1, 2])
def test_interrupted_removal_is_completed(
    dsn: str, empty_dsn: str, monkeypatch: pytest.MonkeyPatch, statement: int
) -> None:
    with_queues(dsn)
    queries = itertools.count()
    query = sqlfiles.query

    def interrupted(name: str) -> str:
        if name == "drop_portion" and next(queries) == statement:
            raise KeyboardInterrupt
        return query(name)

    with monkeypatch.context() as patch:
        patch.setattr(sqlfiles, "query", interrupted)
        with pytest.raises(KeyboardInterrupt):
            schema.remove(dsn, force=True)
    with pytest.raises(SchemaMissingError):
        schema.check(dsn)
    if statement:
        schema.upgrade(dsn)  # doesn't disturb
    schema.remove(dsn, force=True)
    assert dump(dsn) == dump(empty_dsn)


@pytest.mark.slow
@embedded_only
def test_a_hundred_queues_are_removed_with_default_settings(server: Server, tmp_path: Path) -> None:
    with (
        start(server.name, tmp_path, max_locks_per_transaction="64") as dsn,
        closing(Server("default", dsn)) as small,
        small.migrated() as full,
        psycopg.connect(full, autocommit=True) as conn,
    ):
        for number in range(100):
            make_queue(conn, f"q{number}")
        with pytest.raises(psycopg.errors.OutOfMemory):
            conn.execute("drop schema pgcombine, pgcombine_internal cascade")
        schema.remove(full)
        assert one(conn, "select count(*) from pg_namespace where nspname ~ '^pgcombine'") == 0


def test_an_upgrade_that_fails_leaves_nothing(empty_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = list(sqlfiles.repeatables())
    monkeypatch.setattr(sqlfiles, "repeatables", lambda: [*real, ("core/internal/broken.sql", "select 1/0")])
    before = dump(empty_dsn)
    with pytest.raises(psycopg.errors.DivisionByZero):
        schema.upgrade(empty_dsn)
    assert dump(empty_dsn) == before


def test_missing_schema_is_reported(empty_dsn: str) -> None:
    with pytest.raises(SchemaMissingError):
        schema.check(empty_dsn)
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        conn.execute("create schema pgcombine")
    with pytest.raises(SchemaMissingError):
        schema.check(empty_dsn)


def test_other_functions_of_the_same_revision_are_refused(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("update pgcombine.schema_version set digest = 'another'")
    with pytest.raises(SchemaMismatchError, match=r"is of another version .* run 'pgcombine db upgrade'"):
        schema.check(dsn)
    schema.upgrade(dsn)
    schema.check(dsn)


def test_a_newer_schema_is_left_alone(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("update pgcombine.schema_version set version_num = '9999'")
    before = dump(dsn)
    for refused in (schema.check, schema.upgrade, schema.remove):
        with pytest.raises(SchemaMismatchError):
            refused(dsn)
    assert dump(dsn) == before


@pytest.mark.wc
@pytest.mark.slow
def test_schemas_of_other_development_states_are_left_alone(conn: psycopg.Connection, dsn: str) -> None:
    """Whatever the revision, and whichever objects are missing, nothing is tried. The error names a way that works."""
    add(conn, {"a": 1})
    combine_all(conn)
    stages = (
        "update pgcombine.schema_version set baseline = 'other'",
        "drop domain pgcombine.key_text cascade",
        "alter table pgcombine.schema_version drop baseline",
        "drop schema pgcombine_internal cascade",
    )
    for stage, revision in itertools.product(stages, ("0000", "0001", "0024", "nonsense")):
        conn.execute((stage if revision == "0000" else "").encode())
        conn.execute("update pgcombine.schema_version set version_num = %s", (revision,))
        before = dump(dsn)
        for refused in (schema.check, schema.upgrade, schema.remove):
            with pytest.raises(SchemaMismatchError) as error:
                refused(dsn)
            assert "newer" not in str(error.value)
        with pytest.raises(psycopg.errors.ObjectNotInPrerequisiteState):
            conn.execute(schema.upgrade_sql().encode())
        conn.execute("rollback")
        assert dump(dsn) == before
        assert one(conn, "select n from pgcombine.wc_values") == 1
    assert "'pgcombine db remove --force' and 'pgcombine db upgrade'" in str(error.value)
    schema.remove(dsn, force=True)
    schema.upgrade(dsn)


def test_role_without_the_privilege_gets_an_error(server: Server, empty_dsn: str) -> None:
    """The upgrade raises PostgreSQL's own error."""
    with psycopg.connect(empty_dsn, autocommit=True) as conn, psycopg.connect(empty_dsn, autocommit=True) as admin:
        admin.execute("drop role if exists pgcombine_nobody")
        admin.execute("create role pgcombine_nobody")
        try:
            nobody = psycopg.conninfo.make_conninfo(empty_dsn, options="-c role=pgcombine_nobody")
            with pytest.raises(psycopg.errors.InsufficientPrivilege):
                schema.upgrade(nobody)
        finally:
            conn.execute("drop role pgcombine_nobody")


@pytest.mark.slow
@embedded_only
def test_commands_upgrade_check_and_remove(empty_dsn: str) -> None:
    def call(*args: str) -> tuple[int, str, str]:
        done = run_cli("db", *args, "--dsn", empty_dsn)
        return done.returncode, done.stdout, done.stderr

    status, out, err = call("check", "--json")
    assert (status, out, len(err.splitlines())) == (1, "", 1)
    assert "run 'pgcombine db upgrade'" in err
    status, out, err = call("upgrade", "--json")
    assert (status, json.loads(out), err) == (0, {"revision": schema.head(), "state": "upgraded"}, "")
    assert call("check") == (0, f"current: revision {schema.head()}\n", "")
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        make_queue(conn)
        CombineQueue("wc").enqueue(conn, [{"word": "a"}])
    assert call("upgrade") == (0, f"already at revision {schema.head()}\n", "")
    assert json.loads(call("upgrade", "--json")[1]) == {"revision": schema.head(), "state": "current"}
    status, out, err = call("remove", "--yes")
    assert (status, out) == (1, "")
    assert "pgcombine drain wc" in err
    status, out, err = call("remove", "--force")
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert "will be lost: 1 queue (wc) with 0 values and 1 pending update; there is no terminal" in err
    schema.check(empty_dsn)
    assert call("remove", "--force", "--yes") == (0, "removed\n", "")
