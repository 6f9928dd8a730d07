"""Enqueue updates and read values, as steps for :func:`pgcombine.database.steps.run`.

Errors in the caller's rows and keys raise :class:`~pgcombine.errors.InvalidUpdateError`. A queue that doesn't exist
raises :class:`~pgcombine.errors.QueueNotFoundError`.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import psycopg
from psycopg import sql
from psycopg.types.multirange import Multirange

from pgcombine.database.steps import Append, Rows, Statement, Steps, Texts, Untyped, json_of, parts_of
from pgcombine.database.texts import array_of, name_of, plain
from pgcombine.errors import InvalidUpdateError
from pgcombine.queue.rows import Row, columns_of

_COLUMNS = "select * from pgcombine_internal.content_columns(%s)"
_NAMES = """
    select c.name, has_any_column_privilege('pgcombine.' || quote_ident(c.queue || '_updates'), 'insert')
    from pgcombine.queue_column c where c.queue = %s order by c.position
"""
_MISFITS = ("22", "23502", "23514")  # SQLSTATEs of data exceptions, null violations and check violations


class Column(NamedTuple):
    """A row of ``pgcombine_internal.content_columns``."""

    name: str
    role: str
    type: str
    equals: str | None
    shown: str
    composite: bool
    read: bool


def columns(queue: str, *, readable: bool = True) -> Steps[list[Column]]:
    """Return the queue's columns, keys first.

    Raises QueueNotFoundError, and with ``readable`` NotGrantedError if the role may not read the queue's values.
    """
    found = [Column(*row) for row in (yield Statement(_COLUMNS, (queue,)))]
    if not found:
        yield Statement("select pgcombine_internal.require_queue(%s)", (queue,))  # raises QueueNotFoundError
    if readable and not all(column.read for column in found):
        yield Statement("select pgcombine_internal.require_right(%s, 'read')", (queue,))  # raises NotGrantedError
    return found


def names(queue: str, *, enqueuing: bool = True) -> Steps[list[str]]:
    """Return the names of the queue's columns, keys first. Writers call this, so it reads less than :func:`columns`.

    Raises QueueNotFoundError, and with ``enqueuing`` NotGrantedError if the role may not enqueue updates.
    """
    found = yield Statement(_NAMES, (queue,))
    if not found:  # it is spread over other databases
        return [column.name for column in (yield from columns(queue, readable=False))]
    if enqueuing and not found[0][1]:
        yield Statement("select pgcombine_internal.require_right(%s, 'enqueue')", (queue,))  # raises NotGrantedError
    return [name for name, _ in found]


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
    found = list(rows)
    for _, group in groups(found, (yield from names(queue)), queue):
        for _ in group:
            pass
    return found


def enqueue(queue: str, rows: Iterable[Row], token: str | None = None) -> Steps[int]:
    """Append updates, unless the queue has the token. Returns the number of updates.

    If the queue is spread over other databases, each stores tokens. So one call passes the token and all updates.
    """
    known = yield from names(queue)
    if token is not None:
        ((new,),) = yield Statement(
            "select case when exists (select from pgcombine.queue q where q.queue = %s) "
            "then pgcombine_internal.take_token(%s, %s) end",
            (queue, queue, token),
        )
        if new is None:
            updates = json_of(row if isinstance(row, Mapping) else dict(zip(known, row, strict=True)) for row in rows)
            elsewhere = "select pgcombine_internal.enqueue_elsewhere(%s, %s, %s)"
            ((appended,),) = yield Statement(elsewhere, (queue, token, updates))
            return int(appended)
        if not new:
            return 0
    return (yield from _append(queue, rows, known, "updates"))


def contribute(queue: str, source: str, rows: Iterable[Row]) -> Steps[int]:
    """Replace what a source contributes. Returns the number of updates that this enqueues."""
    known = yield from names(queue)
    yield Statement("select pgcombine.begin_contribution(%s)", (queue,))
    yield from _append(queue, rows, known, "contribution")
    try:
        ((updates,),) = yield Statement("select pgcombine.end_contribution(%s, %s)", (queue, source))
    except Exception as error:
        sqlstate, reason = _misfit(error)
        if reason is None:
            raise
        message = f'the contribution of "{source}" doesn\'t fit queue "{queue}": {reason}'
        raise InvalidUpdateError(message, queue=queue, sqlstate=sqlstate) from error
    return int(updates)


def _append(queue: str, rows: Iterable[Row], known: list[str], into: str) -> Steps[int]:
    count = 0
    for given, group in groups(rows, known, queue):
        counted = Counted(group)
        try:
            ((appended,),) = yield (append := Append(queue, given, counted, into))
        except Exception as error:
            sqlstate, reason = _misfit(error)
            if reason is None:
                raise
            row, where = place(error, append.relation, counted.count)
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

    Keys and values are scalars where there is one column, else tuples. In keys, an array is a tuple, and a JSON value
    or a multirange is its text, since a key of a Python dict must be hashable.
    """
    found = yield from columns(queue)
    select = sql.SQL("select {} from {}").format(_selected(found), sql.Identifier("pgcombine", f"{queue}_current"))
    return dict(map(_pairs(found), (yield from _among(queue, found, keys, select))))


def values(queue: str) -> Steps[tuple[Statement, Callable[[tuple[Any, ...]], tuple[Any, Any]]]]:
    """Return the statement that reads all combined values, and a function that splits a row into key and value.

    Keys and values are as in :func:`get`.
    """
    found = yield from columns(queue)
    statement = sql.SQL("select {} from {}").format(_selected(found), sql.Identifier("pgcombine", f"{queue}_values"))
    return Statement(statement), _pairs(found)


def quarantined(queue: str, keys: Iterable[Any]) -> Steps[tuple[int, int]]:
    """Return the number of quarantined keys among ``keys``, and the number of their updates.

    The values of :func:`get` don't include these updates. Both numbers are 0 for a role without the right work.
    """
    select = sql.SQL(
        "select pgcombine_updates from (select q.updates as pgcombine_updates, k.* from pgcombine.quarantine q "
        "cross join lateral jsonb_populate_record(null::{}, q.key) k where q.queue = {}) k"
    ).format(sql.Identifier("pgcombine", f"{queue}_values"), sql.Literal(queue))
    found = yield from _among(queue, (yield from columns(queue, readable=False)), keys, select)
    return len(found), sum(updates for (updates,) in found)


def _among(queue: str, found: Sequence[Column], keys: Iterable[Any], select: sql.Composed) -> Steps[Rows]:
    """Return the rows of a select whose key is one of ``keys``."""
    chosen = [column for column in found if column.role == "key"]
    try:
        texts = yield Texts(list(_parts(queue, chosen, keys)))
        if not texts:
            return []
        condition, parameters = _condition(chosen, texts)
        return (yield Statement(select + sql.SQL(" where ") + condition, parameters, values=True))
    except Exception as error:
        sqlstate, reason = _misfit(error)
        if reason is None:
            raise
        raise InvalidUpdateError(
            f'a key doesn\'t fit queue "{queue}": {reason}', queue=queue, sqlstate=sqlstate
        ) from error


def _parts(queue: str, chosen: Sequence[Column], keys: Iterable[Any]) -> Iterator[list[Any]]:
    """Yield the parts of each key. Raises InvalidUpdateError for a key that has others than the key columns."""
    if isinstance(keys, (str, bytes)) or not isinstance(keys, Iterable):
        raise InvalidUpdateError(
            f'the keys of queue "{queue}" must be a list, such as [{keys!r}], not {keys!r}', queue=queue
        )
    for key in keys:
        parts = key if len(chosen) > 1 else (key,)
        listed = not isinstance(parts, (str, bytes)) and isinstance(parts, Sequence) and len(parts) == len(chosen)
        if not listed or any(
            isinstance(part, Sequence)
            and not isinstance(part, (str, bytes, bytearray, memoryview, Multirange))
            and not (column.composite or column.type.endswith("]"))
            for part, column in zip(parts, chosen, strict=True)
        ):
            names = ", ".join(column.name for column in chosen)
            form = f"({names})" if len(chosen) > 1 else f"the value of {names} alone, not in a sequence"
            raise InvalidUpdateError(f'key {key!r} doesn\'t fit queue "{queue}": its key is {form}', queue=queue)
        yield [_thawed(part) if column.type.endswith("]") else part for part, column in zip(parts, chosen, strict=True)]


def _condition(chosen: Sequence[Column], texts: Rows) -> tuple[sql.Composable, list[Untyped | None]]:
    equals = [sql.SQL(f"{{}} {plain(column.equals or '')} {{}}") for column in chosen]
    names = [name_of(column.name) for column in chosen]
    if any(column.type.endswith("]") for column in chosen):  # PostgreSQL has no arrays of arrays
        one = sql.SQL(" and ").join(
            equal.format(name, sql.SQL(f"%s::{plain(column.type)}"))
            for equal, name, column in zip(equals, names, chosen, strict=True)
        )
        either = sql.SQL(" or ").join(sql.SQL("({})").format(one) for _ in texts)
        return either, [None if part is None else Untyped(part) for key in texts for part in key]
    arrays = [sql.SQL(f"%s::{plain(column.type)}[]") for column in chosen]
    parameters: list[Untyped | None] = [Untyped(array_of(parts)) for parts in zip(*texts, strict=True)]
    each = sql.SQL(" and ").join(
        equal.format(name, sql.SQL("any ({})").format(array))
        for equal, name, array in zip(equals, names, arrays, strict=True)
    )
    if len(chosen) == 1:
        return each, parameters
    # In a from clause, unnest would split composite values into their columns.
    wanted = [sql.Identifier(f"pgcombine_{place}") for place in range(len(chosen))]
    whole = sql.SQL("{} and exists (select from (select {}) pgcombine_wanted where {})").format(
        each,
        sql.SQL(", ").join(
            sql.SQL("unnest({}) as {}").format(array, one) for array, one in zip(arrays, wanted, strict=True)
        ),
        sql.SQL(" and ").join(equal.format(name, one) for equal, name, one in zip(equals, names, wanted, strict=True)),
    )
    return whole, parameters * 2


def _misfit(error: Exception) -> tuple[str | None, str | None]:
    """Return the SQLSTATE and the reason of an error that says that a caller's values don't fit, else no reason."""
    sqlstate, reason, _ = parts_of(getattr(error, "orig", error))  # SQLAlchemy wraps the driver's error
    misfit = isinstance(error, (psycopg.DataError, UnicodeError)) or (sqlstate or "").startswith(_MISFITS)
    # psycopg itself raises a ProgrammingError for a value of a class without a text form
    if misfit or (isinstance(error, psycopg.ProgrammingError) and sqlstate is None):
        return sqlstate, reason
    return sqlstate, None


def _pairs(found: Sequence[Column]) -> Callable[[tuple[Any, ...]], tuple[Any, Any]]:
    """Return a function that splits a row of all columns into a key and a value."""
    keys = sum(column.role == "key" for column in found)

    def pair(row: tuple[Any, ...]) -> tuple[Any, Any]:
        key, value = tuple(map(_frozen, row[:keys])), tuple(row[keys:])
        return key if len(key) > 1 else key[0], value if len(value) > 1 else value[0]

    return pair


def _selected(found: Sequence[Column]) -> sql.Composed:
    """Return the list of all columns for a select, with the text of keys that couldn't be hashed otherwise."""
    return sql.SQL(", ").join(
        name_of(column.name) + sql.SQL(f"::{column.shown}" if column.role == "key" and column.shown else "")
        for column in found
    )


def _frozen(part: Any) -> Any:
    return tuple(map(_frozen, part)) if isinstance(part, list) else part  # an array becomes hashable


def _thawed(part: Any) -> Any:
    return [_thawed(one) for one in part] if isinstance(part, tuple) else part
