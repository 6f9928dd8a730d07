"""Roles that log in, as users of a database do: none is a superuser, each has what it was granted."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

PASSWORD = "not-secret-either"
_numbers = count(1)


def as_role(dsn: str, role: str) -> str:
    """The URI of the same database for a role of :func:`login`."""
    parts = urlsplit(dsn)
    return parts._replace(netloc=f"{role}:{PASSWORD}@{parts.hostname}:{parts.port}").geturl()


@contextmanager
def login(dsn: str, name: str = "login") -> Iterator[str]:
    """A new role that may log in and nothing else; its name. It is dropped at the end with all that it owns there."""
    role = f"pgcombine_{name}_{os.getpid()}_{next(_numbers)}"
    with psycopg.connect(dsn, autocommit=True) as conn:
        conn.execute(sql.SQL("create role {} login password {}").format(sql.Identifier(role), sql.Literal(PASSWORD)))
    try:
        yield role
    finally:
        with psycopg.connect(dsn, autocommit=True) as conn:
            conn.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(role)))
            conn.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))


@contextmanager
def logins(dsn: str, *names: str) -> Iterator[dict[str, str]]:
    """Several roles; by name the URI of each."""
    with ExitStack() as stack:
        yield {name: as_role(dsn, stack.enter_context(login(dsn, name))) for name in names}


@contextmanager
def connected(dsn: str) -> Iterator[psycopg.Connection]:
    """An autocommit connection."""
    with psycopg.connect(dsn, autocommit=True) as conn:
        yield conn
