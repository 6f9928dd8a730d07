"""A statement that names keys or a bucket reads only the partitions of their buckets."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest
from psycopg import sql
from support.queues import add, make_queue, pass_of, word_in
from support.servers import Server


@pytest.fixture(scope="module")
def wc(server: Server) -> Iterator[psycopg.Connection]:
    """A connection to a database whose queue wc has many values and some pending updates."""
    with server.migrated() as dsn, psycopg.connect(dsn, autocommit=True) as conn:
        make_queue(conn, buckets=8)
        conn.execute("insert into pgcombine.wc_updates select 'w' || i, 1 from generate_series(1, 40000) i")
        conn.execute("select pgcombine.combine('wc', b) from generate_series(0, 7) b")
        add(conn, [(f"w{i}", 1) for i in range(1000)])
        conn.execute("analyze")
        yield conn


def every(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the nodes of a plan."""
    yield plan
    for below in plan.get("Plans", []):
        yield from every(below)


def tables(conn: psycopg.Connection, statement: Any, parameters: Any = None) -> set[str]:
    """The partitions in a statement's plan. Their names end with the number of the bucket, as in wc_updates_b0001."""
    row = conn.execute(sql.SQL("explain (format json) {}").format(sql.SQL(statement)), parameters).fetchone()
    assert row is not None
    nodes = every(row[0][0]["Plan"])
    names = [node["Relation Name"] for node in nodes if node.get("Relation Name", "").startswith("wc_")]
    return {re.sub(r"(_b\d{4}).*", r"\1", name) for name in names if re.search(r"_b\d{4}", name)}


def pair(bucket: int) -> set[str]:
    return {f"wc_updates_b{bucket:04}", f"wc_values_b{bucket:04}"}


@pytest.mark.parametrize("bucket", [0, 3, 7])
def test_current_reads_one_bucket_for_a_key(wc: psycopg.Connection, bucket: int) -> None:
    word = word_in(wc, bucket)
    found = tables(wc, "select * from pgcombine.wc_current where word = %s", (word,))
    assert found == pair(bucket)
    assert tables(wc, "select n from pgcombine.wc_pending where word = %s", (word,)) == pair(bucket) - {
        f"wc_values_b{bucket:04}"
    }


def test_current_reads_the_buckets_of_several_keys(wc: psycopg.Connection) -> None:
    words = [word_in(wc, 2), word_in(wc, 5)]
    assert tables(wc, "select * from pgcombine.wc_current where word = any (%s)", (words,)) == pair(2) | pair(5)


@pytest.mark.parametrize(
    ("join", "scans"),
    [
        ("left join lateral pgcombine.wc_get(w.word) c on true", 2),
        ("left join pgcombine.wc_get_many(array(select word from pg_temp.wanted)) c on c.word::text = w.word", 1),
    ],
    ids=["get", "get_many"],
)
def test_join_with_a_function_reads_only_its_keys(wc: psycopg.Connection, join: str, scans: int) -> None:
    """Values are found by index. The log of a key's bucket is read for each key by get, once by get_many."""
    words = [word_in(wc, 2, start=1), word_in(wc, 5, start=1), word_in(wc, 5, start=1000)]
    counted = """
        select regexp_replace(relname, '_s\\d+$', ''), sum(seq_scan)::int, sum(coalesce(idx_tup_fetch, 0))::int
        from pg_stat_xact_user_tables where relname ~ '^wc_(updates|values)_b' and seq_scan + coalesce(idx_scan, 0) > 0
        group by 1 order by 1
    """
    wc.execute("select pg_stat_force_next_flush()")  # so that the counters leave out earlier reads
    with wc.transaction(force_rollback=True):
        wc.execute('create temporary table wanted as select unnest(%s::text[]) collate "C" as word', (words,))
        assert wc.execute(f"select count(n) from pg_temp.wanted w {join}").fetchone() == (3,)  # noqa: S608
        assert wc.execute(counted).fetchall() == [
            ("wc_updates_b0002", 4, 0),
            ("wc_updates_b0005", 4 * scans, 0),
            ("wc_values_b0002", 0, 1),
            ("wc_values_b0005", 0, 2),
        ]


def test_values_are_found_by_their_primary_key(wc: psycopg.Connection) -> None:
    row = wc.execute("explain (format json) select * from pgcombine.wc_current where word = 'w1'").fetchone()
    assert row is not None
    plan = json.dumps(row[0])
    assert re.search(r'"Index Name": "wc_values_b\d{4}_pkey"', plan), plan


def test_rollup_reads_a_keys_rows_only_if_its_extreme_is_deleted(wc: psycopg.Connection) -> None:
    """It then reads only the index that the warning advises."""
    hints: list[str | None] = []
    wc.add_notice_handler(lambda notice: hints.append(notice.message_hint))
    wc.execute("create table public.visit as select i % 50 as page, i as at from generate_series(0, 99999) i")
    wc.execute("select pgcombine.create_rollup('visits', 'visit', '{page}', '{max(at) as latest}')")
    assert hints == ["create index on visit (page, at)"]
    wc.execute(f"{hints[0]}")
    for statement in ("call pgcombine.backfill('visits')", "call pgcombine.drain('visits')", "vacuum analyze visit"):
        wc.execute(statement.encode())

    def read(statement: str) -> tuple[int, set[str]]:
        """Run the statement. Returns the page's value, and the nodes of the plan that then read the table."""
        wc.execute(statement.encode())
        call = "select latest from pgcombine.visits_get(7)"
        (plan,) = wc.execute(f"explain (analyze, format json) {call}".encode()).fetchall()[0][0]
        nodes = [node for node in every(plan["Plan"]) if node.get("Relation Name") == "visit"]
        ((latest,),) = wc.execute(call.encode()).fetchall()
        return latest, {node["Node Type"] for node in nodes if node["Actual Loops"]}

    assert read("insert into public.visit values (7, 200000)") == (200_000, set())
    assert read("delete from public.visit where page = 7 and at < 90000") == (200_000, set())
    assert read("delete from public.visit where page = 7 and at = 200000") == (99_957, {"Index Only Scan"})


@pytest.mark.parametrize("bucket", [0, 7])
def test_plan_of_a_pass_has_only_the_buckets_partitions(wc: psycopg.Connection, bucket: int) -> None:
    assert tables(wc, pass_of(wc, bucket)) == pair(bucket)


def test_pass_locks_only_the_buckets_partitions(wc: psycopg.Connection) -> None:
    """A generic plan would lock all partitions."""
    locked = """
        select distinct substring(c.relname from '^wc_(?:updates|values)(?:_b\\d{4})?')
        from pg_locks l join pg_class c on c.oid = l.relation
        where l.pid = pg_backend_pid() and c.relname ~ '^wc_(updates|values)'
    """
    for _ in range(7):  # after five runs, PostgreSQL may use a generic plan for a prepared statement
        with wc.transaction():
            wc.execute("select pgcombine.combine('wc', 3)")
            found = {name for (name,) in wc.execute(locked).fetchall()}
            assert found - {"wc_updates", "wc_values"} == pair(3)
        add(wc, {word_in(wc, 3): 1})
