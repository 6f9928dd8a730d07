"""What a test tries as a role, it tries over a connection of that role's own."""

from __future__ import annotations

from collections.abc import Iterator

import psycopg
import pytest
from support.roles import Login, Roles


@pytest.fixture
def login(conn: psycopg.Connection, dsn: str) -> Iterator[Login]:
    """``Roles.login`` on the test's database."""
    with Roles(conn, dsn) as roles:
        yield roles.login
