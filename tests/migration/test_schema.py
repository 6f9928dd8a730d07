"""The schema's life: fresh equals upgraded, again changes nothing, down removes everything, others are refused."""

from __future__ import annotations

import json
import re
import subprocess
from collections import Counter
from contextlib import ExitStack, closing

import psycopg
import pytest
from alembic.script import ScriptDirectory
from support import run_cli
from support.lanes import each_nth
from support.queues import add, combine_all, current, hold, make_queue, one, rows, values
from support.servers import Server, embedded_only
from support.sessions import in_background, waits
from support.wait import eventually

from pgcombine import schema
from pgcombine.database import sqlfiles
from pgcombine.database.connect import connect
from pgcombine.embedded import programs
from pgcombine.errors import QueueNotEmpty, SchemaError, SchemaMismatch, SchemaMissing
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.worker import quarantine
from pgcombine.worker.drain import drain

WC = CombineQueue("wc")
REVISIONS = [
    revision.revision for revision in reversed(list(ScriptDirectory.from_config(schema._config()).walk_revisions()))
]


def dump(dsn: str, *options: str) -> list[str]:
    """The lines of pg_dump's output, but for its random marks; sorted, for rows and columns have no order."""
    command = [programs.find().path("pg_dump"), "--no-comments", *options, "--dbname", dsn]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return sorted(line for line in done.stdout.splitlines() if not re.match(r"\\(un)?restrict ", line))


def with_queues(dsn: str) -> None:
    """Queues of several shapes, values and pending updates in them."""
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
    """What with_queues made is there, and goes on."""
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


@pytest.mark.slow
def test_upgrading_again_changes_nothing(dsn: str) -> None:
    with_queues(dsn)
    before = dump(dsn)
    assert any("CREATE TABLE pgcombine.wc_updates" in line for line in before)
    assert schema.upgrade(dsn) == schema.head() == schema.check(dsn)
    assert dump(dsn) == before
    holds(dsn)


@pytest.mark.parametrize(
    "revision", [REVISIONS[0], *(pytest.param(one, marks=pytest.mark.slow) for one in REVISIONS[1:-2]), REVISIONS[-2]]
)
def test_fresh_equals_upgraded(dsn: str, revision: str) -> None:
    """Down to each revision and up again; the queues, and what is pending, stay."""
    with_queues(dsn)
    before = dump(dsn, "--schema-only")
    schema.downgrade(dsn, revision, force=True)
    with closing(connect(dsn)) as conn:
        assert one(conn, "select version_num from pgcombine.schema_version") == revision
        with pytest.raises(SchemaMismatch, match=rf"revision {revision}, this program's is {schema.head()}"):
            schema.check_connection(conn)
    schema.upgrade(dsn)
    schema.check(dsn)
    assert dump(dsn, "--schema-only") == before
    holds(dsn)


def test_checks_of_large_values_leave_nothing_to_an_older_program(dsn: str) -> None:
    """Its upgrade drops functions that it doesn't know, and fails where a check calls one."""
    with_queues(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn:
        bounds = "select count(*) from pg_constraint where conname ~ '_megabyte' and coninhcount = 0"
        before = one(conn, bounds)
        assert before > 2
        schema.downgrade(dsn, "0027", force=True)
        assert one(conn, bounds) == 0
        assert one(conn, "select to_regproc('pgcombine_internal.sound_document')") is None
        schema.upgrade(dsn)
        assert one(conn, bounds) == before


def test_keys_no_longer_expire_under_an_older_program(dsn: str) -> None:
    """Down and up again: what is pending stays, and the condition is gone."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        make_queue(conn, delete_when=None, retain="n > 0", retain_silently=True, retain_every="1 h")
        add(conn, {"kept": 1, "gone": 0})
        combine_all(conn)
        assert one(conn, "call pgcombine.retain('wc')") == 0
        add(conn, {"more": 2})
        schema.downgrade(dsn, "0021", force=True)
        schema.upgrade(dsn)
        found = conn.execute("select retain, retain_silently, retain_every::text from pgcombine.queue").fetchall()
        assert found == [(None, False, "00:10:00")]
        add(conn, {"low": 0})
        combine_all(conn)
        assert values(conn) == {"kept": 1, "more": 2, "low": 0}
        conn.execute("select pgcombine.set_retain('wc', 'n > 1')")
        assert one(conn, "call pgcombine.retain('wc')") == 2
        assert conn.execute("select * from pgcombine.verify('wc')").fetchall() == []


def test_failed_steps_of_older_versions_are_no_failures_of_passes(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        make_queue(conn, delete_when=None, retain="n > 0")
        conn.execute("select pgcombine_internal.put_off_retain('wc', 1, 2048)")
        schema.downgrade(dsn, "0022", force=True)
        conn.execute(
            "insert into pgcombine.failure (queue, bucket, attempts, sqlstate, error, since, last, retry_at) "
            "select 'wc', bucket, 3, '22012', error, now(), now(), now() from (values "
            "(0, 'removing expired keys: it broke'), (1, 'removing expired keys: it broke'), (2, 'a pass')) "
            "f (bucket, error)"
        )
        schema.upgrade(dsn)
        assert conn.execute("select bucket, error from pgcombine.failure").fetchall() == [(2, "a pass")]
        found = "select bucket, page, failed_page, sqlstate, error from pgcombine.retention where error > ''"
        assert sorted(conn.execute(found)) == [(0, 0, 0, "22012", "it broke"), (1, 2048, 2048, "22012", "it broke")]
        assert one(conn, "call pgcombine.retain('wc')") == 0
        assert one(conn, "select count(error) from pgcombine.retention") == 0


def test_an_upgrade_regenerates_what_queues_have_of_their_own(dsn: str) -> None:
    """As if an older program had made the queues: their pass, their views and their trigger come anew."""
    with_queues(dsn)
    before = dump(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("update pgcombine.queue set pass = 'select 1/0'")
        conn.execute("drop view pgcombine.wc_current, pgcombine.wc_pending cascade")
        conn.execute("drop trigger pgcombine_wake on pgcombine.wc_updates")
        conn.execute("drop function pgcombine.combine cascade")
        conn.execute("update pgcombine.repeatable set digest = 'older'")
    schema.upgrade(dsn)
    assert dump(dsn) == before
    holds(dsn)


def test_down_to_base_leaves_an_empty_database(dsn: str, empty_dsn: str) -> None:
    with_queues(dsn)
    with pytest.raises(QueueNotEmpty, match=r"queue \"plain\" has pending updates: run 'pgcombine drain plain'"):
        schema.downgrade(dsn, "base")
    with psycopg.connect(dsn, autocommit=True) as conn:
        combine_all(conn)
        combine_all(conn, "plain")
        conn.execute("create table public.mine as select 1 as n")
    schema.downgrade(dsn, "base")
    with psycopg.connect(dsn, autocommit=True) as conn:
        assert one(conn, "select n from public.mine") == 1
        conn.execute("drop table public.mine")
    assert dump(dsn) == dump(empty_dsn)
    with pytest.raises(SchemaMissing):
        schema.downgrade(dsn, "base")
    schema.upgrade(dsn)
    with psycopg.connect(dsn, autocommit=True) as conn:
        make_queue(conn)


PACKED = "select pgcombine.wc_enqueue(array_agg('w' || i % 9), array_agg(i)) from generate_series(1, 300) i"


def test_packed_updates_go_down_as_rows_and_come_up_again(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        make_queue(conn, buckets=1)
        conn.execute(PACKED)
        add(conn, {"w1": 1})
        assert one(conn, "select count(*) from pgcombine.wc_updates") < 20
        schema.downgrade(dsn, "0003", force=True)
        assert one(conn, "select count(*) from pgcombine.wc_updates") == 301
        schema.upgrade(dsn)
        conn.execute(PACKED)
        assert one(conn, "select pgcombine.backlog('wc')") == 601
        combine_all(conn)
        assert sum(values(conn).values()) == 2 * 300 * 301 // 2 + 1


def test_what_older_versions_had_packed_comes_along(dsn: str) -> None:
    """Rows of many updates, each where it belongs, and no row that can't be a set of updates is lost."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        make_queue(conn, buckets=4)
        schema.downgrade(dsn, "0015")
        add(conn, {"a": 1})
        conn.execute(
            """
            insert into pgcombine.wc_updates (word, n, pgcombine_packed, pgcombine_0, pgcombine_1)
            select 'a', 1, 4, array_agg('w' || i), array_agg(i) from generate_series(1, 50) i
            union all
            values ('a', 1, 4, array['b', 'c'], array[1]), ('a', 1, 4, array['d', null], array[1, 1]),
                   ('a', 1, 4, array[repeat('x', 2600), 'y'], array[1, 1]),
                   ('a', 1, 4, array[repeat('x', 3000), 'z'], array[1, 1])
            """
        )
        conn.execute(
            """
            insert into pgcombine.quarantined_key (queue, key, updates, attempts, sqlstate, error)
            values ('wc', '{"pgcombine_packed": [{"word": "held", "n": 1}, {"word": null, "n": 2}]}', 2, 0, 'PC4', 'x')
            """
        )
        schema.upgrade(dsn)
        assert WC.verify(conn) == []
        assert one(conn, "select pgcombine.backlog('wc')") == 1 + 51 + 3
        assert one(conn, "select count(*) from pgcombine.quarantine") == 0
        unfit = "select content ->> 'word', (content ->> 'n')::int from pgcombine.unfit_update where queue = 'wc'"
        assert Counter(conn.execute(unfit).fetchall()) == Counter(
            [("a", 1)] * 3
            + [("b", 1), ("c", None), ("d", 1), (None, 1), ("x" * 3000, 1), ("z", 1), ("held", 1), (None, 2)]
        )
        conn.execute(
            "insert into pgcombine.wc_updates select u.* from pgcombine.unfit_update f"
            " cross join jsonb_populate_record(null::pgcombine.wc_values, f.content) u where u.word in ('held', 'd')"
        )
        combine_all(conn)
        assert values(conn) == {f"w{i}": i for i in range(1, 51)} | {"a": 3, "x" * 2600: 1, "y": 1, "held": 1, "d": 1}


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "packs"),
    each_nth(2, [("public.word", True), ("regrole", False), ("public.color", False), ("public.relation", False)]),
)
def test_keys_with_another_hash_elsewhere_come_along_unpacked(
    conn: psycopg.Connection, dsn: str, name: str, packs: bool
) -> None:
    """As in a new queue: passes delete updates of such keys one by one."""
    conn.execute("create domain public.word as text")
    conn.execute("create domain public.relation as regclass")
    conn.execute("create type public.color as enum ('red')")
    make_queue(conn, key=[f"k {name}"], buckets=1)
    assert one(conn, "select packs from pgcombine.queue") is packs
    before = dump(dsn, "--schema-only")
    schema.downgrade(dsn, "0015")
    schema.upgrade(dsn)
    assert one(conn, "select packs from pgcombine.queue") is packs
    assert dump(dsn, "--schema-only") == before


def test_programs_of_the_former_version_go_on_or_are_told(
    conn: psycopg.Connection, dsn: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Writers that wait for the upgrade, plain and with a statement that names columns which go; then workers."""
    for queue in ("one", "wc", "zz"):
        make_queue(conn, queue, buckets=1 if queue == "one" else 4)
    conn.execute("select pgcombine.pause('zz')")
    schema.downgrade(dsn, "0015")
    former = (
        "insert into pgcombine.one_updates (word, n, pgcombine_packed, pgcombine_0, pgcombine_1)"
        " values ('a', 1, 1, array['b'], array[1])"
    )
    conn.execute(former)  # pending in the upgrade
    add(conn, {"a": 1}, "zz")
    told = "do $$ begin while to_regclass('public.told') is null loop perform pg_sleep(0.02); end loop; end $$"
    real = list(sqlfiles.steps())
    monkeypatch.setattr(sqlfiles, "steps", lambda: [*real, (None, told)])
    by_copy = "copy pgcombine.wc_updates (word, n) from stdin"
    with ExitStack() as stack:
        prepared, copying, packing, repeating = (stack.enter_context(psycopg.connect(dsn)) for _ in range(4))
        prepared.execute("prepare insertion (text, bigint) as insert into pgcombine.wc_updates values ($1, $2)")
        for _ in range(6):  # a plan that is kept
            prepared.execute("execute insertion ('a', 1)")
        prepared.commit()
        repeating.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        one(repeating, "select count(*) from pg_class")

        def copy() -> None:
            with copying.cursor().copy(by_copy) as rows:
                rows.write_row(("b", 2))
            copying.commit()

        def insert() -> None:
            prepared.execute("execute insertion ('a', 1)")
            prepared.commit()

        def pack() -> None:
            with pytest.raises(psycopg.errors.UndefinedColumn, match="pgcombine_packed"):
                packing.execute(former)

        def repeat() -> None:
            with pytest.raises(psycopg.Error, match=r"not adopted yet\s.*try again in a new") as refused:
                add(repeating, {"c": 3})  # its snapshot is older than the lineage
            assert refused.value.sqlstate == "PC012"
            repeating.rollback()
            add(repeating, {"c": 3})
            repeating.commit()

        with in_background(lambda: schema.upgrade(dsn)):
            locked = (
                "select 1 from pg_locks where relation = 'pgcombine.wc_updates'::regclass"
                " and mode = 'AccessExclusiveLock' and granted"
            )
            eventually(lambda: conn.execute(locked).fetchone(), what="the upgrade has the table")
            with in_background(copy, insert, pack, repeat):
                for waiting in (copying, prepared, packing, repeating):
                    waits(conn, waiting.info.backend_pid)
                conn.execute("create table public.told ()")
    assert WC.verify(conn) == []
    assert current(conn) == {"a": 7, "b": 2, "c": 3}
    assert current(conn, "one") == {"a": 1, "b": 1}
    assert current(conn, "zz") == {"a": 1}
    for bucket in range(4):
        conn.execute("select bucket, updates, keys, changes, more from pgcombine.combine('wc', %s)", (bucket,))
    assert values(conn) == {"a": 7, "b": 2, "c": 3}


@pytest.mark.slow
def test_what_is_held_and_what_failed_goes_down_and_comes_up(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, quarantine_after=9)
    add(conn, {"bad": 1, "other": 2})
    hold(conn, attempts=7, error="bad", word="bad")
    add(conn, {"bad": 4})
    combine_all(conn)
    add(conn, {"bad": 8, "pending": 1})
    for attempts in (1, 2):
        failed = "select attempts from pgcombine_internal.fail_pass('wc', 3, '22003', 'too large')"
        assert one(conn, failed) == attempts
    held = "select key, updates, attempts, sqlstate, error, since, id from pgcombine.quarantined_key"
    failure = "select bucket, attempts, sqlstate, error, since, last, retry_at from pgcombine.failure"
    before = conn.execute(held).fetchall(), conn.execute(failure).fetchall(), rows(conn, "wc_quarantine")
    assert [len(found) for found in before] == [1, 1, 2]
    schema.downgrade(dsn, "0015", force=True)
    assert (conn.execute(held).fetchall(), conn.execute(failure).fetchall(), rows(conn, "wc_quarantine")) == before
    pending = conn.execute("select word, n from pgcombine.wc_updates order by word").fetchall()
    assert pending == [("bad", 8), ("pending", 1)]
    assert values(conn) == {"other": 2}
    schema.upgrade(dsn)
    assert (conn.execute(held).fetchall(), conn.execute(failure).fetchall(), rows(conn, "wc_quarantine")) == before
    assert WC.verify(conn) == []
    combine_all(conn)
    assert values(conn) == {"other": 2, "pending": 1}
    assert quarantine.retry(conn, "wc", {"word": "bad"}) == 3
    combine_all(conn)
    assert values(conn) == {"other": 2, "pending": 1, "bad": 13}


def test_down_by_force_although_updates_are_pending(dsn: str, empty_dsn: str) -> None:
    with_queues(dsn)
    schema.downgrade(dsn, "base", force=True)
    assert dump(dsn) == dump(empty_dsn)


def test_an_upgrade_that_fails_leaves_nothing(empty_dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    real = list(sqlfiles.repeatables())
    monkeypatch.setattr(sqlfiles, "repeatables", lambda: [*real, ("broken.sql", "select 1/0")])
    before = dump(empty_dsn)
    with pytest.raises(psycopg.errors.DivisionByZero):
        schema.upgrade(empty_dsn)
    assert dump(empty_dsn) == before


def test_a_missing_schema(empty_dsn: str) -> None:
    with pytest.raises(SchemaMissing, match="has no pgcombine schema: run 'pgcombine db upgrade'"):
        schema.check(empty_dsn)
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        conn.execute("create schema pgcombine")
    with pytest.raises(SchemaMissing):
        schema.check(empty_dsn)


def test_other_sql_of_the_same_revision(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("update pgcombine.repeatable set digest = 'another'")
    with pytest.raises(SchemaMismatch, match=r"is of another version .* run 'pgcombine db upgrade'"):
        schema.check(dsn)
    schema.upgrade(dsn)
    schema.check(dsn)


def test_a_newer_schema_is_left_alone(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute("update pgcombine.schema_version set version_num = '9999'")
    before = dump(dsn)
    for refused in (schema.check, schema.upgrade, lambda dsn: schema.downgrade(dsn, "base")):
        with pytest.raises(SchemaMismatch, match=r"newer than this program \(revision 9999.*install the newer"):
            refused(dsn)
    assert dump(dsn) == before


def test_an_unknown_revision(dsn: str) -> None:
    for revision in ("nonsense", ""):
        with pytest.raises(SchemaError, match=f"'{revision}'"):
            schema.downgrade(dsn, revision)
    schema.check(dsn)


def test_a_relative_revision(dsn: str) -> None:
    assert schema.downgrade(dsn, "-1") == REVISIONS[-2]
    assert schema.downgrade(dsn, f"-{len(REVISIONS) - 1}") == "base"
    with psycopg.connect(dsn) as conn:
        assert one(conn, "select to_regnamespace('pgcombine')") is None


def test_a_role_that_may_not(server: Server, empty_dsn: str) -> None:
    """One line, no traceback of three libraries."""
    with psycopg.connect(empty_dsn, autocommit=True) as conn, psycopg.connect(empty_dsn, autocommit=True) as admin:
        admin.execute("drop role if exists pgcombine_nobody")
        admin.execute("create role pgcombine_nobody")
        try:
            nobody = psycopg.conninfo.make_conninfo(empty_dsn, options="-c role=pgcombine_nobody")
            with pytest.raises(psycopg.errors.InsufficientPrivilege, match="permission denied for database"):
                schema.upgrade(nobody)
        finally:
            conn.execute("drop role pgcombine_nobody")


@pytest.mark.slow
@embedded_only
def test_by_the_command_line(empty_dsn: str) -> None:
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
    assert call("downgrade")[0] == 2  # the revision isn't left to chance
    status, out, err = call("downgrade", "base", "--yes")
    assert (status, out) == (1, "")
    assert "pgcombine drain wc" in err
    status, out, err = call("downgrade", "nonsense", "--force", "--yes")
    assert (status, out, len(err.splitlines())) == (1, "", 1)
    status, out, err = call("downgrade", "base", "--force")
    assert (status, out, len(err.splitlines())) == (2, "", 1)
    assert "will be lost: 1 queue (wc) with 0 values and 1 pending update; pass --yes" in err
    schema.check(empty_dsn)
    assert call("downgrade", "base", "--force", "--yes") == (0, "downgraded: revision base\n", "")


@pytest.mark.slow
def test_functions_of_an_older_version_are_replaced(dsn: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute("select pgcombine.create_queue('wc', array['word text'], array['n bigint sum'])")
        connection.execute("insert into pgcombine.wc_updates (word, n) values ('fluo', 1)")
        connection.execute("drop function pgcombine_internal.plan_pass(text, integer, bigint, bigint, text[])")
        connection.execute(
            "create function pgcombine_internal.plan_pass(queue text, b integer) returns text return 'older'"
        )
        connection.execute("create function pgcombine.pause(queue text, times integer) returns void return null")
        schema.upgrade(dsn)
        signatures = connection.execute(
            "select proname, pronargs from pg_proc "
            "where pronamespace in ('pgcombine'::regnamespace, 'pgcombine_internal'::regnamespace) "
            "and proname in ('pause', 'plan_pass') order by 1"
        ).fetchall()
        assert signatures == [("pause", 1), ("plan_pass", 5)]
        assert drain(dsn, "wc").updates == 1


@pytest.mark.slow
def test_hints_and_tokens_come_along(dsn: str) -> None:
    """From before there were rebuilds: what waits for other servers stays, and its queues are known as shared."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        make_queue(conn)
        schema.downgrade(dsn, "0008", force=True)
        token = "017f22e2-79b0-7cc3-98c4-dc0c0c07398f"
        conn.execute("create table pgcombine.handoff_token_all partition of pgcombine.handoff_token default")
        conn.execute("insert into pgcombine.handoff_token values (%s, 'wc', %s, null)", (token, token))
        conn.execute("insert into pgcombine.handoff_replica (name, dsn) values ('b', 'host=b')")
        conn.execute("insert into pgcombine.destination_state (kind, name) values ('server', 'b')")
        conn.execute(
            "insert into pgcombine.handoff_hint (destination, token, queue, shape, digest, updates, payload) "
            "values ('b', %s, 'wc', %s, %s, 1, %s)",
            (token, token, token, '{"{fluo}","{1}"}'),
        )
        schema.upgrade(dsn)
        assert conn.execute("select queue, content from pgcombine.hints_for('b')").fetchall() == [
            ("wc", [{"word": "fluo", "n": "1"}])
        ]
        assert conn.execute("select queue, servers, replicas from pgcombine.handoff_queue").fetchall() == [
            ("wc", None, None)
        ]
        schema.downgrade(dsn, "0008", force=True)
        schema.upgrade(dsn)
        assert one(conn, "select count(*) from pgcombine.hint") == 1
