"""Copying a queue from other servers: its values, its pending and quarantined updates, and the tokens of its writes.

Payloads that the sources have, and records of updates that they refused, are copied, too.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import Any

import psycopg
from psycopg import sql

from pgcombine import schema
from pgcombine.database.connect import Connection, one
from pgcombine.errors import ReplicaError

_CHUNK_ROWS = 1000


@dataclass(frozen=True)
class Copy:
    """The slots of a queue (None: all) that are copied from one source. A slot is the low 8 bits of a key's hash."""

    queue: str
    source: str
    slots: list[int] | None


@contextmanager
def snapshot(source: Connection) -> Iterator[Connection]:
    """Yield ``source`` in a read-only transaction with one snapshot. The connection is closed at the end.

    Raises SchemaError if the schema there isn't this program's.
    """
    with closing(source):
        schema.check_connection(source)
        source.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
        source.read_only = True
        with source.transaction():
            source.execute("select pgcombine_internal.portable_text()")  # this statement also takes the snapshot
            yield source


def copy_queue(
    queue: str, copies: Sequence[tuple[Copy, Connection]], server: str, target: Connection
) -> tuple[int, int]:
    """Replace the queue on ``server`` with the ``copies``, each given with a connection to its source.

    ``target`` is a connection to ``server``. The tokens of writes go into its temporary table ``handoff_stage``, and
    the records of refused updates into ``pgcombine.handoff_refused``. Returns the numbers of values and updates copied.
    Raises ReplicaError if a source lacks the queue, or if two sources define the queue differently, and the errors of
    ``handoff_rebuild_queue``.
    """
    values = updates = 0
    first = None
    for number, (copy, source) in enumerate(copies):
        shape, definition, columns, values_sql, updates_sql, tokens_sql, refused_sql = one(
            source,
            "select * from pgcombine_internal.handoff_copy_sql(%s, %s, %s)",
            *(queue, copy.slots, server),
        )
        if shape is None:
            raise ReplicaError(f'queue "{queue}" isn\'t on server "{copy.source}": name another source', queue=queue)
        if number and shape != first:
            raise ReplicaError(
                f'queue "{queue}" on server "{copy.source}" isn\'t the same as on server "{copies[0][0].source}": '
                "its definition differs, or it was dropped and created again",
                queue=queue,
            )
        if not number:
            first = shape
            target.execute("select pgcombine_internal.handoff_rebuild_queue(%s, %s, %s)", (queue, definition, shape))
        values += _pipe(source, values_sql, target, _into(queue, "values", columns))
        updates += _pipe(source, updates_sql, target, _into(queue, "updates", columns))
        _pipe(source, tokens_sql, target, sql.SQL("pg_temp.handoff_stage"))
        _pipe(source, refused_sql, target, sql.SQL("pgcombine.handoff_refused"))
    return values, updates


def _into(queue: str, table: str, columns: str) -> sql.Composed:
    return sql.SQL("{} ({})").format(sql.Identifier("pgcombine", f"{queue}_{table}"), sql.SQL(columns))


def _pipe(source: psycopg.Connection[Any], query: str, target: psycopg.Connection[Any], into: sql.Composable) -> int:
    """Copy the rows of a query into a table of another server. Returns their number."""
    with source.cursor() as reader, target.cursor() as writer:
        with (
            reader.copy(sql.SQL("copy ({}) to stdout").format(sql.SQL(query))) as rows,
            writer.copy(sql.SQL("copy {} from stdin").format(into)) as copy,
        ):
            found = iter(rows)
            while chunk := b"".join(itertools.islice(found, _CHUNK_ROWS)):
                copy.write(chunk)
        return writer.rowcount
