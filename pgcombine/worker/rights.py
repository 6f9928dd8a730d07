"""Checks of the rights of a worker's role, and roles with one right each."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from typing import NamedTuple

from psycopg import sql

from pgcombine.database.connect import Connection
from pgcombine.errors import translated

log = logging.getLogger("pgcombine.worker")


class Role(NamedTuple):
    """A role to which one right is granted. If the right is on objects, such as queues, it is granted on all of them.

    ``new`` says whether the role must be created. ``statements`` create a new role, and grant the right.
    """

    role: str
    right: str
    new: bool
    statements: list[str]


def require_work(connection: Connection, queues: Sequence[str]) -> None:
    """Raise NotGrantedError for the first of ``queues`` over which the connection's role lacks the right to run passes.

    If ``queues`` is empty, log a warning for each queue of the database over which the role lacks this right.
    """
    for queue in queues:
        with translated(queue=queue):
            connection.execute("select pgcombine_internal.require_right(%s, 'work')", (queue,))
    if not queues:
        others = connection.execute(
            "select queue, current_user from pgcombine.queue "
            "where not pgcombine_internal.has_right(queue, 'work') order by 1"
        )
        for queue, role in others.fetchall():
            log.warning(
                "worker.not_granted queue=%s role=%s hint=%s",
                *(queue, role, f"it is skipped; run select pgcombine.grant_right('work', '{role}', '{queue}')"),
            )


def warn_of_superuser(connection: Connection) -> None:
    """Log a warning if the connection's role is a superuser.

    Observers' statements, and triggers on the tables that they write, run with the worker's rights. So whoever can
    create an observer or such a trigger could use a superuser's rights.
    """
    row = connection.execute(
        "select rolname from pg_roles where rolname in (current_user, session_user) and rolsuper limit 1"
    ).fetchone()
    if row is not None:
        log.warning(
            "worker.superuser role=%s hint=%s",
            row[0],
            "triggers on observers' tables run with a superuser's rights; let an ordinary role own the schema and run "
            "workers",
        )


def roles(connection: Connection, prefix: str) -> list[Role]:
    """Return a role for each right. The role's name is ``prefix`` followed by the right."""
    result = []
    kinds = connection.execute('select "right", subject from pgcombine.right_kind order by 1').fetchall()
    for right, subject in kinds:
        role = f"{prefix}{right}"
        new = connection.execute("select from pg_roles where rolname = %s", (role,)).fetchone() is None
        arguments = [right, role, *(["*"] if subject else [])]
        grant = f"select pgcombine.grant_right({', '.join(sql.quote(text) for text in arguments)})"
        make = f"create role {sql.Identifier(role).as_string(connection)}"
        result.append(Role(role, right, new, [*([make] if new else []), grant]))
    return result


def make_roles(connection: Connection, prefix: str) -> list[Role]:
    """Create the new ones of :func:`roles`, and grant each role its right, in one transaction. Returns the roles.

    Raises psycopg's InsufficientPrivilege if the connection's role may not create the roles or grant the rights.
    """
    with connection.transaction():
        made = roles(connection, prefix)
        for role in made:
            for statement in role.statements:
                connection.execute(statement.encode())
    return made
