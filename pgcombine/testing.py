"""Fixtures for your own tests: throw-away databases with pgcombine's schema, queues on them, and draining.

In the top ``conftest.py`` (or in a test module)::

    pytest_plugins = ["pgcombine.testing"]

    def test_words(combine_queue):
        wc = combine_queue("wc", key=["word text"], value=["n bigint sum"], delete_when="n = 0")
        wc.enqueue(wc.connection, [("fluo", 1), ("fluo", 1)])
        assert wc.drain().updates == 2
        assert wc.get(wc.connection, ["fluo"]) == {"fluo": 2}

``combine_queue(queue)`` creates a queue of your program (a ``CombineQueue``), with its observers. For code that creates
its queues itself there are the fixture ``pgcombine_dsn`` and ``pgcombine.testing.drain(dsn, queue)``.

The server is that of ``--pgcombine-dsn`` or ``PGCOMBINE_TEST_DSN``. The DSN's role must be allowed to create databases.
Without a DSN, an embedded server runs for the test session. It needs the extra ``embedded``; without it the fixtures
raise :class:`~pgcombine.errors.ConfigError`. When a test ends, its database is dropped, even if sessions are still
connected to it.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from typing import Any

import psycopg
import pytest
from psycopg import sql
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgcombine import schema
from pgcombine.config import libpq_dsn
from pgcombine.database.connect import Connection, connect
from pgcombine.embedded.server import EmbeddedServer
from pgcombine.errors import ConfigError
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.worker.drain import drain
from pgcombine.worker.totals import Totals

__all__ = ["Databases", "ThrowAwayQueue", "combine_queue", "drain", "pgcombine_databases", "pgcombine_dsn"]

DRAIN_SECONDS = 60.0
_SETTINGS = {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}  # the data needn't survive a crash


class Databases:
    """Throw-away databases on the server of ``dsn``."""

    def __init__(self, dsn: str) -> None:
        self.dsn = libpq_dsn(dsn)
        self._numbers = count(1)
        self._template: str | None = None

    @contextmanager
    def empty(self) -> Iterator[str]:
        """Create an empty database, yield its DSN, and drop it at the end."""
        with self._copy_of("template0") as dsn:
            yield dsn

    @contextmanager
    def migrated(self) -> Iterator[str]:
        """Create a database with pgcombine's schema, yield its DSN, and drop it at the end."""
        if self._template is None:
            name = self._new_name("template")
            self._create(name, "template0")
            try:
                schema.upgrade(self._dsn_of(name))
            except BaseException:
                self._drop(name)
                raise
            self._template = name
        with self._copy_of(self._template) as dsn:
            yield dsn

    def close(self) -> None:
        """Drop the template."""
        if self._template is not None:
            self._drop(self._template)
            self._template = None

    @contextmanager
    def _copy_of(self, template: str) -> Iterator[str]:
        name = self._new_name("test")
        self._create(name, template)
        try:
            yield self._dsn_of(name)
        finally:
            self._drop(name)

    def _new_name(self, kind: str) -> str:
        # several test runs may share a server, so the name has the process id
        return f"pgcombine_{kind}_{os.getpid()}_{next(self._numbers)}"

    def _dsn_of(self, name: str) -> str:
        if "://" not in self.dsn:
            return make_conninfo(self.dsn, dbname=name)
        # a URI stays a URI, since SQLAlchemy takes nothing else
        dsn = re.sub(r"^(\w+://[^/?]*)(/[^?]*)?", rf"\1/{name}", self.dsn)
        if conninfo_to_dict(dsn)["dbname"] != name:
            raise ConfigError("the DSN names its database after the ?; write it as postgresql://host/database")
        return dsn

    def _create(self, name: str, template: str) -> None:
        self._execute(sql.SQL("create database {} template {}").format(sql.Identifier(name), sql.Identifier(template)))

    def _drop(self, name: str) -> None:
        self._execute(sql.SQL("drop database if exists {} with (force)").format(sql.Identifier(name)))

    def _execute(self, statement: sql.Composed) -> None:
        with connect(self.dsn, name="pgcombine testing") as connection:
            connection.execute(statement)


class ThrowAwayQueue(CombineQueue):
    """A queue on the throw-away database ``dsn``. ``connection`` is a connection to it, in autocommit.

    The further arguments are those of :class:`~pgcombine.CombineQueue`, or a CombineQueue whose definition and
    observers the new queue shares.
    """

    def __init__(self, dsn: str, connection: Connection, queue: str | CombineQueue, **definition: Any) -> None:
        if isinstance(queue, CombineQueue):
            vars(self).update(vars(queue))
        else:
            super().__init__(queue, **definition)
        self.dsn = dsn
        self.connection = connection

    def drain(self, timeout: float = DRAIN_SECONDS) -> Totals:
        """Combine all pending updates, and return the totals.

        Raises WaitTimeoutError after ``timeout`` seconds, PassError, and the other errors of :func:`~pgcombine.drain`.
        """
        return drain(self.dsn, self, timeout=timeout)


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option ``--pgcombine-dsn``."""
    parser.getgroup("pgcombine").addoption(
        "--pgcombine-dsn",
        metavar="DSN",
        help="PostgreSQL server to make throw-away databases on. Default: PGCOMBINE_TEST_DSN, else an embedded one.",
    )


@pytest.fixture(scope="session")
def pgcombine_databases(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Databases]:
    """Throw-away databases, for your own fixtures: ``with pgcombine_databases.migrated() as dsn``."""
    with ExitStack() as stack:
        dsn = request.config.getoption("--pgcombine-dsn", None) or os.environ.get("PGCOMBINE_TEST_DSN")
        if not dsn:
            server = EmbeddedServer(tmp_path_factory.mktemp("pgcombine"), settings=_SETTINGS)
            dsn = server.start()
            stack.callback(server.stop)
        databases = Databases(dsn)
        stack.callback(databases.close)
        yield databases


@pytest.fixture
def pgcombine_dsn(pgcombine_databases: Databases) -> Iterator[str]:
    """The DSN of a throw-away database with pgcombine's schema."""
    with pgcombine_databases.migrated() as dsn:
        yield dsn


@pytest.fixture
def combine_queue(pgcombine_dsn: str) -> Iterator[Callable[..., ThrowAwayQueue]]:
    """A function that creates queues on the test's database. It takes CombineQueue's arguments, or a CombineQueue."""
    with psycopg.connect(pgcombine_dsn, autocommit=True, prepare_threshold=None) as connection:

        def make(queue: str | CombineQueue, **definition: Any) -> ThrowAwayQueue:
            made = ThrowAwayQueue(pgcombine_dsn, connection, queue, **definition)
            made.create(connection)
            return made

        yield make
