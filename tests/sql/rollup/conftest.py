"""A fixture with a source for rollups."""

from __future__ import annotations

import psycopg
import pytest


@pytest.fixture
def src(conn: psycopg.Connection) -> psycopg.Connection:
    """A session in a database with the empty table ``src``, the source."""
    conn.execute("set search_path = public; grant usage on schema public to public")
    conn.execute("create table src (id int, k text, v int, w numeric, f float8, at timestamptz)")
    return conn
