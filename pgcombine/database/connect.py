"""Connections that the program opens, and the driver's connection behind a connection that a caller passes.

A caller may pass a psycopg connection or a SQLAlchemy ``Connection`` or ``Session``. Statements then run in the
caller's transaction: :mod:`pgcombine.database.steps` runs them, and takes asynchronous connections, too. Any other
object raises :class:`ConfigError`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, LiteralString, TypeAlias, TypeVar

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo
from psycopg.pq import PGconn, Ping
from psycopg.rows import dict_row
from psycopg.sql import Composed
from tenacity import Retrying, retry_if_exception_type, stop_after_delay, stop_never, wait_exponential, wait_random

from pgcombine.config import libpq_dsn
from pgcombine.database.deadline import DeadlineConnection
from pgcombine.database.loading import hold_all
from pgcombine.database.sqlfiles import query
from pgcombine.errors import ConfigError, ConnectError, PgCombineError, ServerNotReadyError

if TYPE_CHECKING:  # a caller with a SQLAlchemy connection has imported SQLAlchemy; other programs don't need it
    import sqlalchemy
    from sqlalchemy import orm
    from sqlalchemy.ext import asyncio as sqlalchemy_asyncio

# the classes of connections that a caller may pass
SyncCaller: TypeAlias = "psycopg.Connection[Any] | sqlalchemy.Connection | orm.Session | orm.scoped_session[Any]"
AsyncCaller: TypeAlias = (
    "psycopg.AsyncConnection[Any] | sqlalchemy_asyncio.AsyncConnection | sqlalchemy_asyncio.AsyncSession "
    "| sqlalchemy_asyncio.async_scoped_session[Any]"
)
Driver: TypeAlias = "psycopg.Connection[Any] | psycopg.AsyncConnection[Any] | sqlalchemy.Connection"

Connection = psycopg.Connection[tuple[Any, ...]]
# a connection string, or a function that opens a connection, for example with a password that changes
Database: TypeAlias = str | Callable[[], psycopg.Connection[Any]]
C = TypeVar("C", bound=psycopg.Connection[Any])


BACK_OFF = wait_exponential(multiplier=0.1, max=5) + wait_random(0, 0.5)  # seconds between attempts to connect
READY_SECONDS = 60.0

_SOURCES = {  # texts for values of pg_settings.source
    "configuration file": "set in the server's configuration",
    "database": "set for the database",
    "user": "set for the role",
    "database user": "set for the role in this database",
    "client": "set by the connection string or PGOPTIONS",
}


def connect(
    dsn: Database,
    *,
    name: str = "pgcombine",
    autocommit: bool = True,
    timeout: float | None = READY_SECONDS,
    limit: float = math.inf,
) -> DeadlineConnection:
    """Open a psycopg connection with ``application_name`` set.

    ``dsn`` is a libpq connection string, a SQLAlchemy URL, or a function that returns a new psycopg connection. The
    function is called for each connection, so it can fetch a fresh password. Prepared statements are off. So PgBouncer
    in transaction mode works, and no generic plan locks all partitions. A server that isn't ready is tried again with
    back-off for ``timeout`` seconds (None: without limit), and then :class:`ServerNotReadyError` is raised. If the
    server doesn't answer, or refuses for another reason, :class:`ConnectError` with the reason is raised, without
    another try. :class:`ConfigError` is raised for a ``dsn`` that can't be read, and if the function returns anything
    but an open connection. Each statement waits ``limit`` seconds at most for a silent server
    (:class:`~pgcombine.database.deadline.DeadlineConnection`).
    """
    dsn = libpq_dsn(dsn) if isinstance(dsn, str) else dsn
    retrying = Retrying(
        retry=retry_if_exception_type(ServerNotReadyError),
        wait=BACK_OFF,
        stop=stop_never if timeout is None else stop_after_delay(timeout),
        reraise=True,
    )
    return retrying(_connect, dsn, name, autocommit, limit)


def warning(notice: psycopg.errors.Diagnostic) -> str | None:
    """Return the text and the hint of a server's notice if it is a warning, else None.

    Call this in the notice handler: the notice can't be read after the handler has returned.
    """
    if notice.severity_nonlocalized != "WARNING":
        return None
    return f"{notice.message_primary}{f' ({notice.message_hint})' if notice.message_hint else ''}"


def _connect(dsn: Database, name: str, autocommit: bool, limit: float) -> DeadlineConnection:
    try:
        connection = _opened(dsn, name, autocommit)
    except psycopg.OperationalError as error:
        # With several hosts, the last host's error is reported. Indented lines only ask whether the server runs, and
        # the message is before its detail and its hint.
        apart = ("\t", "DETAIL:", "HINT:")
        lines = [line for line in str(error).strip().splitlines() if not line.startswith(apart)]
        reason = lines[-1] if lines else type(error).__name__
        # After a timeout no ping is made: it would wait for an answer, too.
        silent = isinstance(error, psycopg.errors.ConnectionTimeout)
        if not silent and becomes_ready(dsn if isinstance(dsn, str) else None, reason):
            raise ServerNotReadyError(f"can't connect to PostgreSQL: {reason} (wait until it is ready)") from error
        full = any(words in reason for words in ("too many", "connection slots"))
        where = "--dsn or PGCOMBINE_DSN" if isinstance(dsn, str) else "the function that connects"
        advice = "raise max_connections, or open fewer connections" if full else f"check {where}"
        raise ConnectError(f"can't connect to PostgreSQL: {reason} ({advice})") from error
    connection.limit = limit
    with closed_on_error(connection):
        return normalized(connection)


def _opened(dsn: Database, name: str, autocommit: bool) -> DeadlineConnection:
    if isinstance(dsn, str):
        return DeadlineConnection.connect(dsn, application_name=name, autocommit=autocommit, prepare_threshold=None)
    try:
        given = dsn()
    except (psycopg.Error, PgCombineError):
        raise
    except Exception as error:  # the function may use any library, for example for a password
        raise ConnectError(f"the function that connects failed: {type(error).__name__}: {error}") from error
    if not isinstance(given, psycopg.Connection):
        raise ConfigError(f"the function that connects returned {type(given).__name__}: return a psycopg.Connection")
    if given.closed:
        raise ConfigError("the function that connects returned a closed connection: return a new one for each call")
    with closed_on_error(given):
        given.commit()  # so that a rollback doesn't undo the function's settings, such as a role
        connection = DeadlineConnection.over(given)
        connection.prepare_threshold = None
        connection.autocommit = True
        connection.execute("select set_config('application_name', %s, false)", (name,))
        connection.autocommit = autocommit
    return connection


@contextmanager
def closed_on_error(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Close a new connection if the block raises."""
    try:
        yield
    except BaseException:
        connection.close()
        raise


def normalized(connection: C) -> C:
    """Give the session the settings that this program needs. Returns the connection.

    This is the only place that makes such settings for all connections of this program: see
    ``sql/queries/normalize_session.sql``. The session's transactions are read committed, also through a pooler.
    The connection returns every value (:mod:`pgcombine.database.loading`).
    """
    hold_all(connection.adapters)
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    psycopg.Cursor(connection).execute(query("normalize_session"), (connection.info.backend_pid,))
    if not connection.autocommit:
        connection.commit()
    return connection


@contextmanager
def read_committed(connection: psycopg.Connection[Any]) -> Iterator[None]:
    """Begin the block's transactions at read committed, whatever the session's default is."""
    before = connection.isolation_level
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    try:
        yield
    finally:
        if not connection.closed:
            connection.isolation_level = before


def require_writable(connection: Connection) -> None:
    """Raise ServerNotReadyError if the server is a standby, or if ``default_transaction_read_only`` is on."""
    standby, read_only, source = one(connection, query("writable"))
    if standby:
        raise ServerNotReadyError(
            "the server is a standby and takes no writes (promote it, or connect to the primary: "
            "target_session_attrs=read-write chooses it among several hosts)"
        )
    if read_only:
        raise ServerNotReadyError(
            "the server takes no writes: default_transaction_read_only is on, "
            f"{_SOURCES.get(source, f'set by: {source}')} (set it to off there)"
        )


def dicts(connection: Connection, statement: str, parameters: Sequence[Any] = ()) -> list[dict[str, Any]]:
    """Return a statement's rows as dicts. Their keys are the names of the columns."""
    with connection.cursor(row_factory=dict_row) as cursor:
        return cursor.execute(statement.encode(), parameters or None).fetchall()


def one(
    connection: psycopg.Connection[Any], statement: LiteralString | bytes | Composed, *parameters: Any
) -> tuple[Any, ...]:
    """Return the row of a statement that has exactly one row."""
    row: tuple[Any, ...] | None = connection.execute(statement, parameters or None).fetchone()
    assert row is not None
    return row


def becomes_ready(dsn: str | None, reason: str) -> bool:
    """Whether the server that refused a connection may accept one later: it starts up, for example, or is a standby.

    psycopg doesn't report the SQLSTATE of the refusal (57P03), so the message is checked. A message in a language
    other than English isn't recognized, so the server is also pinged if its address is known. A ping alone isn't
    enough, since the server may be ready when the ping arrives.
    """
    states = "starting up", "shutting down", "accepting connections", "recovery mode"
    roles = "session is read-only", "hot standby mode"  # libpq's messages if no host fits target_session_attrs
    if any(words in reason for words in states + roles):
        return True
    if dsn is None:
        return False
    options = {"connect_timeout": "5"} | conninfo_to_dict(dsn)
    return PGconn.ping(make_conninfo("", **options).encode()) == Ping.REJECT


def unwrap(connection: Any) -> psycopg.Connection[Any]:
    """Return the psycopg connection behind a caller's connection, in the caller's transaction.

    Raises ConfigError if there is no synchronous psycopg connection.
    """
    driver = driver_of(connection)
    if isinstance(driver, psycopg.Connection):
        return driver
    raise ConfigError(
        f"{type(connection).__name__} has no synchronous psycopg connection behind it; use a URL postgresql+psycopg://…"
    )


def driver_of(connection: Any) -> Driver:
    """Return the psycopg connection behind a caller's connection, or SQLAlchemy's connection over another driver.

    If there is no SQLAlchemy transaction, one is begun: without it, SQLAlchemy wouldn't know of the statements, and
    wouldn't commit them. Behind the ``Session`` of an ``AsyncSession`` (``run_sync``, ORM events) is psycopg's
    asynchronous connection. Raises ConfigError for an unknown class, and for a database that isn't PostgreSQL.
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
