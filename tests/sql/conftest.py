"""Databases for tests of SQL. The tests of a module that use ``auto`` or ``tx`` share a database."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest
from support.emptied import Emptied
from support.servers import Server


@pytest.fixture(scope="module")
def emptied(server: Server) -> Iterator[Emptied]:
    """The module's database, which the fixture ``tx`` empties."""
    with ExitStack() as stack:
        yield Emptied(lambda: stack.enter_context(server.migrated()))


@pytest.fixture
def module_dsn(emptied: Emptied) -> str:
    return emptied.dsn


@pytest.fixture
def auto(module_dsn: str) -> Iterator[psycopg.Connection]:
    """An autocommit connection to the module's database, for tests that leave nothing behind in it."""
    with psycopg.connect(module_dsn, autocommit=True) as conn:
        yield conn


@pytest.fixture
def tx(emptied: Emptied) -> Iterator[psycopg.Connection]:
    """An autocommit connection to the module's database, which is emptied after the test."""
    with psycopg.connect(emptied.dsn, autocommit=True) as conn:
        yield conn
    emptied.empty()


@pytest.fixture
def role(tx: psycopg.Connection) -> Iterator[str]:
    """The name of a new role, to which the test has granted nothing yet."""
    name = f"role_{tx.info.backend_pid}"
    tx.execute(f"create role {name}")
    yield name
    tx.execute("reset role")
    tx.execute(f"drop owned by {name} cascade; drop role {name}")
