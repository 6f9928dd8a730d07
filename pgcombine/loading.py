"""Initial load, as steps in the caller's transaction: values straight into a queue, past updates and observers.

All or nothing: what was loaded is taken back where a row is refused or raises, and the transaction can go on. Keys
that come twice, or that have a value already, are refused with :class:`~pgcombine.errors.InvalidUpdate`, which names
the key.
"""

from __future__ import annotations

from collections.abc import Iterable

import psycopg
from psycopg import errors as pg

from pgcombine.content import groups, roles
from pgcombine.errors import InvalidUpdate
from pgcombine.rows import Row
from pgcombine.transactions import Append, Statement, Steps


def initialize(queue: str, rows: Iterable[Row], force: bool) -> Steps[int]:
    """Load values; how many stay: rows for which ``delete_when`` holds are no values.

    Raises QueueNotEmpty unless ``force``.
    """
    columns = [name for name, *_ in (yield from roles(queue))]
    yield Statement("savepoint pgcombine_initialize")
    try:
        count = 0
        yield Statement("select pgcombine.begin_initialize(%s, %s)", (queue, force))
        for names, group in groups(rows, columns, queue):
            ((loaded,),) = yield Append(queue, names, group, values=True)
            count += loaded
        ((removed,),) = yield Statement("select pgcombine.end_initialize(%s)", (queue,))
    except Exception as error:
        yield Statement("rollback to savepoint pgcombine_initialize")
        told = _told(queue, error)
        if told is None:
            raise
        raise told from error
    yield Statement("release savepoint pgcombine_initialize")
    return int(count - removed)


def _told(queue: str, error: Exception) -> InvalidUpdate | None:
    """The error to raise for one of PostgreSQL's about a row that doesn't fit; None for others."""
    if isinstance(error, pg.UniqueViolation):
        reason = f"a key is there twice: {error.diag.message_detail}"
    elif isinstance(error, (pg.IntegrityError, pg.ProgramLimitExceeded, psycopg.DataError)):
        where = f" ({error.diag.context})" if error.diag.context else ""
        reason = f"{error.diag.message_primary or error}{where}"
    else:
        return None
    return InvalidUpdate(f'queue "{queue}" can\'t be initialized: {reason}', queue=queue, sqlstate=error.sqlstate)
