"""The SQL and Python of the README and the pages run, their commands exist, and their relative links have a target.

A page's SQL runs from top to bottom in a new database, which has the queue ``wc`` unless the page creates it.
``start.md`` goes on from the README. The page's Python runs after its SQL, with the names that the fixture ``given``
yields. In SQL, lines that begin with ``-->`` are the expected rows of the statement before them.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.queues import make_queue
from support.readme import PAGES, README, ROOT, TEXTS, anchors, commands, fences, prose, statements
from support.roles import Roles, as_role
from support.servers import Server, embedded_only

from pgcombine import schema

# Fences that other tests run, and the files of these tests.
ELSEWHERE = {
    **{("clients.md", language): "tests/examples/test_clients.py" for language in ("js", "go", "ruby", "php", "java")},
    ("counters.md", "python"): "tests/examples/test_howto.py",
    ("switching.md", "python"): "tests/examples/test_switching.py",
    ("switching.md", "ruby"): "tests/examples/test_switching.py",
    ("metrics.md", "yaml"): "tests/metrics/test_page.py",
    ("rights.md", "sql"): "tests/rights/test_page.py",
    ("shards.md", "python"): "tests/spark/test_front.py",
    ("shards.md", "sql"): "tests/sql/shard/test_page.py",
    ("spark.md", "python"): "tests/spark/test_docs.py",
}
SHELL, SQL, PYTHON = ("bash", "sh", "console"), "sql", "python"


def pages(language: str) -> pytest.MarkDecorator:
    """A parameter ``page``: each page whose fences of a language run in this file."""
    found = [page for page in PAGES if fences(page, language) and (page.name, language) not in ELSEWHERE]
    return pytest.mark.parametrize("page", found, ids=lambda page: page.name)


def test_tests_run_every_fence() -> None:
    for page in TEXTS:
        languages = set(re.findall(r"^```(\w*)\n(?:.*\n)*?```$", page.read_text(encoding="utf-8"), re.MULTILINE))
        elsewhere = {language for name, language in ELSEWHERE if name == page.name}
        tested = {*SHELL, SQL, PYTHON, *elsewhere} if page in PAGES else set()
        assert languages <= tested, f"{page.name}: nothing runs fences of {languages - tested}"
    for (name, _), test in ELSEWHERE.items():
        assert any(page.name == name for page in PAGES)
        assert name in (ROOT / test).read_text(encoding="utf-8")


def shown(row: tuple[Any, ...]) -> str:
    """A row as psql shows it."""
    plain = {None: "", True: "t", False: "f"}
    return " | ".join(plain[part] if part is None or isinstance(part, bool) else str(part) for part in row)


@pages(SQL)
def test_sql_of_the_pages_runs(page: Path, conn: psycopg.Connection) -> None:
    run_sql(page, conn)


def run_sql(page: Path, conn: psycopg.Connection) -> None:
    blocks = [block for one in ([README, page] if page.name == "start.md" else [page]) for block in fences(one, SQL)]
    if not any("create_queue('wc'" in block for block in blocks):
        make_queue(conn)
    run_fences(blocks, conn)


def run_fences(blocks: list[str], conn: psycopg.Connection) -> None:
    for statement, rows in (found for block in blocks for found in statements(block)):
        cursor = conn.execute(statement.encode())
        found = sorted(map(shown, cursor.fetchall())) if cursor.description else []
        assert rows is None or (found or ["(0 rows)"]) == sorted(row.strip() for row in rows), statement


def test_start_goes_on_from_the_readme_without_createrole(empty_dsn: str) -> None:
    """A role that may only create schemas follows both texts in one database, where the two other roles exist."""
    start = next(page for page in PAGES if page.name == "start.md")
    (rights,) = re.findall(r"<<'END'\n(.*?)^END$", "".join(fences(start, *SHELL)), re.MULTILINE | re.DOTALL)
    with psycopg.connect(empty_dsn, autocommit=True) as admin, Roles(admin, empty_dsn) as roles:
        admin.execute("grant create on schema public to public")
        web, worker = (roles.login().info.user for _ in range(2))
        user = roles.login(f'create on database "{admin.info.dbname}"')
        schema.upgrade(as_role(empty_dsn, user.info.user))
        for page in (README, start):
            run_fences(fences(page, SQL), user)
        for statement, _ in statements(re.sub(r"\bworker\b", worker, re.sub(r"\bweb\b", web, rights))):
            user.execute(statement.encode())


@pytest.fixture
def given(page: Path, dsn: str, server: Server, monkeypatch: pytest.MonkeyPatch) -> Iterator[Mapping[str, Any]]:
    """The names that the Python on the pages uses: ``dsn`` (also in the environment), ``dsn_a`` to ``dsn_c`` if the
    page names them, a psycopg ``connection``, and an ``order`` that can be stored."""
    from sqlalchemy import Integer
    from sqlalchemy.orm import DeclarativeBase, mapped_column

    class Base(DeclarativeBase):
        pass

    class Order(Base):
        __tablename__ = "orders"
        id = mapped_column(Integer, primary_key=True)

    with ExitStack() as stack:
        wanted = sorted(set(re.findall(r"\bdsn_[abc]\b", "".join(fences(page, PYTHON)))))
        servers = {name: stack.enter_context(server.migrated()) for name in wanted}
        for one in servers.values():
            with psycopg.connect(one, autocommit=True) as conn:
                make_queue(conn)
        connection = stack.enter_context(psycopg.connect(dsn, autocommit=True))
        connection.execute("create table orders (id serial primary key)")
        info = connection.info
        environment = {
            "PGHOST": info.host,
            "PGPORT": str(info.port),
            "PGUSER": info.user,
            "PGPASSWORD": info.password,
            "PGDATABASE": info.dbname,
        }
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        yield {"dsn": dsn, **servers, "connection": connection, "order": Order()}


@embedded_only
@pages(PYTHON)
def test_python_of_the_pages_runs(page: Path, given: Mapping[str, Any]) -> None:
    run_sql(page, given["connection"])
    names = dict(given)
    for number, piece in enumerate(fences(page, PYTHON)):
        exec(compile(piece, f"{page.name}, {number}", "exec"), names)
    if "engine" in names:
        names["engine"].dispose()


def options_of(command: Any) -> set[str]:
    return {name for parameter in command.params for name in (*parameter.opts, *parameter.secondary_opts)} | {"--help"}


@pytest.mark.parametrize("page", [page for page in PAGES if fences(page, *SHELL)], ids=lambda page: page.name)
def test_commands_of_the_pages_exist(page: Path) -> None:
    """Each ``pgcombine`` command in the shell fences names an existing verb, and only options that the verb has."""
    import typer

    from pgcombine.cli.app import app

    root: Any = typer.main.get_command(app)
    for part in (part for line in commands(page) for part in re.split(r"&&|\||;", line)):
        program, *words = shlex.split(part, comments=True) or [""]
        if Path(program).name != "pgcombine":
            continue
        command = root
        options = options_of(command)
        while words and words[0] in getattr(command, "commands", {}):
            command = command.commands[words.pop(0)]
            options |= options_of(command)
        inner = getattr(command, "commands", None)
        assert not inner or not words or words[0].startswith("-"), f"there is no such verb: {part}"
        wrong = {word.partition("=")[0] for word in words if word.startswith("-")} - options
        assert not wrong, f"no options {wrong}: {part}"


@pytest.mark.parametrize("page", TEXTS, ids=lambda page: os.fspath(page.relative_to(ROOT)))
def test_links_have_a_target(page: Path) -> None:
    text = prose(page)
    for link in re.findall(r"\]\(([^)\s]+)\)", text):
        if "://" in link:
            continue
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        assert target.exists(), f"{link} leads nowhere"
        assert not anchor or anchor in anchors(target), f"{target.name} has no heading for #{anchor}"
    # names of files in the text: SQL, revisions, tests and modules
    for name in re.findall(r"`((?:sql|migrations|tests)/[\w/.]+\.\w+|\w+/\w+\.py)`", text):
        assert any((base / name).exists() for base in (ROOT, ROOT / "pgcombine", page.parent)), f"{name} isn't there"


def test_readme_links_every_page() -> None:
    readme = PAGES[0].read_text(encoding="utf-8")
    assert [page.name for page in PAGES[1:] if f"]({page.relative_to(ROOT)})" not in readme] == []
