"""The initial load, as steps in the caller's transaction. It writes values without updates, and calls no observers.

Either all rows are loaded or none. If a row is refused, or the iterable ``rows`` raises an error, the values loaded so
far are removed, and the caller's transaction can go on. A key that comes twice, or that has a value already, raises
:class:`~pgcombine.errors.InvalidUpdateError`, which names the key.
"""

from __future__ import annotations

from collections.abc import Iterable

import psycopg
from psycopg import errors as pg

from pgcombine.database.steps import Append, Statement, Steps
from pgcombine.errors import InvalidUpdateError
from pgcombine.queue.content import Counted, groups, names, place
from pgcombine.queue.rows import Row


def initialize(queue: str, rows: Iterable[Row], force: bool) -> Steps[int]:
    """Load values. Returns their number, without the rows for which ``delete_when`` or ``expire_when`` holds.

    Raises QueueNotEmptyError if the queue has values or pending updates, unless ``force`` is given.
    """
    known = yield from names(queue, enqueuing=False)
    yield Statement("savepoint pgcombine_initialize")
    count = 0
    counted = Counted(iter(()))
    try:
        yield Statement("select pgcombine_internal.begin_initialize(%s, %s)", (queue, force))
        for given, group in groups(rows, known, queue):
            counted = Counted(group)
            ((loaded,),) = yield Append(queue, given, counted, "values")
            count += loaded
        ((removed,),) = yield Statement("select pgcombine_internal.end_initialize(%s)", (queue,))
    except Exception as error:
        yield Statement("rollback to savepoint pgcombine_initialize")
        mapped = _mapped(queue, error, count, counted.count)
        if mapped is None:
            raise
        raise mapped from error
    yield Statement("release savepoint pgcombine_initialize")
    return int(count - removed)


def _mapped(queue: str, error: Exception, before: int, read: int) -> InvalidUpdateError | None:
    """Return an InvalidUpdateError if the error is about a row that doesn't fit, else None."""
    row, where = place(error, f"{queue}_values", read)
    which = "" if row is None else f"row {before + row}: "
    if isinstance(error, pg.UniqueViolation):
        reason = f"a key is given twice, or has a value already: {error.diag.message_detail}"
    elif isinstance(error, (pg.IntegrityError, pg.ProgramLimitExceeded, psycopg.DataError)):
        reason = f"{error.diag.message_primary or error}{f' ({where})' if where else ''}"
    elif isinstance(error, UnicodeError):
        reason = str(error)
    else:
        return None
    mapped = InvalidUpdateError(
        f'queue "{queue}" can\'t be initialized: {which}{reason}',
        queue=queue,
        sqlstate=getattr(error, "sqlstate", None),
    )
    mapped.row = None if row is None else before + row
    return mapped
