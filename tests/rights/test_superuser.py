"""A worker with a superuser's rights lends them to whoever may make a trigger: it says so when it starts."""

from __future__ import annotations

import logging
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql
from support.queues import make_queue
from support.roles import Roles, as_role
from support.sessions import workers
from support.wait import eventually

from pgcombine import schema


def test_a_superuser_is_warned(conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    make_queue(conn)
    with caplog.at_level(logging.WARNING), workers(dsn, "wc"):
        eventually(lambda: f"worker.superuser role={conn.info.user}" in caplog.text)


def test_an_ordinary_owner_is_not(empty_dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    with psycopg.connect(empty_dsn, autocommit=True) as admin, Roles(admin, empty_dsn) as roles:
        role = roles.login().info.user
        database = sql.Identifier(urlsplit(empty_dsn).path.lstrip("/"))
        admin.execute(sql.SQL("alter database {} owner to {}").format(database, sql.Identifier(role)))
        dsn = as_role(empty_dsn, role)
        schema.upgrade(dsn)
        with psycopg.connect(dsn, autocommit=True) as conn:
            make_queue(conn)
            with caplog.at_level(logging.INFO), workers(dsn, "wc"):
                eventually(lambda: "worker.start" in caplog.text)
            assert "worker.superuser" not in caplog.text
        admin.execute(sql.SQL("alter database {} owner to current_user").format(database))
