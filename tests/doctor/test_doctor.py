"""``pgcombine doctor``: the tests provoke the findings of its checks. A check that fails becomes a finding, too."""

from __future__ import annotations

import ast
import inspect
import json
import re
import textwrap
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest
from psycopg import sql
from support import run_cli
from support.needs import does_not_apply
from support.pgbouncer import pgbouncer
from support.queues import add, combine_all, hold, make_queue, one, word_in
from support.roles import Roles, as_role
from support.rollups import Rollup
from support.servers import Server, start
from support.sessions import in_background, workers
from support.wait import eventually

from pgcombine import schema
from pgcombine.cli.doctor import Right
from pgcombine.database.connect import connect
from pgcombine.doctor import database, machine, queues
from pgcombine.doctor import server as servers
from pgcombine.doctor.examine import CHECKS, examine, made
from pgcombine.doctor.findings import Check, Context, Finding, Level, Limits, name_of, worst

# Findings, as (check, level), that these tests can't provoke. tests/sql/shard provokes those of fronts.
NOT_PROVOKED = {("version", "error"), ("fronts", "warning"), ("fronts", "error")}
STRICT = Limits(lag=0.2, snapshot=0.05, waiting_bytes=0, retained_bytes=0, load=0)
provoked: set[tuple[str, str]] = set()


def findings(check: Check, dsn: str, **options: Any) -> list[Finding]:
    """The findings of one check over a new connection."""
    with connect(dsn) as connection:
        return [*made(check, Context(connection, dsn, **options))]


def found(check: Check, level: str, dsn: str, text: str, **options: Any) -> Finding:
    """Return the only finding of this level whose text matches. It must have advice, unless the level is ok."""
    all_of = findings(check, dsn, **options)
    matching = [one for one in all_of if one.level == level and re.search(text, one.found)]
    assert len(matching) == 1, all_of
    (finding,) = matching
    assert finding.check == name_of(check)
    assert bool(finding.advice) == (level != "ok")
    provoked.add((finding.check, level))
    return finding


def worth(check: Check) -> set[str]:
    """The levels of findings that occur in the source of a check."""
    calls = [
        node for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(check)))) if isinstance(node, ast.Call)
    ]
    return {call.func.id for call in calls if isinstance(call.func, ast.Name) and call.func.id in set(Level)}


@pytest.mark.wc
def test_sound_database_has_no_warning(conn: psycopg.Connection, dsn: str) -> None:
    add(conn, {"a": 1})
    combine_all(conn)
    done = examine(dsn)
    assert [one for one in done if one.level in (Level.error, Level.warning) and one.check != "durability"] == []
    assert {one.check for one in done} >= {
        name_of(check) for check in (servers.version, database.rights, queues.queues)
    }
    assert {one.level for one in done if one.check == "cluster-identity"} == {Level.ok}


@pytest.mark.wc
def test_command_prints_findings(conn: psycopg.Connection, dsn: str) -> None:
    fine = run_cli("doctor", "--dsn", dsn)
    assert (fine.returncode, fine.stderr) == (0, "")
    assert re.search(r"^ok +version: PostgreSQL \d\d", fine.stdout, re.MULTILINE)
    assert fine.stdout.splitlines()[-1].startswith("0 errors, ")
    conn.execute("select pgcombine_internal.fail_pass('wc', 2, '22003', 'bigint out of range')")
    bad = run_cli("doctor", "wc", "--role-for", "work", "--json", "--dsn", dsn)
    assert (bad.returncode, bad.stderr) == (1, "pgcombine: 1 error found\n")
    report = json.loads(bad.stdout)
    assert report["level"] == "error"
    (failing,) = [one for one in report["findings"] if one["level"] == "error"]
    assert {key: failing[key] for key in ("check", "subject", "value")} == {
        "check": "failing",
        "subject": "wc",
        "value": 1,
    }
    assert run_cli("doctor", "--role-for", "nonsense", "--dsn", dsn).returncode == 2


def test_command_reports_an_unreachable_server() -> None:
    for arguments in (("--dsn", "host=127.0.0.1 port=1 dbname=none"), ("--dsn", "no dsn at all")):
        done = run_cli("doctor", *arguments)
        assert done.returncode == 1
        assert re.match(r"error +connection: .*\n +→ .+\n1 error", done.stdout), done.stdout
        assert done.stderr == "pgcombine: 1 error found\n"


@pytest.fixture
def roles(conn: psycopg.Connection, dsn: str) -> Iterator[Roles]:
    with Roles(conn, dsn) as roles:
        yield roles


def set_for_database(conn: psycopg.Connection, setting: str) -> None:
    name = sql.Identifier(one(conn, "select current_database()"))
    conn.execute(sql.SQL("alter database {} set {}").format(name, sql.SQL(setting)))


def an_hour_ago(conn: psycopg.Connection) -> None:
    """Make all transactions so far look an hour old."""
    conn.execute("delete from pgcombine.tick")
    conn.execute(
        "insert into pgcombine.tick (at, next_id)"
        " values (now() - interval '1 hour', txid_snapshot_xmax(txid_current_snapshot()))"
    )
    conn.execute("delete from pgcombine.sample")


def test_doctor_checks_settings_of_a_session(conn: psycopg.Connection, dsn: str) -> None:
    found(servers.version, "ok", dsn, "PostgreSQL 1")
    found(servers.writable, "ok", dsn, "takes writes")
    found(servers.statistics, "ok", dsn, "is on")
    found(servers.durability, "warning", dsn, "fsync")
    found(servers.wal, "info", dsn, "256 MB")
    set_for_database(conn, "idle_in_transaction_session_timeout = 0")
    found(servers.timeouts, "info", dsn, "is 0")
    if one(conn, "select pg_jit_available()"):
        found(servers.jit, "info", dsn, "jit is on")
    else:
        NOT_PROVOKED.add(("jit", "info"))  # this server has no JIT compiler
    set_for_database(conn, "jit = off")
    found(servers.jit, "ok", dsn, "aren't compiled")
    set_for_database(conn, "idle_in_transaction_session_timeout = '5min'")
    found(servers.timeouts, "ok", dsn, "300 s")
    set_for_database(conn, "statement_timeout = '5s'")
    assert found(servers.timeouts, "warning", dsn, "statement_timeout is 5 s").value == 5
    set_for_database(conn, "statement_timeout = 0")
    set_for_database(conn, "idle_session_timeout = '1h'")
    found(servers.timeouts, "warning", dsn, "sleeping workers")
    set_for_database(conn, "track_activities = off")
    found(servers.statistics, "warning", dsn, "track_activities")
    set_for_database(conn, "default_transaction_read_only = on")
    finding = found(servers.writable, "error", dsn, "takes no writes")
    assert "set it to off" in finding.advice


def test_doctor_checks_connections(conn: psycopg.Connection, dsn: str, roles: Roles) -> None:
    found(servers.connections, "ok", dsn, "of 197 ")
    role = roles.login().info.user
    seen = found(servers.connections, "ok", as_role(dsn, role), "of 197 ").value
    assert isinstance(seen, int)
    assert seen >= 3  # the role's two sessions and conn
    conn.execute(sql.SQL("alter role {} connection limit 3").format(sql.Identifier(role)))
    roles.login(role=role)
    own = as_role(dsn, role)
    found(servers.connections, "warning", own, "3 of 3 .*the role's CONNECTION LIMIT")
    sessions = "select count(*) from pg_stat_activity where usename = %s"
    eventually(lambda: one(conn, sessions, role) == 2, what="the server has ended the session of the check")
    found(database.notifications, "warning", own, "not measured: .*too many connections")


def test_doctor_compares_the_clocks(dsn: str) -> None:
    found(servers.clock, "ok", dsn, "apart")
    ahead = found(servers.clock, "warning", dsn, "99.* s behind|100.* s behind", clock=lambda: time.time() + 100)
    assert ahead.value == pytest.approx(-100, abs=30)


def test_doctor_checks_the_disk(dsn: str, server: Server, roles: Roles) -> None:
    role = roles.login().info.user
    found(servers.disk, "info", as_role(dsn, role), "can't be seen")
    if server.name.startswith("embedded"):
        found(servers.disk, "ok", dsn, "are free")
        found(servers.disk, "warning", dsn, "are free", limits=Limits(full=0))


def test_doctor_checks_the_database(conn: psycopg.Connection, dsn: str) -> None:
    found(database.extensions, "ok", dsn, "plpgsql")
    found(database.search_path, "ok", dsn, "chosen roles")
    conn.execute("grant create on schema public to public")
    found(database.search_path, "warning", dsn, "public")
    found(database.collation, "ok", dsn, "")
    conn.execute("update pg_database set datcollversion = '0' where datname = current_database()")
    found(database.collation, "warning", dsn, "made with 0")
    found(database.cluster_identity, "ok", dsn, "this database's")
    conn.execute("truncate pgcombine.cluster_identity")
    # as in a restored database, which has the ids of another cluster
    conn.execute("insert into pgcombine.cluster_identity values (1, '3'), (2, '4')")
    found(database.cluster_identity, "error", dsn, "post_restore has not run")


def test_doctor_reports_a_missing_schema(empty_dsn: str) -> None:
    found(database.schema, "error", empty_dsn, "has no pgcombine schema")
    done = examine(empty_dsn)
    assert [one.check for one in done if one.level is Level.error] == ["schema"]
    assert not {one.check for one in done} & {"queues", "rights"}
    with psycopg.connect(empty_dsn, autocommit=True) as conn:
        conn.execute("drop extension plpgsql")
    found(database.extensions, "error", empty_dsn, "plpgsql is missing")
    assert {one.check for one in examine(empty_dsn) if one.level is Level.error} == {"extensions", "schema"}


def test_doctor_reports_a_schema_of_another_version(conn: psycopg.Connection, dsn: str) -> None:
    found(database.schema, "ok", dsn, "revision")
    conn.execute("update pgcombine.schema_version set digest = 'other'")
    assert "db upgrade" in found(database.schema, "error", dsn, "another version").advice


def test_message_without_a_remedy_is_a_finding_without_advice() -> None:
    def connects() -> psycopg.Connection:
        raise RuntimeError("no pool")

    (found,) = examine(connects)
    assert (found.level, found.found, found.advice) == (
        Level.error,
        "the function that connects failed: RuntimeError: no pool",
        "",
    )


def test_doctor_accepts_a_direct_connection(dsn: str) -> None:
    found(database.pooler, "ok", dsn, "itself")
    found(database.notifications, "ok", dsn, r"takes [\d.]+ ms")
    found(database.notifications, "warning", dsn, "took", limits=Limits(round_trip=0))


def test_doctor_reports_a_pooler(dsn: str) -> None:
    # without PgBouncer the test is skipped (in CI it fails), and no test provokes these findings
    NOT_PROVOKED.update(pooled := {("pooler", "warning"), ("notifications", "info")})
    with pgbouncer(dsn) as url:
        NOT_PROVOKED.difference_update(pooled)
        found(database.pooler, "warning", url, "LISTEN")
        found(database.notifications, "info", url, "pooler")
        assert worst(examine(url)) is Level.warning


def test_doctor_names_sessions_with_old_snapshots(conn: psycopg.Connection, dsn: str) -> None:
    found(database.snapshots, "ok", dsn, "no session")
    with psycopg.connect(dsn, application_name="report") as holder:
        holder.execute("select txid_current()")
        pid = holder.info.backend_pid
        eventually(lambda: [one for one in findings(database.snapshots, dsn, limits=STRICT) if str(pid) in one.found])
        assert (
            str(pid)
            in found(database.snapshots, "warning", dsn, rf"session report \(pid {pid}\)", limits=STRICT).advice
        )
        holder.execute("prepare transaction 'forgotten'")
        holder.commit()
    try:
        eventually(
            lambda: [one for one in findings(database.snapshots, dsn, limits=STRICT) if "forgotten" in one.found]
        )
    finally:
        conn.execute("rollback prepared 'forgotten'")


def test_doctor_checks_replication_slots(conn: psycopg.Connection, dsn: str) -> None:
    slot = one(conn, "select current_database()")
    conn.execute("select pg_create_physical_replication_slot(%s, true)", (slot,))
    try:
        found(database.slots, "ok", dsn, slot)
        found(database.slots, "warning", dsn, f"{slot} keeps .* nothing reads it", limits=Limits(retained_bytes=-1))
    finally:
        conn.execute("select pg_drop_replication_slot(%s)", (slot,))


def test_doctor_checks_rights(conn: psycopg.Connection, dsn: str, roles: Roles) -> None:
    role = roles.login().info.user
    own = as_role(dsn, role)
    found(database.rights, "info", own, "no queue on which", rights=["read"])
    make_queue(conn)
    make_queue(conn, "other")
    found(database.role, "info", dsn, "is a superuser")
    found(database.role, "info", own, "doesn't see other roles' sessions: .* old snapshots$")
    owner = sql.Identifier(conn.info.user)
    conn.execute(sql.SQL("alter schema pgcombine owner to {}").format(sql.Identifier(role)))
    found(database.role, "info", own, "workers don't warn of old snapshots, and delete combined updates instead")
    conn.execute(sql.SQL("alter schema pgcombine owner to {}").format(owner))
    found(database.rights, "info", own, "no right on any queue")
    found(database.rights, "ok", dsn, "read 2; work$")
    for right in sorted(Right, key=lambda one: one is Right.work):  # the right work has all others
        finding = found(database.rights, "error", own, f"lacks the right {right}", rights=[right.value])
        conn.execute(finding.advice.removeprefix("as the schema's owner: ").encode())
        found(database.rights, "ok", own, right.value, rights=[right.value])
    assert {one.level for one in findings(database.rights, own, rights=[right.value for right in Right])} == {Level.ok}
    conn.execute(sql.SQL("revoke delete on pgcombine.wc_values_b0001 from {}").format(sql.Identifier(role)))
    found(database.rights, "warning", own, "lacks all or a part of the right work$")
    conn.execute(sql.SQL("select pgcombine.revoke_right('work', {})").format(sql.Literal(role)))
    found(database.rights, "error", own, "lacks the right work$", rights=["work"])


@pytest.mark.wc
def test_doctor_reports_a_role_without_temporary_tables(conn: psycopg.Connection, dsn: str, roles: Roles) -> None:
    role = roles.login("pg_read_all_stats").info.user
    found(database.role, "ok", as_role(dsn, role), "ordinary")
    name = sql.Identifier(one(conn, "select current_database()"))
    conn.execute(sql.SQL("revoke temporary on database {} from public").format(name))
    finding = found(database.role, "warning", as_role(dsn, role), "temporary tables")
    conn.execute(finding.advice.encode())
    found(database.role, "ok", as_role(dsn, role), "ordinary")


@pytest.mark.wc
def test_doctor_runs_for_a_role_without_rights(conn: psycopg.Connection, dsn: str, roles: Roles) -> None:
    """A check that reads what the role may not read is reported as not checked. The other checks go on."""
    conn.execute("select pgcombine.create_export('out', 'wc')")
    role = roles.login().info.user
    conn.execute("revoke all on pgcombine.queue_stat, pgcombine.worker from public")
    try:
        done = examine(as_role(dsn, role))
        assert {one.level for one in done} <= {Level.ok, Level.info, Level.warning}
        denied = [one for one in done if one.found.startswith("not checked: permission denied")]
        assert {one.check for one in denied} >= {"queues", "workers"}
        assert all(one.advice for one in denied)
        provoked.add(("any", "info"))
    finally:
        conn.execute("grant select on pgcombine.queue_stat, pgcombine.worker to public")


@pytest.mark.wc
def test_failed_check_becomes_a_finding(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("drop function pgcombine_internal.verify_structure(text)")
    (finding,) = findings(queues.structure, dsn)
    assert (finding.level, finding.check) == (Level.warning, "structure")
    assert "not checked: function pgcombine_internal.verify_structure" in finding.found
    provoked.add(("any", "warning"))


def test_lost_connection_becomes_a_finding(conn: psycopg.Connection, dsn: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The findings from before the loss of the connection are kept."""

    def end(context: Context) -> Iterator[Finding]:
        conn.execute("select pg_terminate_backend(%s)", (context.connection.info.backend_pid,))
        yield from queues.queues(context)

    monkeypatch.setattr("pgcombine.doctor.examine.QUEUES", [database.cluster_identity, end, database.role])
    done = examine(dsn)
    assert [one.check for one in done[-2:]] == ["cluster-identity", "connection"]
    assert done[-1].level is Level.error
    provoked.add(("connection", "error"))


def test_doctor_checks_a_queue(conn: psycopg.Connection, dsn: str) -> None:
    found(queues.queues, "info", dsn, "no queue")
    found(queues.queues, "error", dsn, 'no queue "wc"', queues=["wc"])
    found(queues.workers, "info", dsn, "no worker")
    make_queue(conn, max_backlog=4)
    assert found(queues.queues, "ok", dsn, "about 0 pending").subject == "wc"
    for check in (queues.paused, queues.lag, queues.failing, queues.quarantine, queues.backlog, queues.structure):
        assert findings(check, dsn) == []
    words = [(word_in(conn, bucket), 1) for bucket in range(4)]
    add(conn, words)
    conn.execute("delete from pgcombine.sample")
    found(queues.workers, "warning", dsn, "updates are pending")
    found(queues.backlog, "warning", dsn, "4 updates are pending; at 4, enqueues fail")
    an_hour_ago(conn)
    stalled = found(queues.lag, "error", dsn, "stalled: about 4")
    assert stalled.value == pytest.approx(3600, abs=60)
    assert conn.execute("select * from pgcombine.combine('wc')").fetchone() is not None
    conn.execute("delete from pgcombine.sample")
    found(queues.lag, "warning", dsn, "workers are late")
    conn.execute("select pgcombine.pause('wc')")
    found(queues.paused, "warning", dsn, "paused, about [123] updates .* the oldest for 3[56]")
    assert findings(queues.lag, dsn) == []


@pytest.mark.wc(buckets=2)
def test_doctor_says_when_more_buckets_would_help(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute(
        "insert into pgcombine.pass_minute select 'wc', date_trunc('minute', now()) - n * interval '1 min',"
        " 9, 9, 9, 9, 60 from generate_series(1, 3) n"
    )
    assert findings(queues.buckets, dsn) == [], "passes over one of two buckets leave room for others"
    conn.execute("update pgcombine.pass_minute set seconds = 119")
    assert "rebucket wc 4" in found(queues.buckets, "info", dsn, "74%").advice


@pytest.mark.wc(buckets=1)
def test_doctor_reports_a_long_pass(conn: psycopg.Connection, dsn: str) -> None:
    add(conn, {"a": 1})
    conn.execute("select pgcombine.add_observer('wc', 'slow', 'select pg_sleep(60) from changes')")
    an_hour_ago(conn)
    limits = Limits(lag=0.01)

    def run() -> None:
        with pytest.raises(psycopg.errors.QueryCanceled):
            combine_all(running)

    with psycopg.connect(dsn, autocommit=True) as running, in_background(run):
        sleeps = "select count(*) from pg_stat_activity where wait_event = 'PgSleep' and pid = %s"
        try:
            eventually(lambda: one(conn, sleeps, running.info.backend_pid))
            found(queues.lag, "warning", dsn, r"a pass has run for \d+ s: about 1 updates", limits=limits)
        finally:
            running.cancel()


@pytest.mark.wc
def test_doctor_reports_failing_keys(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("select pgcombine_internal.fail_pass('wc', 2, '22003', 'bigint out of range')")
    found(queues.failing, "error", dsn, "1 of its buckets .*SQLSTATE 22003: bigint out of range")
    conn.execute("select pgcombine.set_expiry('wc', 'n <= 0')")
    conn.execute(
        "select pgcombine_internal.schedule_expiry('wc', 1, 0, 1024, sqlstate => '22012', error => 'division by zero')"
    )
    found(queues.failing, "warning", dsn, "1 of its buckets expired keys .*SQLSTATE 22012: division by zero")
    assert findings(queues.failing, dsn, queues=["other"]) == []
    add(conn, {"bad": 1})
    hold(conn, word="bad")
    assert found(queues.quarantine, "warning", dsn, "1 keys").value == 1


@pytest.mark.wc(buckets=1)
def test_doctor_reports_locked_tables(conn: psycopg.Connection, dsn: str) -> None:
    add(conn, {"a": 1})
    with psycopg.connect(dsn) as other:
        other.execute("lock table pgcombine.wc_updates_b0000_s0 in access exclusive mode")
        other.execute("lock table pgcombine.wc_updates_b0000_s1 in access exclusive mode")
        found(queues.locked, "warning", dsn, "has locked the queue's tables")


@pytest.mark.wc(buckets=1)
def test_doctor_checks_workers(conn: psycopg.Connection, dsn: str) -> None:
    with workers(dsn, "wc", poll=0.05, lock_timeout=20) as worker, psycopg.connect(dsn) as other:
        eventually(lambda: [one for one in findings(queues.workers, dsn) if one.level is Level.ok])
        assert worker.name in found(queues.workers, "ok", dsn, "connected").found
        other.execute("lock table pgcombine.wc_values in access exclusive mode")
        other.execute("lock table pgcombine.wc_values_b0000 in access exclusive mode")
        add(conn, {"a": 1})
        eventually(lambda: [one for one in findings(queues.workers, dsn) if one.level is Level.info])
        found(queues.workers, "info", dsn, "waits for a lock")


def test_doctor_reports_segments_that_wait(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, key=["word text"], value=["t text last(n)", "n int max"], delete_when=None, buckets=1)
    assert findings(queues.segments, dsn, limits=STRICT) == []
    conn.execute(
        "insert into pgcombine.wc_updates (word, t, n)"
        " select 'w' || i, repeat(md5(i::text), 60), i from generate_series(1, 6000) i"
    )
    assert findings(queues.segments, dsn, limits=STRICT) == [], "segments with pending updates are no finding"
    combine_all(conn)
    finding = found(queues.segments, "warning", dsn, "1 segments with 1\\d MB", limits=STRICT)
    assert finding.value > 8 * 2**20
    assert findings(queues.segments, dsn) == []


@pytest.mark.wc
@pytest.mark.parametrize(
    ("damage", "text"),
    [
        ("drop view pgcombine.wc_current cascade", "relation pgcombine.wc_current is missing"),
        ("alter table pgcombine.wc_updates disable trigger pgcombine_wake", "pgcombine_wake .* is disabled"),
        ("update pgcombine.queue set pass = '{}'", "generated statement of passes is not up to date"),
        ("delete from pgcombine.bucket where bucket = 3", "bucket 3 is missing"),
    ],
)
def test_doctor_reports_a_damaged_structure(conn: psycopg.Connection, dsn: str, damage: str, text: str) -> None:
    assert findings(queues.structure, dsn) == []
    conn.execute(damage.encode())
    found(queues.structure, "error", dsn, text)


def test_doctor_reports_what_a_rollup_misses(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("create table public.src (k text, n int)")
    rollup = Rollup.make(conn)
    found(queues.rollups, "info", dsn, "not backfilled: rows from before the rollup are missing")
    rollup.call(conn, "backfill")
    assert findings(queues.rollups, dsn) == []
    conn.execute("drop event trigger if exists pgcombine_follow_ddl")
    conn.execute("alter table public.src disable trigger pgcombine_r_insert")
    finding = found(queues.rollups, "error", dsn, "trigger pgcombine_r_insert of src is disabled")
    assert (finding.subject, "rollup verify r --repair" in finding.advice) == ("r", True)
    assert findings(queues.rollups, dsn, queues=["other"]) == []


@pytest.mark.wc
def test_doctor_checks_exports(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("select pgcombine.create_export('out', 'wc')")
    found(queues.exports, "ok", dsn, "about 0 entries")
    add(conn, {"a": 1})
    combine_all(conn)
    conn.execute("select pg_stat_force_next_flush()")
    eventually(lambda: one(conn, "select lag_seconds from pgcombine.export_stat") > 0.2)
    found(queues.exports, "warning", dsn, "late", limits=STRICT)
    update = "update pgcombine.destination_state set state = %s, reason = 'refused' where name = 'out'"
    conn.execute(update, ("suspect",))
    found(queues.exports, "warning", dsn, "the last deliveries failed: refused")
    conn.execute(update, ("down",))
    assert found(queues.exports, "error", dsn, "is down: refused").subject == "out"
    conn.execute("select pgcombine.pause_export('out')")
    found(queues.exports, "info", dsn, "paused")
    conn.execute("insert into pgcombine.export_entry values (default, 'out', 0, 7, '{}', 'no')")
    found(queues.exports, "warning", dsn, "has refused 1 entries")


@pytest.mark.wc(buckets=1)
def test_doctor_warns_of_consumers_of_feeds(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("select pgcombine.create_feed('f', 'wc', max_bytes => 100000000)")
    conn.execute("""select pgcombine.commit_feed('f', 'it''s', '{"0": 0}'), pgcombine.commit_feed('f', 'new', '{}')""")
    add(conn, {"a": 1})
    combine_all(conn)
    conn.execute("update pgcombine.feed_consumer set committed_at = now() - interval '2 days'")
    assert findings(queues.feeds, dsn) == []
    conn.execute("update pgcombine.change_log set max_bytes = 1")
    stopped = findings(queues.feeds, dsn, queues=["wc"])
    assert [finding.value for finding in stopped] == [1, 1]
    conn.execute("select pgcombine.commit_feed('f', 'new', '{}')")
    finding = found(queues.feeds, "warning", dsn, 'consumer "it\'s" is 1 changes behind, .* more than max_bytes')
    assert finding.subject == "f"
    conn.execute("""update pgcombine.change_log set reclaimed = '{"0": 1}'""")
    finding = found(queues.feeds, "warning", dsn, 'offset of consumer "it\'s" are no longer kept')
    assert findings(queues.feeds, dsn, queues=["other"]) == []
    conn.execute(finding.advice.rpartition(": ")[2].encode())
    assert findings(queues.feeds, dsn) == []


@pytest.mark.wc
def test_doctor_checks_other_servers(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("select pgcombine_internal.handoff_handshake('a')")
    conn.execute("select pgcombine_internal.handoff_register('b', 'host=b user=app')")
    found(queues.servers, "ok", dsn, "about 0 writes")
    conn.execute(
        "insert into pgcombine.handoff_hint (destination, token, queue, shape, digest, updates, payload, since)"
        " select 'b', gen_random_uuid(), 'wc', gen_random_uuid(), gen_random_uuid(), 3, '{}', now() - interval '1 h'"
    )
    found(queues.servers, "warning", dsn, "late: about 1 writes")
    conn.execute("update pgcombine.destination_state set state = 'down', reason = 'gone' where name = 'b'")
    found(queues.servers, "warning", dsn, "it is down: gone")
    conn.execute("update pgcombine.destination_state set state = 'paused' where name = 'b'")
    found(queues.servers, "info", dsn, "paused")
    conn.execute("update pgcombine.handoff_replica set needs_repair = 'hints were truncated' where name = 'b'")
    found(queues.servers, "error", dsn, "hints were truncated")


@pytest.mark.wc
def test_doctor_reports_dead_loads(conn: psycopg.Connection, dsn: str) -> None:
    conn.execute("select pgcombine_internal.begin_load(gen_random_uuid(), 'wc', 'run 1')")
    assert findings(queues.loads, dsn) == []
    conn.execute("update pgcombine.spark_load set seen_at = now() - interval '2 hours'")
    assert found(queues.loads, "info", dsn, "run 1").subject == "wc"


@pytest.mark.wc
def test_doctor_reports_disabled_autovacuum(conn: psycopg.Connection, dsn: str) -> None:
    found(servers.autovacuum, "ok", dsn, "on, ")
    conn.execute("alter table pgcombine.wc_values_b0002 set (autovacuum_enabled = false)")
    finding = found(servers.autovacuum, "warning", dsn, "wc_values_b0002")
    conn.execute(finding.advice.encode())
    found(servers.autovacuum, "ok", dsn, "on, ")


@pytest.fixture(scope="module")
def sick(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A database with the schema on a server with bad settings."""
    if server.name == "given":
        does_not_apply("the server that is given has settings of its own")
    bad = {"autovacuum": "off", "max_connections": "20", "fsync": "on"}
    more = {"max_prepared_transactions": "0", "synchronous_commit": "off", "max_wal_size": "2GB"}
    with start(server.name, tmp_path_factory.mktemp("sick"), **bad, **more) as dsn:
        one_of = Server(server.name, dsn)
        with one_of.database() as empty:
            schema.upgrade(empty)
            yield empty


def test_doctor_reports_bad_settings(sick: str) -> None:
    found(servers.autovacuum, "error", sick, "autovacuum is off")
    found(servers.durability, "info", sick, "synchronous_commit")
    found(servers.wal, "ok", sick, "2048 MB")


def test_doctor_checks_the_machine(dsn: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found(machine.program, "ok", dsn, "^pgcombine .*, Python 3")
    monkeypatch.setenv("PGCOMBINE_JDBC_JAR", "/nowhere")
    found(machine.jdbc_driver, "error", dsn, "names '/nowhere'")
    jar = tmp_path / "postgresql.jar"
    jar.touch()
    monkeypatch.setenv("PGCOMBINE_JDBC_JAR", str(jar))
    found(machine.jdbc_driver, "ok", dsn, "postgresql.jar")
    monkeypatch.delenv("PGCOMBINE_JDBC_JAR")
    for places in ("_spark_jars", "_cache"):
        monkeypatch.setattr(f"pgcombine.spark.jdbc_driver.{places}", lambda: tmp_path / "empty")
    monkeypatch.setattr("pgcombine.spark.jdbc_driver._DEBIAN", tmp_path / "none.jar")
    found(machine.jdbc_driver, "info", dsn, "no driver is here")
    monkeypatch.setattr("pgcombine.spark.java._candidates", lambda: [("PATH's", tmp_path / "java")])
    found(machine.java, "warning", dsn, "Spark needs Java 17")


def test_tests_provoke_every_finding(request: pytest.FixtureRequest) -> None:
    """This must be the last test, since it reads the findings of the others."""
    alone = {item.name.partition("[")[0] for item in request.session.items if item.path == request.path}
    if len(alone) < 30 or request.config.option.keyword:
        does_not_apply("only some of this file's tests were run")
    every = {(name_of(check), level) for check in CHECKS for level in worth(check) - {"ok"}}
    every |= {("connection", "error"), ("any", "info"), ("any", "warning")}
    assert sorted(every - provoked - NOT_PROVOKED) == []
