"""The view pgcombine.worker, and the workers and lags that ``pgcombine status`` shows."""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import psycopg
import pytest
from psycopg import sql
from support import eventually, run_cli
from support.queues import add, combine_all, make_queue, pass_time, values
from support.roles import Roles, as_role
from support.scrape import get, scrape, served, value
from support.sessions import worker_listens, workers

from pgcombine.doctor import queues as checks
from pgcombine.doctor.examine import made
from pgcombine.doctor.findings import Context
from pgcombine.queue import status
from pgcombine.worker.worker import Worker


def seen(conn: psycopg.Connection) -> list[dict[str, Any]]:
    return status.workers(conn)


@pytest.mark.wc
def test_view_shows_each_worker(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, "other")
    assert seen(conn) == []
    began = datetime.now(UTC) - timedelta(seconds=1)
    with workers(dsn, "wc", "other", count=2) as named:
        (found,) = eventually(
            lambda: [one for one in seen(conn) if len(one["pids"]) == 4 and one["since"]], what="the worker is shown"
        )
        assert (found["worker"], found["role"], found["queues"]) == (named.name, conn.info.user, ["other", "wc"])
        assert began <= found["since"] <= datetime.now(UTC)
        eventually(lambda: [one["state"] for one in seen(conn)] == ["idle"], what="the worker listens")
        with workers(dsn) as unnamed:
            eventually(
                lambda: len(seen(conn)) == 2 and all(one["since"] for one in seen(conn)), what="both workers are shown"
            )
            assert {one["worker"]: one["queues"] for one in seen(conn)}[unnamed.name] is None
        eventually(lambda: len(seen(conn)) == 1, what="the second worker is no longer shown")
        conn.execute("select pgcombine.drop_queue('other')")
        assert [one["queues"] for one in seen(conn)] == [["wc"]]
    eventually(lambda: seen(conn) == [], what="no worker is shown")


@pytest.mark.wc(buckets=1)
def test_view_shows_what_each_worker_does(conn: psycopg.Connection, dsn: str) -> None:
    with psycopg.connect(dsn) as blocker, workers(dsn, "wc"):
        blocker.execute("lock table pgcombine.wc_values in access exclusive mode")
        add(conn, {"a": 1})
        eventually(lambda: [one["state"] for one in seen(conn)] == ["waiting"], what="the pass waits for the lock")
        blocker.rollback()
        eventually(lambda: [one["state"] for one in seen(conn)] == ["idle"], what="the pass has ended")


@pytest.mark.wc
def test_worker_without_all_its_connections_is_connecting(conn: psycopg.Connection, dsn: str) -> None:
    """The view, doctor, the metrics and /readyz say so. The worker goes on when it has the connections."""
    with Roles(conn, dsn) as roles:
        role = roles.login().info.user
        conn.execute("select pgcombine.grant_right('work', %s)", (role,))
        limit = sql.SQL("alter role {} connection limit {}")
        conn.execute(limit.format(sql.Identifier(role), 4))  # the test's own connection is one of them
        with workers(as_role(dsn, role), "wc", count=2) as worker, served(dsn, worker.heartbeat) as port:
            waiting = partial(value, name="loops_without_connection")
            eventually(
                lambda: [(one["state"], len(one["pids"])) for one in seen(conn)] == [("connecting", 3)],
                what="one of four loops has no connection",
            )
            eventually(lambda: waiting(scrape(port)) == 1)
            eventually(lambda: get(port, "/readyz") == (503, "loops that wait for a connection: 1\n"))
            found = made(checks.workers, Context(conn, dsn))
            assert [one.value for one in found if "fewer than it needs" in one.found] == [3]
            conn.execute(limit.format(sql.Identifier(role), -1))
            eventually(lambda: [one["state"] for one in seen(conn)] == ["idle"], what="the worker has its connections")
            eventually(lambda: waiting(scrape(port)) == 0)
            eventually(lambda: get(port, "/readyz")[0] == 200)


@pytest.mark.wc
def test_every_role_sees_the_workers(conn: psycopg.Connection, dsn: str) -> None:
    """A role without rights sees the workers, although pg_stat_activity hides the state of their sessions from it."""
    role = sql.Identifier(f"nobody_{conn.info.backend_pid}")
    conn.execute(sql.SQL("create role {}").format(role))
    try:
        with workers(dsn, "wc") as worker:
            eventually(lambda: worker_listens(conn), what="the worker listens")
            conn.execute(sql.SQL("set role {}").format(role))
            # the worker's maintenance may run at this moment, so wait until the worker is idle
            found = eventually(
                lambda: next((one for one in seen(conn) if one["state"] == "idle"), None), what="the worker is idle"
            )
            conn.execute("reset role")
        assert (found["worker"], found["queues"]) == (worker.name, ["wc"])
        assert found["since"] is not None
    finally:
        conn.execute(sql.SQL("drop role {}").format(role))


def test_worker_names_differ() -> None:
    """Workers of one process have different names. Their application names fit into PostgreSQL's 63 bytes."""
    names = [Worker("dbname=none").name for _ in range(3)]
    assert len(set(names)) == 3
    assert all(len(f"pgcombine worker {name}") <= 63 for name in names)


@pytest.mark.wc
def test_status_shows_workers(conn: psycopg.Connection, dsn: str) -> None:
    assert "no worker is connected" in run_cli("status", "--dsn", dsn).stdout
    assert json.loads(run_cli("status", "--json", "--dsn", dsn).stdout)["workers"] == []
    with workers(dsn, "wc") as worker:
        eventually(lambda: worker_listens(conn), what="the worker listens")
        shown = run_cli("status", "--dsn", dsn).stdout
        (found,) = json.loads(run_cli("status", "--json", "--dsn", dsn).stdout)["workers"]
    assert re.search(rf"^{re.escape(worker.name)} .* \d\d:\d\d:\d\d\S+ +wc +idle", shown, re.MULTILINE), shown
    assert (found["worker"], found["queues"], found["state"]) == (worker.name, ["wc"], "idle")


@pytest.mark.slow
def test_status_warns_of_updates_that_wait_too_long(conn: psycopg.Connection, dsn: str) -> None:
    def run(*options: object) -> tuple[int, str, str]:
        done = run_cli("status", *options, "--dsn", dsn)
        return done.returncode, done.stdout, done.stderr

    make_queue(conn)
    make_queue(conn, "other")
    assert run("--max-lag", 0.5)[0] == 0
    add(conn, {"a": 1})
    add(conn, {"a": 1}, "other")
    eventually(lambda: min(one["lag_seconds"] for one in status.status(conn)) > 1, what="the updates are a second old")
    code, out, err = run("--max-lag", 0.5)
    assert (code, len(err.splitlines())) == (1, 1)
    named = (
        r'pgcombine: the lag of queue "(wc|other)" is \d+ s, more than 0.5 s; other late queues: 1 \(no worker is conn'
    )
    assert re.match(named, err), err
    assert "wc" in out
    conn.execute("select pgcombine.pause('other'), pgcombine.pause('wc')")
    code, out, err = run("--max-lag", 0.5, "--json")
    assert code == 1
    assert "(paused: pgcombine queue resume " in err
    assert {one["queue"]: one["backlog"] for one in json.loads(out)["queues"]} == {"other": 1, "wc": 1}
    assert run("--max-lag", 3600)[0] == 0
    conn.execute("select pgcombine.resume('wc'), pgcombine.resume('other')")
    combine_all(conn)
    combine_all(conn, "other")
    eventually(lambda: run("--max-lag", 0)[0] == 0, what="the lag is measured again")
    assert run("--max-lag", -1)[0] == 2


@pytest.mark.wc(buckets=1)
def test_status_fails_if_nobody_works(conn: psycopg.Connection, dsn: str) -> None:
    def run(*options: object) -> tuple[int, str]:
        done = run_cli("status", *options, "--dsn", dsn)
        return done.returncode, done.stderr

    pass_time(conn, 100)
    assert run() == (0, "")  # nothing is pending
    add(conn, {"a": 1})
    pass_time(conn, 55)
    assert run() == (0, "")
    pass_time(conn, 45)
    code, err = run()
    assert code == 1
    assert re.match(
        r'pgcombine: the lag of queue "wc" is 1\d\d s, and nobody works on it \(no worker is connected: pgco', err
    ), err
    assert run("--max-lag", 250) == (0, "")  # only this limit counts
    conn.execute("select pgcombine.pause('wc')")
    assert run() == (0, "")
    conn.execute("select pgcombine.resume('wc')")
    make_queue(conn, "other")
    with workers(dsn, "other"):
        eventually(lambda: worker_listens(conn, "other"), what="the worker listens")
        assert run()[0] == 1  # it works on another queue
    with psycopg.connect(dsn) as blocker, workers(dsn, "wc"):
        blocker.execute("lock table pgcombine.wc_values in access exclusive mode")
        eventually(lambda: [one["state"] for one in seen(conn)] == ["waiting"], what="the pass waits for the lock")
        assert run() == (0, "")  # the worker tries
        blocker.rollback()
        eventually(lambda: values(conn) == {"a": 1}, what="the worker combines")
    add(conn, {"b": 1})
    pass_time(conn, 20)
    conn.execute("update pgcombine.tick set at = at - interval '1 min'")
    assert run() == (0, "")  # a pass has ended less than a minute ago, as if a scheduler drained the queue


def test_one_session_of_an_idle_worker_polls(conn: psycopg.Connection, dsn: str) -> None:
    """Only one of a worker's sessions polls, takes idle locks and listens."""
    for number in range(4):
        make_queue(conn, f"q{number}")
    with workers(dsn, count=4, poll=0.05) as worker:
        eventually(lambda: [len(one["pids"]) for one in seen(conn)] == [6], what="all sessions are connected")
        polls_by_pid: dict[int, set[object]] = {}

        def count_polls() -> bool:
            found = conn.execute(
                "select pid, query_start from pg_stat_activity where application_name = %s"
                " and query ~* '([.]due|take_idle_lock|advisory_unlock|listen|where notify)'",
                (f"pgcombine worker {worker.name}",),
            )
            for pid, at in found:
                polls_by_pid.setdefault(pid, set()).add(at)
            return max(map(len, polls_by_pid.values()), default=0) >= 30

        eventually(count_polls, what="the session has polled thirty times")
        assert len(polls_by_pid) == 1
