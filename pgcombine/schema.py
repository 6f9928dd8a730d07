"""The life of the database schema: upgrade, check, remove.

An upgrade runs the Alembic revisions (tables), then the repeatable SQL (functions, combiners, triggers, views, grants),
and recreates each queue's generated objects. An upgrade runs in one transaction. If a lock isn't free, the transaction
is tried again until the session's ``lock_timeout`` has passed (a minute if there is none). Between two tries it holds
no locks, so that writers can go on.
"""

from __future__ import annotations

import importlib.resources
import time
from collections.abc import Callable
from contextlib import closing
from functools import cache
from typing import TYPE_CHECKING, TypeVar

from psycopg.errors import (
    DeadlockDetected,
    DependentObjectsStillExist,
    FeatureNotSupported,
    LockNotAvailable,
)

from pgcombine.database import script, sqlfiles
from pgcombine.database.blockers import Blockers
from pgcombine.database.connect import Connection, connect, one, warning
from pgcombine.database.portions import drop_tables
from pgcombine.errors import QueueNotEmptyError, SchemaError, SchemaMismatchError, SchemaMissingError, translated

# Only the functions that need Alembic import it, since the import is slow.
if TYPE_CHECKING:
    from alembic.script import ScriptDirectory

T = TypeVar("T")

WATCH_SECONDS = 5.0  # the least time between two checks of the schema by a daemon
_PAUSE_SECONDS = 1.0  # the time between two tries to get the locks


def upgrade(dsn: str, *, warn: Callable[[str], None] | None = None) -> str:
    """Bring the database's schema to this program's version. Returns the revision.

    ``warn`` is called with each warning of the server, for example that a function of an older version stays, since an
    object depends on it. Raises SchemaMismatchError if the schema is newer than this program, or if another development
    state made it. Raises SchemaError if the schema, or an object in it, belongs to another role that isn't a superuser,
    if an object depends on a column that the upgrade must drop or change, or if a needed lock isn't free in time.
    """

    def run(connection: Connection) -> str:  # the file does the locking, and checks again under its locks
        _refuse_foreign(connection)
        _current(connection)
        try:
            connection.execute(upgrade_sql().encode())
        except (DependentObjectsStillExist, FeatureNotSupported) as error:
            detail = error.diag.message_detail
            if not detail:
                raise
            raise SchemaError(
                f"nothing was changed: {error.diag.message_primary} ({detail}; first drop what depends on it)"
            ) from error
        return head()

    with translated():
        return _in_one_transaction(dsn, run, warn)


def upgrade_sql() -> str:
    """Return the SQL file that makes the schema in a new database, or upgrades it. No connection is made."""
    return script.upgrade_file(_revisions_sql())


def check(dsn: str) -> str:
    """Return the revision of the schema.

    Raises SchemaMissingError or SchemaMismatchError if it isn't this program's schema.
    """
    with closing(connect(dsn)) as connection:
        return check_connection(connection)


def check_connection(connection: Connection) -> str:
    """Do the same as :func:`check` on an open connection."""
    database = connection.info.dbname
    if one(connection, "select to_regclass('pgcombine.schema_version')") == (None,):
        raise SchemaMissingError(f"database \"{database}\" has no pgcombine schema: run 'pgcombine db upgrade'")
    revision = _current(connection)
    if (revision, *one(connection, "select max(digest) from pgcombine.schema_version")) != (head(), sqlfiles.digest()):
        what = "with other functions" if revision == head() else f"this program's is {head()}"
        raise SchemaMismatchError(
            f'the pgcombine schema of database "{database}" is of another version (revision {revision}, {what}): '
            "run 'pgcombine db upgrade'"
        )
    return head()


class VersionWatch:
    """Checks the schema at intervals, to end a daemon after an upgrade by another program. Threads may share it."""

    def __init__(self, every: float = WATCH_SECONDS) -> None:
        self._every = every
        self._next = time.monotonic() + every

    def check(self, connection: Connection) -> None:
        """Check the schema if the last check was ``every`` seconds ago or longer.

        The connection must be in autocommit, outside a transaction. Raises the errors of :func:`check_connection`.
        """
        if time.monotonic() >= self._next:
            check_connection(connection)
            self._next = time.monotonic() + self._every


def remove(dsn: str, *, force: bool = False) -> None:
    """Remove the schema of any version, with queues, values, and the triggers of rollups on other tables.

    The first transaction takes the schema out of use. Further ones drop its tables in portions, since a transaction has
    room for a limited number of locks. If this is interrupted, call it again. Raises SchemaMissingError if there is no
    schema. Raises SchemaError if the schema, or an object in it, belongs to another role that isn't a superuser, or if
    a needed lock isn't free in time. Without ``force``, raises QueueNotEmptyError if updates are pending or keys are
    quarantined, and SchemaMismatchError if another version made the schema, so that this can't be told.
    """

    def take_out(connection: Connection) -> None:
        _lock(connection)
        if not force:
            try:
                check_connection(connection)
            except SchemaMismatchError as error:
                raise SchemaMismatchError(f"{error}, or pass --force to lose what is pending in its queues") from error
            _refuse_pending(connection)
        connection.execute(sqlfiles.query("remove_start").encode())

    with closing(connect(dsn)) as connection, translated():
        is_there, is_left = one(connection, sqlfiles.query("remove_state"))
        if not is_there and not is_left:
            raise SchemaMissingError(f'database "{connection.info.dbname}" has no pgcombine schema to remove')
        if is_left:  # an earlier call was interrupted
            _drop_removed(connection)
        if is_there:
            _in_one_transaction(dsn, take_out)
            _drop_removed(connection)


def _drop_removed(connection: Connection) -> None:
    drop_tables(connection, one(connection, sqlfiles.query("remove_tables"))[0], cascade=True)
    connection.execute("drop schema pgcombine_removed cascade")


@cache
def head() -> str:
    """Return this program's revision."""
    revision = _revisions().get_current_head()
    assert revision is not None
    return revision


def _in_one_transaction(dsn: str, run: Callable[[Connection], T], warn: Callable[[str], None] | None = None) -> T:
    """Call ``run`` in a transaction, and return its result. Tries again if a lock that it needs isn't free."""
    told: list[str | None] = []
    began = time.monotonic()
    while True:
        told.clear()
        with closing(connect(dsn, autocommit=False)) as connection:
            connection.add_notice_handler(lambda notice: told.append(warning(notice)))
            pid, timeout = one(connection, sqlfiles.query("upgrade_session"))
            connection.rollback()
            connection.read_only = False  # regardless of default_transaction_read_only
            with Blockers(dsn, pid) as blockers:
                try:
                    with connection.transaction():
                        done = run(connection)
                    break
                except (DeadlockDetected, LockNotAvailable) as error:
                    if time.monotonic() - began >= timeout:
                        if isinstance(error, DeadlockDetected):
                            raise
                        raise SchemaError(
                            f"nothing was changed: the change is blocked by {blockers} (let them end, or end them with "
                            "pg_terminate_backend or rollback prepared, then run this again; lock_timeout says how "
                            "long to wait)"
                        ) from error
        time.sleep(_PAUSE_SECONDS)
    if warn is not None:
        for text in filter(None, told):
            warn(text)
    return done


def _lock(connection: Connection) -> None:
    _refuse_foreign(connection)
    connection.execute(sqlfiles.query("upgrade_lock").replace("{create}", "false").encode())
    connection.execute(sqlfiles.query("upgrade_locks").encode())


def _refuse_foreign(connection: Connection) -> None:
    """Raise SchemaError if the schema, or an object in it, isn't owned by the current role or a superuser."""
    foreign = connection.execute(sqlfiles.query("foreign_objects").encode()).fetchone()
    if foreign is not None:
        what, owner, role = foreign
        raise SchemaError(
            f'{what} belongs to the role "{owner}", whose code would run as each user of pgcombine (run this as '
            f'"{owner}" if that role is to own pgcombine; else drop the object, or give it to "{role}")'
        )


def _current(connection: Connection) -> str | None:
    """Return the revision of the schema, or None if there is no schema."""
    if one(connection, "select to_regclass('pgcombine.schema_version')") == (None,):
        return None
    revision: str | None
    revision, baseline = one(connection, sqlfiles.query("schema_version"))
    if revision is None or (revision, baseline) == (head(), sqlfiles.baseline_digest()):
        return revision
    # A newer version has the same first revision. Before the first release, other states may have had another.
    if baseline != sqlfiles.baseline_digest():
        raise SchemaMismatchError(
            f'another development state of pgcombine made the schema of database "{connection.info.dbname}" '
            f"(revision {revision}), so this program can't use or upgrade it, and changes nothing: save the values "
            "(pgcombine.<queue>_values; first run 'pgcombine drain' of the program that made it), then run 'pgcombine "
            "db remove --force' and 'pgcombine db upgrade'"
        )
    _refuse_newer(revision, connection.info.dbname)
    return revision


def _refuse_newer(revision: str, database: str) -> None:
    from alembic.util import CommandError

    try:
        known = _revisions().get_revision(revision)
    except CommandError:
        known = None
    if known is None:
        raise SchemaMismatchError(
            f'the pgcombine schema of database "{database}" is newer than this program (revision {revision}, '
            f"this program knows up to {head()}): install the newer pgcombine"
        )


def _refuse_pending(connection: Connection) -> None:
    queues = [queue for (queue,) in connection.execute(sqlfiles.query("queues"))]
    for queue in queues:
        if one(connection, "select pgcombine.backlog(%s)", queue)[0]:
            raise QueueNotEmptyError(
                f"queue \"{queue}\" has pending updates: run 'pgcombine drain {queue}' first, or pass --force",
                queue=queue,
            )
    for (queue,) in connection.execute(sqlfiles.query("quarantined_queues")):
        raise QueueNotEmptyError(
            f'queue "{queue}" has quarantined keys, whose updates would be lost: '
            f"run 'pgcombine quarantine retry {queue} --all' first, or pass --force",
            queue=queue,
        )


def _revisions_sql() -> dict[str, str]:
    """Return the statements of each revision, each with its semicolon, in the order of the revisions."""
    return {
        known.revision: "".join(f"{text.rstrip().removesuffix(';')}\n;\n" for text in known.module.upgrade())
        for known in reversed(list(_revisions().walk_revisions()))
    }


def _revisions() -> ScriptDirectory:
    from alembic.script import ScriptDirectory

    return ScriptDirectory(str(importlib.resources.files("pgcombine.migrations")))
