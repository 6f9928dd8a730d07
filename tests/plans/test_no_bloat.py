"""A pass itself writes values and a row of the journal, but no rows of the catalog or of other tables that it reads.

Passes run so often that dead rows would bloat these tables, most of all while a session holds an old snapshot.
"""

from __future__ import annotations

import psycopg
import pytest
from support.audit import audit
from support.queues import add, make_queue, one, values, word_in

from pgcombine.worker.passes import open_connection, run_pass

CATALOG = ("pg_class", "pg_attribute", "pg_type", "pg_depend", "pg_proc", "pg_index")
OWN = ("queue", "queue_column", "bucket", "combiner", "observer", "failure", "quarantined_key")


def versions(conn: psycopg.Connection) -> list[tuple[str, str, str]]:
    """The position of each row of the tables in OWN, and the id of the transaction that wrote the row."""
    return [
        row
        for table in OWN
        for row in conn.execute(
            f"select '{table}', ctid::text, xmin::text from pgcombine.{table} order by 2"  # noqa: S608
        ).fetchall()
    ]


def new_rows(conn: psycopg.Connection) -> dict[str, int]:
    """The number of rows that this transaction and its subtransactions have written in each table of CATALOG."""
    count = "select count(*) from {} where age(xmin) <= age(pg_current_xact_id()::xid)"
    return {table: one(conn, count.format(table)) for table in CATALOG}


@pytest.mark.parametrize("limit", [1000, 5])
def test_a_pass_makes_no_catalog_rows(conn: psycopg.Connection, limit: int) -> None:
    make_queue(conn, buckets=1, pass_limit=limit)
    audit(conn)
    add(conn, [(f"w{i}", 1) for i in range(60)])
    with conn.transaction():
        conn.execute("select pg_current_xact_id()")
        taken = one(conn, "select updates from pgcombine.combine('wc', 0)")
        assert taken > 0
        assert new_rows(conn) == dict.fromkeys(CATALOG, 0)
        conn.execute("create temporary table work (word text) on commit drop")
        assert new_rows(conn)["pg_class"] > 0, "the check misses a temporary table"


@pytest.mark.wc(buckets=2)
def test_passes_write_none_of_the_rows_that_they_read(conn: psycopg.Connection, dsn: str) -> None:
    audit(conn)
    word = word_in(conn, 1)
    before = versions(conn)
    with open_connection(dsn) as worker:
        for n in range(1, 6):
            add(conn, {word: 1})
            run_pass(worker, "wc", 1)
            assert values(conn) == {word: n}
        add(conn, {word: 1})
        one(conn, "select updates from pgcombine.combine('wc')")
    assert versions(conn) == before
    assert one(conn, "select count(*) from pgcombine.wc_updates") == 6, "a pass has changed or deleted updates"
    dead = "select sum(pg_stat_get_dead_tuples(relid)) from pg_partition_tree('pgcombine.wc_updates') where isleaf"
    conn.execute("select pg_stat_force_next_flush()")
    assert one(conn, dead) == 0
    conn.execute("select pgcombine.pause('wc')")
    assert versions(conn) != before, "the check misses a write"
