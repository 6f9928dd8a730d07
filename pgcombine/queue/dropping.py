"""Dropping a queue in several transactions, since one transaction has room for a limited number of locks."""

from __future__ import annotations

from psycopg import sql

from pgcombine.database.connect import Connection, one, read_committed
from pgcombine.database.portions import drop_tables
from pgcombine.database.sqlfiles import query
from pgcombine.errors import QueueError, translated


def drop(connection: Connection, queue: str, *, force: bool = False) -> None:
    """Drop a queue with its values, as :meth:`pgcombine.CombineQueue.drop` does, but in portions.

    The first transaction removes the queue, and gives its tables other names. Further transactions drop the partitions
    of these tables, and then the tables. If this is interrupted, call it again. The connection must be in
    autocommit, outside a transaction. Raises the errors of that method, and QueueError if an object depends on a table.
    """
    tables = [f"{queue}_updates", f"{queue}_values"]
    names = [sql.Identifier("pgcombine", f"{table}_dropped").as_string(connection) for table in tables]
    with translated(queue=queue):
        if not one(connection, "select coalesce(to_regclass(%s), to_regclass(%s)) is not null", *names)[0]:
            with read_committed(connection), connection.transaction():
                connection.execute("select pgcombine_internal.close_queue(%s, %s, false)", (queue, force))
                parents = [sql.Identifier("pgcombine", table) for table in tables]
                present = [parent.as_string(connection) for parent in parents]
                if obstacle := connection.execute(query("drop_obstacle").encode(), (present,)).fetchone():
                    raise QueueError(
                        f'queue "{queue}" can\'t be dropped: {obstacle[0]} depends on it (drop that first)', queue=queue
                    )
                for parent, table in zip(parents, tables, strict=True):
                    new = sql.Identifier(f"{table}_dropped")
                    connection.execute(sql.SQL("alter table {} rename to {}").format(parent, new))
        drop_tables(connection, names)
