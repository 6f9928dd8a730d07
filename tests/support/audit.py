"""Record the changes that a queue reports to observers, and check that they form unbroken chains.

In an unbroken chain, each change of a word has as its old value the new value of the word's previous change.
``audit`` adds an SQL observer to a queue. In the transaction of each pass, the observer appends all changes to a table.
The queue is a word count (``word``, ``n``), as ``make_queue`` makes it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import psycopg
from psycopg import sql

from support.queues import values


class Change(NamedTuple):
    word: str
    old: int | None
    new: int | None


def audit(conn: psycopg.Connection, queue: str = "wc") -> None:
    table = sql.Identifier("public", f"{queue}_audit")
    conn.execute(sql.SQL("create table {} (id bigserial, word text, old bigint, new bigint)").format(table))
    statement = sql.SQL("insert into {} (word, old, new) select word, old_n, new_n from changes").format(table)
    conn.execute("select pgcombine.add_observer(%s, 'audit', %s)", (queue, statement.as_string(conn)))


def audited(conn: psycopg.Connection, queue: str = "wc") -> list[Change]:
    """All changes so far, in the order in which they were appended."""
    table = sql.Identifier("public", f"{queue}_audit")
    return [
        Change(*row)
        for row in conn.execute(sql.SQL("select word, old, new from {} order by id").format(table)).fetchall()
    ]


def follow(changes: Iterable[Change]) -> dict[str, int]:
    """The values after all changes. Raises AssertionError if a chain breaks, or if an old value equals the new one."""
    state: dict[str, int] = {}
    for change in changes:
        assert change.old == state.get(change.word), f"{change} follows {state.get(change.word)}"
        assert change.old != change.new, f"{change} is no change"
        if change.new is None:
            del state[change.word]
        else:
            state[change.word] = change.new
    return state


def check(conn: psycopg.Connection, expected: dict[str, int], queue: str = "wc") -> None:
    """Check that the changes of a drained queue form unbroken chains that lead to its values.

    The values must be those in ``expected`` that aren't 0.
    """
    assert values(conn, queue) == {word: n for word, n in expected.items() if n}
    assert follow(audited(conn, queue)) == values(conn, queue)
