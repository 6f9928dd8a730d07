"""Enqueue updates and read values, as steps for :func:`pgcombine.database.steps.run`.

Errors in the caller's rows and keys raise :class:`~pgcombine.errors.InvalidUpdateError`. A queue that doesn't exist
raises :class:`~pgcombine.errors.QueueNotFoundError`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import psycopg
from psycopg import sql

from pgcombine.database.steps import Append, Rows, Statement, Steps, json_of, parts_of
from pgcombine.errors import InvalidUpdateError
from pgcombine.queue.rows import Row, columns_of

_MISFITS = ("22", "23502", "23514")  # SQLSTATEs of data exceptions, null violations and check violations


def roles(queue: str) -> Steps[Rows]:
    """Return name, role (``key`` or ``value``) and type of each of the queue's columns, keys first.

    The type of a column over a domain is the domain's base type. The types have no length and no precision. A queue
    that is spread over other databases is here only a table of values, which is partitioned by the key.
    """
    found = yield Statement(
        "select c.name, c.role, format_type(pgcombine_internal.base_type(c.type::regtype), -1) "
        "from pgcombine.queue_column c "
        "where c.queue = %s order by c.position",
        (queue,),
    )
    if not found:
        found = yield Statement(
            "select a.attname, case when a.attnum = any (p.partattrs) then 'key' else 'value' end, "
            "pgcombine_internal.type_name(pgcombine_internal.base_type(a.atttypid), -1) "
            "from pg_partitioned_table p join pg_attribute a on a.attrelid = p.partrelid and a.attnum > 0 "
            "where p.partrelid = to_regclass('pgcombine.' || quote_ident(%s || '_values')) order by a.attnum",
            (queue,),
        )
    if not found:
        yield Statement("select pgcombine_internal.require_queue(%s)", (queue,))  # raises QueueNotFoundError
    return found


def groups(
    rows: Iterable[Row], columns: list[str], queue: str
) -> Iterator[tuple[tuple[str, ...], Iterator[Sequence[Any]]]]:
    """Group consecutive rows that give the same columns. Yields the columns and the rows of each group, in order."""

    def names_of(numbered: tuple[int, Row]) -> tuple[str, ...]:
        number, row = numbered
        try:
            return columns_of(row, columns, queue)
        except InvalidUpdateError as error:
            error.row = number
            raise

    for names, group in itertools.groupby(enumerate(rows, 1), key=names_of):
        yield names, ([row[name] for name in names] if isinstance(row, Mapping) else row for _, row in group)


class Counted(Iterator[Sequence[Any]]):
    """An iterator of rows that counts the rows read from it."""

    def __init__(self, rows: Iterator[Sequence[Any]]) -> None:
        self._rows = rows
        self.count = 0

    def __next__(self) -> Sequence[Any]:
        row = next(self._rows)
        self.count += 1
        return row


def place(error: Exception, relation: str, read: int) -> tuple[int | None, str]:
    """Return the number of the COPY's row that caused the error, and details, such as the row's column.

    The number is None if it isn't known. ``read`` is the number of rows read so far. The server names the row in the
    error's context, in the server's language. If the driver can't write a value, the row is the last one read.
    """
    if isinstance(error, UnicodeError) or (isinstance(error, psycopg.Error) and error.diag.sqlstate is None):
        return read, ""
    context = getattr(getattr(error, "diag", None), "context", None) or ""
    told = re.search(rf"^COPY {relation}, \D*(\d+)(?:[,:] (.*))?$", context, re.MULTILINE)
    return (int(told[1]), told[2] or "") if told else (None, context)


def checked(queue: str, rows: Iterable[Row]) -> Steps[list[Row]]:
    """Return all rows. Raises InvalidUpdateError for the first row whose columns don't fit the queue's."""
    columns = [name for name, *_ in (yield from roles(queue))]
    found = list(rows)
    for _, group in groups(found, columns, queue):
        for _ in group:
            pass
    return found


def enqueue(queue: str, rows: Iterable[Row], token: str | None = None) -> Steps[int]:
    """Append updates, unless the queue has the token. Returns the number of updates.

    If the queue is spread over other databases, each stores tokens. So one call passes the token and all updates.
    """
    columns = [name for name, *_ in (yield from roles(queue))]
    if token is not None:
        ((new,),) = yield Statement(
            "select case when exists (select from pgcombine.queue q where q.queue = %s) "
            "then pgcombine_internal.take_token(%s, %s) end",
            (queue, queue, token),
        )
        if new is None:
            updates = json_of(row if isinstance(row, Mapping) else dict(zip(columns, row, strict=True)) for row in rows)
            elsewhere = "select pgcombine_internal.enqueue_elsewhere(%s, %s, %s)"
            ((appended,),) = yield Statement(elsewhere, (queue, token, updates))
            return int(appended)
        if not new:
            return 0
    count = 0
    for names, group in groups(rows, columns, queue):
        counted = Counted(group)
        try:
            ((appended,),) = yield Append(queue, names, counted)
        except Exception as error:
            sqlstate, reason, _ = parts_of(getattr(error, "orig", error))  # SQLAlchemy wraps the driver's error
            misfit = isinstance(error, (psycopg.DataError, UnicodeError)) or (sqlstate or "").startswith(_MISFITS)
            # psycopg itself raises a ProgrammingError for a value of a class without a text form
            if not misfit and not (isinstance(error, psycopg.ProgrammingError) and sqlstate is None):
                raise
            row, where = place(error, f"{queue}_updates", counted.count)
            which = "an update" if row is None else f"update {count + row}"
            mapped = InvalidUpdateError(
                f'{which} doesn\'t fit queue "{queue}": {reason}{f" ({where})" if where else ""}',
                queue=queue,
                sqlstate=sqlstate,
            )
            mapped.row = None if row is None else count + row
            raise mapped from error
        count += appended
    return count


def get(queue: str, keys: Iterable[Any]) -> Steps[dict[Any, Any]]:
    """Return the current values of the keys that have one, from one snapshot.

    Keys and values are scalars where there is one column, else tuples. In keys, an array is a tuple and a JSON value is
    its text, since lists and dicts can't be keys of a Python dict.
    """
    found = yield from roles(queue)
    chosen = _chosen(queue, found, keys)
    if chosen is None:
        return {}
    condition, parameters = chosen
    statement = sql.SQL("select {} from {} where {}").format(
        _selected(found),
        sql.Identifier("pgcombine", f"{queue}_current"),
        condition,
    )
    return dict(map(_pairs(found), (yield Statement(statement, parameters, values=True))))


def values(queue: str) -> Steps[tuple[Statement, Callable[[tuple[Any, ...]], tuple[Any, Any]]]]:
    """Return the statement that reads all combined values, and a function that splits a row into key and value.

    Keys and values are as in :func:`get`.
    """
    found = yield from roles(queue)
    statement = sql.SQL("select {} from {}").format(_selected(found), sql.Identifier("pgcombine", f"{queue}_values"))
    return Statement(statement), _pairs(found)


def quarantined(queue: str, keys: Iterable[Any]) -> Steps[tuple[int, int]]:
    """Return the number of quarantined keys among ``keys``, and the number of their updates.

    The values of :func:`get` don't include these updates. Both numbers are 0 for a role that may not operate the queue.
    """
    chosen = _chosen(queue, (yield from roles(queue)), keys)
    if chosen is None:
        return 0, 0
    condition, parameters = chosen
    statement = sql.SQL(
        "select count(*), coalesce(sum(pgcombine_updates), 0)::bigint from (select q.updates as pgcombine_updates, k.* "
        "from pgcombine.quarantine q cross join lateral jsonb_populate_record(null::{}, q.key) k "
        "where q.queue = %s) quarantined where {}"
    ).format(sql.Identifier("pgcombine", f"{queue}_values"), condition)
    ((count, updates),) = yield Statement(statement, [queue, *parameters])
    return count, updates


def _chosen(queue: str, found: Rows, keys: Iterable[Any]) -> tuple[sql.Composable, Sequence[Any]] | None:
    """Return the condition that a row's key is one of ``keys``, and its parameters, or None if ``keys`` is empty."""
    names = [name for name, role, _ in found if role == "key"]
    types = [type_ for _, role, type_ in found if role == "key"]
    if isinstance(keys, (str, bytes)) or not isinstance(keys, Iterable):
        raise InvalidUpdateError(
            f'the keys of queue "{queue}" must be a list, such as [{keys!r}], not {keys!r}', queue=queue
        )
    wanted = []
    for key in keys:
        parts = key if len(names) > 1 else (key,)
        if isinstance(parts, (str, bytes)) or not isinstance(parts, Sequence) or len(parts) != len(names):
            raise InvalidUpdateError(
                f'key {key!r} doesn\'t fit queue "{queue}": its key is ({", ".join(names)})', queue=queue
            )
        wanted.append([_thawed(part, type_) for part, type_ in zip(parts, types, strict=True)])
    return _among(names, types, wanted) if wanted else None


def _pairs(found: Rows) -> Callable[[tuple[Any, ...]], tuple[Any, Any]]:
    """Return a function that splits a row of all columns into a key and a value."""
    keys = sum(role == "key" for _, role, _ in found)

    def pair(row: tuple[Any, ...]) -> tuple[Any, Any]:
        key, value = tuple(map(_frozen, row[:keys])), tuple(row[keys:])
        return key if len(key) > 1 else key[0], value if len(value) > 1 else value[0]

    return pair


def _among(
    names: Sequence[str], types: Sequence[str], keys: Sequence[Sequence[Any]]
) -> tuple[sql.Composable, Sequence[Any]]:
    """Return the condition that a row's key is one of ``keys``, and its parameters.

    Several keys are passed as one array for each column, unless a column has arrays itself, or values of several
    classes, such as dates and the text 'infinity'. With several key columns,
    the condition on all columns together decides. The conditions on single columns let PostgreSQL find the partitions
    and candidate rows.
    """
    mixed = any(len(set(map(type, parts))) > 1 for parts in zip(*keys, strict=True))  # psycopg makes no such array
    if len(keys) == 1 or mixed or any(type_.endswith("]") for type_ in types):  # PostgreSQL has no arrays of arrays
        casts = ["::" + type_.replace("%", "%%") if type_.endswith("]") else "" for type_ in types]
        one = sql.SQL(" and ").join(
            sql.SQL("{} = %s{}").format(_column(name), sql.SQL(cast)) for name, cast in zip(names, casts, strict=True)
        )
        either = sql.SQL(" or ").join(sql.SQL("({})").format(one) for _ in keys)
        return either, [part for key in keys for part in key]
    columns = [list(parts) for parts in zip(*keys, strict=True)]
    arrays = [sql.SQL("%s::{}[]").format(sql.SQL(type_.replace("%", "%%"))) for type_ in types]
    each = sql.SQL(" and ").join(
        sql.SQL("{} = any ({})").format(_column(name), array) for name, array in zip(names, arrays, strict=True)
    )
    if len(names) == 1:
        return each, columns
    # In a from clause, unnest would split composite values into their columns.
    whole = sql.SQL(" and ({}) in (select {})").format(
        sql.SQL(", ").join(map(_column, names)), sql.SQL(", ").join(sql.SQL("unnest({})").format(a) for a in arrays)
    )
    return each + whole, columns * 2


def _selected(found: Rows) -> sql.Composed:
    """Return the list of all columns for a select, with the text of JSON in keys, so that they can be hashed."""
    return sql.SQL(", ").join(
        sql.SQL("{}::text{}").format(_column(name), sql.SQL(type_.removeprefix("jsonb")))
        if role == "key" and type_ in ("jsonb", "jsonb[]")
        else _column(name)
        for name, role, type_ in found
    )


def _frozen(part: Any) -> Any:
    return tuple(map(_frozen, part)) if isinstance(part, list) else part  # an array becomes hashable


def _thawed(part: Any, type_: str) -> Any:
    return [_thawed(one, type_) for one in part] if type_.endswith("]") and isinstance(part, tuple) else part


def _column(name: str) -> sql.SQL:
    # In a statement with parameters, %% is read as a single %.
    return sql.SQL(sql.Identifier(name).as_string(None).replace("%", "%%"))
