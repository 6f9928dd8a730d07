"""A role needs a privilege to create phrasecount's schema. phrasecount refuses the schema of another role."""

from __future__ import annotations

from contextlib import closing

import psycopg
import pytest
from support.queues import one
from support.roles import Login, as_role

from pgcombine.errors import SchemaError
from pgcombine.phrasecount.database import connect, ensure_schema


def ensure(dsn: str, role: psycopg.Connection) -> None:
    with closing(connect(as_role(dsn, role.info.user))) as conn:
        ensure_schema(conn)


def test_role_without_the_privilege_gets_an_error(conn: psycopg.Connection, dsn: str, login: Login) -> None:
    with pytest.raises(SchemaError):
        ensure(dsn, login())
    assert one(conn, "select to_regnamespace('phrasecount') is null")


def test_schema_of_another_role_is_refused(conn: psycopg.Connection, dsn: str, login: Login) -> None:
    """phrasecount refuses another role's schema or table: triggers of the table could run that role's code."""
    stranger = login(f"create on database {conn.info.dbname}")
    stranger.execute("create schema phrasecount")
    stranger.execute("create table phrasecount.uri (path text)")
    with closing(connect(dsn)) as owner, pytest.raises(SchemaError, match=stranger.info.user):
        ensure_schema(owner)
    conn.execute("alter schema phrasecount owner to current_user")
    with closing(connect(dsn)) as owner, pytest.raises(SchemaError, match=stranger.info.user):
        ensure_schema(owner)
    assert one(conn, "select count(*) from pg_class where relnamespace = 'phrasecount'::regnamespace") == 1


def test_role_with_grants_may_use_but_not_change_the_schema(conn: psycopg.Connection, dsn: str, login: Login) -> None:
    with closing(connect(dsn)) as owner:
        ensure_schema(owner)
    role = login("usage on schema phrasecount", "all on all tables in schema phrasecount")
    ensure(dsn, role)
    conn.execute("comment on schema phrasecount is 'of an older program'")
    with pytest.raises(SchemaError):
        ensure(dsn, role)
