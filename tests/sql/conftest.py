"""One database a module for tests that need a single connection: a rolled-back transaction costs less than a copy."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from support.servers import Server


@pytest.fixture(scope="module")
def module_dsn(server: Server) -> Iterator[str]:
    """The URI of a database for tests that leave nothing behind."""
    with server.migrated() as dsn:
        yield dsn


@pytest.fixture
def auto(module_dsn: str) -> Iterator[psycopg.Connection]:
    """An autocommit connection to ``module_dsn``: for what is refused, and so leaves nothing."""
    with psycopg.connect(module_dsn, autocommit=True) as conn:
        yield conn


@pytest.fixture
def tx(module_dsn: str) -> Iterator[psycopg.Connection]:
    """A connection to ``module_dsn`` in a transaction (read committed) that is rolled back.

    After an error only the end of a ``with tx.transaction():`` block lets it go on.
    """
    with psycopg.connect(module_dsn, autocommit=True) as conn, conn.transaction(force_rollback=True):
        yield conn
