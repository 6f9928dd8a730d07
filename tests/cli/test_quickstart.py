"""``pgcombine quickstart`` runs, shows its page, and removes what it has made, also after kills and errors."""

from __future__ import annotations

import re
import signal
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest
from support import eventually, run_cli, start_cli
from support.queues import make_queue, one
from support.roles import Roles, as_role

MADE = """
    select nspname from pg_namespace where nspname like 'pgcombine%quickstart%'
    union all select relname from pg_class where relname like '%quickstart%'
    union all select queue from pgcombine.queue where queue like '%quickstart%'
"""
WRITERS = """
    select pg_terminate_backend(pid) from pg_stat_activity
    where application_name = 'pgcombine quickstart' and datname = current_database() and query ~ 'quickstart_visits'
"""


def made(conn: psycopg.Connection) -> list[str]:
    return [name for (name,) in conn.execute(MADE)]


def run(dsn: str, seconds: float = 1) -> tuple[int, str, str]:
    done = run_cli("quickstart", "--seconds", seconds, "--dsn", dsn)
    return done.returncode, done.stdout, done.stderr


def steps(out: str) -> list[str]:
    """The lines that the command has printed, without the time before and the details after a colon."""
    return [re.sub(r" *[\d.]+ s  ", "", line, count=1).split(":")[0] for line in out.splitlines()]


@contextmanager
def running(dsn: str) -> Iterator[tuple[subprocess.Popen[str], str]]:
    """Run the command during the block. Yields the process and the URL of its page when the page is announced."""
    with start_cli("quickstart", "--dsn", dsn) as process:
        assert process.stdout is not None
        lines: list[str] = []
        while not (url := re.search(r"http://127\.0\.0\.1:\d+/", "".join(lines[-1:]))):
            lines.append(process.stdout.readline())
            assert lines[-1], "".join(lines)
        yield process, url[0]


def test_an_ordinary_role_needs_no_schema_and_leaves_none(empty_dsn: str) -> None:
    with psycopg.connect(empty_dsn, autocommit=True) as admin, Roles(admin, empty_dsn) as roles:
        role = roles.login(f'create on database "{admin.info.dbname}"').info.user
        code, out, err = run(as_role(empty_dsn, role), 2)
        assert (code, err) == (0, ""), err
        page = "the figures as a web page"
        first = "the first views are counted (the view pgcombine.quickstart_visits_current)"
        assert steps(out) == ["preparing the database", "made", "made", first, page, "checked", "removed", "removed"]
        (appended, counted) = re.findall(r"([\d,]+) (?:views were appended|are counted)", out)
        assert appended == counted != "0"
        assert admin.execute("select nspname from pg_namespace where nspname like 'pgcombine%'").fetchall() == []


@pytest.mark.wc
def test_ctrl_c_ends_it_and_other_queues_stay(conn: psycopg.Connection, dsn: str) -> None:
    with running(dsn) as (process, url):
        with urllib.request.urlopen(url, timeout=30) as answer:
            assert "quickstart_visits" in answer.read().decode()
        code, out, err = run(dsn)
        assert (code, steps(out)) == (1, ["preparing the database"])
        assert err.startswith("pgcombine: another pgcombine quickstart runs in this database (process ")
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate(timeout=60)
        assert process.returncode == 0, rest
    assert "checked: " in rest
    assert made(conn) == []
    assert one(conn, "select queue from pgcombine.queue") == "wc"


@pytest.mark.slow
def test_a_run_after_a_kill_removes_what_is_left(conn: psycopg.Connection, dsn: str) -> None:
    with running(dsn) as (process, _):
        process.kill()
        process.wait()
    assert "pgcombine_quickstart" in made(conn)
    eventually(lambda: run(dsn)[0] == 0, what="the killed run's sessions have ended")
    assert made(conn) == []


@pytest.mark.slow
def test_an_error_ends_it_and_it_cleans_up(conn: psycopg.Connection, dsn: str) -> None:
    with running(dsn) as (process, _):
        eventually(lambda: conn.execute(WRITERS).rowcount > 0, what="a writer is in a statement, or was")
        rest, _ = process.communicate(timeout=60)
        assert process.returncode == 1, rest
    assert "pgcombine: terminating connection" in rest
    assert made(conn) == []


@pytest.mark.slow
def test_it_drops_nothing_that_depends_on_its_table(conn: psycopg.Connection, dsn: str) -> None:
    with running(dsn) as (process, _):
        conn.execute("create view public.mine as select customer from pgcombine_quickstart.request")
        process.send_signal(signal.SIGTERM)
        rest, _ = process.communicate(timeout=60)
        assert process.returncode == 1, rest
    assert re.search("aren't removed: cannot drop table .* view mine depends on table", rest), rest
    conn.execute("drop view public.mine")
    assert run(dsn)[0] == 0
    assert made(conn) == []


@pytest.mark.parametrize("kind", ["schema", "queue"])
def test_a_name_that_exists_is_refused(conn: psycopg.Connection, dsn: str, kind: str) -> None:
    if kind == "schema":
        conn.execute("create schema pgcombine_quickstart")
        conn.execute("create table pgcombine_quickstart.request as select 1 as mine")
        name = "the schema pgcombine_quickstart"
    else:
        make_queue(conn, "quickstart_visits")
        name = "the queue quickstart_visits"
    before = made(conn)
    told = f"pgcombine: {name} exists, and pgcombine quickstart hasn't made it (drop or rename it, or choose another "
    code, out, err = run(dsn)
    assert (code, steps(out)) == (1, ["preparing the database"])
    assert err == f"{told}database with --dsn)\n"
    assert made(conn) == before


def test_a_role_with_few_rights_gets_one_sentence(conn: psycopg.Connection, dsn: str) -> None:
    with Roles(conn, dsn) as roles:
        role, database = roles.login().info.user, conn.info.dbname
        code, out, err = run(as_role(dsn, role))
        assert (code, steps(out), len(err.splitlines())) == (1, ["preparing the database"], 1)
        assert err.startswith(f'pgcombine: role "{role}" may not create schemas in database "{database}" (grant create')
        roles.login(f'create on database "{database}"', role=role)
        owner = conn.info.user
        refused = (
            f'permission denied: role "{role}" doesn\'t own the schema pgcombine (its owner "{owner}" can do this)'
        )
        code, out, err = run(as_role(dsn, role))
        assert (code, steps(out), err) == (1, ["preparing the database"], f"pgcombine: {refused}\n")
        assert made(conn) == []


@pytest.mark.slow
def test_it_starts_the_embedded_server(home: Path) -> None:
    done = run_cli("quickstart", "--seconds", 1)
    assert done.returncode == 0, done.stderr
    assert re.match(r"pgcombine: started PostgreSQL \d+ in .*; it keeps running", done.stderr)
    assert "checked: " in done.stdout
    assert run_cli("status").stdout.startswith("no queues yet")
