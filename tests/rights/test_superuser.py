"""A superuser's worker warns at its start, since users' triggers and observers would run with a superuser's rights."""

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


@pytest.mark.wc
def test_worker_of_a_superuser_warns(conn: psycopg.Connection, dsn: str, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING), workers(dsn, "wc"):
        eventually(lambda: f"worker.superuser role={conn.info.user}" in caplog.text)


def test_worker_of_an_ordinary_owner_does_not_warn(empty_dsn: str, caplog: pytest.LogCaptureFixture) -> None:
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
