"""A source for the tests of rollups."""

from __future__ import annotations

import psycopg
import pytest


@pytest.fixture
def src(tx: psycopg.Connection) -> psycopg.Connection:
    """An autocommit connection to the module's database, with the empty table ``src``."""
    tx.execute("set search_path = public; grant usage on schema public to public")
    tx.execute("create table src (id int, k text, v int, w numeric, f float8, at timestamptz)")
    return tx
