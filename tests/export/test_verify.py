"""``export verify`` names the keys that differ at the destination. ``export resync`` writes new entries for them."""

from __future__ import annotations

import json
import random
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from psycopg import sql
from psycopg.types.json import Jsonb
from support import run_cli
from support.exports import exported, impatient, make_export, make_exported, run_at, waiting, worker_to
from support.queues import add, combine, combine_all, make_queue, one, rows, values, word_in
from support.roles import Roles
from support.servers import Server, embedded_only
from support.sessions import in_background, waits, workers
from support.states import raises_state
from support.wait import eventually

from pgcombine import Entry, ExportWorker
from pgcombine.errors import ExportError, ExportNotFoundError, NotGrantedError, PgCombineError, ReplicaError
from pgcombine.export.postgres import PostgresExporter
from pgcombine.export.verifying import differences, resync
from pgcombine.handoff import ownership

Cli = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def cli(dsn: str, target: str) -> Cli:
    """Runs ``pgcombine export ARGS`` with the target's password, which the registered target doesn't hold."""
    password = psycopg.conninfo.conninfo_to_dict(target).get("password")
    return lambda *args: run_cli("export", *args, "--dsn", dsn, env={"PGPASSWORD": password, "PGSSLMODE": "prefer"})


def found(conn: psycopg.Connection, target: str, **options: float) -> dict[str, str]:
    """The findings of verify: word → problem. A key that may still become equal has the problem "moving"."""
    seen = list(differences(conn, "search", target=target, **options))
    words = {json.loads(key)["word"]: problem for key, problem in seen}
    assert len(words) == len(seen)
    return words


def deliver(conn: psycopg.Connection, dsn: str, target: str) -> None:
    combine_all(conn)
    worker_to(dsn, target).drain()


def restore(there: psycopg.Connection) -> None:
    with there.transaction():
        there.execute("truncate search")
        there.execute("insert into search table older")


def test_resync_repairs_a_changed_table(conn: psycopg.Connection, dsn: str, target: str, cli: Cli) -> None:
    make_exported(conn, target)
    add(conn, {"a": 1, "b": 2, "c": 3, "d": 4, "gone": 5, "same": 6})
    deliver(conn, dsn, target)
    add(conn, {"gone": -5})
    deliver(conn, dsn, target)
    with psycopg.connect(target, autocommit=True) as there:
        there.execute("update search set n = 10 where word = 'a'")
        there.execute("update search set n = null where word = 'b'")
        there.execute("update search set pgcombine_deleted = not pgcombine_deleted where word in ('c', 'gone')")
        there.execute("delete from search where word = 'd'")
        there.execute("insert into search values ('theirs', 1, 0, false), ('theirs, deleted', 1, 0, true)")
    expected = {"a": "other", "b": "other", "c": "missing", "gone": "surplus", "d": "missing", "theirs": "surplus"}
    assert found(conn, target) == expected
    told = cli("verify", "search")
    assert told.returncode == 1, told.stderr
    assert set(told.stdout.splitlines()) == {f'{problem}: {{"word": "{word}"}}' for word, problem in expected.items()}
    assert "differs in 6 keys: 2 missing, 2 other, 2 surplus" in told.stderr
    answer = json.loads(cli("verify", "search", "--limit", "1", "--json").stdout)
    (named,) = answer.pop("keys")
    assert named["problem"] == expected[named["key"]["word"]]
    assert answer == {"export": "search", "differences": 6, "missing": 2, "other": 2, "surplus": 2, "moving": 0}
    assert cli("resync", "search").stdout == "pending again: 6 keys\n"
    deliver(conn, dsn, target)
    assert cli("verify", "search").stdout == "verified: search\n"
    answer = json.loads(cli("verify", "search", "--json").stdout)
    assert answer == {"export": "search", "differences": 0, "moving": 0, "keys": []}
    assert json.loads(cli("resync", "search", "--json").stdout) == {"export": "search", "keys": 0, "moving": 0}
    assert exported(target) == values(conn) == {"a": 1, "b": 2, "c": 3, "d": 4, "same": 6}
    assert found(conn, target) == {}


@pytest.mark.slow
def test_verify_reports_refused_but_not_waiting_entries(conn: psycopg.Connection, dsn: str, target: str) -> None:
    """A key with a waiting entry counts as moving. A key whose entry was refused differs."""
    make_exported(conn, target)
    add(conn, {"a": 1, "b": 1, "gone": 1})
    deliver(conn, dsn, target)
    combine(conn, {"b": 1, "gone": -1, "new": 1})
    moving = {"b": "moving", "gone": "moving", "new": "moving"}
    assert found(conn, target, timeout=0.0) == moving
    assert resync(conn, "search", target=target) == (0, 3)
    assert len(rows(conn, "search_exports")) == 3
    run_at(target, "alter table search add constraint small check (n < 2)")
    worker_to(dsn, target).drain()
    assert one(conn, "select quarantined from pgcombine.export_stat") == 1
    assert found(conn, target) == {"b": "other"}


def test_key_that_changes_between_two_reads_is_moving(
    conn: psycopg.Connection, dsn: str, target: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The key changes before each read of the table, and the change is delivered.

    If the changes end before the timeout, verify finds no difference. Else verify reports the key as moving.
    """
    make_exported(conn, target)
    add(conn, {"hot": 1, "a": 1})
    deliver(conn, dsn, target)
    fetch = PostgresExporter.fetch
    left = 4

    def late(self: PostgresExporter, *arguments: object) -> object:
        nonlocal left
        if left:
            left -= 1
            add(conn, {"hot": 1})
            deliver(conn, dsn, target)
        return fetch(self, *arguments)

    monkeypatch.setattr(PostgresExporter, "fetch", late)
    assert found(conn, target) == {}
    assert left == 0
    left = 1_000_000
    assert found(conn, target, timeout=0.0) == {"hot": "moving"}


def test_verify_compares_many_types(conn: psycopg.Connection, dsn: str, target: str) -> None:
    """Verify finds no difference after a delivery, and finds the rows that change later.

    Keys have several columns, and the name of one contains quotes.
    """
    make_queue(
        conn,
        key=['"a ""b" text', "at timestamptz", "f float8", "r int4range"],
        value=["j jsonb max", "x float8 max", "d interval max", "b bytea max", "l text[] max", "c numeric(20, 3) max"],
        delete_when="c = 0",
    )
    make_export(conn, target, existing=True)
    insert = "insert into pgcombine.wc_updates values (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s)"
    for number, name in enumerate(["", 'it\'s "q"', "{}", "\\", "ü\n"]):
        for at, f in (
            ("infinity", "NaN"),
            ("2024-02-29 12:00:00.5+02", "0.1"),
            ("2024-02-29 12:00:00.25+02", "-1e300"),
        ):
            some = (Jsonb({"k": [name, None, 1.50]}), 1 / (number + 3), "-1 day 2 hours", name.encode(), [name, None])
            conn.execute(insert, (name, at, f, "[1,3)", *some, "1.5"))
    combine_all(conn)
    worker_to(dsn, target).drain()
    assert list(differences(conn, "search", target=target)) == []
    with psycopg.connect(target, autocommit=True) as there:
        name = "{}"
        there.execute('delete from search where f = \'NaN\' and "a ""b" = %s', (name,))
        there.execute("update search set l = '{x}', x = 'NaN' where f = 0.1 and \"a \"\"b\" = 'it''s \"q\"'")
        there.execute(
            "insert into search select 'theirs', at, f, r, j, x, d, b, l, c, 1 from search limit 1".replace(
                ", 1 from", ", 1, false from"
            )
        )
    assert sorted(problem for _, problem in differences(conn, "search", target=target)) == [
        "missing",
        "other",
        "surplus",
    ]
    assert resync(conn, "search", target=target) == (3, 0)
    worker_to(dsn, target).drain()
    assert list(differences(conn, "search", target=target)) == []


@pytest.mark.slow
def test_resync_works_beside_writers_and_workers(conn: psycopg.Connection, dsn: str, target: str) -> None:
    """Verify names only moving keys until the test makes three keys of the table wrong.

    After a resync beside the writers and another one after their end, the table is equal.
    """
    make_queue(conn, buckets_per_partition=2)
    make_export(conn, target, batch=50)
    words = [f"w{number}" for number in range(3000)]
    add(conn, dict.fromkeys(words, 1))
    deliver(conn, dsn, target)
    halt, stop = threading.Event(), threading.Event()

    def produce(seed: int) -> None:
        source = random.Random(seed)
        with psycopg.connect(dsn, autocommit=True) as own:
            while not halt.is_set():
                add(own, [(source.choice(words[:500] + ["hot"] * 100), source.choice([-1, 1])) for _ in range(20)])

    exporter = worker_to(dsn, target, concurrency=2, poll=0.01)
    with in_background(lambda: exporter.run(stop)), workers(dsn, "wc", count=2):
        try:
            with in_background(*(lambda seed=seed: produce(seed) for seed in range(2))):
                try:
                    for _ in range(3):
                        assert set(found(conn, target, timeout=1.0).values()) <= {"moving"}
                    with psycopg.connect(target, autocommit=True) as there:
                        there.execute("create table older as select * from search where word <> 'w2999'")
                        there.execute("update older set n = n + 1 where word in ('w2001', 'w2002')")
                        restore(there)
                    differing = found(conn, target, timeout=1.0)
                    assert differing.items() >= {"w2999": "missing", "w2001": "other", "w2002": "other"}.items()
                    sent, _ = resync(conn, "search", target=target)
                    assert sent >= 3
                finally:
                    halt.set()
            eventually(lambda: one(conn, "select pgcombine.backlog('wc')") == 0, timeout=60)
            eventually(lambda: waiting(conn) == 0, timeout=60)
            # the first resync left out the keys that were moving
            resync(conn, "search", target=target)
            eventually(lambda: waiting(conn) == 0, timeout=60)
        finally:
            stop.set()
    assert exported(target) == values(conn)
    assert found(conn, target) == {}


@pytest.mark.slow
@embedded_only
def test_resync_sends_more_keys_than_a_portion(conn: psycopg.Connection, dsn: str, target: str) -> None:
    """2500 of 5000 keys differ, and the destination has 2500 surplus keys. Resync writes an entry for each."""
    make_exported(conn, target)
    add(conn, {f"w{number}": 1 for number in range(5000)})
    deliver(conn, dsn, target)
    with psycopg.connect(target, autocommit=True) as there:
        there.execute("update search set n = 7 where substr(word, 2)::int % 4 = 0")
        there.execute("delete from search where substr(word, 2)::int % 4 = 1")
        there.execute("insert into search select 'x' || i, 1, 0, false from generate_series(1, 2500) i")
    seen = found(conn, target)
    assert {problem: list(seen.values()).count(problem) for problem in set(seen.values())} == {
        "other": 1250,
        "missing": 1250,
        "surplus": 2500,
    }
    assert resync(conn, "search", target=target) == (5000, 0)
    assert one(conn, "select count(*) from pgcombine.search_exports") == 5000
    worker_to(dsn, target).drain()
    assert exported(target) == values(conn)


def test_resync_waits_for_a_pass_in_progress(conn: psycopg.Connection, dsn: str) -> None:
    """Resync waits for the pass over a key's bucket, so its entry has the new value."""
    make_exported(conn)
    word = word_in(conn, 1)
    combine(conn, {word: 1})
    ExportWorker(dsn, "search", lambda _: None).drain()
    add(conn, {word: 1})
    with psycopg.connect(dsn) as passing, psycopg.connect(dsn, autocommit=True) as sending:
        passing.execute("select pgcombine.combine('wc', 1)")
        keys = json.dumps([{"word": word}])
        with in_background(lambda: one(sending, "select pgcombine_internal.export_resync('search', %s)", keys)):
            try:
                waits(conn, sending.info.backend_pid)
            finally:
                passing.commit()
    seen: list[Entry] = []
    ExportWorker(dsn, "search", seen.extend).drain()
    assert [(entry.key, entry.old, entry.new) for entry in seen] == [(word, 1, 2)]


def test_resync_in_sql_sends_each_key_once(conn: psycopg.Connection, dsn: str) -> None:
    """Resync sends an entry for each key. Wrong calls send nothing."""
    make_queue(conn, buckets=8, buckets_per_partition=4)
    make_export(conn, batch=7)
    conn.execute("insert into pgcombine.wc_updates (word, n) select 'w' || i, 1 from generate_series(1, 100) i")
    combine_all(conn)
    seen: list[Entry] = []
    worker = ExportWorker(dsn, "search", seen.extend)
    worker.drain()
    for _ in range(2):
        assert one(conn, "select pgcombine_internal.export_resync('search')") == 100
        assert one(conn, "select pending from pgcombine.export_stat") == 100
        seen.clear()
        worker.drain()
        assert len(seen) == len({entry.key for entry in seen}) == len({entry.seq for entry in seen}) == 100
    for call, state in (
        ("'none'", "PC021"),
        ("""'search', '[{"word": null}]'""", "PC003"),
        ("""'search', '{"word": "a"}'""", "PC003"),
        ("""'search', '[{"wort": "a"}]'""", "PC003"),
        ("""'search', '[1]'""", "PC003"),
    ):
        with raises_state(state):
            conn.execute(f"select pgcombine_internal.export_resync({call})".encode())
    conn.execute("set default_transaction_isolation = 'repeatable read'")
    with raises_state("PC003"):
        conn.execute("select pgcombine_internal.export_resync('search')")
    assert one(conn, "select pending from pgcombine.export_stat") == 0


@pytest.mark.slow
def test_verify_refuses_an_exporter_that_cannot_be_read(
    conn: psycopg.Connection, dsn: str, cli: Cli, tmp_path: Path
) -> None:
    make_exported(conn, exporter="files", target=str(tmp_path))
    combine(conn, {"a": 1, "b": 2})
    seen: list[Entry] = []
    worker = ExportWorker(dsn, "search", seen.extend)
    worker.drain()
    told = cli("verify", "search")
    assert (told.returncode, told.stdout) == (1, "")
    assert told.stderr == (
        'pgcombine: export "search" has the exporter files: what it delivered can\'t be read back '
        "(pgcombine export resync search delivers every key again)\n"
    )
    assert cli("resync", "search").stdout == "pending again: 2 keys\n"
    seen.clear()
    worker.drain()
    assert sorted((entry.key, entry.old, entry.new) for entry in seen) == [("a", None, 1), ("b", None, 2)]


def test_resync_sends_every_key(conn: psycopg.Connection, dsn: str, target: str, server: Server, cli: Cli) -> None:
    """``resync --all`` writes an entry for every key without reading the destination."""
    make_exported(conn, target)
    add(conn, {"a": 1, "b": 2})
    deliver(conn, dsn, target)
    with closed(server, target):
        assert cli("resync", "search", "--all").stdout == "pending again: 2 keys\n"
    run_at(target, "update search set n = 100")
    worker_to(dsn, target).drain()
    assert exported(target) == {"a": 1, "b": 2}


@contextmanager
def closed(server: Server, target: str) -> Iterator[None]:
    name = sql.Identifier(str(psycopg.conninfo.conninfo_to_dict(target)["dbname"]))
    server.execute(sql.SQL("alter database {} allow_connections false").format(name))
    yield
    server.execute(sql.SQL("alter database {} allow_connections true").format(name))


@pytest.mark.slow
def test_verify_reports_a_destination_that_is_down(
    conn: psycopg.Connection, dsn: str, target: str, server: Server, cli: Cli
) -> None:
    make_exported(conn, target)
    add(conn, {"a": 1})
    deliver(conn, dsn, target)
    with closed(server, target):
        for verb in ("verify", "resync"):
            told = cli(verb, "search")
            assert told.returncode == 1
            assert told.stderr.startswith('pgcombine: the destination of export "search" can\'t be compared: ')
            assert len(told.stderr.splitlines()) == 1
        with pytest.raises(ExportError):
            found(conn, target)
    assert rows(conn, "search_exports") == []
    assert found(conn, target) == {}


def test_resync_creates_a_missing_table(conn: psycopg.Connection, dsn: str, target: str) -> None:
    """A worker or verify would create an empty table, in which all earlier entries are missing unnoticed."""
    make_exported(conn, target, target_table='"my schema"."my ""table"')
    impatient(conn)
    with psycopg.connect(target, autocommit=True) as there:
        there.execute('create schema "my schema"')
        add(conn, {"a": 1, "b": 2})
        deliver(conn, dsn, target)
        assert found(conn, target) == {}
        there.execute('drop table "my schema"."my ""table"')
        combine(conn, {"a": 1})
        with pytest.raises(ExportError, match="pgcombine export resync makes it again"):
            worker_to(dsn, target).drain()
        with pytest.raises(ExportError):
            found(conn, target)
        assert resync(conn, "search", target=target) == (1, 1)  # the other key has an entry that waits
        worker_to(dsn, target).drain()
        assert found(conn, target) == {}
        there.execute('drop table "my schema"."my ""table"')
        assert resync(conn, "search", every=True, target=target) == (2, 0)
        worker_to(dsn, target).drain()
        assert found(conn, target) == {}
        there.execute('drop schema "my schema" cascade')
    with pytest.raises(ExportError):
        found(conn, target)


@pytest.mark.slow
def test_verify_refuses_unknown_and_foreign_exports(conn: psycopg.Connection, dsn: str, target: str, cli: Cli) -> None:
    make_exported(conn, target)
    for verb in ("verify", "resync"):
        told = cli(verb, "other")
        assert (told.returncode, told.stderr.count("\n")) == (1, 1)
        assert 'there is no export "other"' in told.stderr
    with pytest.raises(ExportNotFoundError):
        list(differences(conn, "other"))
    one(conn, "select pgcombine_internal.disown_export('search', 'b', 5)")
    for attempt in (lambda: found(conn, target), lambda: resync(conn, "search", every=True)):
        with pytest.raises(ReplicaError):
            attempt()


@pytest.mark.parametrize("deleted", [False, True])
def test_own_repairs_a_destination_that_is_ahead(
    conn: psycopg.Connection, dsn: str, target: str, deleted: bool
) -> None:
    """A server restored from an older backup can't repair the destination by resync, only by ``export own``."""
    make_exported(conn, target)
    add(conn, {"a": 1, "b": 1, "c": 1, "same": 1})
    deliver(conn, dsn, target)
    with psycopg.connect(target, autocommit=True) as there:
        there.execute(
            "update search set n = 5, pgcombine_seq = 1000, pgcombine_deleted = %s where word = 'a'", (deleted,)
        )
        there.execute("insert into search values ('theirs', 1, 1001, %s)", (deleted,))
        there.execute("delete from search where word = 'b'")
    add(conn, {"c": 1})
    assert found(conn, target) == {"a": "ahead", "theirs": "ahead", "b": "missing"}
    with pytest.raises(ExportError):
        resync(conn, "search", target=target)
    ownership.own(conn, "search")
    # verify reports only moving keys until the full state is delivered and the surplus keys are deleted
    assert set(found(conn, target, timeout=0.0).values()) <= {"moving"}
    deliver(conn, dsn, target)
    assert found(conn, target) == {}
    assert exported(target) == values(conn)


def fails(call: Callable[[], object]) -> Exception:
    with pytest.raises((psycopg.Error, PgCombineError)) as failed:
        call()
    return failed.value


@pytest.mark.slow
def test_killed_resync_can_be_run_again(conn: psycopg.Connection, dsn: str, target: str) -> None:
    """A resync is killed while it waits for a lock. A second resync does the work."""
    make_exported(conn, target)
    words = [word_in(conn, bucket) for bucket in range(4)]
    add(conn, dict.fromkeys(words, 1))
    deliver(conn, dsn, target)
    run_at(target, "update search set n = 9")
    with psycopg.connect(dsn) as passing, psycopg.connect(dsn, autocommit=True) as sending:
        passing.execute("select from pgcombine.bucket where queue = 'wc' and bucket = 2 for update")
        with in_background(lambda: fails(lambda: resync(sending, "search", target=target))):
            try:
                waits(conn, sending.info.backend_pid)
            finally:
                conn.execute("select pg_terminate_backend(%s)", (sending.info.backend_pid,))
    assert rows(conn, "search_exports") == []
    assert resync(conn, "search", target=target) == (4, 0)
    worker_to(dsn, target).drain()
    assert exported(target) == dict.fromkeys(words, 1)
    assert resync(conn, "search", target=target) == (0, 0)


REFUSED = {
    ("integer", True): 'for type integer: "0.125"',
    ("varchar(2)", True): r"too long for type character varying\(2\)",
    ("char(2)", True): r"too long for type character\(2\)",
}
SAMPLES = {
    "numeric": ["0.125", "5", "12345.5"],
    "double precision": ["0.1", "0.5", "123456.5"],
    "bigint": ["7", "300000"],
    "timestamp": ["2024-02-29 12:00:00.123456", "2024-02-29 12:00:00", "2024-02-29 00:00:00"],
    "timestamptz": ["2024-02-29 12:00:00.123456+02", "2024-02-29 00:00:00+00"],
    "interval": ["1 day 00:00:00.5", "2 hours"],
    "text": ["ab", "ab ", "abcd", "Ab"],
    "jsonb": ['{"a": 1}', "[1, 2]"],
    "varchar(9)": ["ab", "abcd"],
}
TYPES = {
    "numeric": ["numeric(20,1)", "numeric(20,3)", "integer", "double precision", "real", "text"],
    "double precision": ["real", "numeric", "numeric(20,1)", "text"],
    "bigint": ["integer", "numeric", "numeric(20,1)", "real", "text"],
    "timestamp": ["timestamp(0)", "timestamp(3)", "date", "timestamptz"],
    "timestamptz": ["timestamptz(0)", "timestamp", "date"],
    "interval": ["interval(0)", "interval day to hour", "text"],
    "text": ["varchar(2)", "varchar(100)", "char(2)", "char(6)", "text"],
    "jsonb": ["json", "text"],
    "varchar(9)": ["varchar(2)", "text", "char(9)"],
}


@pytest.mark.parametrize(
    "kind", [pytest.param(kind, marks=[] if kind in {"numeric", "text"} else pytest.mark.slow) for kind in TYPES]
)
@embedded_only
def test_verify_compares_a_column_of_another_type(conn: psycopg.Connection, dsn: str, target: str, kind: str) -> None:
    """A value differs exactly if a cast to the column's type and back changes it.

    If the column's type refuses such a value, verify raises an error.
    """
    make_queue(conn, value=[f"n {kind} last(at)", "at bigint max"], delete_when=None)
    make_export(conn, target)
    samples = {f"w{number}": sample for number, sample in enumerate(SAMPLES[kind])}
    for word, sample in samples.items():
        conn.execute("insert into pgcombine.wc_updates values (%s, %s, 1)", (word, sample))
    deliver(conn, dsn, target)
    assert found(conn, target) == {}
    with psycopg.connect(target, autocommit=True) as there:
        there.execute("set timezone = 'UTC'; create table older as table search")
        for column in TYPES[kind]:
            through = f"select %s::{kind}::{column}::{kind} is distinct from %s::{kind}"  # noqa: S608
            lossy = {word for word, sample in samples.items() if one(there, through, sample, sample)}
            there.execute(f"alter table search alter n type {column} using n::{column}".encode())
            if (column, bool(lossy)) in REFUSED:
                with pytest.raises(ExportError, match=REFUSED[column, True]):
                    found(conn, target)
            else:
                assert found(conn, target) == dict.fromkeys(lossy, "other"), column
            there.execute(f"truncate search; alter table search alter n type {kind} using null".encode())
            restore(there)


def test_verify_compares_a_key_of_another_type(conn: psycopg.Connection, dsn: str, target: str) -> None:
    make_queue(conn, key=["word numeric"])
    make_export(conn, target)
    conn.execute("insert into pgcombine.wc_updates values (0.125, 1), (7, 1)")
    deliver(conn, dsn, target)
    run_at(target, "alter table search alter word type numeric(20,1)")
    assert found(conn, target) == {0.125: "missing", 0.1: "surplus"}


def test_verify_and_resync_need_rights(conn: psycopg.Connection, dsn: str, target: str) -> None:
    """Verify and resync need the right to work."""
    make_queue(conn)
    make_export(conn, target)
    add(conn, {"a": 1})
    deliver(conn, dsn, target)
    run_at(target, "update search set n = 9")
    with Roles(conn, dsn) as roles:
        role = roles.login()
        conn.execute("select pgcombine.grant_right('monitor', %s)", (role.info.user,))
        conn.execute("select pgcombine.grant_right('read', %s, 'wc')", (role.info.user,))
        for call in (lambda: found(role, target), lambda: resync(role, "search", target=target)):
            with pytest.raises(NotGrantedError):
                call()
        conn.execute("select pgcombine.grant_right('work', %s)", (role.info.user,))
        assert found(role, target) == {"a": "other"}
        assert resync(role, "search", target=target) == (1, 0)
        assert resync(role, "search", every=True) == (1, 0)
    worker_to(dsn, target).drain()
    assert exported(target) == {"a": 1}
