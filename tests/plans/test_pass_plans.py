"""The plans and locks of passes, and of statements that read one key."""

from __future__ import annotations

import re
from typing import Any

import psycopg
import pytest
from support.queues import add, bucket_of, combine_all, make_queue, one, pass_of, word_in, write_values

from pgcombine.queue.callbacks import NO_OBSERVERS, ChangeStream
from pgcombine.queue.combine_queue import CombineQueue
from pgcombine.worker.passes import open_connection, run_pass

LOCKED = """
select distinct regexp_replace(c.relname, '_s[0-9]+$', '') from pg_locks l join pg_class c on c.oid = l.relation
where l.pid = %s and c.relnamespace = 'pgcombine'::regnamespace and c.relkind = 'r' and c.relispartition
  and starts_with(c.relname, %s)
"""


def tables_of_queue(conn: psycopg.Connection, pid: int, queue: str = "wc") -> list[str]:
    """The partitions of the queue on which a session has locks, named by table and bucket, as in updates_b0001."""
    found = conn.execute(LOCKED, (pid, f"{queue}_")).fetchall()
    return sorted(table.removeprefix(f"{queue}_") for (table,) in found)


def nodes(plan: dict[str, Any]) -> list[dict[str, Any]]:
    return [plan, *(node for below in plan.get("Plans", []) for node in nodes(below))]


def explain(conn: psycopg.Connection, statement: str, *, analyze: bool = False) -> list[dict[str, Any]]:
    """The nodes of a statement's plan. With ``analyze``, the statement runs."""
    options = "format json, analyze, timing off" if analyze else "format json"
    return nodes(one(conn, f"explain ({options}) {statement}")[0]["Plan"])


def tables_read(plan: list[dict[str, Any]]) -> set[str]:
    """The tables of the queue in a plan. Names of partitions end with the bucket's number, as in wc_updates_b0001."""
    found = {node["Relation Name"] for node in plan if re.match("wc_(updates|values)", node.get("Relation Name", ""))}
    return {re.sub(r"_s\d+$", "", table) for table in found}


def test_a_bounded_pass_locks_one_partition_of_each_table(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=16, pass_limit=5)
    word = word_in(conn, 5)
    for updates in [(word, 1)] * 20, [(word_in(conn, 5, start=1000 * i), 1) for i in range(20)]:
        add(conn, updates)
        with psycopg.connect(dsn) as psql:
            psql.execute("select pgcombine.combine('wc', 5)")
            touched = tables_of_queue(conn, psql.info.backend_pid)
        assert set(touched) <= {"updates_b0005", "values_b0005"}
        assert "updates_b0005" in touched
        combine_all(conn)


def big(conn: psycopg.Connection, keys: int = 200_000) -> str:
    """Create a queue of 4 buckets with many values, and return a word in bucket 1."""
    make_queue(conn, buckets=4)
    write_values(conn, "insert into pgcombine.wc_values select 'w' || i, 1 from generate_series(1, %s) i", (keys,))
    conn.execute("analyze pgcombine.wc_values")
    return word_in(conn, 1)


def test_small_pass_reads_few_values(conn: psycopg.Connection) -> None:
    word = big(conn)
    add(conn, {word: 1})
    plan = explain(conn, pass_of(conn, 1), analyze=True)
    assert {bucket_of(table) for table in tables_read(plan)} == {1}
    assert [node for node in plan if node["Node Type"] == "Seq Scan" and "_values" in node["Relation Name"]] == []
    touched = [node for node in plan if "_values" in node.get("Relation Name", "") and "Scan" in node["Node Type"]]
    assert touched
    assert all(node["Actual Rows"] * node["Actual Loops"] <= 1 for node in touched)


def test_combine_scans_no_values(conn: psycopg.Connection) -> None:
    word = big(conn)
    for updates in ({word: 1}, {word_in(conn, 1, start=1000 * i): 1 for i in range(50)}):
        add(conn, updates)
        scans = "select coalesce(seq_tup_read, 0) from pg_stat_xact_user_tables where relname = 'wc_values_b0001'"
        with conn.transaction():
            assert conn.execute("select keys from pgcombine.combine('wc', 1)").fetchone() == (len(updates),)
            assert one(conn, scans) == 0


def test_large_pass_reads_and_inserts_values_in_the_order_of_the_index(conn: psycopg.Connection) -> None:
    """Sorted look-ups cost as little as a join with all values, so one plan suits few updates and many."""
    big(conn, 20_000)
    conn.execute("insert into pgcombine.wc_updates select word, 1 from pgcombine.wc_values order by random()")
    conn.execute("insert into pgcombine.wc_updates select 'x' || i, 1 from generate_series(1, 2000) i")
    plan = explain(conn, pass_of(conn, 1), analyze=True)
    assert not [node for node in plan if node["Node Type"] == "Seq Scan" and "_values" in node["Relation Name"]]
    (look_up,) = [node for node in plan if node.get("Index Name") == "wc_values_b0001_pkey"]
    (keys,) = [node for node in plan if node.get("Subplan Name") == "CTE pgcombine_folded"]
    assert look_up["Actual Loops"] == keys["Actual Rows"]
    assert next(node for node in nodes(keys) if "Sort" in node["Node Type"])
    added = "select array_agg(word order by ctid) = array_agg(word order by word) from pgcombine.wc_values_b0001 "
    assert one(conn, added + "where n = 1 and word ~ '^x'")


def test_old_statistics_do_not_affect_the_plan(conn: psycopg.Connection) -> None:
    """The plan depends on the number of updates that the pass itself counts."""
    big(conn)
    conn.execute("insert into pgcombine.wc_updates select 'w' || i, 1 from generate_series(1, 200000) i")
    conn.execute("analyze pgcombine.wc_updates")
    combine_all(conn)
    words = [word_in(conn, 1, start=1000 * i) for i in range(50)]
    scans = "select coalesce(seq_tup_read, 0) from pg_stat_xact_user_tables where relname = 'wc_values_b0001'"
    for call in (
        "pgcombine.combine('wc', 1)",
        "pgcombine_internal.run_pass('wc', 1, range_mask => 0, hash_range => 0)",
    ):
        add(conn, dict.fromkeys(words, 1))
        conn.execute("select pg_stat_force_next_flush()")  # so that the counters leave out earlier reads
        with conn.transaction():
            assert one(conn, f"select keys from {call}") == len(words)  # noqa: S608
            assert one(conn, scans) == 0


PLANNER = "select jsonb_object_agg(name, setting) from pg_settings where name ~ '^(enable_|jit|join_|from_)'"


@pytest.mark.parametrize("python", [False, True], ids=["sql", "python"])
def test_observers_and_combiners_run_with_default_planner_settings(
    conn: psycopg.Connection, dsn: str, python: bool
) -> None:
    conn.execute(
        f"""
        create table public.seen (at text, settings jsonb);
        create function public.saw(at text) returns void language sql as $$
            insert into public.seen select at, ({PLANNER})
        $$;
        create function public.larger(a bigint, b bigint) returns bigint language plpgsql immutable as $$
        begin
            perform public.saw('combiner');
            return greatest(a, b);
        end
        $$
        """
    )
    make_queue(conn, value=["n bigint public.larger"], delete_when=None, buckets=1)
    conn.execute("truncate public.seen")  # create_queue has called the combiner on samples
    conn.execute("select pgcombine.add_observer('wc', 'look', 'select public.saw(''observer'') from changes')")
    observers = NO_OBSERVERS
    if python:
        queue = CombineQueue("wc")

        @queue.on_change
        def look(tx: psycopg.Connection, changes: ChangeStream) -> None:
            tx.execute("select public.saw('python')")

        conn.execute("select pgcombine.add_observer('wc', 'look too', language => 'python')")
        observers = {"look too": look}
    with open_connection(dsn) as worker:
        for _ in range(2):
            add(conn, [("a", 1), ("a", 2), ("b", 1)])
            add(conn, [("a", 5)])
            assert run_pass(worker, "wc", 0, observers)
        expected = one(worker, PLANNER)
    seen = conn.execute("select distinct at, settings from public.seen order by 1").fetchall()
    assert [at for at, _ in seen] == ["combiner", "observer", *["python"] * python]
    assert all(settings == expected for _, settings in seen)


@pytest.mark.parametrize("value", ["v jsonb jsonb_merge", "v int[] array_union"])
def test_small_pass_is_not_compiled(conn: psycopg.Connection, value: str) -> None:
    """With jit = on, PostgreSQL compiles a plan whose estimated cost is above jit_above_cost."""
    make_queue(conn, key=["k int"], value=[value], delete_when=None, buckets=1)
    update = "jsonb_build_object('a', i, 'b', jsonb_build_object('c', i))" if "jsonb" in value else "array[i]"
    for _ in range(2):
        conn.execute(f"insert into pgcombine.wc_updates select i, {update} from generate_series(1, 100) i")  # noqa: S608
        with conn.transaction():
            (plan,) = one(conn, f"explain (format json, analyze, timing off) {pass_of(conn, 0)}")
    assert "JIT" not in plan
    assert plan["Plan"]["Total Cost"] < float(one(conn, "show jit_above_cost"))
    assert "Full" not in {node.get("Join Type") for node in nodes(plan["Plan"])}


def test_current_locks_one_partition_of_each(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, buckets=65)
    add(conn, {"a": 1})
    with psycopg.connect(dsn) as reader:
        reader.execute("select n from pgcombine.wc_current where word = %s", ("a",))
        locked = tables_of_queue(conn, reader.info.backend_pid)
    assert len({bucket_of(table) for table in locked}) == 1
    assert len(locked) == 2


def test_current_with_several_key_columns_reads_one_partition_of_each(conn: psycopg.Connection) -> None:
    make_queue(conn, key=["word text", "day date"], buckets=4)
    statement = "select n from pgcombine.wc_current where word = 'a' and day = '2024-02-29'"
    read = {table for table in tables_read(explain(conn, statement)) if "_updates_" in table or "_values_" in table}
    assert len(read) == 2
    assert len({bucket_of(table) for table in read}) == 1


def segments(conn: psycopg.Connection) -> set[str]:
    """The segments of the log that this transaction has read by sequential scans."""
    found = conn.execute(
        "select relid::regclass::text from pg_stat_xact_user_tables "
        "where relname ~ '_updates_.*_s[0-9]+$' and seq_scan > 0"
    )
    return {table for (table,) in found}


def test_pass_reads_only_segments_since_the_last_mark(conn: psycopg.Connection, dsn: str) -> None:
    """A pass also reads the segments of transactions that were open when the last pass took its mark."""
    conn.execute("alter table pgcombine.queue alter segment_bits set default 6, alter segments set default 2")
    make_queue(conn, buckets=2)
    word = word_in(conn, 1)
    names = {n: f"pgcombine.wc_updates_b0001_s{n}" for n in (0, 1)}

    def round_of(new: int | None = None) -> int:
        """The segment of the newest transaction id. With ``new``, use up ids until that segment is ``new``."""
        while new is not None and one(conn, "select txid_current() >> 6 & 1") != new:
            pass
        return one(conn, "select txid_current() >> 6 & 1")

    def reads() -> set[str]:
        with psycopg.connect(dsn) as passer:
            assert one(passer, "select updates from pgcombine.combine('wc', 1)") > 0
            return segments(passer)

    first = round_of()
    round_of(1 - first)
    first = 1 - first
    add(conn, {word: 1})
    reads()
    add(conn, {word: 1})
    assert reads() == {names[first]}
    with psycopg.connect(dsn) as writer:
        add(writer, {word: 1})
        round_of(1 - first)
        add(conn, {word: 1})
        assert reads() == set(names.values())
        add(conn, {word: 1})
        assert reads() == set(names.values())  # the writer's transaction is open, and its id is in the other segment
        writer.commit()
    assert reads() == set(names.values())
    add(conn, {word: 1})
    assert reads() == {names[1 - first]}


def test_current_reads_the_journal_once(conn: psycopg.Connection) -> None:
    make_queue(conn, buckets=4, pass_limit=100)
    add(conn, [(f"w{i}", 1) for i in range(2000)])
    for bucket in (0, 1):
        conn.execute("select pgcombine.combine('wc', %s)", (bucket,))
    for where in ("", " where word = 'w1'"):
        plan = explain(conn, f"select * from pgcombine.wc_current{where}", analyze=True)  # noqa: S608
        marks = [node for node in plan if node.get("Function Name") == "queue_marks"]
        assert [node["Actual Loops"] for node in marks] == [1]
        assert not [node for node in plan if node.get("Relation Name") == "pass"]


def test_expiry_reads_only_its_pages(conn: psycopg.Connection) -> None:
    make_queue(conn, delete_when=None, buckets=1)
    write_values(conn, "insert into pgcombine.wc_values select 'w' || i, i from generate_series(1, 200000) i")
    conn.execute("analyze pgcombine.wc_values")
    # according to the statistics, few keys meet the condition
    conn.execute("select pgcombine.set_expiry('wc', 'n >= 200000')")
    plan = explain(conn, pass_of(conn, 0, page=1024), analyze=True)
    read = [node for node in plan if node.get("Relation Name") == "wc_values_b0000" and "Scan" in node["Node Type"]]
    reads = [node for node in read if node["Actual Loops"]]
    assert {node["Node Type"] for node in reads} == {"Tid Range Scan", "Tid Scan"}
    assert sum(node["Actual Rows"] + node.get("Rows Removed by Filter", 0) for node in reads) < 150_000


# according to the statistics, no key or every key meets the condition
@pytest.mark.parametrize("expire_when", ["n >= 5", "n <= 100"])
def test_expiry_reads_many_pending_updates_once(conn: psycopg.Connection, expire_when: str) -> None:
    make_queue(conn, delete_when=None, buckets=1)
    write_values(conn, "insert into pgcombine.wc_values select 'w' || i, 1 from generate_series(1, 40000) i")
    conn.execute("analyze pgcombine.wc_values")
    write_values(conn, "update pgcombine.wc_values set n = 7")
    conn.execute("select pgcombine.set_expiry('wc', %s)", (expire_when,))
    add(conn, {f"w{i}": 0 for i in range(20_000)})
    plan = explain(conn, pass_of(conn, 0, page=0), analyze=True)
    log = [node for node in plan if "_updates_" in node.get("Relation Name", "")]
    assert log
    assert all(node["Actual Loops"] == 1 for node in log)
