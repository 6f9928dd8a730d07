"""One database a module for tests that need a single connection: to empty it costs less than a copy."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack

import psycopg
import pytest
from support.emptied import Emptied
from support.servers import Server


@pytest.fixture(scope="module")
def emptied(server: Server) -> Iterator[Emptied]:
    """A database that is as new for each test."""
    with ExitStack() as stack:
        yield Emptied(lambda: stack.enter_context(server.migrated()))


@pytest.fixture
def module_dsn(emptied: Emptied) -> str:
    """The URI of a database for tests that leave nothing behind."""
    return emptied.dsn


@pytest.fixture
def auto(module_dsn: str) -> Iterator[psycopg.Connection]:
    """An autocommit connection to ``module_dsn``: for what is refused, and so leaves nothing."""
    with psycopg.connect(module_dsn, autocommit=True) as conn:
        yield conn


@pytest.fixture
def tx(emptied: Emptied) -> Iterator[psycopg.Connection]:
    """An autocommit connection to a database that is emptied afterwards: a pass takes what was committed before it."""
    with psycopg.connect(emptied.dsn, autocommit=True) as conn:
        yield conn
    emptied.empty()


@pytest.fixture
def role(tx: psycopg.Connection) -> Iterator[str]:
    """The name of a new role without any rights."""
    name = f"role_{tx.info.backend_pid}"
    tx.execute(f"create role {name}")
    yield name
    tx.execute("reset role")
    tx.execute(f"drop owned by {name} cascade; drop role {name}")
