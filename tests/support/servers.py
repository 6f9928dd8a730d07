"""PostgreSQL servers for the tests, and throw-away databases on them.

A shared server starts at its first use, runs until the end of the session, and has ``fsync=off`` to be fast. If
``PGCOMBINE_TEST_DSN`` is set, the server of that URI, with its own settings, replaces the shared servers.
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

# jit is on, although an embedded server without settings has it off.
SETTINGS = {
    "fsync": "off",
    "max_wal_size": "256MB",  # the files may be in memory
    "max_connections": "200",
    "max_prepared_transactions": "10",
    "track_commit_timestamp": "on",
    "jit": "on",
    # after pytest's timeout, which fails a test whose thread waits for such a transaction, but can't end the wait
    "idle_in_transaction_session_timeout": "11min",
}

_numbers = count(1)


def with_database(dsn: str, database: str) -> str:
    """The URI ``dsn`` with another database in it."""
    return urlsplit(dsn)._replace(path=f"/{database}").geturl()


class Server:
    """A running PostgreSQL server.

    ``dsn`` is a superuser's URI, ``name`` tells servers apart in test ids, and ``version`` is the major version.
    """

    def __init__(self, name: str, dsn: str) -> None:
        self.name = name
        self.dsn = dsn
        self._conn = psycopg.connect(dsn, autocommit=True)
        self.version = self._conn.info.server_version // 10000
        self._templates: dict[str, str] = {}

    def __del__(self) -> None:
        self._conn.close()

    def execute(self, statement: sql.Composable) -> None:
        """Run a statement in a session that stays, since each new one costs a tenth of a usual test."""
        try:
            self._conn.execute(statement)
        except psycopg.OperationalError:
            if not self._conn.closed:
                raise
            self._conn = psycopg.connect(self.dsn, autocommit=True)  # a test has ended all sessions
            self._conn.execute(statement)

    @contextmanager
    def database(self, template: str | None = None) -> Iterator[str]:
        """The URI of a new database. The end of the block drops it, even if sessions are still connected."""
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
    def migrated(self, queue: Mapping[str, object] | None = None) -> Iterator[str]:
        """The URI of a new database with pgcombine's schema, copied from a template.

        ``queue`` are the options with which ``make_queue`` makes the queue ``wc`` in the template.
        """
        with self.database(template=self._template(queue)) as dsn:
            yield dsn

    def _template(self, queue: Mapping[str, object] | None) -> str:
        from pgcombine import schema
        from support.queues import make_queue

        key = repr(queue)
        if key not in self._templates:
            source = "template0" if queue is None else self._template(None)
            name = f"pgcombine_template_{os.getpid()}_{len(self._templates)}"
            # If a migration failed in an earlier test, its incomplete template is still there.
            self.execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))
            self.execute(sql.SQL("create database {} template {}").format(*map(sql.Identifier, (name, source))))
            if queue is None:
                schema.upgrade(with_database(self.dsn, name))
            else:
                with psycopg.connect(with_database(self.dsn, name)) as conn:
                    make_queue(conn, **queue)
            self._templates[key] = name
        return self._templates[key]

    def close(self) -> None:
        """Drop the templates, since a given server outlives the tests."""
        for name in self._templates.values():
            self.execute(sql.SQL("drop database {} with (force)").format(sql.Identifier(name)))
        self._templates.clear()


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
# The mark of tests that need PostgreSQL's contrib modules, which the embedded server lacks.
with_contrib = pytest.mark.parametrize("server", names()[-1:], indirect=True)


@contextmanager
def start(name: str, home: Path, **settings: str) -> Iterator[str]:
    """Run a server during the block and yield its URI. An embedded server has its files in ``home``.

    ``settings`` are added to SETTINGS. The server of ``PGCOMBINE_TEST_DSN`` keeps its own settings.
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
    """Run pgcombine's embedded PostgreSQL 18 during the block, and yield a superuser's URI."""
    from pgcombine.embedded import EmbeddedServer

    server = EmbeddedServer(home, version=18, settings=settings)
    try:
        server.start()
        yield server.superuser_dsn()
    finally:
        server.stop()


@contextmanager
def container(settings: Mapping[str, str]) -> Iterator[str]:
    """Run PostgreSQL in a container during the block, and yield a superuser's URI."""
    from testcontainers.community.postgres import PostgresContainer

    options = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    postgres = PostgresContainer(
        images()["PGCOMBINE_TEST_IMAGE"], username="postgres", password="not-secret", dbname="postgres", driver=None
    )
    postgres.with_command(["postgres", *options]).with_tmpfs_mount("/var/lib/postgresql/data")
    with postgres:
        # Allow replication connections, which pg_basebackup needs.
        rule = 'echo host replication all all scram-sha-256 >>"$PGDATA/pg_hba.conf"; kill -HUP 1'
        done = postgres.exec(["sh", "-ec", rule])
        assert done.exit_code == 0, done.output
        yield postgres.get_connection_url()
