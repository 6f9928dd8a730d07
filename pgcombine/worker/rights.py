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
    """A role to which one right is granted: on all queues that exist, or on all queues ever.

    ``new`` says whether the role must be created. ``statements`` create a new role, and grant the right.
    """

    role: str
    right: str
    new: bool
    statements: list[str]


def require_work(connection: Connection, queues: Sequence[str]) -> None:
    """Raise NotGrantedError if the connection's role lacks the right to work, or QueueNotFoundError for a queue."""
    for queue in queues or (None,):
        with translated(queue=queue):
            connection.execute("select pgcombine_internal.require_right(%s, 'work')", (queue,))


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
    queues = [queue for (queue,) in connection.execute("select queue from pgcombine.queue order by 1").fetchall()]
    kinds = connection.execute(
        "select \"right\", bool_and(object ~ '[.]') from pgcombine.right_privilege group by 1 order by 1"
    ).fetchall()
    for right, everywhere in kinds:
        role = f"{prefix}{right}"
        new = connection.execute("select from pg_roles where rolname = %s", (role,)).fetchone() is None
        grants = []
        if everywhere or queues:
            arguments = ", ".join(sql.quote(text) for text in [right, role, *([] if everywhere else queues)])
            grants = [f"select pgcombine.grant_right({arguments})"]
        make = [f"create role {sql.Identifier(role).as_string(connection)}"] if new else []
        result.append(Role(role, right, new, [*make, *grants]))
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
