"""Broken variants of pgcombine in a test's own database: a test that can't tell them from the real one tests nothing.

Each function changes the database that ``conn`` is connected to, and raises AssertionError if there is nothing to
change: the code has changed then, and the mutant must follow it.
"""

from __future__ import annotations

import re

import psycopg


def mutate_pass(
    conn: psycopg.Connection, pattern: str, replacement: str, queue: str = "wc", *, part: str = "pass"
) -> None:
    """Replace a regular expression in the generated statement ``part`` (pass or fold) of a queue, everywhere."""
    assert part in ("pass", "fold")
    row = conn.execute("select pass, fold from pgcombine.queue where queue = %s", (queue,)).fetchone()
    assert row is not None
    changed, count = re.subn(pattern, lambda _: replacement, row[0 if part == "pass" else 1])
    assert count, f"the {part} has no {pattern!r} to break:\n{row[0]}"
    set_part = {"pass": "update pgcombine.queue set pass = %s where queue = %s"}
    conn.execute(set_part.get(part, "update pgcombine.queue set fold = %s where queue = %s"), (changed, queue))


def mutate_functions(conn: psycopg.Connection, old: str, new: str) -> None:
    """Replace the text ``old`` in every function of the schema that has it."""
    found = conn.execute(
        "select pg_get_functiondef(oid) from pg_proc "
        "where pronamespace = 'pgcombine'::regnamespace and strpos(prosrc, %s) > 0",
        (old,),
    ).fetchall()
    assert found, f"no function has {old!r} to break"
    for (definition,) in found:
        head, body = definition.split("AS $", 1)
        conn.execute(f"{head}AS ${body.replace(old, new)}")


def without_claim(conn: psycopg.Connection) -> None:
    """Passes that don't lock their bucket."""
    mutate_functions(conn, "for update skip locked", "")


def without_delete(conn: psycopg.Connection) -> None:
    """A pass that leaves the updates that it took."""
    mutate_pass(conn, r"delete from %1\$s %3\$s", "delete from %1$s where false")
