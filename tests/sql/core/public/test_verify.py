"""``verify`` lists damaged or missing objects and rows of a queue."""

from __future__ import annotations

import json

import psycopg
import pytest
from support import run_cli
from support.queues import hold
from support.tiers import each_nth

from pgcombine.errors import QueueNotFoundError
from pgcombine.queue.combine_queue import CombineQueue

WC = CombineQueue("wc", key=["word text"], value=["n bigint sum"], delete_when="n = 0", buckets=4)

DAMAGES = [
    ("delete from pgcombine.bucket where bucket = 2", "bucket 2 is missing"),
    ("insert into pgcombine.bucket (queue, bucket) values ('wc', 4)", "bucket 4 is in pgcombine.bucket"),
    (
        "set pgcombine.initialize_wc = 'on'; insert into pgcombine.wc_values values ('zero', 0)",
        "1 keys have values for which delete_when",
    ),
    ("drop view pgcombine.wc_current cascade", "wc_current is missing"),
    ("drop view pgcombine.wc_current cascade; drop table pgcombine.wc_values", "wc_values is missing"),
    ("alter table pgcombine.wc_values detach partition pgcombine.wc_values_b0001", "has 3 partitions instead of 4"),
    (
        "alter table pgcombine.wc_updates detach partition pgcombine.wc_updates_s3",
        "segment pgcombine.wc_updates_b0001_s3 is missing",
    ),
    ("alter table pgcombine.wc_values drop column n cascade", 'column "n" of pgcombine.wc_values: it is missing'),
    (
        "alter table pgcombine.wc_updates disable trigger pgcombine_wake",
        "pgcombine_wake of pgcombine.wc_updates is disabled",
    ),
    ("drop trigger pgcombine_wake on pgcombine.wc_updates", "pgcombine_wake of pgcombine.wc_updates is missing"),
    ("drop trigger pgcombine_values on pgcombine.wc_values", "pgcombine_values of pgcombine.wc_values is missing"),
    ("update pgcombine.queue set pass = '{}'", "not up to date"),
    (
        "alter table pgcombine.wc_values drop constraint wc_values_pkey",
        "wc_values doesn't have the queue's key columns",
    ),
    (
        "alter table pgcombine.wc_values drop constraint wc_values_pkey, add primary key (n, word)",
        "wc_values doesn't have the queue's key columns",
    ),
    ("drop table pgcombine.wc_quarantine", "wc_quarantine is missing"),
    ("drop table pgcombine.wc_quarantine_keys cascade", "wc_quarantine_keys is missing"),
    ("drop function pgcombine.wc_enqueue", "function pgcombine.wc_enqueue is missing"),
    (
        "create or replace function pgcombine.wc_enqueue(word text[], n bigint[] default null) returns bigint"
        " language sql as 'select 0::bigint'",
        "function pgcombine.wc_enqueue differs from the generated one",
    ),
    (
        "alter function pgcombine.wc_enqueue security definer",
        "function pgcombine.wc_enqueue differs from the generated one",
    ),
    (
        "create or replace view pgcombine.wc_current as select word, n from pgcombine.wc_values",
        "view pgcombine.wc_current differs from the generated one",
    ),
    (
        "create or replace view pgcombine.wc_pending as select word::text, n from pgcombine.wc_updates",
        "view pgcombine.wc_pending differs from the generated one",
    ),
    (
        "drop view pgcombine.wc_current cascade; create table pgcombine.wc_current (word text, n bigint)",
        "view pgcombine.wc_current differs from the generated one",
    ),
    ("insert into pgcombine.wc_quarantine values (77, 'a', 1)", "1 updates in pgcombine.wc_quarantine belong to no"),
    (
        "insert into pgcombine.quarantined_key (queue, key, updates, attempts, error)"
        """ values ('wc', '{"word": "a"}', 0, 1, '')""",
        """quarantined key {"word": "a"} is missing in pgcombine.wc_quarantine_keys""",
    ),
    ("insert into pgcombine.wc_quarantine_keys values ('a', 77)", "1 keys in pgcombine.wc_quarantine_keys are not in"),
    (
        "alter table pgcombine.wc_updates_s1 detach partition pgcombine.wc_updates_b0002_s1",
        "segment pgcombine.wc_updates_b0002_s1 is missing",
    ),
    ("drop table pgcombine.wc_updates_b0002_s1 cascade", "segment pgcombine.wc_updates_b0002_s1 is missing"),
    (
        "insert into pgcombine.restoring default values;"
        "insert into pgcombine.wc_updates values ('a', 1, txid_current() + 100);"
        "delete from pgcombine.restoring",
        "1 rows of ids that no transaction of this database has had",
    ),
    (
        "insert into pgcombine.restoring default values; update pgcombine.queue set segment_bits = 4;"
        "insert into pgcombine.wc_updates select 'a', 1, txid_current() - 16 * i from generate_series(0, 2) i",
        "of ids that belong in another segment",
    ),
    ("delete from pgcombine.pass where bucket = 1", "bucket 1 has no mark in pgcombine.pass"),
    (
        "insert into pgcombine.pass (queue, bucket, pass, mark, began, updates, keys, changes)"
        " select queue, bucket, 2, mark, began, 0, 0, 0 from pgcombine.pass where bucket = 3",
        "the journal of bucket 3 lacks 1 passes",
    ),
    (
        "update pgcombine.pass set mark = format('%1$s:%1$s:', txid_current() + 100)::pg_snapshot where bucket = 3",
        "bucket 3 has a mark that sees ids which no transaction has had",
    ),
    (
        "alter table pgcombine.wc_values detach partition pgcombine.wc_values_b0000;"
        "alter table pgcombine.wc_values detach partition pgcombine.wc_values_b0001;"
        "alter table pgcombine.wc_values attach partition pgcombine.wc_values_b0000"
        " for values with (modulus 4, remainder 1);"
        "alter table pgcombine.wc_values attach partition pgcombine.wc_values_b0001"
        " for values with (modulus 4, remainder 0)",
        "partition 0 of pgcombine.wc_values is FOR VALUES WITH (modulus 4, remainder 1)",
    ),
]


@pytest.fixture
def wc(conn: psycopg.Connection) -> psycopg.Connection:
    WC.create(conn)
    return conn


@pytest.mark.parametrize(("damage", "problem"), each_nth(2, DAMAGES))
def test_verify_reports_damage(wc: psycopg.Connection, damage: str, problem: str) -> None:
    assert WC.verify(wc) == []
    wc.execute(damage)
    assert any(problem in told for told in WC.verify(wc)), WC.verify(wc)


def test_verify_reports_keys_in_the_wrong_partition(wc: psycopg.Connection, dsn: str) -> None:
    """The test swaps the names and bounds of two partitions."""
    WC.initialize(wc, [(f"w{i}", 1) for i in range(20)])
    one, two = "pgcombine.wc_values_b0000", "pgcombine.wc_values_b0001"
    with wc.transaction():
        wc.execute(f"alter table {one} rename to swapped")
        wc.execute(f"alter table {two} rename to wc_values_b0000")
        wc.execute("alter table pgcombine.swapped rename to wc_values_b0001")
        wc.execute(
            "update pg_class c set relpartbound = o.relpartbound from pg_class o"
            " where (c.oid, o.oid) in ((%(one)s::regclass, %(two)s::regclass), (%(two)s::regclass, %(one)s::regclass))",
            {"one": one, "two": two},
        )
    with psycopg.connect(dsn) as fresh:
        problems = WC.verify(fresh)
    assert len([told for told in problems if "keys that belong elsewhere" in told]) == 2


def test_verify_counts_quarantined_updates(wc: psycopg.Connection) -> None:
    words = ["bad", "worse"]
    for word in words:
        WC.enqueue(wc, [(word, 1)] * 2)
        hold(wc, word=word)
    assert WC.verify(wc) == []
    wc.execute("delete from pgcombine.wc_quarantine where ctid = (select min(ctid) from pgcombine.wc_quarantine)")
    assert [told.split(" should ")[1] for told in WC.verify(wc)] == ["have 2 quarantined updates, but has 1"]
    wc.execute("update pgcombine.wc_quarantine set word = 'good' where word = 'worse'")
    assert any("2 updates in pgcombine.wc_quarantine belong to another key" in told for told in WC.verify(wc))


def test_verify_accepts_restored_views(wc: psycopg.Connection) -> None:
    """A restored view may differ in its text from the generated one."""
    queue = CombineQueue(
        "q",
        key=["d date", "s varchar(9)"],
        value=[
            "st varchar(9) last(at)",
            "at timestamptz max",
            "tags varchar(5)[] array_union",
            "doc jsonb jsonb_merge",
        ],
        delete_when="st in ('gone', 'away')",
        buckets=2,
    )
    queue.create(wc)
    for _ in range(2):
        for view in ("q_pending", "q_current"):
            row = wc.execute("select pg_get_viewdef(%s::regclass)", (f"pgcombine.{view}",)).fetchone()
            assert row is not None
            wc.execute(f"create or replace view pgcombine.{view} as {row[0]}")
        assert queue.verify(wc) == []
    wc.execute("begin read only")  # here verify can't compare views
    assert queue.verify(wc) == []
    wc.execute("rollback")
    assert wc.execute("select from pg_class where relname = 'pgcombine_normal'").fetchall() == []


def test_verify_accepts_pending_updates(wc: psycopg.Connection) -> None:
    WC.enqueue(wc, [(f"w{i}", 1) for i in range(100)])
    assert WC.verify(wc) == []
    wc.execute("select pgcombine.combine('wc')")
    assert WC.verify(wc) == []


def test_command_reports_problems(wc: psycopg.Connection, dsn: str) -> None:
    well = run_cli("verify", "wc", "--json", "--dsn", dsn)
    assert (well.returncode, json.loads(well.stdout)) == (0, {"queue": "wc", "problems": []}), well.stderr
    wc.execute("delete from pgcombine.bucket where bucket = 2")
    bad = run_cli("verify", "wc", "--json", "--dsn", dsn)
    assert bad.returncode == 1
    assert len(json.loads(bad.stdout)["problems"]) == 1
    assert "has 1 problem" in bad.stderr
    with pytest.raises(QueueNotFoundError):
        CombineQueue("nope").verify(wc)
