"""Granted and revoked rights: what a role with a right may do, and what it may not."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import psycopg
import pytest
from psycopg import errors, sql
from support import run_cli
from support.queues import add, called, combine_all, current, hold, make_queue, one, values
from support.roles import Login, as_role
from support.states import raises_state

from pgcombine import CombineQueue, Worker, drain, schema
from pgcombine.database.sqlfiles import query
from pgcombine.doctor.examine import examine
from pgcombine.errors import NotGrantedError
from pgcombine.queue import status as figures
from pgcombine.worker import quarantine

Grant = Callable[..., psycopg.Connection]
Rows = list[tuple[Any, ...]]

# each right, and the queue or export for which the tests grant it
RIGHTS = {
    "enqueue": ["wc"],
    "read": ["wc"],
    "load": ["wc"],
    "work": ["wc"],
    "operate": ["wc"],
    "handoff": ["wc"],
    "export": ["words"],
    "monitor": [],
    "replay": [],
}


@pytest.fixture
def queues(conn: psycopg.Connection) -> psycopg.Connection:
    """The queues wc and other, with the exports words and others."""
    for queue, export in (("wc", "words"), ("other", "others")):
        make_queue(conn, queue)
        conn.execute("select pgcombine.create_export(%s, %s)", (export, queue))
    return conn


@pytest.fixture
def granted(conn: psycopg.Connection, login: Login) -> Grant:
    """A function that returns a connection of a new role with a right, such as ``granted("work", "wc")``."""

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


def privileges(conn: psycopg.Connection, role: str) -> set[str]:
    return {privilege for (privilege,) in conn.execute("select pgcombine_internal.granted_privileges(%s)", (role,))}


def holds(conn: psycopg.Connection, right: str, role: str, subject: str | None) -> bool:
    """Whether the role has all privileges of the right."""
    listed = {
        privilege
        for each in (None, subject)
        for (privilege,) in conn.execute("select pgcombine_internal.right_privileges(%s, %s)", (right, each))
    }
    return listed <= privileges(conn, role)


def refused(conn: psycopg.Connection, *statements: str) -> None:
    for statement in statements:
        with pytest.raises(errors.InsufficientPrivilege):
            conn.execute(statement.encode())


@pytest.mark.parametrize("right", RIGHTS)
def test_right_grants_its_privileges_and_can_be_revoked(queues: psycopg.Connection, granted: Grant, right: str) -> None:
    role = granted(right, *RIGHTS[right]).info.user
    listed = {
        privilege
        for subject in [None, *RIGHTS[right]]
        for (privilege,) in queues.execute("select pgcombine_internal.right_privileges(%s, %s)", (right, subject))
    }
    assert privileges(queues, role) == listed
    assert listed
    revoke(queues, right, role, *RIGHTS[right])
    assert privileges(queues, role) == set()


@pytest.mark.slow
@pytest.mark.parametrize("other", RIGHTS)
def test_revoking_a_right_keeps_another_one(queues: psycopg.Connection, granted: Grant, other: str) -> None:
    """Revoking one of two rights keeps the privileges of the other. Revoking both leaves no privilege."""
    role = granted(other, *RIGHTS[other]).info.user
    alone = privileges(queues, role)
    for right in RIGHTS.keys() - {other}:
        grant(queues, right, role, *RIGHTS[right])
        revoke(queues, right, role, *RIGHTS[right])
        assert privileges(queues, role) == alone, right
    for right in RIGHTS.keys() - {other}:
        grant(queues, right, role, *RIGHTS[right])
        revoke(queues, other, role, *RIGHTS[other])
        revoke(queues, right, role, *RIGHTS[right])
        assert privileges(queues, role) == set(), right
        grant(queues, other, role, *RIGHTS[other])


def test_revoking_on_one_queue_keeps_the_right_on_another(queues: psycopg.Connection, granted: Grant) -> None:
    role = granted("work", "wc", "other").info.user
    revoke(queues, "work", role, "wc")
    left = privileges(queues, role)
    assert "delete on pgcombine.wc_updates" not in left
    assert "delete on pgcombine.other_updates" in left
    assert "usage on sequence pgcombine.export_sequence" in left
    revoke(queues, "work", role, "*")
    assert privileges(queues, role) == set()


def test_right_on_all_queues_includes_new_ones(queues: psycopg.Connection, granted: Grant) -> None:
    workers = granted("work", "*")
    readers = granted("read", "*").info.user
    exporters = granted("export", "*").info.user
    make_queue(queues, "new", buckets=2)
    queues.execute("select pgcombine.create_export('news', 'new')")
    add(queues, {"a": 1}, "new")
    assert combine_all(workers, "new")
    for role, right in ((workers.info.user, "work"), (readers, "read"), (exporters, "export")):
        subject = "news" if right == "export" else "new"
        assert holds(queues, right, role, subject)
        revoke(queues, right, role, "*")
        assert privileges(queues, role) == set()
    make_queue(queues, "newer")
    assert privileges(queues, workers.info.user) == set()


def test_view_lists_granted_rights(queues: psycopg.Connection, granted: Grant) -> None:
    role = granted("work", "wc").info.user
    for right, *subjects in (("read", "*"), ("export", "words"), ("monitor",)):
        grant(queues, right, role, *subjects)
    read = [("read", "*"), ("read", "other"), ("read", "wc")]
    everything = [("export", "words"), ("monitor", None), *read, ("work", "wc")]
    listed = 'select "right", queue from pgcombine.rights where role = %s order by "right", queue collate "C"'
    assert queues.execute(listed, (role,)).fetchall() == everything
    with granted("read", "wc") as reader:
        assert reader.execute(listed, (role,)).fetchall() == everything, "a role doesn't see all rights"
    revoke(queues, "work", role, "wc")
    make_queue(queues, "new")
    queues.execute("select pgcombine.drop_queue('wc', force => true)")
    left = [("monitor", None), ("read", "*"), ("read", "new"), ("read", "other")]
    assert queues.execute(listed, (role,)).fetchall() == left
    queues.execute(sql.SQL("drop owned by {}").format(sql.Identifier(role)))
    assert queues.execute(listed, (role,)).fetchall() == []


def test_names_may_need_quotes(queues: psycopg.Connection) -> None:
    role, queue = f'A "role" {queues.info.backend_pid}', "select"
    make_queue(queues, queue)
    queues.execute(sql.SQL("create role {}").format(sql.Identifier(role)))
    try:
        for right, subjects in RIGHTS.items():
            grant(queues, right, role, *(["*"] if subjects else []))
        make_queue(queues, "table")
        queues.execute("select pgcombine.create_export('user', 'table')")
        for right, subjects in RIGHTS.items():
            subject = {"export": "user"}.get(right, "table") if subjects else None
            assert holds(queues, right, role, subject)
        for right, subjects in RIGHTS.items():
            revoke(queues, right, role, *(["*"] if subjects else []))
        assert privileges(queues, role) == set()
    finally:
        for end in ("drop owned by {}", "drop role {}"):
            queues.execute(sql.SQL(end).format(sql.Identifier(role)))


def test_rights_survive_an_upgrade_and_a_rebucket(queues: psycopg.Connection, granted: Grant, dsn: str) -> None:
    """The rights also apply to an export that is created later."""
    connections = {right: granted(right, *subjects) for right, subjects in RIGHTS.items()}
    before = {right: privileges(queues, connection.info.user) for right, connection in connections.items()}
    queues.execute("update pgcombine.schema_version set digest = 'older'")
    schema.upgrade(dsn)
    assert before == {right: privileges(queues, c.info.user) for right, c in connections.items()}
    queues.execute("select pgcombine.rebucket('wc', 8)")
    queues.execute("select pgcombine.create_export('more', 'wc')")
    for right, connection in connections.items():
        for subject in RIGHTS[right] or [None]:
            assert holds(queues, right, connection.info.user, subject)
    add(connections["enqueue"], {"a": 1, "b": 2})
    combine_all(connections["work"])
    assert values(connections["read"]) == {"a": 1, "b": 2}
    assert one(queues, "select count(*) from pgcombine.more_exports") == 2


def test_only_the_owner_grants(queues: psycopg.Connection, granted: Grant) -> None:
    operator = granted("operate", "*")
    for right, subjects in RIGHTS.items():
        arguments = ", ".join(f"'{text}'" for text in (operator.info.user, *subjects))
        refused(operator, f"select pgcombine.grant_right('{right}', {arguments})")
        refused(operator, f"select pgcombine.revoke_right('{right}', {arguments})")


@pytest.mark.parametrize(
    ("call", "sqlstate"),
    [
        ("grant_right('work', 'pg_monitor', 'nowhere')", "PC001"),
        ("grant_right('export', 'pg_monitor', 'nowhere')", "PC021"),
        ("grant_right('work', 'pg_monitor')", "PC003"),
        ("revoke_right('work', 'pg_monitor')", "PC003"),
        ("grant_right('read', 'no such role', 'wc')", "42704"),
        ("revoke_right('fly', 'pg_monitor', 'wc')", "PC003"),
        ("revoke_right('monitor', 'pg_monitor', 'wc')", "PC003"),
    ],
)
def test_invalid_calls_are_refused(queues: psycopg.Connection, call: str, sqlstate: str) -> None:
    with raises_state(sqlstate):
        queues.execute(called(call).encode())


def test_worker_combines_only_queues_with_the_right(
    queues: psycopg.Connection, granted: Grant, dsn: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The worker combines wc and quarantines its failing key. One log line names the queue that the worker skips."""
    role = granted("work", "wc").info.user
    add(queues, {"a": 1, "b": 2})
    add(queues, {"c": 3}, "other")
    queues.execute("update pgcombine.queue set quarantine_after = 1")
    add(queues, [("poison", 2**62), ("poison", 2**62)])
    stop = threading.Event()

    def stop_when_combined(_: object) -> None:
        if one(queues, "select count(*) from pgcombine.quarantined_key") and not one(
            queues, "select pgcombine.backlog('wc')"
        ):
            stop.set()

    timer = threading.Timer(60, stop.set)
    timer.start()
    with caplog.at_level("WARNING", logger="pgcombine.worker"):
        worker = Worker(as_role(dsn, role), on_pass=stop_when_combined, poll=0.05)
        thread = threading.Thread(target=worker.run, args=(stop,))
        thread.start()
        while thread.is_alive():
            stop_when_combined(None)
            thread.join(0.1)
    timer.cancel()
    assert values(queues) == {"a": 1, "b": 2}
    assert one(queues, "select key->>'word' from pgcombine.quarantine") == "poison"
    assert one(queues, "select count(*) from pgcombine.failure") == 0
    assert values(queues, "other") == {}
    told = [record.getMessage() for record in caplog.records if "not_granted" in record.getMessage()]
    assert told == [
        f"worker.not_granted queue=other role={role} "
        f"hint=it is skipped; run select pgcombine.grant_right('work', '{role}', 'other')"
    ]


def test_worker_refuses_a_named_queue_without_the_right(queues: psycopg.Connection, granted: Grant, dsn: str) -> None:
    role = granted("work", "wc").info.user
    with pytest.raises(NotGrantedError):
        Worker(as_role(dsn, role), "other").run(threading.Event())
    with pytest.raises(NotGrantedError):
        drain(as_role(dsn, role), "other")


def test_worker_survives_a_revoked_right(queues: psycopg.Connection, granted: Grant, dsn: str) -> None:
    """The worker still combines the queue on which it has the right."""
    worker = granted("work", "wc", "other")
    stop = threading.Event()
    thread = threading.Thread(target=Worker(as_role(dsn, worker.info.user), poll=0.05).run, args=(stop,))
    thread.start()
    try:
        add(queues, {"a": 1})
        queues.execute("call pgcombine.wait('wc', '1 min')")
        revoke(queues, "work", worker.info.user, "wc")
        add(queues, {"a": 1})
        add(queues, {"b": 1}, "other")
        queues.execute("call pgcombine.wait('other', '1 min')")
        assert thread.is_alive()
        grant(queues, "work", worker.info.user, "wc")
        queues.execute("call pgcombine.wait('wc', '1 min')")
    finally:
        stop.set()
        thread.join()
    assert values(queues) == {"a": 2}


def test_right_to_work_excludes_other_queues(queues: psycopg.Connection, granted: Grant) -> None:
    worker = granted("work", "wc")
    quarantined = (
        "insert into pgcombine.quarantined_key (queue, key, updates, attempts, error) "
        "values ('other', '{}', 0, 1, 'out of range')"
    )
    queues.execute("select pgcombine_internal.fail_pass('other', 0, '22003', 'out of range')")
    queues.execute(quarantined)
    assert worker.execute("select from pgcombine.bucket where queue = 'other' for update").fetchall() == []
    assert worker.execute("select from pgcombine.failure").fetchall() == []
    for statement in (
        "update pgcombine.bucket set bucket = 0 where queue = 'other'",
        "update pgcombine.failure set attempts = 0",
        "update pgcombine.quarantined_key set updates = -1",
        "update pgcombine.queue set paused = true",
        "update pgcombine.destination_state set state = 'paused'",
        "update pgcombine.export_quarantine set since = '-infinity'",
    ):
        assert worker.execute(statement.encode()).rowcount == 0
    refused(
        worker,
        "select pgcombine_internal.fail_pass('other', 0, '22003', 'for fun')",
        "insert into pgcombine.failure (queue, bucket, attempts, error) values ('other', 1, 1, 'for fun')",
        quarantined,
        "select pgcombine.combine('other')",
        "select pgcombine.combine('other', 0)",
        "select pgcombine.backlog('other')",
        "select key from pgcombine.quarantined_key",
        "delete from pgcombine.failure",
        *(f"do 'begin lock table pgcombine.{table} in share mode; end'" for table in ("bucket", "queue", "failure")),
    )
    worker.execute("select pgcombine_internal.forget_failure('other', 0), pgcombine_internal.delete_flagged()")
    assert one(queues, "select count(*) from pgcombine.failure") == 1
    assert one(queues, "select count(*) from pgcombine.quarantined_key") == 1


def test_worker_without_temporary_tables_runs_passes(queues: psycopg.Connection, granted: Grant) -> None:
    """A worker that can't create temporary tables runs passes, but bisect raises an error that names the privilege."""
    worker = granted("work", "wc")
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


def test_right_to_operate_allows_to_pause_and_to_release(queues: psycopg.Connection, granted: Grant) -> None:
    """The role may pause and resume its queue and that queue's exports, and drop or release what is quarantined."""
    operator = granted("operate", "wc")
    for queue in ("wc", "other"):
        add(queues, [("poison", 2**62), ("poison", 2**62)], queue)
        hold(queues, queue, word="poison", error="out of range")
        export = {"wc": "words", "other": "others"}[queue]
        queues.execute(
            query("export_refused").encode(),
            (export, "too long", '{"word": "a", "old_n": null, "new_n": 1, "seq": 7}'),
        )
    assert [entry["key"] for entry in quarantine.ls(operator)] == [{"word": "poison"}]
    assert len(quarantine.updates(operator, "wc", {"word": "poison"}, 10)) == 2
    assert quarantine.drop(operator, "wc", {"word": "poison"}) == 2
    operator.execute("select pgcombine.pause('wc')")
    assert one(queues, "select array_agg(queue) from pgcombine.queue where paused") == ["wc"]
    operator.execute("select pgcombine.resume('wc')")
    operator.execute("select pgcombine.pause_export('words', 'at night')")
    assert operator.execute("select export, state from pgcombine.export_status").fetchall() == [("words", "paused")]
    operator.execute("select pgcombine.resume_export('words')")
    assert one(operator, "select pgcombine_internal.export_release('words', null, true)") == 1
    assert one(queues, "select count(*) from pgcombine.words_exports") == 1
    refused(
        operator,
        "select pgcombine.pause('other')",
        "select pgcombine.resume('other')",
        "select pgcombine.retry_quarantined('other')",
        "select pgcombine.drop_quarantined('other')",
        "select pgcombine.combine('wc')",
        "select * from pgcombine.wc_values",
        "select pgcombine.drop_queue('wc', force => true)",
        "select pgcombine_internal.resume_destination('server', 'b')",
    )
    for call in ("pause_export('others')", "resume_export('others')", "export_release('others', null, false)"):
        with raises_state("PC021"):
            operator.execute(called(call).encode())
    assert one(queues, "select count(*) from pgcombine.export_quarantine") == 1
    assert one(queues, "select count(*) from pgcombine.other_quarantine") == 2


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
    assert monitor.execute("select export, pending from pgcombine.export_status order by 1").fetchall() == [
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
        "select * from pgcombine.other_updates",
        "select * from pgcombine.words_exports",
        "select pgcombine.pause('wc')",
    )


def test_right_to_read_needs_no_privilege_on_partitions(queues: psycopg.Connection, granted: Grant) -> None:
    reader = granted("read", "wc")
    add(queues, {"a": 1, "b": 2})
    queue = CombineQueue("wc")
    assert current(reader) == {"a": 1, "b": 2}
    combine_all(queues)
    assert queue.get(reader, ["a", "b"]) == {"a": 1, "b": 2}
    (found,) = figures.status(reader)
    assert (found["queue"], found["backlog"]) == ("wc", 0)
    reader.execute("call pgcombine.wait('wc', '1 min')")
    refused(reader, "select * from pgcombine.other_values", "select pgcombine.backlog('other')")


def test_delivery_removes_superseded_quarantined_entries(queues: psycopg.Connection, granted: Grant) -> None:
    exporter = granted("export", "words")
    for export in ("words", "others"):
        queues.execute(
            query("export_refused").encode(),
            (export, "too long", '{"word": "a", "old_n": null, "new_n": 1, "seq": 0}'),
        )
    add(queues, {"a": 1})
    combine_all(queues)
    with exporter.transaction():
        bucket = one(exporter, "select pgcombine_internal.claim_export('words')")
        statement = one(exporter, "select pgcombine_internal.export_take('words', %s, 10, true)", bucket)
        assert len(exporter.execute(statement).fetchall()) == 1
        exporter.execute(query("export_delivered").encode(), (1, "words", bucket))
    assert queues.execute("select export from pgcombine.export_quarantine").fetchall() == [("others",)]


def test_right_to_export_excludes_other_exports(queues: psycopg.Connection, granted: Grant) -> None:
    exporter = granted("export", "words")
    for queue in ("wc", "other"):
        add(queues, {"a": 1}, queue)
        combine_all(queues, queue)
    assert one(exporter, "select pgcombine_internal.claim_export('words')") is not None
    assert exporter.execute("select export, pending from pgcombine.export_status").fetchall() == [("words", 1)]
    assert exporter.execute("select from pgcombine.export_bucket where export = 'others' for update").fetchall() == []
    exporter.execute(query("export_delivered").encode(), (100, "others", 0))
    assert exporter.execute("update pgcombine.export set sweep = null where export = 'others'").rowcount == 0
    assert one(queues, "select sum(delivered) from pgcombine.export_bucket where export = 'others'") == 0
    with raises_state("PC021"):
        exporter.execute("select pgcombine_internal.claim_export('others')")
    refused(
        exporter,
        "select * from pgcombine.others_exports",
        "insert into pgcombine.export_quarantine (export, seq, entry, error) values ('others', 1, '{}', 'for fun')",
        "select pgcombine_internal.pause_destination('export', 'others')",
        "select pgcombine_internal.export_release('words', null, false)",
        "select * from pgcombine.wc_values",
    )


def test_privileges_granted_manually_have_the_same_effect(queues: psycopg.Connection, login: Login) -> None:
    """A right is a set of PostgreSQL's privileges, which may also be granted one by one."""
    role = login()
    for (privilege,) in queues.execute("select pgcombine_internal.right_privileges('work', 'wc')").fetchall():
        queues.execute(f"grant {privilege} to {role.info.user}".encode())
    queues.execute(f"grant usage on sequence pgcombine.export_sequence to {role.info.user}".encode())
    assert holds(queues, "work", role.info.user, "wc")
    add(queues, {"a": 1})
    combine_all(role)
    assert values(queues) == {"a": 1}


def test_command_creates_a_role_for_each_right(queues: psycopg.Connection, dsn: str, granted: Grant) -> None:
    prefix = f"group_{queues.info.backend_pid}_"
    printed = run_cli("db", "roles", "--prefix", prefix, "--dsn", dsn).stdout.splitlines()
    assert f'create role "{prefix}work";' in printed
    assert f"select pgcombine.grant_right('work', '{prefix}work', '*');" in printed
    refusal = run_cli("db", "roles", "--make", "--dsn", as_role(dsn, granted("monitor").info.user))
    assert (refusal.returncode, refusal.stderr) == (1, "pgcombine: permission denied to create role\n")
    try:
        made = run_cli("db", "roles", "--make", "--prefix", prefix, "--dsn", dsn).stdout.splitlines()
        assert f"{prefix}work: made, has the right work" in made
        assert len(made) == len(RIGHTS)
        again = run_cli("db", "roles", "--make", "--prefix", prefix, "--dsn", dsn).stdout.splitlines()
        assert f"{prefix}work: was there, has the right work" in again
        for right, subjects in RIGHTS.items():
            for subject in subjects or [None]:
                assert holds(queues, right, f"{prefix}{right}", subject)
    finally:
        for right in RIGHTS:
            for drop in ("drop owned by", "drop role"):
                queues.execute(
                    f"do $$ begin if exists (select from pg_roles where rolname = '{prefix}{right}') "
                    f"then {drop} {prefix}{right}; end if; end $$".encode()
                )


@pytest.mark.parametrize("right", ["enqueue", "load", "handoff"])
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
