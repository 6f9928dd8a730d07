"""The programs of the page *Node, Go, Ruby, PHP and Java* count exactly, directly and through PgBouncer.

The page has each program without what surrounds it in a file (imports, the connection): ``PROGRAMS`` adds that.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from support.needs import require, require_jdbc, require_program
from support.pgbouncer import left_behind, pgbouncer
from support.queues import one, values
from support.readme import PAGES, fences, statements
from support.servers import embedded_only
from support.sessions import in_background
from support.wait import eventually

from pgcombine import schema
from pgcombine.spark.jdbc_driver import find_driver

(PAGE,) = (page for page in PAGES if page.name == "clients.md")
LANGUAGES = ("js", "go", "ruby", "php", "java")
SERVERS = 3  # server connections of PgBouncer
POOLER = "server_round_robin = 1\nignore_startup_parameters = extra_float_digits"

# The first insert of a program fails, as a conflict does.
CONFLICT = """
create sequence attempt;
create function conflict() returns trigger language plpgsql as $$
begin
    if nextval('public.attempt') = 1 then
        raise exception 'a conflict' using errcode = '40001';
    end if;
    return null;
end
$$;
create trigger conflict before insert on pgcombine.page_views_updates for each statement execute function conflict();
"""

GO = """package main

import (
    "database/sql"
    "errors"
    "fmt"
    "log"
    "os"

    "github.com/lib/pq"
)

{}
func main() {{
    db, err := sql.Open("postgres", os.Getenv("GO_DSN"))
    check(err)
    count(db)
}}
"""
JAVA = """import java.nio.file.*;
import java.sql.*;

public class Count {{
{}
    public static void main(String[] names) throws Exception {{
        String file = Files.readString(Path.of("pgcombine.sql"));
        transaction(System.getenv("JDBC_URL"), db -> db.createStatement().execute(file));
        count(System.getenv("JDBC_URL"));
    }}
}}
"""
RAILS = """require "active_record"

ActiveRecord::Base.establish_connection(
  adapter: "postgresql", database: ENV["PGDATABASE"], prepared_statements: ENV["POOLER"].nil?)
ActiveRecord::Base.transaction {{ ActiveRecord::Base.connection.execute(File.read("pgcombine.sql")) }}
{}
ActiveRecord::Base.connection.execute("call pgcombine.drain('page_views')")
"""


class Program(NamedTuple):
    name: str
    text: str
    command: tuple[str, ...]


def program(language: str, directory: Path, *, pooled: bool) -> Program:
    """The program of the page, for a file in ``directory``. Requires what it needs."""
    text = fences(PAGE, language)[0]
    if language == "js":
        find = [require_program("node"), "-p", "require.resolve('pg')"]
        found = subprocess.run(find, capture_output=True, text=True, check=False)
        require("the package pg of Node", there=found.returncode == 0)
        modules = directory / "node_modules"
        if not modules.exists():
            modules.symlink_to(Path(found.stdout.strip()).parents[2])  # it ends in pg/lib/index.js
        return Program("count.mjs", text, ("node",))
    if language == "go":
        require_program("go")
        require("the package lib/pq of Go", there=Path("/usr/share/gocode/src/github.com/lib/pq").is_dir())
        return Program("count.go", GO.format(text), ("go", "run"))
    if language == "ruby":
        require_gem("pg")
        return Program("count.rb", text, ("ruby",))
    if language == "php":
        modules = subprocess.run([require_program("php"), "-m"], capture_output=True, text=True, check=True).stdout
        require("the extension pdo_pgsql of PHP", there="pdo_pgsql" in modules.split())
        emulated = 'PDO("pgsql:", options: [PDO::ATTR_EMULATE_PREPARES => true])'
        text = text.replace('PDO("pgsql:")', emulated) if pooled else text
        return Program(
            "count.php", f"<?php\n{text}", ("php", "-d", "display_errors=stderr", "-d", "error_reporting=-1")
        )
    require_program("javac")
    require_jdbc()
    return Program("Count.java", JAVA.format(text), ("java", "-cp", str(find_driver())))


def require_gem(name: str) -> None:
    ruby = require_program("ruby")
    done = subprocess.run([ruby, "-e", f"require '{name}'"], capture_output=True, check=False)
    require(f"the gem {name}", there=done.returncode == 0)


def run(source: Program, directory: Path, dsn: str, *, pooled: bool) -> list[tuple[int, int]]:
    """Run a program with the page's setting for poolers, if ``pooled``; return the pairs of numbers that it prints."""
    (directory / source.name).write_text(source.text, encoding="utf-8")
    (directory / "pgcombine.sql").write_text(schema.upgrade_sql(), encoding="utf-8")  # some programs apply it first
    done = subprocess.run(
        [*source.command, source.name],
        cwd=directory,
        env={**os.environ, **environment(dsn, pooled=pooled)},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    numbers = [int(number) for number in re.findall(r"\d+", done.stdout)]
    return list(zip(numbers[::2], numbers[1::2], strict=True))


def environment(dsn: str, *, pooled: bool) -> Mapping[str, str]:
    given = conninfo_to_dict(dsn)
    user, password = given["user"], given.get("password") or "none"
    url = f"jdbc:postgresql://{given['host']}:{given['port']}/{given['dbname']}?user={user}&password={password}"
    return {
        "PGHOST": str(given["host"]),
        "PGPORT": str(given["port"]),
        "PGDATABASE": str(given["dbname"]),
        "PGUSER": str(user),
        "PGPASSWORD": str(password),
        "JDBC_URL": url + ("&prepareThreshold=0" if pooled else ""),
        "GO_DSN": "sslmode=disable" + (" binary_parameters=yes" if pooled else ""),
        "GO111MODULE": "off",
        "GOPATH": "/usr/share/gocode",
        **({"POOLER": "yes"} if pooled else {}),
    }


@pytest.fixture
def counting(conn: psycopg.Connection) -> psycopg.Connection:
    for block in fences(PAGE, "sql"):
        for statement, _ in statements(block):
            conn.execute(statement.encode())
    return conn


@pytest.mark.slow
@embedded_only
@pytest.mark.parametrize("language", LANGUAGES)
def test_program_counts(language: str, counting: psycopg.Connection, dsn: str, tmp_path: Path) -> None:
    """It repeats a transaction after a conflict. Its second run goes on at the stored offset, through PgBouncer."""
    counting.execute(CONFLICT)
    direct, through = (program(language, tmp_path, pooled=pooled) for pooled in (False, True))
    read, followed = [(7, 3), (8, 1)], [(7, 6), (8, 2)]
    assert sorted(run(direct, tmp_path, dsn, pooled=False)) == sorted(read * 2)
    with pgbouncer(dsn, servers=SERVERS, settings=POOLER) as pooled:
        assert left_behind(pooled, SERVERS) == []  # so PgBouncer has opened all connections, and uses them in turn
        assert sorted(run(through, tmp_path, pooled, pooled=True)) == sorted(followed * 2)
        assert not {"prepared", "cursor", "advisory lock"} & {what for what, _ in left_behind(pooled, SERVERS)}
    assert values(counting, "page_views") == dict(followed)
    assert one(counting, "select count(*) from news()") == 0


@pytest.mark.slow
@embedded_only
def test_rails_counts(counting: psycopg.Connection, dsn: str, tmp_path: Path) -> None:
    require_gem("pg")
    require_gem("active_record")
    rails = Program("rails.rb", RAILS.format(fences(PAGE, "ruby")[1]), ("ruby",))
    assert run(rails, tmp_path, dsn, pooled=False) == [(7, 2), (8, 1)]
    with pgbouncer(dsn, servers=SERVERS, settings=POOLER) as pooled:
        assert left_behind(pooled, SERVERS) == []
        assert run(rails, tmp_path, pooled, pooled=True) == [(7, 4), (8, 2)]
    assert values(counting, "page_views") == {7: 4, 8: 2}


def test_followers_take_turns(counting: psycopg.Connection, dsn: str) -> None:
    """A second follower waits for the first, and gets what the first didn't."""
    counting.execute("insert into pgcombine.page_views_updates (page, n) values (7, 1)")
    counting.execute("call pgcombine.drain('page_views')")
    got: list[list[tuple[int, int]]] = []

    def follow() -> None:
        with psycopg.connect(dsn) as second:
            got.append(second.execute("select * from news()").fetchall())

    waiting = "select count(*) from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'"
    with psycopg.connect(dsn) as first:
        assert first.execute("select * from news()").fetchall() == [(7, 1)]
        with in_background(follow):
            eventually(lambda: one(counting, waiting) == 1, what="the second follower waits")
            first.commit()
    assert got == [[]]


@pytest.mark.parametrize("language", LANGUAGES)
def test_statements_of_the_programs_are_valid(language: str, counting: psycopg.Connection) -> None:
    found = re.findall(r'"((?:select|insert|call) [^"]*)"', "".join(fences(PAGE, language)))
    assert any(text.startswith("call") for text in found)
    for number, text in enumerate(found):
        if text.startswith("call"):
            counting.execute(text.encode())
        else:
            places = iter(range(1, 9))
            with_numbers = re.sub(r"\?", lambda _: f"${next(places)}", text)  # noqa: B023
            counting.execute(f"prepare statement_{number} as {with_numbers}".encode())
