"""Life of the database schema: upgrade, check, downgrade.

Alembic revisions (tables) run first, then the repeatable SQL (functions, combiners, triggers, views, grants),
then what is generated per queue, all in one transaction under a lock: an upgrade happens wholly or not at all,
also when several programs start it at once. :func:`check` refuses a schema that isn't this program's with
:class:`SchemaMissing` or :class:`SchemaMismatch`, whose message says what to run.
"""

from __future__ import annotations

import importlib.resources
import re
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

from psycopg.errors import InvalidFunctionDefinition

from pgcombine import sqlfiles
from pgcombine.database import Connection, connect
from pgcombine.errors import QueueNotEmpty, SchemaError, SchemaMismatch, SchemaMissing, translated

if TYPE_CHECKING:  # SQLAlchemy and Alembic take a third of a second: the functions that need them import them
    import sqlalchemy
    from alembic.config import Config
    from alembic.script import ScriptDirectory

# the SQL files hold % and :, which must reach the server as they are
_AS_IT_IS = {"no_parameters": True}
_MAKES = re.compile(r"^create or replace (?:function|procedure|aggregate) (\w+\.\w+)", re.MULTILINE)
_LOCK = "select pg_advisory_xact_lock(hashtext('pgcombine.schema'))"


def upgrade(dsn: str) -> str:
    """Bring the database's schema to this program's version; returns the revision.

    Raises SchemaMismatch when the schema is newer than this program.
    """
    with translated():
        return _in_one_transaction(dsn, _upgrade)


def check(dsn: str) -> str:
    """The revision, if the schema is this program's; else SchemaMissing or SchemaMismatch."""
    with closing(connect(dsn)) as connection:
        return check_connection(connection)


def check_connection(connection: Connection) -> str:
    """:func:`check` on an open connection."""
    database = connection.info.dbname
    found = connection.execute(
        "select to_regclass('pgcombine.schema_version'), to_regclass('pgcombine.repeatable')"
    ).fetchone()
    if found is None or None in found:
        raise SchemaMissing(f"database \"{database}\" has no pgcombine schema: run 'pgcombine db upgrade'")
    row = connection.execute(
        "select (select version_num from pgcombine.schema_version), (select digest from pgcombine.repeatable)"
    ).fetchone()
    assert row is not None
    _refuse_newer(str(row[0]), database)
    if (row[0], row[1]) != (head(), sqlfiles.digest()):
        what = "with other functions" if row[0] == head() else f"this program's is {head()}"
        raise SchemaMismatch(
            f'the pgcombine schema of database "{database}" is of another version (revision {row[0]}, {what}): '
            "run 'pgcombine db upgrade'"
        )
    return head()


def downgrade(dsn: str, revision: str, *, force: bool = False) -> str:
    """Take the schema back to ``revision``; ``base`` removes all of it, queues and values included.

    ``revision`` may be relative, ``-1``. Returns the one that is reached.

    Raises QueueNotEmpty while updates are pending, unless ``force``; SchemaMissing where there is no schema;
    SchemaMismatch when it is newer than this program; SchemaError for a revision that there isn't.
    """

    def run(connection: sqlalchemy.Connection, config: Config) -> str:
        # tables only: an older schema must be able to leave, too; how a newer one leaves only a newer program knows
        missing = connection.exec_driver_sql("select to_regclass('pgcombine.schema_version') is null").scalar()
        if missing:
            raise SchemaMissing("there is no pgcombine schema to downgrade")
        current = connection.exec_driver_sql("select version_num from pgcombine.schema_version").scalar()
        if current is not None:
            _refuse_newer(str(current), str(connection.exec_driver_sql("select current_database()").scalar()))
        if not force:
            _refuse_pending(connection)
        from alembic import command
        from alembic.util import CommandError

        try:
            command.downgrade(config, revision)
        except CommandError as error:
            raise SchemaError(f"can't go back to revision '{revision}': {error}") from error
        reached = connection.exec_driver_sql("select version_num from pgcombine.schema_version").scalar()
        if reached is None:
            connection.exec_driver_sql("drop schema pgcombine cascade")
        return str(reached or "base")

    if not revision:
        raise SchemaError("there is no revision '' to go back to")
    return _in_one_transaction(dsn, run)


def head() -> str:
    """This program's revision."""
    revision = _revisions().get_current_head()
    assert revision is not None
    return revision


def _in_one_transaction(dsn: str, run: Callable[[sqlalchemy.Connection, Config], str]) -> str:
    from sqlalchemy import create_engine, pool
    from sqlalchemy.exc import DBAPIError

    engine = create_engine(
        "postgresql+psycopg://", creator=lambda: connect(dsn, autocommit=False), poolclass=pool.NullPool
    )
    try:
        with engine.connect() as connection, connection.begin():
            connection.exec_driver_sql(_LOCK)
            config = _config()
            config.attributes["connection"] = connection
            return run(connection, config)
    except DBAPIError as error:
        raise (error.orig or error) from error  # the driver's, as everywhere


def _upgrade(connection: sqlalchemy.Connection, config: Config) -> str:
    from alembic import command
    from sqlalchemy import text

    connection.exec_driver_sql("create schema if not exists pgcombine")
    if connection.exec_driver_sql("select to_regclass('pgcombine.schema_version') is not null").scalar():
        current = connection.exec_driver_sql("select version_num from pgcombine.schema_version").scalar()
        if current is not None:
            _refuse_newer(str(current), str(connection.exec_driver_sql("select current_database()").scalar()))
    command.upgrade(config, "head")
    # bodies may refer to functions that come later
    connection.exec_driver_sql("set local check_function_bodies = off")
    for _, statements in sqlfiles.repeatables():
        _apply(connection, statements)
    connection.exec_driver_sql("select pgcombine.regenerate(queue) from pgcombine.queue order by queue")
    connection.exec_driver_sql(sqlfiles.query("drop_stale_functions"), execution_options=_AS_IT_IS)
    connection.execute(
        text(
            "insert into pgcombine.repeatable (digest) values (:digest) "
            "on conflict (one) do update set digest = :digest"
        ),
        {"digest": sqlfiles.digest()},
    )
    return head()


def _apply(connection: sqlalchemy.Connection, statements: str) -> None:
    from sqlalchemy.exc import ProgrammingError

    try:
        with connection.begin_nested():
            connection.exec_driver_sql(statements, execution_options=_AS_IT_IS)
    except ProgrammingError as error:
        if not isinstance(error.orig, InvalidFunctionDefinition):
            raise
        # an older version's result or parameters have other names or types: replace can't change those
        made = _MAKES.search(statements)
        if made is None:
            raise
        connection.exec_driver_sql(f"drop routine {made[1]}")
        connection.exec_driver_sql(statements, execution_options=_AS_IT_IS)


def _refuse_newer(revision: str, database: str) -> None:
    from alembic.util import CommandError

    try:
        known = _revisions().get_revision(revision)
    except CommandError:
        known = None
    if known is None:
        raise SchemaMismatch(
            f'the pgcombine schema of database "{database}" is newer than this program (revision {revision}, '
            f"this program knows up to {head()}): install the newer pgcombine"
        )


def _refuse_pending(connection: sqlalchemy.Connection) -> None:
    from sqlalchemy import text

    if connection.exec_driver_sql("select to_regclass('pgcombine.queue') is null").scalar():
        return
    for (queue,) in connection.exec_driver_sql("select queue from pgcombine.queue order by queue").all():
        pending = connection.execute(text("select pgcombine.backlog(:queue) > 0"), {"queue": queue}).scalar()
        if pending:
            raise QueueNotEmpty(
                f"queue \"{queue}\" has pending updates: run 'pgcombine drain {queue}' first, or pass --force",
                queue=str(queue),
            )
    if connection.exec_driver_sql("select to_regclass('pgcombine.quarantined_key') is not null").scalar():
        held = connection.exec_driver_sql("select queue from pgcombine.quarantined_key order by queue limit 1").scalar()
        if held is not None:
            raise QueueNotEmpty(
                f'queue "{held}" has quarantined keys, whose updates would be lost: '
                f"run 'pgcombine quarantine retry {held} --all' first, or pass --force",
                queue=str(held),
            )


def _revisions() -> ScriptDirectory:
    from alembic.script import ScriptDirectory

    return ScriptDirectory.from_config(_config())


def _config() -> Config:
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(importlib.resources.files("pgcombine.migrations")))
    return config
