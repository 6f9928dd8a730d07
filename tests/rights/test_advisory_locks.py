"""Any role can hold any advisory lock. Nothing waits for one, and each daemon and command goes on beside a holder."""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable
from pathlib import Path
from uuid import uuid4

import psycopg
import pytest
from support import eventually, run_cli
from support.exports import make_export
from support.queues import add, enqueue, enqueue_arrays, make_queue, one, values
from support.roles import Login
from support.rollups import Rollup
from support.scrape import scrape, served, value
from support.sessions import workers
from support.site import served as served_pages

import pgcombine
from pgcombine import schema
from pgcombine.errors import WaitTimeoutError, translated
from pgcombine.export.worker import ExportWorker
from pgcombine.feed.feed import Feed
from pgcombine.metrics import database
from pgcombine.worker.drain import drain

# the classes of all advisory locks, and the objects that a stranger locks in the test
LOCKS = {
    "pgcombine.idle": [f"'pgcombine.{table}'::regclass::integer" for table in ("wc_updates", "wc_changes")],
    "pgcombine.listener": [f"'pgcombine.{table}'::regclass::integer" for table in ("wc_updates", "wc_changes")],
    "pgcombine.worker": ["extract(epoch from now())::integer + generate_series(-5, 120)"],
    "pgcombine.worker.queue": ["hashtext('wc')", "hashtext('r')"],
    "pgcombine.worker.sessions": ["3"],
    "pgcombine.metrics": ["0"],
    "pgcombine.move_shard": ["hashtext('wc_00')"],
    "pgcombine.front_shard": ["hashtext('wc_00')"],
}
SECONDS = 20.0  # for a step, on a busy machine


def test_list_of_advisory_locks_is_complete_and_none_is_waited_for() -> None:
    package = Path(pgcombine.__file__).parent
    sources = [*package.parent.joinpath("sql").rglob("*.sql"), *package.rglob("*.py"), *package.rglob("*.sql")]
    text = "\n".join(re.sub(r"--.*", "", path.read_text(encoding="utf-8")) for path in sources)
    assert set(re.findall(r"\bpg_\w*advisory\w*", text)) == {
        "pg_try_advisory_lock",
        "pg_try_advisory_lock_shared",
        "pg_try_advisory_xact_lock_shared",
        "pg_advisory_unlock",
        "pg_advisory_unlock_shared",
    }
    classes = re.findall(r"\bpg_\w*advisory\w*\(\s*hashtext\((.*?)\)", text, re.DOTALL)
    moves = re.findall(r"lock_move\((.*?),", text)
    assert {one.strip("'") for one in classes + moves if one.startswith("'")} == LOCKS.keys()
    assert {one for one in classes if not one.startswith("'")} == {"class"}  # lock_move


def has_figures(port: int) -> bool:
    return value(scrape(port), "queue_pending_updates", queue="wc") is not None


@pytest.fixture
def filled(conn: psycopg.Connection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> psycopg.Connection:
    """A queue with an export and a feed, and a rollup that isn't backfilled."""
    monkeypatch.setattr(database, "_STATEMENT_SECONDS", 10.0)  # the machine may be busy
    monkeypatch.setattr(database, "DEADLINE_SECONDS", 20.0)
    make_queue(conn)
    make_export(conn, exporter="files", target=str(tmp_path))
    Feed("f", queue="wc").create(conn)
    conn.execute("create table src (id bigint primary key, k text)")
    conn.execute("insert into src select i, i % 3 from generate_series(1, 10) i")
    Rollup.make(conn)
    conn.execute("select pgcombine_internal.handoff_identify('a')")
    return conn


@pytest.mark.slow
@pytest.mark.parametrize("function", ["pg_advisory_lock", "pg_advisory_xact_lock_shared"])
def test_daemons_and_commands_go_on_while_a_stranger_holds_all_advisory_locks(
    filled: psycopg.Connection, dsn: str, login: Login, function: str
) -> None:
    conn = filled
    role = login()
    role.execute("begin")
    for name, objects in LOCKS.items():
        for object_ in objects:
            role.execute(f"select {function}(hashtext('{name}'), {object_})".encode())
    number = 0

    def worked(*queues: str) -> None:
        nonlocal number
        number += 1
        word = f"w{number}"
        with workers(dsn, *queues, poll=600):
            for n in (1, 2):
                add(conn, {word: 1})
                eventually(lambda n=n: values(conn).get(word) == n, timeout=SECONDS, what="the update is combined")

    def follows() -> None:
        with psycopg.connect(dsn, autocommit=True) as reader:
            changes = Feed("f").read(reader, after=Feed("f").offset(conn), follow=True, poll=600)
            threading.Timer(0.5, lambda: (add(conn, {"feed": 1}), drain(dsn, "wc"))).start()
            assert next(iter(changes)).rows

    def metrics() -> None:
        with served(dsn) as first:
            eventually(lambda: has_figures(first), timeout=SECONDS, what="metrics of the database")

    def web() -> None:
        with served_pages(dsn) as client:
            assert client.get("/").status_code == 200

    def command(*args: object) -> Callable[[], None]:
        def run() -> None:
            done = run_cli(*args, "--dsn", dsn)
            assert done.returncode == 0, done.stderr

        return run

    def begin_load() -> None:
        one(conn, "select pgcombine_internal.begin_load(%s, 'wc', 'r')", uuid4())

    steps: dict[str, Callable[[], object]] = {
        "insert": lambda: add(conn, {"a": 1}),
        "enqueue": lambda: enqueue(conn, [{"word": "a", "n": 1}]),
        "enqueue arrays": lambda: enqueue_arrays(conn, [("a", 1)]),
        "worker": worked,
        "worker of a queue": lambda: worked("wc"),
        "drain": lambda: drain(dsn, "wc"),
        "export": lambda: ExportWorker(dsn, "search").drain(SECONDS),
        "feed": follows,
        "replicas": command("replicas", "run", "--once"),
        "metrics": metrics,
        "web": web,
        "doctor": command("doctor"),
        "status": command("status"),
        "backfill": command("rollup", "backfill", "r"),
        "begin_load": begin_load,
        "rebucket": lambda: conn.execute("select pgcombine.rebucket('wc', 8)"),
        "upgrade": lambda: schema.upgrade(dsn),
    }
    stuck: dict[str, str] = {}
    for name, step in steps.items():
        failure: list[BaseException] = []

        def guarded(step: Callable[[], object] = step, failure: list[BaseException] = failure) -> None:
            try:
                step()
            except BaseException as error:
                failure.append(error)

        thread = threading.Thread(target=guarded, daemon=True)
        thread.start()
        end = time.monotonic() + SECONDS
        while thread.is_alive() and time.monotonic() < end:
            thread.join(0.2)
            if waiting := conn.execute(
                "select query from pg_locks join pg_stat_activity using (pid) "
                "where locktype = 'advisory' and not granted"
            ).fetchone():
                failure.append(AssertionError(f"waits for an advisory lock: {waiting[0][:80]}"))
                role.close()  # everything after this goes on
                break
        thread.join(60)
        if failure or thread.is_alive():
            stuck[name] = repr(failure[0])[:300] if failure else "hangs"
        if role.closed:
            break
    assert stuck == {}


def test_figures_are_given_by_one_process_unless_a_stranger_has_the_lock(
    filled: psycopg.Connection, dsn: str, login: Login, caplog: pytest.LogCaptureFixture
) -> None:
    role = login()
    role.execute("select pg_advisory_lock(hashtext('pgcombine.metrics'), 0)")
    with served(dsn) as first, served(dsn) as second:
        assert has_figures(first)
        assert has_figures(second)
    assert f'session {role.info.backend_pid} of role "{role.info.user}"' in "".join(caplog.messages)
    role.close()
    eventually(
        lambda: not filled.execute("select from pg_locks where classid = hashtext('pgcombine.metrics')::oid").rowcount
    )
    with served(dsn) as first, served(dsn) as second:
        assert has_figures(first)
        assert not has_figures(second)


def test_worker_tells_that_it_is_not_announced(
    filled: psycopg.Connection, dsn: str, login: Login, caplog: pytest.LogCaptureFixture
) -> None:
    """The view doesn't say that such a worker works on all queues since some time."""
    role = login()
    role.execute("select pg_advisory_lock(hashtext('pgcombine.worker.queue'), hashtext('r'))")
    with workers(dsn, "wc", "r"):
        eventually(lambda: "worker.unannounced" in caplog.text, what="a warning")
        assert filled.execute("select since, queues from pgcombine.worker").fetchall() == [(None, None)]


def test_move_says_who_has_its_lock(filled: psycopg.Connection, login: Login) -> None:
    role = login()
    role.execute("select pg_advisory_lock_shared(hashtext('pgcombine.move_shard'), hashtext('wc'))")
    holder = f'session {role.info.backend_pid} of role "{role.info.user}"'
    with pytest.raises(WaitTimeoutError, match=holder), translated(queue="wc"):
        filled.execute("select pgcombine_internal.require_movable('wc')")
