"""Login roles that aren't superusers."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from itertools import count
from types import TracebackType
from typing import TypeAlias
from urllib.parse import urlsplit

import psycopg
from psycopg import sql

PASSWORD = "not-secret"
_numbers = count(1)

Login: TypeAlias = Callable[..., psycopg.Connection]


def as_role(dsn: str, role: str) -> str:
    """The URI ``dsn`` with another role and its password."""
    parts = urlsplit(dsn)
    host = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=f"{role}:{PASSWORD}@{host}").geturl()


class Roles:
    """Makes roles on a server, and drops them at the end of the block.

    ``admin`` is an autocommit connection of a superuser.
    """

    def __init__(self, admin: psycopg.Connection, dsn: str) -> None:
        self._admin = admin
        self._dsn = dsn
        self._stack = ExitStack()
        self._made: list[str] = []

    def login(self, *grants: str, role: str | None = None) -> psycopg.Connection:
        """An autocommit connection of ``role``, or of a new role, after the role has got the grants.

        An example of a grant is ``insert on pgcombine.wc_updates``. ``connection.info.user`` is the role's name.
        """
        if role is None:
            role = f"role_{self._admin.info.backend_pid}_{next(_numbers)}"
            self._admin.execute(sql.SQL("create role {} login password {}").format(sql.Identifier(role), PASSWORD))
            self._made.append(role)
        for grant in grants:
            self._admin.execute(sql.SQL("grant {} to {}").format(sql.SQL(grant), sql.Identifier(role)))
        return self._stack.enter_context(psycopg.connect(as_role(self._dsn, role), autocommit=True))

    def __enter__(self) -> Roles:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stack.close()
        for role in self._made:
            self._admin.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(role)))
        for role in self._made:
            self._admin.execute(sql.SQL("drop role {}").format(sql.Identifier(role)))
