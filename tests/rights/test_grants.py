"""Granted and revoked rights: what a role with a right may do, and what it may not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from psycopg import errors, sql
from support import run_cli
from support.queues import add, called, combine_all, current, got, hold, make_queue, one, values
from support.roles import Login, as_role

from pgcombine import CombineQueue, Worker, drain, schema
from pgcombine.doctor.examine import examine
from pgcombine.errors import NotGrantedError
from pgcombine.queue import status as figures
from pgcombine.worker import quarantine

Grant = Callable[..., psycopg.Connection]

# each right, and the queue for which the tests grant it
RIGHTS = {"enqueue": ["wc"], "read": ["wc"], "handoff": ["wc"], "work": [], "monitor": []}


@pytest.fixture
def queues(conn: psycopg.Connection) -> psycopg.Connection:
    """The queues wc and other, with the exports words and others."""
    for queue, export in (("wc", "words"), ("other", "others")):
        make_queue(conn, queue)
        conn.execute("select pgcombine.create_export(%s, %s)", (export, queue))
    return conn


@pytest.fixture
def granted(conn: psycopg.Connection, login: Login) -> Grant:
    """A function that returns a connection of a new role with a right, such as ``granted("work")``."""

    def make(right: str, *subjects: str, role: str | None = None) -> psycopg.Connection:
        connection = login(role=role)
        grant(conn, right, connection.info.user, *subjects)
        return connection

    return make


def grant(conn: psycopg.Connection, right: str, role: str, *subjects: str) -> None:
    arguments = sql.SQL(", ").join(map(sql.Literal, [right, role, *subjects]))
    conn.execute(sql.SQL("select pgcombine.grant_right({})").format(arguments))


def revoke(conn: psycopg.Connection, right: str, role: str, *subjects: str) -> None:
    conn.execute(
        sql.SQL("select pgcombine.revoke_right({})").format(
            sql.SQL(", ").join(map(sql.Literal, [right, role, *subjects]))
        )
    )


def refused(conn: psycopg.Connection, *statements: str) -> None:
    for statement in statements:
        with pytest.raises(errors.InsufficientPrivilege):
            conn.execute(statement.encode())


def rights(conn: psycopg.Connection, role: str) -> list[tuple[Any, ...]]:
    return conn.execute('select "right", queue from pgcombine.rights where role = %s order by 1, 2', (role,)).fetchall()


@pytest.mark.parametrize("right", RIGHTS)
def test_right_grants_its_privileges_and_can_be_revoked(
    queues: psycopg.Connection, granted: Grant, dsn: str, right: str
) -> None:
    """An upgrade and a rebucket keep the right. The doctor misses no privilege, and dropping the role is possible."""
    role = granted(right, *RIGHTS[right]).info.user
    expected = [(right, *(RIGHTS[right] or [None]))]
    if right == "handoff":
        expected.insert(0, ("enqueue", "wc"))
    assert rights(queues, role) == expected
    queues.execute("update pgcombine.schema_version set digest = 'older'")
    schema.upgrade(dsn)
    queues.execute("select pgcombine.rebucket('wc', 8)")
    make_queue(queues, "new")
    assert rights(queues, role) == expected
    examined = examine(as_role(dsn, role), rights=[right], queues=RIGHTS[right])
    assert [str(one.level) for one in examined if one.check == "rights"] == ["ok"]
    revoke(queues, right, role, *RIGHTS[right])
    assert rights(queues, role) == []
    assert not one(
        queues,
        "select count(*) from pg_class c cross join lateral aclexplode(c.relacl) a "
        "where a.grantee = %s::regrole and c.relname !~ '^handoff_'",
        role,
    )


def test_worker_has_all_queues_also_later_ones(queues: psycopg.Connection, granted: Grant, dsn: str) -> None:
    worker = granted("work")
    make_queue(queues, "new", buckets=2)
    queues.execute("select pgcombine.create_export('news', 'new'); select pgcombine.create_feed('newest', 'new')")
    queues.execute("select pgcombine.rebucket('new', 4)")
    for queue in ("new", "wc"):
        add(queues, [("a", 1), ("poison", 2**62), ("poison", 2**62)], queue)
        queues.execute("update pgcombine.queue set quarantine_after = 1")
        with suppress(psycopg.Error):
            worker.execute(sql.SQL("call pgcombine.drain({})").format(sql.Literal(queue)))
        assert values(queues, queue) == {"a": 1}
        assert quarantine.drop(worker, queue) == 2
    worker.execute("select pgcombine.pause('new'), pgcombine.resume('new')")
    worker.execute("select pgcombine.pause_export('news'), pgcombine.resume_export('news')")
    bucket = one(worker, "select pgcombine_internal.claim_export('news')")
    assert bucket is not None
    worker.execute("call pgcombine.reclaim()")
    refused(
        worker,
        "select pgcombine.drop_queue('wc', force => true)",
        "select pgcombine.create_queue('mine', array['word text'], array['n bigint sum'])",
        "select pgcombine.grant_right('work', current_user)",
    )


def test_rights_of_writers_and_readers_end_at_their_queue(queues: psycopg.Connection, granted: Grant) -> None:
    """Writers and readers see and change neither another queue nor what all queues share."""
    for right in ("enqueue", "handoff", "read"):
        role = granted(right, "wc")
        refused(
            role,
            "insert into pgcombine.other_updates values ('a', 1)",
            "select pgcombine.enqueue_once('other', 't', '[{}]')",
            "insert into pgcombine.token (queue, token) values ('wc', 't')",
            "select * from pgcombine.token",
            "delete from pgcombine.pass",
            "select * from pgcombine.failure",
            "select * from pgcombine.export_entry",
            "select * from pgcombine.spark_load",
            "select from pgcombine.bucket for update",
            "update pgcombine.queue set paused = true",
            "select pgcombine_internal.begin_load(gen_random_uuid(), 'wc', 'r')",
            "select pgcombine_internal.pause_destination('export', 'words')",
            "select pgcombine_internal.handoff_set_topology('other', '{a}', 1)",
            f"select pgcombine.grant_right('read', '{role.info.user}', 'other')",
        )
        revoke(queues, right, role.info.user, "wc")
        refused(role, "insert into pgcombine.wc_updates values ('a', 1)", "select * from pgcombine.wc_values")


@pytest.mark.parametrize(
    ("call", "sqlstate"),
    [
        ("grant_right('read', 'pg_monitor', 'nowhere')", "PC001"),
        ("grant_right('read', 'pg_monitor')", "PC003"),
        ("revoke_right('read', 'pg_monitor')", "PC003"),
        ("grant_right('work', 'pg_monitor', 'wc')", "PC003"),
        ("revoke_right('fly', 'pg_monitor', 'wc')", "PC003"),
        ("grant_right('read', 'no such role', 'wc')", "42704"),
    ],
)
def test_invalid_calls_are_refused(queues: psycopg.Connection, call: str, sqlstate: str) -> None:
    with pytest.raises(psycopg.Error):
        queues.execute(called(call).encode())


def test_worker_without_the_right_is_refused(queues: psycopg.Connection, granted: Grant, dsn: str) -> None:
    role = granted("enqueue", "wc").info.user
    for start in (lambda: Worker(as_role(dsn, role)).run(threading.Event()), lambda: drain(as_role(dsn, role), "wc")):
        with pytest.raises(NotGrantedError):
            start()


def test_command_creates_a_role_for_each_right(queues: psycopg.Connection, dsn: str, granted: Grant) -> None:
    prefix = f'A "{queues.info.backend_pid}" '
    refusal = run_cli("db", "roles", "--make", "--dsn", as_role(dsn, granted("monitor").info.user))
    assert (refusal.returncode, refusal.stderr) == (1, "pgcombine: permission denied to create role\n")
    try:
        for told in ("made", "was there"):
            made = run_cli("db", "roles", "--make", "--prefix", prefix, "--dsn", dsn).stdout.splitlines()
            assert made == [f"{prefix}{right}: {told}, has the right {right}" for right in sorted(RIGHTS)]
        assert ("work", None) in rights(queues, f"{prefix}work")
        assert ("read", "other") in rights(queues, f"{prefix}read")
    finally:
        for right in RIGHTS:
            role = sql.Identifier(f"{prefix}{right}")
            with suppress(psycopg.errors.UndefinedObject):
                queues.execute(sql.SQL("drop owned by {0}; drop role {0}").format(role))


def test_worker_without_temporary_tables_runs_passes(queues: psycopg.Connection, granted: Grant) -> None:
    """A worker that can't create temporary tables runs passes, but bisect raises an error that names the privilege."""
    worker = granted("work")
    database, user = sql.Identifier(queues.info.dbname), sql.Identifier(worker.info.user)
    queues.execute(sql.SQL("revoke temporary on database {} from public").format(database))
    add(queues, {"good": 1})
    combine_all(worker)
    assert values(queues) == {"good": 1}
    add(queues, [("poison", 2**62), ("poison", 2**62)])
    bucket = one(queues, "select bucket from pgcombine_internal.busy('wc')")
    search = "select quarantined from pgcombine_internal.bisect('wc', %s, 1)"
    with pytest.raises(errors.InsufficientPrivilege):
        worker.execute(search, (bucket,))
    queues.execute(sql.SQL("grant temporary on database {} to {}").format(database, user))
    assert one(worker, search, bucket) == 1


def test_doctor_of_a_monitor_finds_what_the_owners_finds(queues: psycopg.Connection, dsn: str, granted: Grant) -> None:
    hold(queues, word="held")
    queues.execute("select pgcombine_internal.fail_pass('other', 0, '22003', 'out of range')")
    queues.execute("select pgcombine.pause_export('others')")
    queues.execute("update pgcombine.destination_state set state = 'down', reason = 'refused' where name = 'words'")
    for number, server in enumerate(("b", "c", "d")):
        queues.execute("select pgcombine_internal.handoff_register(%s, 'host=h')", (server,))
        if number:
            queues.execute(
                "update pgcombine.handoff_replica set needs_repair = 'it lost commits' where name = %s", (server,)
            )
    queues.execute("update pgcombine.destination_state set state = 'down' where name = 'c'")

    def found(role: str) -> set[tuple[str, str, object]]:
        made = examine(as_role(dsn, role) if role else dsn)
        return {(one.check, one.subject, one.level) for one in made if one.check not in ("disk", "role", "rights")}

    owners = found("")
    assert {check for check, subject, _ in owners if subject} >= {"failing", "quarantine", "exports", "servers"}
    assert found(granted("monitor").info.user) == owners


def test_right_to_monitor_shows_only_figures(queues: psycopg.Connection, granted: Grant) -> None:
    monitor = granted("monitor")
    add(queues, {"a": 1})
    add(queues, {"b": 1}, "other")
    combine_all(queues)
    queues.execute("select pgcombine_internal.fail_pass('other', 0, '22003', 'out of range')")
    found = {entry["queue"]: entry for entry in figures.status(monitor)}
    assert (found["wc"]["backlog"], found["other"]["backlog"]) == (0, 1)
    (failing,) = found["other"]["failing_buckets"]
    assert (failing["sqlstate"], failing["error"]) == ("22003", None)
    assert monitor.execute("select export, pending from pgcombine.export_stat order by 1").fetchall() == [
        ("others", 0),
        ("words", 1),
    ]
    assert monitor.execute("select name, state from pgcombine.destination order by 1").fetchall() == [
        ("others", "up"),
        ("words", "up"),
    ]
    monitor.execute("select * from pgcombine.handoff, pgcombine.hint, pgcombine.worker")
    assert monitor.execute("select * from pgcombine.quarantine").fetchall() == []
    refused(
        monitor,
        "select * from pgcombine.wc_values",
        "select * from pgcombine.wc_current",
        "select * from pgcombine.wc_get('a')",
        "select * from pgcombine.wc_get_many('{a}')",
        "select * from pgcombine.other_updates",
        "select * from pgcombine.words_exports",
        "select pgcombine.pause('wc')",
    )


def test_right_to_read_needs_no_privilege_on_partitions(queues: psycopg.Connection, granted: Grant) -> None:
    reader = granted("read", "wc")
    add(queues, {"a": 1, "b": 2})
    queue = CombineQueue("wc")
    assert current(reader) == got(reader, ["a", "b"]) == {"a": 1, "b": 2}
    combine_all(queues)
    assert queue.get(reader, ["a", "b"]) == {"a": 1, "b": 2}
    assert queue.backlog(reader) == 0
    reader.execute("call pgcombine.wait('wc', '1 min')")
    refused(
        reader,
        "select * from pgcombine.other_values",
        "select pgcombine.backlog('other')",
        "select * from pgcombine.status",
        "select * from pgcombine.pass",
        "select pgcombine.combine('wc')",
        "select pgcombine_internal.export_release('words', null, false)",
    )


@pytest.mark.parametrize("right", ["enqueue", "handoff"])
def test_roles_that_enqueue_cannot_write_ids(queues: psycopg.Connection, granted: Grant, right: str) -> None:
    role = granted(right, "wc")
    refused(
        role,
        "insert into pgcombine.wc_updates (word, n, pgcombine_tx) values ('a', 1, txid_current())",
        "copy pgcombine.wc_updates (word, pgcombine_tx) from stdin",
    )
    words = [f"w{number}" for number in range(100)]
    assert one(role, "select pgcombine.wc_enqueue(%s, %s)", words, [1] * 100) == 100
    role.execute("insert into pgcombine.wc_updates values ('a', 1)")
    combine_all(queues)
    assert len(values(queues)) == 101
