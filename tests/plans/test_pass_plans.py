"""What a pass and a look at one key touch: one partition of each table, and no more rows than they need."""

from __future__ import annotations

from typing import Any

import psycopg
from support.queues import add, bucket_of, combine_all, make_queue, one, word_in
from support.sessions import in_background, waits

from pgcombine.worker import open_connection, run_pass

LOCKED = """
select distinct c.relname from pg_locks l join pg_class c on c.oid = l.relation
where l.pid = %s and c.relnamespace = 'pgcombine'::regnamespace and c.relkind = 'r' and starts_with(c.relname, %s)
"""


def tables_of_queue(conn: psycopg.Connection, pid: int, queue: str = "wc") -> list[str]:
    """The queue's partitions that the session holds locks on."""
    found = conn.execute(LOCKED, (pid, f"{queue}_")).fetchall()
    return sorted(table.removeprefix(f"{queue}_") for (table,) in found)


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for below in plan.get("Plans", []) for node in nodes(below))]


def explain(conn: psycopg.Connection, statement: str, *, analyze: bool = False) -> list[dict[str, Any]]:
    """The nodes of the statement's plan; with ``analyze`` it is run, too."""
    options = "format json, analyze, timing off" if analyze else "format json"
    return nodes(one(conn, f"explain ({options}) {statement}")[0]["Plan"])


def tables_read(plan: list[dict[str, Any]]) -> set[str]:
    """The queue's own; looking into the catalog costs little."""
    return {node["Relation Name"] for node in plan if node.get("Relation Name", "").startswith("wc_")}


def test_a_pass_locks_one_partition_of_each_table(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=16)
    add(conn, {word_in(conn, 5): 1, word_in(conn, 6): 1})
    with psycopg.connect(dsn) as psql:
        for level in (psycopg.IsolationLevel.READ_COMMITTED, psycopg.IsolationLevel.REPEATABLE_READ):
            psql.isolation_level = level
            psql.execute("select pgcombine.combine('wc', 5)")
            assert tables_of_queue(conn, psql.info.backend_pid) == ["updates_b0005", "values_b0005"]
            psql.rollback()


def test_the_tenth_pass_of_a_worker_locks_no_more(conn: psycopg.Connection, dsn: str) -> None:
    """No generic plan: a prepared statement's would lock every partition."""
    make_queue(conn, buckets=16)
    word = word_in(conn, 5)
    with open_connection(dsn) as worker:
        for _ in range(9):
            add(conn, {word: 1})
            run_pass(worker, "wc", 5)
        add(conn, {word: 1})
        with psycopg.connect(dsn) as holder:
            holder.execute("select from pgcombine.wc_values where word = %s for update", (word,))
            with in_background(lambda: run_pass(worker, "wc", 5)):
                waits(conn, worker.info.backend_pid)
                found = tables_of_queue(conn, worker.info.backend_pid)
                holder.rollback()
    assert found == ["updates_b0005", "values_b0005"]


def test_a_bounded_pass_locks_one_partition_of_each_table(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=16, pass_limit=5)
    word = word_in(conn, 5)
    cases = {"fold": [(word, 1)] * 20, "slice": [(word_in(conn, 5, start=1000 * i), 1) for i in range(20)]}
    for updates in cases.values():
        add(conn, updates)
        with psycopg.connect(dsn) as psql:
            psql.execute("select pgcombine.combine('wc', 5)")
            touched = tables_of_queue(conn, psql.info.backend_pid)
        assert set(touched) <= {"updates_b0005", "values_b0005"}
        assert "updates_b0005" in touched
        combine_all(conn)


def big(conn: psycopg.Connection, keys: int = 200_000) -> str:
    """A queue of 4 buckets with many values; returns a word in bucket 1."""
    make_queue(conn, buckets=4)
    conn.execute("insert into pgcombine.wc_values select 'w' || i, 1 from generate_series(1, %s) i", (keys,))
    conn.execute("analyze pgcombine.wc_values")
    return word_in(conn, 1)


def test_a_small_pass_does_not_read_big_values(conn: psycopg.Connection) -> None:
    word = big(conn)
    add(conn, {word: 1})
    plan = explain(conn, one(conn, "select pgcombine.combine_sql('wc', 1)"), analyze=True)
    assert {bucket_of(table) for table in tables_read(plan)} == {1}
    assert [node for node in plan if node["Node Type"] == "Seq Scan" and "_values" in node["Relation Name"]] == []
    touched = [node for node in plan if "_values" in node.get("Relation Name", "") and "Scan" in node["Node Type"]]
    assert touched
    assert all(node["Actual Rows"] * node["Actual Loops"] <= 1 for node in touched)


def test_the_pass_itself_reads_few_values(conn: psycopg.Connection) -> None:
    """As combine runs it: whatever it plans, the counters of the table tell."""
    word = big(conn)
    for updates in ({word: 1}, {word_in(conn, 1, start=1000 * i): 1 for i in range(50)}):
        add(conn, updates)
        scans = "select coalesce(seq_tup_read, 0) from pg_stat_xact_user_tables where relname = 'wc_values_b0001'"
        with conn.transaction():
            assert conn.execute("select keys from pgcombine.combine('wc', 1)").fetchone() == (len(updates),)
            assert one(conn, scans) == 0


def test_a_big_pass_may_read_all_values(conn: psycopg.Connection) -> None:
    """The other way round: a pass over most keys isn't a loop of index look-ups."""
    big(conn, 20_000)
    conn.execute("insert into pgcombine.wc_updates select word, 1 from pgcombine.wc_values")
    plan = explain(conn, one(conn, "select pgcombine.combine_sql('wc', 1)"))
    assert {"Hash Join", "Merge Join"} & {node["Node Type"] for node in plan}
    assert {bucket_of(table) for table in tables_read(plan)} == {1}


def plain(plan: list[dict[str, Any]]) -> set[str]:
    """The partitions from which values and plain updates are read; packed ones are read of all buckets."""
    return tables_read([node for node in plan if "pgcombine_packed" not in node.get("Filter", "")])


def test_current_with_a_key_reads_one_partition_of_each(conn: psycopg.Connection) -> None:
    word = big(conn)
    add(conn, {word: 1})
    plan = explain(conn, f"select n from pgcombine.wc_current where word = '{word}'", analyze=True)  # noqa: S608
    assert sorted(table for table in plain(plan) if "_b0" in table) == ["wc_updates_b0001", "wc_values_b0001"]
    assert [node for node in plan if node["Node Type"] == "Seq Scan" and "_values" in node["Relation Name"]] == []


def test_current_with_a_parameter_reads_one_partition_of_each(conn: psycopg.Connection, dsn: str) -> None:
    """At run time at the latest, and without locks on the other partitions where the plan is a custom one."""
    word = big(conn)
    with psycopg.connect(dsn) as reader:
        reader.execute("select n from pgcombine.wc_current where word = %s", (word,))
        locked = tables_of_queue(conn, reader.info.backend_pid)
    assert [table for table in locked if table.startswith("values")] == ["values_b0001"]


def test_without_packed_updates_current_locks_one_partition_of_each(conn: psycopg.Connection, dsn: str) -> None:
    """As with more than 64 buckets, or where nothing can be packed."""
    make_queue(conn, buckets=65)
    add(conn, {"a": 1})
    with psycopg.connect(dsn) as reader:
        reader.execute("select n from pgcombine.wc_current where word = %s", ("a",))
        locked = tables_of_queue(conn, reader.info.backend_pid)
    assert len({bucket_of(table) for table in locked}) == 1
    assert len(locked) == 2


def test_current_with_several_key_columns(conn: psycopg.Connection) -> None:
    make_queue(conn, key=["word text", "day date"], buckets=4)
    statement = "select n from pgcombine.wc_current where word = 'a' and day = '2024-02-29'"
    read = {table for table in plain(explain(conn, statement)) if "_updates_" in table or "_values_" in table}
    assert len(read) == 2
    assert len({bucket_of(table) for table in read}) == 1
