"""Roles for the tests. A test tries statements as a role over a connection that logs in as that role."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from support.roles import Login, Roles


@pytest.fixture
def login(conn: psycopg.Connection, dsn: str) -> Iterator[Login]:
    """Yields a function that creates a role and returns a connection of that role to the test's database."""
    with Roles(conn, dsn) as roles:
        yield roles.login
