"""pg_ivm (https://github.com/sraoss/pg_ivm): each statement on a table updates a view of its sums.

A statement locks the view until its transaction ends, so writers wait for each other even with different keys.
"""

from __future__ import annotations

from pgcombine.database.connect import Connection

from .contender import Contender, extension_missing, sql_file


class Ivm(Contender):
    """Inserts rows into a table, whose sums pg_ivm keeps current in a view. There is no consumer."""

    name = "pg_ivm"
    summary = "rows are inserted into a table; pg_ivm updates a view of their sums in the writer's transaction"
    tables = ("bench.event", "bench.ivm")
    totals_query = "select word, n from bench.ivm"
    read_query = "select n from bench.ivm where word = %s"

    def missing(self, connection: Connection) -> str | None:
        return extension_missing(connection, "pg_ivm", "its repository, with PostgreSQL's header files")

    def make(self, connection: Connection) -> None:
        connection.execute(sql_file("ivm"))

    def write(self, source: str) -> str:
        return f"insert into bench.event (word, n) select word, 1 {source};\n"

    def one(self, word: str) -> str:
        return f"insert into bench.event (word, n) values ({word}, 1)"  # noqa: S608
