"""Connections: how the program opens its own, and how it uses a caller's.

Callers may pass a psycopg connection or a SQLAlchemy ``Connection`` or ``Session``; statements run in *its*
transaction. A connection that is neither raises :class:`ConfigError`.
"""

from __future__ import annotations

from typing import Any

import psycopg

from pgcombine.errors import ConfigError

Connection = psycopg.Connection[tuple[Any, ...]]


def connect(dsn: str, *, name: str = "pgcombine", autocommit: bool = True) -> Connection:
    """Open a psycopg connection with ``application_name`` set.

    Prepared statements are off, so that PgBouncer in transaction mode works and no generic plan locks all
    partitions. Raises :class:`ConfigError` with the server's reason when the server doesn't answer.
    """
    try:
        return psycopg.connect(dsn, application_name=name, autocommit=autocommit, prepare_threshold=None)
    except psycopg.OperationalError as error:
        reason = str(error).strip().splitlines()[-1]
        raise ConfigError(f"can't connect to PostgreSQL: {reason} (check --dsn or PGCOMBINE_DSN)") from error


def unwrap(connection: Any) -> psycopg.Connection[Any]:
    """The psycopg connection behind what a caller passed: its own, SQLAlchemy's Connection or Session."""
    if isinstance(connection, psycopg.Connection):
        return connection
    from sqlalchemy import Connection as SqlAlchemyConnection
    from sqlalchemy.orm import Session

    if isinstance(connection, Session):
        connection = connection.connection()
    if isinstance(connection, SqlAlchemyConnection):
        driver = connection.connection.driver_connection
        if isinstance(driver, psycopg.Connection):
            return driver
        raise ConfigError(f"SQLAlchemy uses {type(driver).__module__}; open it as postgresql+psycopg://…")
    raise ConfigError(
        f"{type(connection).__name__} is no connection that pgcombine knows; "
        "pass a psycopg connection or a SQLAlchemy Connection or Session"
    )
