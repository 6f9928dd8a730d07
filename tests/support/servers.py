"""PostgreSQL servers for the tests, and throw-away databases on them.

A server is started when the first test asks for it and runs until the end of the session, with ``fsync=off`` to be
fast. Tests that crash a server on purpose start another one. If ``PGCOMBINE_TEST_DSN`` is set, the tests use that
server with its own settings.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql

from support.needs import images

# jit is on, as PostgreSQL's default is, although the embedded server switches it off by default.
SETTINGS = {
    "fsync": "off",
    "max_wal_size": "256MB",  # the files may be in memory
    "max_connections": "200",
    "max_prepared_transactions": "10",
    "jit": "on",
}

_numbers = count(1)


def with_database(dsn: str, database: str) -> str:
    """The URI ``dsn`` with another database in it."""
    return urlsplit(dsn)._replace(path=f"/{database}").geturl()


class Server:
    """A running PostgreSQL server.

    ``dsn`` is a superuser's URI, ``name`` tells servers apart in test ids, ``version`` is the major version.
    """

    def __init__(self, name: str, dsn: str) -> None:
        self.name = name
        self.dsn = dsn
        with psycopg.connect(dsn) as conn:
            self.version = conn.info.server_version // 10000
        self._template: str | None = None

    def execute(self, statement: sql.Composable) -> None:
        with psycopg.connect(self.dsn, autocommit=True) as conn:
            conn.execute(statement)

    @contextmanager
    def database(self, template: str | None = None) -> Iterator[str]:
        """The URI of a new database, dropped at the end even if sessions are still connected."""
        # The process id makes the names unique when several processes use a given server.
        name = f"pgcombine_test_{os.getpid()}_{next(_numbers)}"
        # With fsync off, copying files costs less than writing the copy to the log.
        create = sql.SQL("create database {} template {} strategy file_copy")
        self.execute(create.format(sql.Identifier(name), sql.Identifier(template or "template0")))
        try:
            yield with_database(self.dsn, name)
        finally:
            self.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))

    @contextmanager
    def migrated(self) -> Iterator[str]:
        """The URI of a new database with pgcombine's schema, copied from a template that is migrated once."""
        from pgcombine import schema

        if self._template is None:
            name = f"pgcombine_template_{os.getpid()}"
            # A migration that failed in an earlier test has left an incomplete template: drop it and try again.
            self.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))
            self.execute(sql.SQL("create database {} template template0").format(sql.Identifier(name)))
            schema.upgrade(with_database(self.dsn, name))
            self._template = name
        with self.database(template=self._template) as dsn:
            yield dsn

    def close(self) -> None:
        """Drop the template, since a given server outlives the tests."""
        if self._template is not None:
            self.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(self._template)))
            self._template = None


class Servers:
    """The servers of a test session by name; each is started at its first use."""

    def __init__(self, home: Path) -> None:
        self._home = home
        self._running: dict[str, Server] = {}
        self._stack = ExitStack()

    def get(self, name: str) -> Server:
        if name not in self._running:
            server = Server(name, self._stack.enter_context(start(name, self._home)))
            self._stack.callback(server.close)
            self._running[name] = server
        return self._running[name]

    def close(self) -> None:
        self._stack.close()


def names() -> list[str]:
    """The names of the servers that the tests run on."""
    return ["given"] if os.environ.get("PGCOMBINE_TEST_DSN") else ["embedded-18", "container-15"]


# The mark of tests that run on one server only: the embedded one, or the server of PGCOMBINE_TEST_DSN.
embedded_only = pytest.mark.parametrize("server", names()[:1], indirect=True)
# Runs a test where PostgreSQL's contrib modules are; the embedded server has none.
with_contrib = pytest.mark.parametrize("server", names()[-1:], indirect=True)


@contextmanager
def start(name: str, home: Path, **settings: str) -> Iterator[str]:
    """Run a server during the block and yield its URI. An embedded server has its files in ``home``.

    ``settings`` are added to SETTINGS; the server of ``PGCOMBINE_TEST_DSN`` keeps its settings.
    """
    if name == "given":
        yield os.environ["PGCOMBINE_TEST_DSN"]
    elif name == "container-15":
        with container(SETTINGS | settings) as dsn:
            yield dsn
    else:
        with embedded(home, SETTINGS | settings) as dsn:
            yield dsn


@contextmanager
def embedded(home: Path, settings: Mapping[str, str]) -> Iterator[str]:
    """pgcombine's embedded PostgreSQL 18, run during the block."""
    from pgcombine.embedded import EmbeddedServer

    server = EmbeddedServer(home, version=18, settings=settings)
    try:
        server.start()
        yield server.superuser_dsn()
    finally:
        server.stop()


@contextmanager
def container(settings: Mapping[str, str]) -> Iterator[str]:
    """PostgreSQL 15 in a container of testcontainers, run during the block."""
    from testcontainers.community.postgres import PostgresContainer

    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    postgres = PostgresContainer(
        images()["PGCOMBINE_TEST_IMAGE"], username="postgres", password="not-secret", dbname="postgres", driver=None
    )
    postgres.with_command(["postgres", *options]).with_tmpfs_mount("/var/lib/postgresql/data")
    with postgres:
        # allow pg_basebackup for the superuser, as the embedded server does
        rule = 'echo host replication all all scram-sha-256 >>"$PGDATA/pg_hba.conf"; kill -HUP 1'
        done = postgres.exec(["sh", "-ec", rule])
        assert done.exit_code == 0, done.output
        yield postgres.get_connection_url()
