"""The nodes of a database's fronts, and what they tell of the shards.

A node is a foreign server that has a shard, or to or from which a shard is being moved.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

from psycopg.conninfo import make_conninfo

from pgcombine.database.connect import Connection, Database, connect, dicts
from pgcombine.database.sqlfiles import query
from pgcombine.errors import InvalidDefinitionError, translated


def shards(connection: Connection) -> list[dict[str, Any]]:
    """Return a dict for each shard, those with a problem first.

    A dict has ``front``, ``shard``, ``node``, ``problem`` and other columns of the view ``pgcombine.front_stat``. These
    others are None if ``problem`` says why the node tells nothing of the shard.
    """
    return dicts(connection, query("web_fronts"))


def node_dsns(dsn: Database) -> dict[str, str]:
    """Return the nodes by name with their connection strings, made from the caller's user mappings.

    Raises InvalidDefinitionError if the database has no front, or if the caller lacks a user mapping with options.
    """
    with translated(), closing(connect(dsn)) as connection:
        found = connection.execute(query("shard_nodes")).fetchall()
    if not found:
        raise InvalidDefinitionError("the database has no front: select pgcombine.create_front(…) makes one")
    return {node: make_conninfo(**address) for node, address in found}
