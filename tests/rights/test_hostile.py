"""Attacks by roles that have few rights or none."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import uuid4

import psycopg
import pytest
from psycopg import errors, sql
from support.queues import add, combine_all, make_queue, one, values
from support.roles import Login, as_role
from support.servers import Server

from pgcombine import Worker, schema
from pgcombine.database.sqlfiles import query
from pgcombine.worker import quarantine


@pytest.fixture
def queues(conn: psycopg.Connection) -> psycopg.Connection:
    """The queues wc (with the export words) and other, and the schema attacker, where any role may create objects."""
    make_queue(conn)
    make_queue(conn, "other")
    conn.execute("select pgcombine.create_export('words', 'wc')")
    conn.execute("create schema attacker; grant all on schema attacker to public")
    return conn


def hostile(conn: psycopg.Connection, login: Login, right: str, *subjects: str) -> psycopg.Connection:
    role = login()
    arguments = sql.SQL(", ").join(map(sql.Literal, [right, role.info.user, *subjects]))
    conn.execute(sql.SQL("select pgcombine.grant_right({})").format(arguments))
    return role


@contextmanager
def working(dsn: str) -> Iterator[threading.Thread]:
    stop = threading.Event()
    thread = threading.Thread(target=Worker(dsn, poll=0.05).run, args=(stop,))
    thread.start()
    try:
        yield thread
    finally:
        stop.set()
        thread.join()


def test_view_of_a_stage_does_not_stop_clean_up(queues: psycopg.Connection, login: Login, dsn: str) -> None:
    role = hostile(queues, login, "enqueue", "wc")
    (stage,) = role.execute("select pgcombine_internal.begin_load(%s, 'wc', 'r')", (uuid4(),)).fetchall()[0]
    role.execute(sql.SQL("create view attacker.v as select * from {}").format(sql.Identifier("pgcombine", stage)))
    role.execute("update pgcombine.spark_load set ended_at = now() - interval '1 day'")
    dead = uuid4()
    queues.execute("select pgcombine_internal.begin_load(%s, 'other', 'r')", (dead,))
    queues.execute("update pgcombine.spark_load set seen_at = now() - interval '2 days' where load = %s", (dead,))
    assert one(queues, "select loads from pgcombine_internal.clean_loads()") == 1
    with working(dsn) as worker:
        add(queues, {"a": 1}, "other")
        queues.execute("call pgcombine.wait('other', '1 min')")
        assert worker.is_alive()
    # to drop the staging table, the clean-up needs a lock on the view, which the role's transaction has locked
    role.execute("begin")
    role.execute("comment on view attacker.v is 'locked'")
    assert one(queues, "select loads from pgcombine_internal.clean_loads()") == 0
    role.execute("commit; drop view attacker.v")
    assert one(queues, "select loads from pgcombine_internal.clean_loads()") == 1


@pytest.fixture
def source(queues: psycopg.Connection, login: Login) -> psycopg.Connection:
    """A role that owns attacker.t, the source of the rollup spent."""
    role = login()
    role.execute("create table attacker.t (word text, n int)")
    role.execute("insert into attacker.t values ('a', 1)")
    queues.execute(
        "select pgcombine.create_rollup('spent', 'attacker.t', array['word'], array['sum(n) as n', 'max(n) as top'])"
    )
    return role


def test_trigger_of_a_rollup_runs_with_the_rights_of_its_sources_owner(
    queues: psycopg.Connection, source: psycopg.Connection, login: Login
) -> None:
    found = queues.execute(
        "select pg_get_userbyid(proowner), prosecdef, proconfig from pg_proc where proname = 'spent_rollup'"
    ).fetchone()
    assert found == (source.info.user, True, ["search_path=pg_catalog, pg_temp"])
    writer = login("insert, delete, truncate on attacker.t")
    writer.execute("insert into attacker.t values ('b', 2)")
    assert one(queues, "select n from pgcombine.spent where word = 'b'") == 2
    writer.execute("truncate attacker.t")
    assert one(queues, "select count(*) from pgcombine.spent where n <> 0") == 0


@pytest.mark.parametrize(
    "statement",
    [
        "create or replace function pgcombine_internal.spent_rollup() returns trigger language plpgsql as "
        "'begin return null; end'",
        "alter function pgcombine_internal.spent_rollup() rename to other",
        "update pgcombine.rollup set definition = '{}'",
        "delete from pgcombine.rollup",
        "select * from pgcombine.verify_rollup('spent', repair => true)",
        "select pgcombine_internal.backfill_slice('spent')",
        "select pgcombine.drop_rollup('spent')",
        "select pgcombine.create_rollup('mine', 'attacker.t', array['word'], array['count(*) as n'])",
        "select * from pgcombine.spent",
        "select * from pgcombine.spent_source",
    ],
)
def test_owner_of_a_source_gets_no_right_on_the_rollup(source: psycopg.Connection, statement: str) -> None:
    with pytest.raises(errors.InsufficientPrivilege):
        source.execute(statement.encode())


def test_trigger_function_of_a_rollup_is_for_its_source_alone(source: psycopg.Connection, login: Login) -> None:
    other = login()
    other.execute("create table attacker.other (word text, n int)")
    with pytest.raises(errors.InsufficientPrivilege):
        other.execute(
            "create trigger t after insert on attacker.other for each row execute function "
            "pgcombine_internal.spent_rollup()"
        )


def test_policies_of_a_source_never_run_with_the_schema_owners_rights(
    server: Server, empty_dsn: str, login: Login
) -> None:
    """The schema's owner isn't a superuser, and the source forces row security even for its owner."""
    owner, role = (login().info.user for _ in range(2))
    with psycopg.connect(empty_dsn, autocommit=True) as admin:
        admin.execute(
            sql.SQL("grant create on database {} to {}, {}; grant {} to {}").format(
                *map(sql.Identifier, (admin.info.dbname, owner, role, role, owner))
            )
        )
        schema.upgrade(as_role(empty_dsn, owner))
        with (
            psycopg.connect(as_role(empty_dsn, owner), autocommit=True) as own,
            psycopg.connect(as_role(empty_dsn, role), autocommit=True) as other,
        ):
            other.execute("create schema attacker; create table attacker.t (word text, n int)")
            other.execute("insert into attacker.t values ('a', 1)")
            own.execute("select pgcombine.create_rollup('spent', 'attacker.t', array['word'], array['sum(n) as n'])")
            other.execute(
                "create function attacker.evil() returns boolean language plpgsql as $$ begin "
                "raise exception 'runs as %', current_user; end $$; "
                "create policy p on attacker.t using (attacker.evil()); "
                "alter table attacker.t enable row level security, force row level security"
            )
            for statement in ("call pgcombine.backfill('spent')", "select * from pgcombine.verify_rollup('spent')"):
                with pytest.raises(errors.InsufficientPrivilege):
                    own.execute(statement.encode())
                own.execute("update pgcombine.rollup set ready_at = now()")
        for name in (role, owner):
            admin.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(name)))


def test_triggers_with_a_rollups_names_on_other_tables_are_ignored(
    queues: psycopg.Connection, source: psycopg.Connection, login: Login
) -> None:
    """The event triggers don't subtract the other table's rows from the rollup, and don't refuse to drop that table."""
    other = login()
    other.execute(
        "create table attacker.other (word text, n int); insert into attacker.other values ('a', 7); "
        "create function attacker.nothing() returns trigger language plpgsql as 'begin return null; end'; "
        'create trigger "~pgcombine_spent_truncate" before truncate on attacker.other '
        "execute function attacker.nothing()"
    )
    queues.execute("call pgcombine.backfill('spent')")
    source.execute("alter table attacker.t add more int")
    assert one(queues, "select n from pgcombine.spent where word = 'a'") == 1
    assert queues.execute("select * from pgcombine.verify('spent')").fetchall() == []
    other.execute("drop table attacker.other")


def test_idle_lock_of_a_hostile_role_hides_no_backlog(queues: psycopg.Connection, login: Login) -> None:
    role = login()
    role.execute("set application_name = 'pgcombine worker x'")
    assert one(role, "select pgcombine_internal.take_idle_lock('pgcombine.wc_updates'::regclass)") == "taken"
    add(queues, {"a": 1})
    assert one(queues, "select pending from pgcombine.queue_stat where queue = 'wc'") == 1


def test_source_of_another_role_stops_neither_an_upgrade_nor_a_drop(
    server: Server, empty_dsn: str, login: Login
) -> None:
    """The schema's owner isn't a superuser, and is no longer a member of the role that owns the source."""
    owner, role = (login().info.user for _ in range(2))
    with psycopg.connect(empty_dsn, autocommit=True) as admin:
        admin.execute(
            sql.SQL("grant create on database {} to {}, {}").format(
                *map(sql.Identifier, (admin.info.dbname, owner, role))
            )
        )
        admin.execute(sql.SQL("grant {} to {}").format(*map(sql.Identifier, (role, owner))))
        schema.upgrade(as_role(empty_dsn, owner))
        with (
            psycopg.connect(as_role(empty_dsn, owner), autocommit=True) as own,
            psycopg.connect(as_role(empty_dsn, role), autocommit=True) as other,
        ):
            other.execute("create schema attacker; create table attacker.t (word text)")
            own.execute("select pgcombine.create_rollup('spent', 'attacker.t', array['word'], array['count(*) as n'])")
            admin.execute(sql.SQL("revoke {} from {}").format(*map(sql.Identifier, (role, owner))))
            own.execute("update pgcombine.schema_version set digest = 'older'")
            warnings: list[str] = []
            schema.upgrade(as_role(empty_dsn, owner), warn=warnings.append)
            assert len(warnings) == 1
            assert warnings[0].startswith('the view and the triggers of rollup "spent" can\'t be made again: ')
            other.execute("insert into attacker.t values ('a')")
            assert one(own, "select n from pgcombine.spent") == 1
            own.execute("select pgcombine.drop_rollup('spent')")
            other.execute("insert into attacker.t values ('a')")
            assert one(own, "select count(*) from pg_trigger where tgname ~ 'spent'") == 0
        for name in (role, owner):
            admin.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(name)))


def test_views_hide_rows_from_users_functions(queues: psycopg.Connection, login: Login) -> None:
    queues.execute(
        "insert into pgcombine.quarantined_key (queue, key, updates, attempts, error) values "
        """('other', '{"word": "secret"}', 0, 1, 'secret')"""
    )
    role = login()
    seen: list[str] = []
    role.add_notice_handler(lambda notice: seen.append(str(notice.message_primary)))
    role.execute(
        "create function attacker.leak(t text) returns boolean language plpgsql cost 0.0001 as "
        "$$ begin raise notice '%', t; return true; end $$"
    )
    for view, column in (
        ("quarantine", "key"),
        ("quarantine", "error"),
        ("export_status", "export"),
        ("status", "queue"),
    ):
        query = sql.SQL("select * from pgcombine.{} where attacker.leak({}::text)")
        assert role.execute(query.format(sql.Identifier(view), sql.Identifier(column))).fetchall() == []
    assert seen == []


def test_locked_row_does_not_block_other_queues(queues: psycopg.Connection, login: Login) -> None:
    worker, deliverer = hostile(queues, login, "work", "wc"), hostile(queues, login, "export", "words")
    worker.execute("insert into pgcombine.failure (queue, bucket, attempts, error) values ('wc', 0, 0, 'x')")
    deliverer.execute(query("export_refused").encode(), ("words", "x", '{"seq": 1}'))
    deliverer.execute("update pgcombine.export_quarantine set since = '-infinity'")
    for role, table in ((worker, "failure"), (deliverer, "export_quarantine")):
        role.execute("begin")
        role.execute(f"select from pgcombine.{table} for update".encode())
    queues.execute("set statement_timeout = '10s'")
    add(queues, {"a": 1}, "other")
    for bucket in range(4):
        queues.execute("select pgcombine_internal.fail_pass('other', %s, '22012', 'y')", (bucket,))
    combine_all(queues, "other")
    assert quarantine.retry(queues, "other") == 0
    assert values(queues, "other") == {"a": 1}


@pytest.mark.parametrize(
    ("right", "subject", "statement"),
    [
        (
            "work",
            "wc",
            "insert into pgcombine.failure (queue, bucket, attempts, error) values ('wc', 0, 2000000000, '')",
        ),
        (
            *("work", "wc"),
            "insert into pgcombine.failure (queue, bucket, attempts, error, last) values ('wc', 0, 1, '', 'infinity')",
        ),
        (
            *("work", "wc"),
            "insert into pgcombine.quarantined_key (queue, key, updates, attempts, error) "
            "values ('wc', '{}', 9223372036854775807, 1, 'x')",
        ),
        *(
            (
                *("work", "wc"),
                "insert into pgcombine.pass"
                " (queue, bucket, pass, mark, range_mask, hash_range, began, updates, keys, changes) "
                "values ('wc', 0, " + row + ")",
            )
            for row in (
                "9223372036854775807, '1:1:', null, null, now(), 0, 0, 0",
                "1000, '1:1:', 4611686018427387903, 0, now(), 0, 0, 0",
                "1000, '1:1:', 3, 4, now(), 0, 0, 0",
                "1000, '1:1:', null, null, 'infinity', 0, 0, 0",
                "1000, '1:1:', null, null, now(), 9223372036854775807, 0, 0",
            )
        ),
        ("operate", "wc", "update pgcombine.destination_state set ticket = 9223372036854775807"),
        ("operate", "wc", "update pgcombine.destination_state set retry_at = 'infinity'"),
        ("export", "words", "update pgcombine.export_bucket set delivered = 9223372036854775807"),
    ],
)
def test_numbers_that_would_overflow_are_refused(
    queues: psycopg.Connection, login: Login, right: str, subject: str, statement: str
) -> None:
    role = hostile(queues, login, right, subject)
    with pytest.raises((errors.CheckViolation, errors.InsufficientPrivilege)):
        role.execute(statement.encode())


@pytest.mark.parametrize("at", ["294270-01-01", "4700-01-01 BC"])
@pytest.mark.parametrize(
    ("right", "subject", "statement"),
    [
        *(
            (
                *("work", "wc"),
                "insert into pgcombine.failure (queue, bucket, attempts, error, " + column + ") "
                "values ('wc', 0, 1, '', {at})",
            )
            for column in ("since", "last", "retry_at")
        ),
        *(
            ("work", "wc", statement)
            for statement in (
                "insert into pgcombine.expiry (queue, bucket, page, due, failed_at) values ('wc', 0, 0, now(), {at})",
                "insert into pgcombine.expiry (queue, bucket, page, due) values ('wc', 0, 0, now()); "
                "update pgcombine.expiry set failed_at = {at}",
            )
        ),
        (
            *("work", "wc"),
            "insert into pgcombine.pass (queue, bucket, pass, mark, began, updates, keys, changes) "
            "values ('wc', 0, 1000, '1:1:', {at}, 0, 0, 0)",
        ),
        ("operate", "wc", "update pgcombine.destination_state set retry_at = {at}"),
        ("operate", "wc", "update pgcombine.destination_state set since = {at}"),
        ("export", "words", "update pgcombine.export_bucket set delivered_at = {at}"),
        (
            *("export", "words"),
            """insert into pgcombine.export_quarantine (export, seq, entry, error)
            values ('words', 1, '{{"seq": 1}}', 'x');
            update pgcombine.export_quarantine set since = {at}""",
        ),
        (
            *("enqueue", "wc"),
            "select pgcombine_internal.begin_load(gen_random_uuid(), 'wc', 'r'); "
            "update pgcombine.spark_load set ended_at = {at}",
        ),
    ],
)
def test_times_that_python_cannot_read_are_refused(
    queues: psycopg.Connection, login: Login, right: str, subject: str, statement: str, at: str
) -> None:
    """Python can't read these times. A row with such a time would make ``pgcombine status`` fail for all queues."""
    role = hostile(queues, login, right, subject)
    with pytest.raises(errors.InsufficientPrivilege):
        role.execute(sql.SQL(statement).format(at=sql.Literal(at)))


def test_mark_beyond_the_newest_id_is_refused(queues: psycopg.Connection, login: Login) -> None:
    """A mark beyond the newest transaction id would make ``pgcombine status`` fail for all queues."""
    role = hostile(queues, login, "work", "wc")
    mark = "insert into pgcombine.pass (queue, bucket, pass, mark, began, updates, keys, changes) "
    with pytest.raises(errors.InsufficientPrivilege):
        role.execute(mark + "values ('wc', 0, 1000, '9223372036854775806:9223372036854775807:', now(), 0, 0, 0)")
    add(queues, {"a": 1})
    assert role.execute("select updates from pgcombine.combine('wc')").fetchall() == [(1,)]


def test_documents_that_python_cannot_read_are_refused(queues: psycopg.Connection, login: Login) -> None:
    """Python can't read a document with 1000 levels. A document with 320 levels is allowed."""
    role = hostile(queues, login, "work", "wc")
    quarantine_document = (
        "insert into pgcombine.quarantined_key (queue, key, updates, attempts, error) "
        "values ('wc', (repeat('[', %s) || repeat(']', %s))::jsonb, 1, 1, 'x')"
    )
    role.execute(quarantine_document, (320, 320))
    with pytest.raises(errors.InsufficientPrivilege):
        role.execute(quarantine_document, (1000, 1000))
    deliverer = hostile(queues, login, "export", "words")
    with pytest.raises(errors.InsufficientPrivilege):
        deliverer.execute(
            "insert into pgcombine.export_quarantine (export, seq, entry, error) "
            "values ('words', 1, (repeat('[', 1000) || repeat(']', 1000))::jsonb, 'x')"
        )


def test_worker_survives_a_failure_that_cannot_be_recorded(queues: psycopg.Connection, login: Login, dsn: str) -> None:
    """If a pass fails and its failure can't be recorded, the worker goes on with another queue."""
    queues.execute(
        "create function attacker.refuse() returns trigger language plpgsql as "
        "$$ begin raise exception using errcode = '22003', message = 'refused'; end $$; "
        "create trigger refuse before insert on pgcombine.failure for each row execute function attacker.refuse()"
    )
    with working(dsn) as worker:
        add(queues, [("poison", 2**62), ("poison", 2**62)])
        for number in range(3):
            add(queues, {f"w{number}": 1}, "other")
            queues.execute("call pgcombine.wait('other', '1 min')")
        assert worker.is_alive()


def test_invalid_quarantined_keys_can_be_dropped(queues: psycopg.Connection, login: Login) -> None:
    role = hostile(queues, login, "work", "wc")
    for key in ("7", '{"pgcombine_packed": 7}', '{"pgcombine_packed": [7]}', "null", '"x"'):
        role.execute(
            "insert into pgcombine.quarantined_key (queue, key, updates, attempts, error) "
            "values ('wc', %s::jsonb, 0, 1, 'x')",
            (key,),
        )
    quarantine.drop(queues, "wc")
    assert one(queues, "select count(*) from pgcombine.quarantined_key") == 0
