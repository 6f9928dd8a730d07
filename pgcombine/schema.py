"""The life of the database schema: upgrade, check, downgrade.

An upgrade runs the Alembic revisions (tables), then the repeatable SQL (functions, combiners, triggers, views, grants),
and regenerates each queue's objects. It is one transaction under a lock: it happens wholly or not at all, also when
several programs start it at once. It tries for a minute, or for ``lock_timeout``, to get the locks, and then raises
SchemaError with the sessions that hold them. Between two tries it holds none, so that writers go on. :func:`check`
refuses a schema that isn't this program's: it raises :class:`SchemaMissing` or :class:`SchemaMismatch`, whose message
says which command to run.
"""

from __future__ import annotations

import importlib.resources
import io
import time
from collections.abc import Callable, Iterable
from contextlib import closing
from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

from psycopg.errors import (
    DeadlockDetected,
    DependentObjectsStillExist,
    Diagnostic,
    FeatureNotSupported,
    InsufficientPrivilege,
    InvalidFunctionDefinition,
    InvalidTableDefinition,
    LockNotAvailable,
    WrongObjectType,
)

from pgcombine.database import script, sqlfiles
from pgcombine.database.blockers import Blockers
from pgcombine.database.connect import Connection, connect, one, warning
from pgcombine.errors import QueueNotEmpty, SchemaError, SchemaMismatch, SchemaMissing, translated

# SQLAlchemy and Alembic take a third of a second to import, so the functions that need them import them
if TYPE_CHECKING:
    import sqlalchemy
    from alembic.config import Config
    from alembic.script import ScriptDirectory

# % and : in the SQL files must reach the server unchanged
_AS_IT_IS = {"no_parameters": True}
WATCH_SECONDS = 5.0  # between a daemon's checks of the schema
# a minute if the session has no limit, as in upgrade_lock.sql
_PATIENCE = "select extract(epoch from coalesce(nullif(current_setting('lock_timeout'), '0'), '60s')::interval)::float8"
_PAUSE_SECONDS = 1.0  # between two tries
# in an older version the result, the parameters or the columns have other names or types: REPLACE can't change those
_IRREPLACEABLE = (InvalidFunctionDefinition, InvalidTableDefinition, WrongObjectType)


def upgrade(dsn: str, *, warn: Callable[[str], None] | None = None) -> str:
    """Bring the database's schema to this program's version. Returns the revision.

    ``warn`` is called with the server's warnings: they name objects of other roles that fail from now on. Raises
    SchemaMismatch if the schema is newer than this program. Raises SchemaError if the schema, or an object in it,
    belongs to another role, or if a needed lock isn't free in time.
    """
    with translated():
        return _in_one_transaction(dsn, _upgrade, create=True, warn=warn)


def upgrade_sql(start: str | None = None) -> str:
    """Return the upgrade as one SQL file for psql, from revision ``start``, or for a new database if it is None.

    No connection is made. Raises SchemaError if there is no such revision.
    """
    from alembic import command

    if start is not None and start not in [known.revision for known in _revisions().walk_revisions()]:
        raise SchemaError(f"there is no revision '{start}' to upgrade from (this program knows up to {head()})")
    config = _config()
    config.output_buffer = revisions = io.StringIO()
    if start != head():
        command.upgrade(config, f"{start}:head" if start else "head", sql=True)
    return script.upgrade_file(revisions.getvalue(), start=start, head=head())


def check(dsn: str) -> str:
    """Return the revision of the schema. Raises SchemaMissing or SchemaMismatch if it isn't this program's schema."""
    with closing(connect(dsn)) as connection:
        return check_connection(connection)


def check_connection(connection: Connection) -> str:
    """Do the same as :func:`check` on an open connection."""
    database = connection.info.dbname
    if None in one(connection, "select to_regclass('pgcombine.schema_version'), to_regclass('pgcombine.repeatable')"):
        raise SchemaMissing(f"database \"{database}\" has no pgcombine schema: run 'pgcombine db upgrade'")
    revision, digest = one(
        connection,
        "select (select version_num from pgcombine.schema_version), (select digest from pgcombine.repeatable)",
    )
    if (revision, digest) != (head(), sqlfiles.digest()):
        _refuse_newer(str(revision), database)
        what = "with other functions" if revision == head() else f"this program's is {head()}"
        raise SchemaMismatch(
            f'the pgcombine schema of database "{database}" is of another version (revision {revision}, {what}): '
            "run 'pgcombine db upgrade'"
        )
    return head()


class VersionWatch:
    """Ends a daemon when another program has upgraded the schema. Its threads may share it."""

    def __init__(self, every: float = WATCH_SECONDS) -> None:
        self._every = every
        self._next = time.monotonic() + every

    def look(self, connection: Connection) -> None:
        """Check the schema if the last check is ``every`` seconds old. Raises the errors of :func:`check_connection`.

        The connection is idle in autocommit.
        """
        if time.monotonic() >= self._next:
            check_connection(connection)
            self._next = time.monotonic() + self._every


def downgrade(dsn: str, revision: str, *, force: bool = False) -> str:
    """Take the schema back to ``revision``. ``base`` removes the whole schema, with queues and values.

    ``revision`` may be relative (``-1``). Returns the revision reached. Raises SchemaMissing if there is no schema,
    SchemaMismatch if it is newer than this program, and SchemaError for an unknown revision. Without ``force``, raises
    QueueNotEmpty while updates are pending or keys are quarantined.
    """

    def run(connection: sqlalchemy.Connection, config: Config) -> str:
        # Only the tables are checked, since an older schema can be left, too. Only a newer program knows how to leave a
        # newer schema.
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
            connection.exec_driver_sql("drop schema pgcombine, pgcombine_internal cascade")
        else:
            names = [name for _, text in sqlfiles.repeatables() for name in sqlfiles.made(text)]
            end = sqlfiles.query("downgrade_end").replace("{names}", f"{{{','.join(names)}}}")
            connection.exec_driver_sql(end, execution_options=_AS_IT_IS)
        return str(reached or "base")

    if not revision:
        raise SchemaError("there is no revision '' to go back to")
    return _in_one_transaction(dsn, run, create=False)


@cache
def head() -> str:
    """Return this program's revision."""
    revision = _revisions().get_current_head()
    assert revision is not None
    return revision


def _in_one_transaction(
    dsn: str,
    run: Callable[[sqlalchemy.Connection, Config], str],
    *,
    create: bool,
    warn: Callable[[str], None] | None = None,
) -> str:
    start = time.monotonic()
    while True:
        try:
            return _try_in_one_transaction(dsn, run, create, warn)
        except _Blocked as blocked:
            if time.monotonic() - start >= blocked.patience:
                raise blocked.told from blocked.__cause__
        time.sleep(_PAUSE_SECONDS)


class _Blocked(Exception):
    """The transaction was rolled back, since a lock wasn't free. ``told`` is the error after ``patience`` seconds."""

    def __init__(self, told: Exception, patience: float) -> None:
        super().__init__(told)
        self.told = told
        self.patience = patience


def _try_in_one_transaction(
    dsn: str,
    run: Callable[[sqlalchemy.Connection, Config], str],
    create: bool,
    warn: Callable[[str], None] | None,
) -> str:
    from sqlalchemy import create_engine, pool
    from sqlalchemy.exc import DBAPIError, OperationalError

    told: list[str] = []

    def tell(notice: Diagnostic) -> None:
        if (text := warning(notice)) is not None:
            told.append(text)

    def connection_that_tells() -> Connection:
        opened = connect(dsn, autocommit=False)
        opened.add_notice_handler(tell)
        return opened

    engine = create_engine("postgresql+psycopg://", creator=connection_that_tells, poolclass=pool.NullPool)
    try:
        with engine.connect() as connection, Blockers(dsn, _pid(connection)) as blockers, connection.begin():
            patience = connection.exec_driver_sql(_PATIENCE).scalar_one()
            try:
                _lock(connection, create)
                connection.exec_driver_sql(sqlfiles.query("upgrade_locks"), execution_options=_AS_IT_IS)
                config = _config()
                config.attributes["connection"] = connection
                done = run(connection, config)
            except OperationalError as error:
                if isinstance(error.orig, DeadlockDetected):
                    raise _Blocked(error.orig, patience) from error.orig
                if not isinstance(error.orig, LockNotAvailable):
                    raise
                blocked = SchemaError(
                    f"nothing was changed: the change is blocked by {blockers} (let it end, or end it with "
                    "pg_terminate_backend or rollback prepared, then run this again; lock_timeout says how long to "
                    "wait)"
                )
                raise _Blocked(blocked, patience) from error.orig
    except DBAPIError as error:
        raise (error.orig or error) from error  # the driver's error, as from the other functions of pgcombine
    if warn is not None:
        for text in told:
            warn(text)
    return done


def _pid(connection: sqlalchemy.Connection) -> int:
    (pid,) = connection.exec_driver_sql("select pg_backend_pid()").one()
    connection.rollback()
    return int(pid)


def _lock(connection: sqlalchemy.Connection, create: bool) -> None:
    from sqlalchemy.exc import ProgrammingError

    lock = sqlfiles.query("upgrade_lock").replace("{create}", str(create))
    try:
        with connection.begin_nested():
            connection.exec_driver_sql(lock, execution_options=_AS_IT_IS)
    except ProgrammingError as error:
        if isinstance(error.orig, InsufficientPrivilege):
            _refuse_foreign(connection)
        raise
    _refuse_foreign(connection)


def _refuse_foreign(connection: sqlalchemy.Connection) -> None:
    """Refuse a schema that isn't owned by the current role, or in which an object isn't.

    The owner of a schema can replace everything in it by code that others then run. So a member of the owning role is
    refused, too: the member doesn't have to trust the other members. A superuser's objects are accepted, since a
    superuser can do all this anyway.
    """
    foreign = connection.exec_driver_sql(sqlfiles.query("foreign_objects"), execution_options=_AS_IT_IS).first()
    if foreign is not None:
        what, owner, role = foreign
        raise SchemaError(
            f'{what} belongs to the role "{owner}", whose code would run as each user of pgcombine (run this as '
            f'"{owner}" if that role is to own pgcombine; else drop it, or give it to "{role}")'
        )


def _upgrade(connection: sqlalchemy.Connection, config: Config) -> str:
    from alembic import command
    from sqlalchemy import text

    if connection.exec_driver_sql("select to_regclass('pgcombine.schema_version') is not null").scalar():
        current = connection.exec_driver_sql("select version_num from pgcombine.schema_version").scalar()
        if current is not None:
            _refuse_newer(str(current), str(connection.exec_driver_sql("select current_database()").scalar()))
    _run_revisions(connection, lambda: command.upgrade(config, "head"))
    # function bodies may refer to functions that are created later
    connection.exec_driver_sql("set local check_function_bodies = off")
    connection.exec_driver_sql(sqlfiles.query("set_aside"), execution_options=_AS_IT_IS)
    for _, steps in groupby(sqlfiles.steps(), key=lambda step: step[0] is None):
        _apply(connection, [text for _, text in steps])
    connection.exec_driver_sql(_joined(sqlfiles.comments()), execution_options=_AS_IT_IS)
    connection.exec_driver_sql("select pgcombine.adopt()")  # if the database was restored from a dump
    connection.execute(
        text(
            "insert into pgcombine.repeatable (digest) values (:digest) "
            "on conflict (one) do update set digest = :digest"
        ),
        {"digest": sqlfiles.digest()},
    )
    return head()


def _run_revisions(connection: sqlalchemy.Connection, run: Callable[[], None]) -> None:
    """Run the revisions. What other roles have made doesn't stop them: see ``drop_dependants.sql``."""
    from sqlalchemy.exc import DBAPIError

    connection.exec_driver_sql(sqlfiles.query("drop_dependants"), execution_options=_AS_IT_IS)
    while True:
        try:
            with connection.begin_nested():
                return run()
        except DBAPIError as error:
            if not isinstance(error.orig, (DependentObjectsStillExist, FeatureNotSupported)):
                raise
            detail = error.orig.diag.message_detail or ""
            if not connection.exec_driver_sql("select pg_temp.drop_dependants(%s)", (detail,)).scalar():
                raise SchemaError(
                    f"nothing was changed: {error.orig.diag.message_primary} ({detail}; drop that first)"
                ) from error.orig


def _apply(connection: sqlalchemy.Connection, texts: list[str]) -> None:
    """Apply files, all at once if none of them has to be replaced."""
    from sqlalchemy.exc import ProgrammingError

    statements = _joined(texts)
    try:
        with connection.begin_nested():
            connection.exec_driver_sql(statements, execution_options=_AS_IT_IS)
    except ProgrammingError as error:
        names = sqlfiles.made(statements)
        if not names or not isinstance(error.orig, _IRREPLACEABLE):
            raise
        if len(texts) > 1:
            for text in texts:
                _apply(connection, [text])
        else:
            connection.exec_driver_sql("select pg_temp.set_aside(%s, pg_temp.made(), true)", (names,))
            connection.exec_driver_sql(statements, execution_options=_AS_IT_IS)


def _joined(texts: Iterable[str]) -> str:
    return "".join(map(script.statement, texts))


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

    queues = [queue for (queue,) in connection.exec_driver_sql("select queue from pgcombine.queue order by queue")]
    # a downgrade leaves no functions to the older version, whose upgrade makes its own
    if queues and connection.exec_driver_sql("select to_regproc('pgcombine.backlog') is null").scalar():
        raise QueueNotEmpty(
            f'queue "{queues[0]}" may have pending updates, and the schema has no function that counts them: '
            "run 'pgcombine db upgrade' first, or pass --force",
            queue=str(queues[0]),
        )
    for queue in queues:
        pending = connection.execute(text("select pgcombine.backlog(:queue) > 0"), {"queue": queue}).scalar()
        if pending:
            raise QueueNotEmpty(
                f"queue \"{queue}\" has pending updates: run 'pgcombine drain {queue}' first, or pass --force",
                queue=str(queue),
            )
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
