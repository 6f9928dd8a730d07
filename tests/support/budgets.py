"""Budgets for the tests: ``seats``, with the key ``show``."""

from __future__ import annotations

from typing import Any

import psycopg
from psycopg import sql

from support.queues import one


def make_budget(conn: psycopg.Connection, budget: str = "seats", **options: object) -> None:
    arguments = {"budget": budget, "key": ["show int"]} | options
    call = sql.SQL("select pgcombine.create_budget({})").format(
        sql.SQL(", ").join(sql.SQL("{} => %s").format(sql.Identifier(name)) for name in arguments)
    )
    conn.execute(call, list(arguments.values()))


def call(conn: psycopg.Connection, function: str, *arguments: Any, budget: str = "seats", **named: Any) -> Any:
    """Call a function of a budget, such as ``take``. An argument's type follows from the function's."""
    given = [sql.SQL("{}").format(argument) for argument in arguments]
    given += [sql.SQL("{} => {}").format(sql.Identifier(name), argument) for name, argument in named.items()]
    name = sql.Identifier("pgcombine", f"{budget}_{function}")
    return one(conn, sql.SQL("select {}({})").format(name, sql.SQL(", ").join(given)).as_string(conn))


def has(conn: psycopg.Connection, budget: str = "seats") -> dict[Any, tuple[Any, Any]]:
    """What each key of a budget has: available and held."""
    rows = conn.execute(sql.SQL("select * from {}").format(sql.Identifier("pgcombine", budget))).fetchall()
    return {key: (available, held) for key, available, held in rows}


def problems(conn: psycopg.Connection, budget: str = "seats") -> list[str]:
    return [problem for (problem,) in conn.execute("select * from pgcombine.verify_budget(%s)", (budget,))]
