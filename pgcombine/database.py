"""Connections: how the program opens its own, and what is behind a caller's.

Callers may pass a psycopg connection or a SQLAlchemy ``Connection`` or ``Session``; statements run in *its*
transaction (:mod:`pgcombine.transactions` runs them). One that is neither raises :class:`ConfigError`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import psycopg

from pgcombine.config import libpq_dsn
from pgcombine.errors import ConfigError

if TYPE_CHECKING:  # who passes SQLAlchemy's has imported it; others don't pay for it
    import sqlalchemy
    from sqlalchemy import orm
    from sqlalchemy.ext import asyncio as sqlalchemy_asyncio

# what callers may pass
SyncCaller: TypeAlias = "psycopg.Connection[Any] | sqlalchemy.Connection | orm.Session | orm.scoped_session[Any]"
AsyncCaller: TypeAlias = (
    "psycopg.AsyncConnection[Any] | sqlalchemy_asyncio.AsyncConnection | sqlalchemy_asyncio.AsyncSession "
    "| sqlalchemy_asyncio.async_scoped_session[Any]"
)
Driver: TypeAlias = "psycopg.Connection[Any] | psycopg.AsyncConnection[Any] | sqlalchemy.Connection"

Connection = psycopg.Connection[tuple[Any, ...]]


def connect(dsn: str, *, name: str = "pgcombine", autocommit: bool = True) -> Connection:
    """Open a psycopg connection with ``application_name`` set.

    Prepared statements are off, so that PgBouncer in transaction mode works and no generic plan locks all
    partitions. ``dsn`` is libpq's or a SQLAlchemy URL. Raises :class:`ConfigError` with the server's reason when
    the server doesn't answer.
    """
    dsn = libpq_dsn(dsn)
    try:
        return psycopg.connect(dsn, application_name=name, autocommit=autocommit, prepare_threshold=None)
    except psycopg.OperationalError as error:
        reason = str(error).strip().splitlines()[-1]
        raise ConfigError(f"can't connect to PostgreSQL: {reason} (check --dsn or PGCOMBINE_DSN)") from error


def unwrap(connection: Any) -> psycopg.Connection[Any]:
    """The psycopg connection behind what a caller passed, in the caller's transaction. ConfigError if it is none."""
    driver = driver_of(connection)
    if isinstance(driver, psycopg.Connection):
        return driver
    raise ConfigError(
        f"{type(connection).__name__} has no synchronous psycopg connection behind it; open it as postgresql+psycopg://…"
    )


def driver_of(connection: Any) -> Driver:
    """What is behind a caller's synchronous connection: psycopg's, or SQLAlchemy's own over another driver.

    SQLAlchemy's transaction is begun if it isn't: it wouldn't commit what it doesn't know of. A ``Session`` of
    an ``AsyncSession`` (``run_sync``, ORM events) has psycopg's asynchronous connection behind it.
    """
    if isinstance(connection, psycopg.Connection):
        return connection
    import sqlalchemy
    from sqlalchemy import orm

    if isinstance(connection, orm.scoped_session):
        connection = connection()
    if isinstance(connection, orm.Session):
        connection = connection.connection()
    if not isinstance(connection, sqlalchemy.Connection):
        raise ConfigError(
            f"{type(connection).__name__} is no connection that pgcombine knows; "
            "pass a psycopg connection or a SQLAlchemy Connection or Session"
        )
    if connection.dialect.name != "postgresql":
        raise ConfigError(f"pgcombine needs PostgreSQL; this connection is to {connection.dialect.name}")
    if not connection.in_transaction():
        connection.begin()
    driver = connection.connection.driver_connection
    return driver if isinstance(driver, (psycopg.Connection, psycopg.AsyncConnection)) else connection
