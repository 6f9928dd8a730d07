"""Connection strings of libpq, and URLs of SQLAlchemy, which pgcombine converts."""

from __future__ import annotations

import pytest
import sqlalchemy as sa
from psycopg.conninfo import conninfo_to_dict

from pgcombine.config import given_dsn, libpq_dsn
from pgcombine.errors import ConfigError


@pytest.mark.parametrize("driver", ["", "+psycopg", "+psycopg_async", "+psycopg2", "+asyncpg"])
@pytest.mark.parametrize("name", ["postgresql", "postgres"])
def test_sqlalchemy_url_loses_its_driver(name: str, driver: str) -> None:
    understood = libpq_dsn(f"{name}{driver}://ann:p%40ss@host:5433/db?sslmode=require")
    assert conninfo_to_dict(understood) == {
        "user": "ann",
        "password": "p@ss",
        "host": "host",
        "port": "5433",
        "dbname": "db",
        "sslmode": "require",
    }
    assert given_dsn(f"{name}{driver}://ann@host/db") == f"{name}://ann@host/db"


@pytest.mark.parametrize("dsn", ["", "host=h dbname='a+b://c'", "postgresql:///db?host=/tmp"])
def test_libpq_dsn_is_unchanged(dsn: str) -> None:
    assert libpq_dsn(dsn) == dsn


def test_url_of_sqlalchemy_is_converted() -> None:
    url = sa.URL.create("postgresql+psycopg", "ann", "p:/@%s", "host", 5433, "a db", query={"options": "-c jit=off"})
    assert conninfo_to_dict(libpq_dsn(url.render_as_string(hide_password=False))) == {
        "user": "ann",
        "password": "p:/@%s",
        "host": "host",
        "port": "5433",
        "dbname": "a db",
        "options": "-c jit=off",
    }


def test_hidden_password_is_refused() -> None:
    url = sa.URL.create("postgresql+psycopg", "ann", "secret", "host")
    with pytest.raises(ConfigError, match="hide_password"):
        libpq_dsn(str(url))


@pytest.mark.parametrize("dsn", ["mysql://host/db", "nonsense", "postgresql+asyncpg://host/db?ssl=require"])
def test_other_urls_are_refused(dsn: str) -> None:
    with pytest.raises(ConfigError):
        libpq_dsn(dsn)
