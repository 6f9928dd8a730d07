"""Fronts and nodes for the tests. A front is a database that reaches its nodes through postgres_fdw.

``pgcombine/docs/shards.md`` describes fronts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import psycopg
from psycopg import sql

from support.queues import make_queue


def connected(dsn: str) -> psycopg.Connection:
    return psycopg.connect(dsn, autocommit=True)


def add_node(front: psycopg.Connection, node: str, dsn: str, *, role: str = "current_user") -> None:
    """Make the foreign server ``node`` for the database ``dsn``, with a user mapping."""
    with connected(dsn) as conn:
        address = conn.execute("select host(inet_server_addr()), inet_server_port()").fetchone()
        assert address is not None
        options = {"host": address[0], "port": str(address[1]), "dbname": conn.info.dbname}
        front.execute("create extension if not exists postgres_fdw")
        front.execute(
            sql.SQL("create server {} foreign data wrapper postgres_fdw options ({})").format(
                sql.Identifier(node), listed(options)
            )
        )
        add_mapping(front, node, role, conn.info.user, conn.info.password)


def add_mapping(front: psycopg.Connection, node: str, role: str, user: str, password: str) -> None:
    front.execute(
        sql.SQL("create user mapping for {} server {} options ({})").format(
            sql.SQL("current_user") if role == "current_user" else sql.Identifier(role),
            sql.Identifier(node),
            listed({"user": user, "password": password}),
        )
    )


def listed(options: dict[str, str]) -> sql.Composed:
    return sql.SQL(", ").join(
        sql.SQL("{} {}").format(sql.Identifier(name), sql.Literal(value)) for name, value in options.items()
    )


def make_shards(dsn: str, shards: Iterable[int], queue: str = "wc", **options: object) -> None:
    """Make the queues of the given shards in the database ``dsn``."""
    with connected(dsn) as conn:
        for shard in shards:
            make_queue(conn, f"{queue}_{shard:02}", **({"buckets": 1} | options))  # type: ignore[arg-type]


def make_front(
    front: psycopg.Connection, nodes: Sequence[str], queue: str = "wc", *, shards: int = 4, **options: object
) -> None:
    """Make a front, and make its shards on ``nodes`` in turn. The foreign servers are named n0, n1 and so on."""
    for number, dsn in enumerate(nodes):
        make_shards(dsn, range(number, shards, len(nodes)), queue, **options)
        add_node(front, f"n{number}", dsn)
    front.execute("select pgcombine.create_front(%s, %s)", (queue, [f"n{number}" for number in range(len(nodes))]))
