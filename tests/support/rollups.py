"""Rollups for the tests. One statement compares a rollup's view with its query, so both see the same snapshot."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg


@dataclass
class Rollup:
    """``view`` selects from the rollup, ``query`` from its source, ``got`` from the function that reads the rollup by
    the keys of the query, ``q``. All must return the same rows."""

    name: str
    view: str
    query: str
    got: str

    @classmethod
    def make(
        cls,
        conn: psycopg.Connection,
        value: Sequence[str] = ("count(*) as n",),
        key: Sequence[str] = ("k",),
        *,
        name: str = "r",
        source: str = "src",
        filter: str | None = None,
        rounded: Mapping[str, str] | None = None,
        **options: Any,
    ) -> Rollup:
        """Create a rollup. ``rounded`` maps a column to the expression that is compared in its place."""
        arguments = {"filter": filter, "buckets": 2} | options
        call = "select pgcombine.create_rollup(%s, %s::text::regclass, %s, %s"
        call += "".join(f", {argument} => %s" for argument in arguments) + ")"
        conn.execute(call.encode(), (name, source, list(key), list(value), *arguments.values()))
        expressions, names = zip(*(part.rpartition(" as ")[::2] for part in [*key, *value]), strict=True)
        keys = [expression or column for expression, column in zip(expressions, names, strict=True)][: len(key)]
        query = f"select {', '.join([*key, *value])} from {source} where ({filter or 'true'})"  # noqa: S608
        query += "".join(f" and ({expression}) is not null" for expression in keys) + f" group by {', '.join(keys)}"
        shown = ", ".join((rounded or {}).get(column, column) for column in names)
        got = f"pgcombine.{name}_get({', '.join(f'k.{column}' for column in names[: len(key)])})"
        return cls(
            name,
            f"select {shown} from pgcombine.{name}",  # noqa: S608
            f"select {shown} from ({query}) as q",  # noqa: S608
            f"select {shown} from (select c.* from q as k cross join lateral {got} as c) as c",  # noqa: S608
        )

    def ready(self, conn: psycopg.Connection) -> bool:
        """Whether the rollup's backfill has ended in the snapshot of ``conn``."""
        ready = "select from pgcombine.rollup where queue = %s and ready_at is not null"
        return conn.execute(ready, (self.name,)).rowcount > 0

    def differing(self, conn: psycopg.Connection) -> list[tuple[Any, ...]]:
        """The rows in which the view (``v``) or the function (``g``) differs from the query (``q``)."""
        only = "(select '{0} but not {1}', * from (table {0} except all table {1}) as d)"
        every = " union all ".join(only.format(*pair) for pair in ("vq", "qv", "gq", "qg"))
        return conn.execute(
            f"with v as ({self.view}), q as ({self.query}), g as ({self.got}) {every}".encode()
        ).fetchall()

    def call(self, conn: psycopg.Connection, *procedures: str) -> None:
        """Call procedures such as ``backfill`` and ``drain``."""
        for procedure in procedures:
            conn.execute(f"call pgcombine.{procedure}(%s)".encode(), (self.name,))

    def verify(self, conn: psycopg.Connection, *, repair: bool = False) -> list[str]:
        found = conn.execute("select problem from pgcombine.verify_rollup(%s, %s)", (self.name, repair))
        return [problem for (problem,) in found]
