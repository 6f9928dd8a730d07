"""In a copy of a cluster, each update counts once, including updates that were pending or in a prepared transaction.

A promoted standby, recovery to a point in time and pg_upgrade keep the ids of transactions, so writers can enqueue
without post_restore. A database that is restored from a dump needs post_restore (see test_dump.py).
"""

from __future__ import annotations

import shutil
import subprocess
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql
from support import homes
from support.audit import audit, audited, follow
from support.needs import require, require_docker
from support.queues import add, combine_all, current, enqueue_arrays, hold, make_queue, one, values
from support.servers import SETTINGS, Server, Servers, embedded, with_database
from support.sessions import in_background, workers
from support.states import raises_state
from support.wait import eventually

from pgcombine import schema
from pgcombine.embedded import EmbeddedServer, account, programs
from pgcombine.embedded.cluster import environment
from pgcombine.errors import PostRestorePendingError
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.worker import quarantine
from pgcombine.worker.drain import drain

pytestmark = pytest.mark.slow

QUEUES = {"wc": {"buckets": 4}, "one": {"buckets": 1}, "parts": {"buckets": 2, "pass_limit": 10}}
WORDS = [f"w{i}" for i in range(60)]
PREPARED = "select gid from pg_prepared_xacts where database = current_database()"
LATE = {"late": 1, "w1": 5}


@dataclass
class State:
    """The state of the queues: the rows of each view ``_current``, and the number of pending updates."""

    current: dict[str, Counter[str]]
    backlog: dict[str, int]
    prepared: Counter[str]  # updates of the prepared transaction, the same for each queue


def state(conn: psycopg.Connection) -> tuple[dict[str, Counter[str]], dict[str, int]]:
    return (
        {queue: Counter(current(conn, queue)) for queue in QUEUES},
        {queue: one(conn, "select pgcombine.backlog(%s)", queue) for queue in QUEUES},
    )


@contextmanager
def busy(dsn: str, *, prepared: bool = True) -> Iterator[tuple[State, psycopg.Connection]]:
    """Create queues with combined, pending and quarantined updates, and keep a prepared and an open transaction.

    Yields the state, and the connection of the open transaction. Without ``prepared``, no transaction is prepared.
    """
    update = Counter(WORDS * 2)
    with ExitStack() as stack:
        conn, preparing = (stack.enter_context(psycopg.connect(dsn, autocommit=True)) for _ in range(2))
        opened = stack.enter_context(psycopg.connect(dsn))
        conn.execute("alter table pgcombine.queue alter segment_bits set default 8")
        make_queue(conn, "idle")
        for queue, layout in QUEUES.items():
            make_queue(conn, queue, **layout)
            audit(conn, queue)
        add(conn, [("bad", 1)] * 3)
        hold(conn, word="bad")
        for queue in QUEUES:
            add(conn, update, queue)
        drain(dsn, "wc", timeout=60)
        drain(dsn, "one", timeout=60)
        apart = Counter({"prepared": 7, "w1": 7})
        preparing.execute("begin")
        for queue in QUEUES:
            add(preparing, apart, queue)
            add(opened, {"open": 8, "w2": 8}, queue)
        enqueue_arrays(opened, [("open", 1), ("w3", 1)] * 40, "one")
        if prepared:
            preparing.execute(f"prepare transaction '{conn.info.dbname}'")
        for queue in QUEUES:  # the marks of these passes list both transactions as in progress
            add(conn, update, queue)
            conn.execute("select pgcombine.combine(%s, 0)", (queue,))
            add(conn, update, queue)
        enqueue_arrays(conn, [(word, 1) for word in WORDS] * 2, "one")
        total = Counter({word: 3 * count for word, count in update.items()})
        found, backlog = state(conn)
        assert found == {"wc": total, "one": total + Counter(WORDS * 2), "parts": total}
        assert 60 < backlog["wc"] < 120
        assert backlog["one"] == 60 + 120
        assert 120 < backlog["parts"] < 180
        try:
            yield State(found, backlog, apart if prepared else Counter()), opened
        finally:
            opened.rollback()
            preparing.execute("rollback")
            for (gid,) in conn.execute(PREPARED).fetchall():
                conn.execute(f"rollback prepared '{gid}'")


def goes_on(dsn: str, had: State) -> None:
    """Check that a copy has the original's state and LATE, and that drains combine each update once.

    The caller must have enqueued LATE in the copy.
    """
    with psycopg.connect(dsn, autocommit=True) as conn:
        expected = {queue: found + Counter(LATE) for queue, found in had.current.items()}
        pending = {queue: backlog + len(LATE) for queue, backlog in had.backlog.items()}
        assert [CombineQueue(queue).verify(conn) for queue in QUEUES] == [[], [], []]
        assert state(conn) == (expected, pending)
        if had.prepared:
            combine_all(conn)
            gid = one(conn, PREPARED)
            assert Counter(values(conn)) == expected["wc"]
            pending["wc"] = 0
            conn.execute(f"commit prepared '{gid}'")
            expected = {queue: found + had.prepared for queue, found in expected.items()}
            pending = {queue: backlog + len(had.prepared) for queue, backlog in pending.items()}
            assert state(conn) == (expected, pending)
        for queue in QUEUES:
            assert drain(dsn, queue, timeout=60).updates == pending[queue]
            assert Counter(values(conn, queue)) == expected[queue]
            assert follow(audited(conn, queue)) == expected[queue]
        assert quarantine.retry(conn, "wc", {"word": "bad"}) == 3
        assert drain(dsn, "wc", timeout=60).updates == 3
        expected["wc"]["bad"] = 3

        newest = one(conn, "select txid_current()")
        olds = [
            sql.SQL("select count(*) from {} where pgcombine_tx <= %s").format(
                sql.Identifier("pgcombine", f"{queue}_updates")
            )
            for queue in QUEUES
        ]

        def reclaimed() -> bool:
            for queue in QUEUES:
                for word in WORDS[:8]:
                    add(conn, {word: 1}, queue)
                    expected[queue][word] += 1
                combine_all(conn, queue)
            conn.execute("call pgcombine.reclaim()")
            return not any(conn.execute(old, (newest,)).fetchone() != (0,) for old in olds)

        eventually(reclaimed, what="updates are reclaimed")
        for queue in QUEUES:
            assert Counter(values(conn, queue)) == expected[queue]
            assert CombineQueue(queue).verify(conn) == []


def writers_go_on(dsn: str) -> None:
    """Enqueue LATE in the copy without a worker, and check that post_restore has nothing to do."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        for queue in QUEUES:
            add(conn, LATE, queue)
        assert one(conn, "select pgcombine.post_restore()") is False


@pytest.fixture(scope="module")
def primary_home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("primary")


@pytest.fixture(scope="module")
def primary(primary_home: Path) -> Iterator[Server]:
    """A server whose files the tests copy."""
    with embedded(primary_home, SETTINGS | {"wal_keep_size": "1GB"}) as dsn:
        server = Server("primary", dsn)
        yield server
        server.close()


def copy_passwords(source: Path, home: Path) -> Path:
    """Copy the password files of the EmbeddedServer in ``source`` to ``home``.

    Returns the path for the data directory in ``home``, which isn't made yet.
    """
    data = home / "postgres" / "data"
    data.parent.mkdir(parents=True)
    for name in ("password", "owner-password"):
        shutil.copy(source / "postgres" / name, data.parent)
    return data


def base_backup(primary: Server, primary_home: Path, home: Path, *options: str) -> Path:
    """Copy the files of a running server to ``home``, for an EmbeddedServer. Returns the data directory."""
    data = copy_passwords(primary_home, home)
    command = [programs.find(primary.version).path("pg_basebackup"), "--dbname", primary.dsn, "--pgdata", data]
    subprocess.run([*command, "--checkpoint=fast", "--no-sync", *options], check=True, capture_output=True)
    return data


@contextmanager
def running(home: Path, database: str, **settings: str) -> Iterator[str]:
    """Run the server in ``home`` during the block, and yield the superuser's URI of ``database``."""
    server = EmbeddedServer(home, settings=SETTINGS | settings)
    server.start()
    try:
        yield with_database(server.superuser_dsn(), database)
    finally:
        server.stop("immediate")


def test_promoted_standby_counts_each_update_once(primary: Server, primary_home: Path, tmp_path: Path) -> None:
    with primary.migrated() as dsn:
        base_backup(primary, primary_home, tmp_path, "--write-recovery-conf")
        database = urlsplit(dsn).path[1:]
        with busy(dsn) as (had, opened), running(tmp_path, database) as copy:
            with psycopg.connect(primary.dsn, autocommit=True) as main, psycopg.connect(copy, autocommit=True) as conn:
                written = one(main, "select pg_current_wal_insert_lsn()")
                main.execute("select pg_switch_wal()")
                replayed = "select pg_last_wal_replay_lsn() >= %s::pg_lsn"
                eventually(lambda: one(conn, replayed, written), what="the standby has replayed all WAL")
                assert state(conn) == (had.current, had.backlog)
                with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
                    add(conn, LATE)
                assert one(conn, "select pg_promote()")
            writers_go_on(copy)
            opened.commit()  # a commit that the promoted standby doesn't have
            goes_on(copy, had)


def test_standby_promoted_under_load_is_consistent(primary: Server, primary_home: Path, tmp_path: Path) -> None:
    stop = threading.Event()

    def write(dsn: str, word: str) -> None:
        with psycopg.connect(dsn) as writer:
            while not stop.is_set():
                number = one(writer, "insert into public.written (word) values (%s) returning n", word)
                add(writer, {word: number})
                enqueue_arrays(writer, [(word, 1)] * 40, "one")
                writer.commit()

    def complete(conn: psycopg.Connection) -> None:
        conn.execute("begin isolation level repeatable read")
        written = conn.execute("select word, sum(n), count(*) * 40 from public.written group by word").fetchall()
        assert current(conn) == {word: total for word, total, _ in written}
        assert current(conn, "one") == {word: count for word, _, count in written}
        conn.execute("commit")

    with primary.migrated() as dsn, psycopg.connect(dsn, autocommit=True) as conn:
        base_backup(primary, primary_home, tmp_path, "--write-recovery-conf")
        conn.execute("alter table pgcombine.queue alter segment_bits set default 5")
        conn.execute("create table public.written (n bigserial, word text)")
        for queue, layout in QUEUES.items():
            make_queue(conn, queue, **layout)
            audit(conn, queue)
        # Without feedback the primary may truncate a segment that a snapshot of the standby needs. Without the delays
        # the standby could cancel queries that need rows which the primary has removed.
        patient = {"hot_standby_feedback": "on", "wal_receiver_status_interval": "1s"}
        patient |= {"max_standby_streaming_delay": "-1", "max_standby_archive_delay": "-1"}
        with running(tmp_path, urlsplit(dsn).path[1:], **patient) as copy:
            writers = [partial(write, dsn, word) for word in WORDS[:3]]
            with (
                in_background(*writers),
                workers(dsn, count=2, poll=0.05),
                psycopg.connect(copy, autocommit=True) as there,
            ):
                try:
                    passed = "select count(*) > 100 from pgcombine.pass where to_regclass('public.written') is not null"
                    eventually(lambda: one(there, passed), what="the standby follows")
                    held = "select count(*) from pg_stat_replication where backend_xmin is not null"
                    eventually(lambda: one(conn, held), what="the standby has sent feedback")
                    for _ in range(20):
                        complete(there)
                    assert one(there, "select pg_promote()")
                finally:
                    stop.set()
            stop.clear()
            with psycopg.connect(copy, autocommit=True) as there:
                complete(there)
                assert CombineQueue("wc").verify(there) == CombineQueue("one").verify(there) == []
                before = one(there, "select count(*) from public.written")
                writers = [partial(write, copy, word) for word in WORDS[:3]]
                with in_background(*writers):
                    try:
                        more = "select count(*) > %s from public.written"
                        eventually(lambda: one(there, more, before + 30), what="writers go on")
                        with workers(copy, poll=0.05):
                            eventually(lambda: one(there, more, before + 300), what="writers go on beside workers")
                    finally:
                        stop.set()
                for queue in ("wc", "one"):
                    drain(copy, queue, timeout=60)
                    assert CombineQueue(queue).verify(there) == []
                    assert values(there, queue) == current(there, queue) == follow(audited(there, queue))
                complete(there)


def test_recovery_to_a_point_in_time_counts_each_update_once(
    primary: Server, primary_home: Path, tmp_path: Path
) -> None:
    with primary.migrated() as dsn, psycopg.connect(primary.dsn, autocommit=True) as main:
        data = base_backup(primary, primary_home, tmp_path)
        database = urlsplit(dsn).path[1:]
        with busy(dsn) as (had, opened):
            main.execute("select pg_create_restore_point('here')")
            opened.commit()
            with psycopg.connect(dsn, autocommit=True) as conn:
                conn.execute(f"commit prepared '{database}'")
                for queue in QUEUES:
                    add(conn, {"never": 1}, queue)
                    drain(dsn, queue, timeout=60)
                conn.execute("call pgcombine.reclaim()")
            last = one(main, "select pg_walfile_name(pg_switch_wal())")
        archive = data / "archive"
        archive.mkdir()
        for file in (primary_home / "postgres" / "data" / "pg_wal").iterdir():
            if file.is_file() and file.name <= last:
                shutil.copy(file, archive)
        (data / "recovery.signal").touch()
        target = {
            "restore_command": 'cp "archive/%f" "%p"',
            "recovery_target_name": "here",
            "recovery_target_action": "promote",
        }
        with running(tmp_path, database, **target) as copy, psycopg.connect(copy, autocommit=True) as conn:
            eventually(lambda: not one(conn, "select pg_is_in_recovery()"), what="the recovery has ended")
            writers_go_on(copy)
            goes_on(copy, had)


def test_pg_upgrade_keeps_pending_updates(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The upgrade is from the oldest installed version of PostgreSQL to the newest."""
    versions = sorted(programs.available())
    require("PostgreSQL's programs of two versions", there=len(versions) > 1)
    homes.stay(monkeypatch, tmp_path)
    former = EmbeddedServer(tmp_path / "former", version=versions[0], settings=SETTINGS)
    former.start()
    try:
        server = Server("former", former.superuser_dsn())
        dsn = with_database(server.dsn, "pgcombine")
        schema.upgrade(dsn)
        with busy(dsn, prepared=False) as (had, _):  # pg_upgrade refuses a cluster with prepared transactions
            pass
    finally:
        former.stop()
    upgraded(tmp_path / "former", tmp_path / "later")
    with running(tmp_path / "later", urlsplit(dsn).path[1:]) as copy:
        with psycopg.connect(copy) as conn:
            assert conn.info.server_version // 10000 == versions[-1]
        writers_go_on(copy)
        goes_on(copy, had)


def upgraded(former: Path, later: Path) -> None:
    """Run pg_upgrade on the server in ``former``. The new cluster is in ``later``."""
    old, new = former / "postgres" / "data", copy_passwords(former, later)
    new.mkdir()
    before = programs.find(int((old / "PG_VERSION").read_text()))
    user, after = account.choose(new, programs.find())
    settings = " ".join(f"-c {name}={value}" for name, value in SETTINGS.items())
    options = ["-U", "pgcombine", "-D", str(new)]
    initdb = ["initdb", *options, "-A", "trust", "-E", "UTF8", "--locale=C", "--no-sync", "--no-data-checksums"]
    upgrade = ["pg_upgrade", *options, "-d", str(old), "-o", settings, "-O", settings]
    upgrade += ["-b", str(before.directory / "bin"), "-B", str(after.directory / "bin")]
    for name, *arguments in (initdb, upgrade):
        done = subprocess.run(
            [*user.prefix, after.path(name), *arguments],
            capture_output=True,
            text=True,
            check=False,
            env=environment() | {"PGPASSWORD": (new.parent / "password").read_text().strip()},
            **user.options(new),
        )
        assert done.returncode == 0, done.stdout + done.stderr


def test_dump_of_an_older_version_keeps_pending_updates(servers: Servers) -> None:
    """The newer version's pg_dump and psql copy the database, as PostgreSQL recommends."""
    require_docker()
    older, newer = servers.get("container-15"), servers.get("embedded-18")
    with older.migrated() as dsn, busy(dsn) as (had, opened), newer.database() as copy:
        dump = [programs.find(18).path("pg_dump"), "--no-owner", "--dbname", dsn]
        load = [programs.find(18).path("psql"), "--quiet", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--dbname", copy]
        with subprocess.Popen(dump, stdout=subprocess.PIPE) as dumping:
            loading = subprocess.run(load, stdin=dumping.stdout, capture_output=True, text=True, check=False)
            assert loading.returncode == 0, loading.stderr
        assert dumping.returncode == 0
        opened.commit()
        with psycopg.connect(copy, autocommit=True) as conn:
            for queue in QUEUES:
                with raises_state("PC012"):
                    add(conn, LATE, queue)
                with pytest.raises(PostRestorePendingError):
                    CombineQueue(queue).enqueue(conn, LATE.items())
            assert state(conn) == (had.current, had.backlog)
            with workers(copy, "idle", poll=0.05):  # a worker runs post_restore
                eventually(
                    lambda: one(conn, "select pgcombine_internal.own_cluster()"), what="a worker calls post_restore"
                )
            for queue in QUEUES:
                add(conn, LATE, queue)
        had.prepared.clear()  # a dump doesn't contain the prepared transaction
        goes_on(copy, had)
