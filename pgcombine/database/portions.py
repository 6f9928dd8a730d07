"""Dropping many tables in several transactions, since one transaction has room for a limited number of locks."""

from __future__ import annotations

from pgcombine.database import sqlfiles
from pgcombine.database.connect import Connection, one


def drop_tables(connection: Connection, tables: list[str], *, cascade: bool = False) -> None:
    """Drop tables with their partitions, in portions. The connection must be in autocommit, outside a transaction.

    Tables that don't exist are left out, so the call may be repeated. With ``cascade`` this also drops what depends on
    the tables.
    """
    while (portion := one(connection, sqlfiles.query("drop_portion"), tables)[0]) is not None:
        connection.execute(f"drop table {portion} {'cascade' if cascade else ''}".encode())
