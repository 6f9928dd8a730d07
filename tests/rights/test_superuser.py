"""A worker with a superuser's rights lends them to whoever may make a trigger: it says so when it starts."""

from __future__ import annotations

import logging
from urllib.parse import urlsplit

import psycopg
import pytest
from psycopg import sql
from support.logins import as_role, login
from support.queues import make_queue
from support.servers import Server
from support.sessions import workers
from support.wait import eventually

from pgcombine import schema


def test_a_superuser_is_warned(conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    make_queue(conn)
    with caplog.at_level(logging.WARNING), workers(dsn, "wc"):
        eventually(lambda: f"worker.superuser role={conn.info.user}" in caplog.text)


def test_an_ordinary_owner_is_not(server: Server, empty_dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    with login(server.dsn, "owner") as role:
        database = sql.Identifier(urlsplit(empty_dsn).path.lstrip("/"))
        server.execute(sql.SQL("alter database {} owner to {}").format(database, sql.Identifier(role)))
        dsn = as_role(empty_dsn, role)
        schema.upgrade(dsn)
        with psycopg.connect(dsn, autocommit=True) as conn:
            make_queue(conn)
            with caplog.at_level(logging.INFO), workers(dsn, "wc"):
                eventually(lambda: "worker.start" in caplog.text)
            assert "worker.superuser" not in caplog.text
        server.execute(sql.SQL("alter database {} owner to current_user").format(database))
        with psycopg.connect(empty_dsn, autocommit=True) as conn:
            conn.execute(sql.SQL("drop owned by {} cascade").format(sql.Identifier(role)))
