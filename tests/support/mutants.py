"""Broken variants of pgcombine in a test's own database: a test that can't tell them from the real one tests nothing.

Each function changes the database that ``conn`` is connected to, and raises AssertionError if there is nothing to
change: the code has changed then, and the mutant must follow it.
"""

from __future__ import annotations

import re

import psycopg


def mutate_pass(conn: psycopg.Connection, pattern: str, replacement: str, queue: str = "wc") -> None:
    """Replace a regular expression in the generated statement of a queue, everywhere."""
    row = conn.execute("select pass from pgcombine.queue where queue = %s", (queue,)).fetchone()
    assert row is not None
    changed, count = re.subn(pattern, lambda _: replacement, row[0])
    assert count, f"the pass has no {pattern!r} to break:\n{row[0]}"
    conn.execute("update pgcombine.queue set pass = %s where queue = %s", (changed, queue))


def mutate_functions(conn: psycopg.Connection, old: str, new: str) -> None:
    """Replace the text ``old`` in every function of the schema that has it."""
    found = conn.execute(
        "select pg_get_functiondef(oid) from pg_proc "
        "where pronamespace in ('pgcombine'::regnamespace, 'pgcombine_internal'::regnamespace) "
        "and strpos(prosrc, %s) > 0",
        (old,),
    ).fetchall()
    assert found, f"no function has {old!r} to break"
    for (definition,) in found:
        head, body = definition.split("AS $", 1)
        conn.execute(f"{head}AS ${body.replace(old, new)}")


def without_claim(conn: psycopg.Connection) -> None:
    """Passes that don't lock their bucket, nor find one another in the journal."""
    mutate_functions(conn, "for update skip locked", "")
    rivals_in_the_journal(conn)


# The interval of a pass, and its mark


def without_mark(conn: psycopg.Connection) -> None:
    """A pass that doesn't write down what it took."""
    mutate_functions(conn, "if end_pass.updates > 0 or", "if false and")


def late_mark(conn: psycopg.Connection) -> None:
    """The mark is that of the pass's end, not of what its statement saw."""
    mutate_functions(conn, "p.pass, p.mark,", "p.pass, pgcombine_internal.current_mark(),")


def beyond_the_mark(conn: psycopg.Connection) -> None:
    """The statement takes all that it sees; under read committed its snapshot is younger than the mark."""
    mutate_functions(conn, "plan_pass.bucket, _plan.mark) l", "plan_pass.bucket) l")


def open_forgotten(conn: psycopg.Connection) -> None:
    """What was in progress in the mark is never looked for."""
    mutate_functions(conn, "if cardinality(marks) > 1 or txid_snapshot_xmin(marks[1]) < _end then", "if false then")


def open_of_one_mark(conn: psycopg.Connection) -> None:
    """What was in progress is looked for by the mark of one slice."""
    mutate_functions(
        conn, "unnest(marks) m (mark), txid_snapshot_xip", "unnest(marks[1:1]) m (mark), txid_snapshot_xip"
    )


def own_is_seen(conn: psycopg.Connection) -> None:
    """The mark counts the pass's own transaction as ended."""
    mutate_functions(conn, "then\n               format('%s:%s:%s'", "and false then\n               format('%s:%s:%s'")


def one_mark_for_all_slices(conn: psycopg.Connection) -> None:
    """A pass over a slice counts as one over all keys."""
    mutate_functions(conn, "if _last.mask is null then", "if true then")


def rivals_in_the_journal(conn: psycopg.Connection) -> None:
    """Two passes may have the same number: the one that is written last counts."""
    mutate_functions(conn, "on conflict (queue, bucket, pass) do nothing", "")
    mutate_functions(conn, "order by p.pass desc", "order by p.pass desc, p.ended desc")
    conn.execute("alter table pgcombine.pass drop constraint pass_pkey")


# The claim of all buckets


def claim_in_one_statement(conn: psycopg.Connection) -> None:
    """Whoever waits for the claim goes on with the buckets that there were before."""
    mutate_functions(
        conn,
        "perform from pgcombine.bucket b where b.queue = claim_buckets.queue and b.bucket = 0 for update;",
        "found := true;",
    )
