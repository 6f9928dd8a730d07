"""phrasecount's connections, queries and schema. The SQL files are in ``sql/phrasecount``.

The schema ``phrasecount`` is made when phrasecount is first used in a database. The comment on the schema has a digest
of the SQL files that define it. A program whose files have another digest applies its files to the schema.
"""

from __future__ import annotations

import hashlib
from contextlib import closing
from functools import cache
from importlib import resources
from typing import Any

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from pgcombine.errors import SchemaError

Connection = psycopg.Connection[tuple[Any, ...]]

_FILES = resources.files("pgcombine.sql") / "phrasecount"


def connect(dsn: str, *, autocommit: bool = True) -> Connection:
    """Open a connection. Raises psycopg.OperationalError if the server doesn't answer, or refuses."""
    connection = psycopg.connect(
        dsn,
        application_name="pgcombine phrasecount",
        autocommit=autocommit,
        prepare_threshold=None,
        client_encoding="utf8",
    )
    connection.isolation_level = psycopg.IsolationLevel.READ_COMMITTED
    return connection


def resolved(dsn: str) -> str:
    """Return ``dsn`` with the parameters that libpq finds here, since Spark's tasks may run in another environment."""
    with closing(connect(dsn)) as connection:
        info = connection.info
        found = info.get_parameters()
        found |= {"host": info.host, "port": str(info.port), "user": info.user, "dbname": info.dbname}
        if info.password:
            found["password"] = info.password
    given = conninfo_to_dict(dsn)
    files = ("service", "servicefile", "passfile")
    # added by libpq and by connect(); an older libpq doesn't know sslcertmode
    automatic = {"sslcertmode", "application_name", "client_encoding"} - given.keys()
    return make_conninfo("", **{name: value for name, value in found.items() if name not in (*files, *automatic)})


@cache
def query(name: str) -> str:
    """Return the text of the query ``sql/phrasecount/queries/<name>.sql``."""
    return (_FILES / "queries" / f"{name}.sql").read_text(encoding="utf-8")


def ensure_schema(connection: Connection) -> None:
    """Make the schema ``phrasecount``, or bring it up to date, in a separate transaction.

    Raises SchemaError if the schema or an object in it belongs to a role that isn't trusted, or if the current role
    lacks the right to make or to change the schema. The current role, the owner of the schema ``pgcombine`` and
    superusers are trusted.
    """
    statements, comment = _definition()
    try:
        with connection.transaction():
            if _comment(connection) != comment:
                connection.execute(statements)
                _comment(connection)  # raises if a role that isn't trusted has made the schema meanwhile
    except psycopg.errors.InsufficientPrivilege as error:
        raise SchemaError(
            f"phrasecount's tables can't be made: {error.diag.message_primary} (run it once as the role that owns the "
            "database)"
        ) from error


def _comment(connection: Connection) -> str | None:
    """Return the schema's comment. Raises SchemaError if a role that isn't trusted owns a part of the schema."""
    comment, stranger = connection.execute(query("state")).fetchone() or (None, None)
    if stranger is not None:
        raise SchemaError(
            f'the schema phrasecount, or a part of it, belongs to the role "{stranger}", whose code would run as '
            f'"{connection.info.user}" (run this as "{stranger}", or drop the schema)'
        )
    return None if comment is None else str(comment)


@cache
def _definition() -> tuple[str, str]:
    """Return the statements that make the schema, and the comment that the last statement sets on it."""
    functions = sorted(file.name for file in _FILES.iterdir() if file.name.endswith(".sql"))
    functions.remove("schema.sql")
    text = "\n".join((_FILES / name).read_text(encoding="utf-8") for name in ("schema.sql", *functions))
    comment = f"phrasecount, of the files {hashlib.sha256(text.encode()).hexdigest()}"
    return f"{text}\ncomment on schema phrasecount is '{comment}'", comment
