"""The test servers have the properties on which other tests rely."""

from __future__ import annotations

import os

import psycopg
import pytest

from support.servers import Server


def test_server_has_the_settings_that_tests_rely_on(server: Server) -> None:
    with psycopg.connect(server.dsn) as conn:
        row = conn.execute(
            "select current_setting('max_connections')::int >= 200,"
            " current_setting('max_prepared_transactions')::int >= 10,"
            " current_setting('track_commit_timestamp')::bool,"
            " (select rolsuper from pg_roles where rolname = current_user)"
        ).fetchone()
    assert row == (True, True, True, True)


def test_databases_are_separate_and_dropped(server: Server) -> None:
    with server.database() as one, server.database() as other:
        with psycopg.connect(one) as conn:
            conn.execute("create table t ()")
        with psycopg.connect(other) as conn:
            assert conn.execute("select to_regclass('t')").fetchone() == (None,)
        still_open = psycopg.connect(one)
    with pytest.raises(psycopg.OperationalError, match="terminat"):
        still_open.execute("select 1")
    still_open.close()
    with psycopg.connect(server.dsn) as conn:
        names = "select count(*) from pg_database where datname = any(%s)"
        assert conn.execute(names, ([one.rpartition("/")[2], other.rpartition("/")[2]],)).fetchone() == (0,)


def test_server_has_the_version_in_its_name(server: Server) -> None:
    if server.name == "container-15" and "PGCOMBINE_TEST_IMAGE" in os.environ:
        assert server.version >= 15
    else:
        assert server.version == {"embedded-18": 18, "container-15": 15}.get(server.name, server.version)
