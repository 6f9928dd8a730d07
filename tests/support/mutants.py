"""Mutants: broken variants of pgcombine. A test of a guarantee is worth little if it passes on a mutant.

The functions here change SQL functions in the database of ``conn``, which belongs to one test. They raise
AssertionError if the text to replace is missing. In that case, adapt the mutant to the new code.
"""

from __future__ import annotations

import psycopg


def mutate_functions(conn: psycopg.Connection, old: str, new: str) -> None:
    """Replace the text ``old`` by ``new`` in the body of each function of pgcombine that contains ``old``."""
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
    # Stored statements of passes contain texts of the changed functions, so they are generated again.
    conn.execute("select pgcombine_internal.regenerate_pass(queue) from pgcombine.queue")


def without_claim(conn: psycopg.Connection) -> None:
    """Passes don't lock their bucket, and the journal doesn't make one of two concurrent passes fail."""
    mutate_functions(conn, "for update skip locked", "")
    rivals_in_the_journal(conn)


# A pass takes the updates between the bucket's old mark and a new one, which it records in the journal.


def without_mark(conn: psycopg.Connection) -> None:
    """A pass doesn't record its mark, so the next pass takes the same updates again."""
    mutate_functions(conn, "if end_pass.updates > 0 or _plan.range_mask > 0", "if false")


def late_mark(conn: psycopg.Connection) -> None:
    """The recorded mark comes from the end of the pass, so it sees updates that the pass didn't take."""
    mutate_functions(conn, "_plan.pass, _plan.mark::", "_plan.pass, pgcombine_internal.current_mark()::")


def beyond_the_mark(conn: psycopg.Connection) -> None:
    """A pass takes all updates that its statement sees, also those that committed after the mark was taken."""
    mutate_functions(conn, "txid_visible_in_snapshot(pgcombine_tx, $6)", "true")


def open_forgotten(conn: psycopg.Connection) -> None:
    """Passes never take updates of transactions that were in progress at the old mark."""
    mutate_functions(conn, "not txid_visible_in_snapshot(pgcombine_tx, ($4)", "pgcombine_tx >= txid_snapshot_xmax(($4)")


def open_of_one_mark(conn: psycopg.Connection) -> None:
    """With one mark for each hash range, only the first mark says which transactions were in progress."""
    mutate_functions(
        conn,
        "not txid_visible_in_snapshot(pgcombine_tx, ($4)",
        "(not txid_visible_in_snapshot(pgcombine_tx, ($4)[1]) or pgcombine_tx >= (select min(txid_snapshot_xmax(m)) "
        "from unnest($4) m)) and not txid_visible_in_snapshot(pgcombine_tx, ($4)",
    )


def torn_keys(conn: psycopg.Connection) -> None:
    """The hash also covers a value column, so a key's updates may be in different hash ranges."""
    mutate_functions(conn, "hash_record_extended(row(%s), 0)", "hash_record_extended(row(%s, n), 0)")


def own_is_seen(conn: psycopg.Connection) -> None:
    """The mark counts the pass's own transaction as ended."""
    mutate_functions(conn, "then\n               format('%s:%s:%s'", "and false then\n               format('%s:%s:%s'")


def one_mark_for_all_slices(conn: psycopg.Connection) -> None:
    """A pass over a hash range counts as a pass over all keys."""
    mutate_functions(conn, "if _last.range_mask is null then", "if true then")


def rivals_in_the_journal(conn: psycopg.Connection) -> None:
    """Two passes may record the same number. Later passes read only the record with the later end."""
    mutate_functions(conn, "order by p.pass desc", "order by p.pass desc, p.ended desc")
    conn.execute("alter table pgcombine.pass drop constraint pass_pkey")


# the lock of all buckets


def claim_in_one_statement(conn: psycopg.Connection) -> None:
    """A session that waited for the lock of all buckets continues with the old list of buckets."""
    mutate_functions(
        conn,
        "perform from pgcombine.bucket b where b.queue = claim_buckets.queue and b.bucket = 0 for update;",
        "found := true;",
    )
