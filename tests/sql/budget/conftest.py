"""The budget ``seats``."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from support.budgets import make_budget
from support.roles import Login, Roles


@pytest.fixture
def seats(conn: psycopg.Connection) -> psycopg.Connection:
    """An autocommit connection to a database with the budget. Its transactions can be prepared."""
    make_budget(conn, notify=False)
    return conn


@pytest.fixture
def login(conn: psycopg.Connection, dsn: str) -> Iterator[Login]:
    with Roles(conn, dsn) as roles:
        yield roles.login
