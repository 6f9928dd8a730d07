"""Initial load: values straight into a queue, by COPY, past updates and observers.

All or nothing: it is one transaction, the caller's if there is one. Keys that come twice, or that have a value
already, are refused with :class:`~pgcombine.errors.InvalidUpdate`, which names the key.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import psycopg
from psycopg import errors as pg
from psycopg import sql
from psycopg.rows import tuple_row

from pgcombine.errors import InvalidUpdate, translated


def load(
    connection: psycopg.Connection[Any],
    queue: str,
    groups: Iterable[tuple[Sequence[str], Iterable[Sequence[Any]]]],
    *,
    force: bool,
) -> int:
    """COPY ``groups`` of rows, each with the names of its columns, into the queue's values; returns how many stay.

    Rows for which ``delete_when`` holds are no values and don't stay. Raises QueueNotEmpty unless ``force``.
    """
    count = 0
    with translated(queue=queue), connection.transaction(), psycopg.Cursor(connection, row_factory=tuple_row) as cursor:
        cursor.execute("select pgcombine.begin_initialize(%s, %s)", (queue, force), prepare=False)
        try:
            for names, rows in groups:
                statement = sql.SQL("copy {} ({}) from stdin").format(
                    sql.Identifier("pgcombine", f"{queue}_values"), sql.SQL(", ").join(map(sql.Identifier, names))
                )
                with cursor.copy(statement) as copy:
                    for row in rows:
                        copy.write_row(row)
                        count += 1
        except pg.UniqueViolation as error:
            raise InvalidUpdate(
                f'queue "{queue}" can\'t be initialized: a key is there twice: {error.diag.message_detail}',
                queue=queue,
                sqlstate=error.sqlstate,
            ) from error
        except (pg.IntegrityError, pg.ProgramLimitExceeded, psycopg.DataError) as error:
            where = f" ({error.diag.context})" if error.diag.context else ""
            raise InvalidUpdate(
                f'queue "{queue}" can\'t be initialized: {error.diag.message_primary or error}{where}',
                queue=queue,
                sqlstate=error.sqlstate,
            ) from error
        ended = cursor.execute("select pgcombine.end_initialize(%s)", (queue,), prepare=False).fetchone()
    assert ended is not None
    return count - int(ended[0])
