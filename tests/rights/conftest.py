"""Roles that log in and are no superusers: what a test tries as one of them is tried over a connection of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from itertools import count
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql
from support.servers import Server

PASSWORD = "not-secret"
_numbers = count(1)

Login = Callable[..., psycopg.Connection]


def as_role(dsn: str, role: str) -> str:
    """The URI ``dsn`` for another role."""
    parts = urlsplit(dsn)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{role}:{PASSWORD}@{host}").geturl()


@pytest.fixture
def login(server: Server, conn: psycopg.Connection, dsn: str) -> Iterator[Login]:
    """``login(*grants, role=None)``: an autocommit connection of a new role (or of one made before) with these grants,
    such as ``"insert on pgcombine.wc_updates"``; ``connection.info.user`` is its name."""
    made: list[str] = []
    with ExitStack() as stack:

        def connect(*grants: str, role: str | None = None) -> psycopg.Connection:
            if role is None:
                role = f"role_{conn.info.backend_pid}_{next(_numbers)}"
                conn.execute(sql.SQL("create role {} login password {}").format(sql.Identifier(role), PASSWORD))
                made.append(role)
            for grant in grants:
                conn.execute(sql.SQL("grant {} to {}").format(sql.SQL(grant), sql.Identifier(role)))
            return stack.enter_context(psycopg.connect(as_role(dsn, role), autocommit=True))

        yield connect
    for role in made:
        conn.execute(sql.SQL("drop owned by {0} cascade; drop role {0}").format(sql.Identifier(role)))
