"""``verify`` tells what isn't as it must be."""

from __future__ import annotations

import json

import psycopg
import pytest
from support import run_cli

from pgcombine.errors import QueueNotFound
from pgcombine.queue import CombineQueue

WC = CombineQueue("wc", key=["word text"], value=["n bigint sum"], delete_when="n = 0", buckets=4)

DAMAGES = [
    ("delete from pgcombine.bucket where bucket = 2", "bucket 2 is missing"),
    ("insert into pgcombine.bucket (queue, bucket) values ('wc', 4)", "bucket 4 is in pgcombine.bucket"),
    ("insert into pgcombine.wc_values values ('zero', 0)", "1 keys have values for which delete_when"),
    ("drop view pgcombine.wc_current", "wc_current is missing"),
    ("drop view pgcombine.wc_current; drop table pgcombine.wc_values", "wc_values is missing"),
    ("alter table pgcombine.wc_updates detach partition pgcombine.wc_updates_b0001", "has 3 partitions instead of 4"),
    ("alter table pgcombine.wc_values drop column n cascade", 'column "n" of pgcombine.wc_values: it is missing'),
    (
        "alter table pgcombine.wc_updates disable trigger pgcombine_wake",
        "pgcombine_wake of pgcombine.wc_updates is disabled",
    ),
    ("drop trigger pgcombine_wake on pgcombine.wc_updates", "pgcombine_wake of pgcombine.wc_updates is missing"),
    ("update pgcombine.queue set pass = ''", "not up to date"),
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


@pytest.mark.parametrize(("damage", "problem"), DAMAGES)
def test_damage_is_told(wc: psycopg.Connection, damage: str, problem: str) -> None:
    assert WC.verify(wc) == []
    wc.execute(damage)
    assert any(problem in told for told in WC.verify(wc)), WC.verify(wc)


def test_keys_that_belong_elsewhere(wc: psycopg.Connection, dsn: str) -> None:
    """Two partitions under each other's names and bounds: what a catalog that was tampered with may look like."""
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


def test_with_updates_pending_all_is_well(wc: psycopg.Connection) -> None:
    WC.enqueue(wc, [(f"w{i}", 1) for i in range(100)])
    assert WC.verify(wc) == []
    wc.execute("select pgcombine.combine('wc')")
    assert WC.verify(wc) == []


def test_command(wc: psycopg.Connection, dsn: str) -> None:
    well = run_cli("verify", "wc", "--json", "--dsn", dsn)
    assert (well.returncode, json.loads(well.stdout)) == (0, {"queue": "wc", "problems": []}), well.stderr
    wc.execute("delete from pgcombine.bucket where bucket = 2")
    bad = run_cli("verify", "wc", "--json", "--dsn", dsn)
    assert bad.returncode == 1
    assert len(json.loads(bad.stdout)["problems"]) == 1
    assert "has 1 problem" in bad.stderr
    with pytest.raises(QueueNotFound):
        CombineQueue("nope").verify(wc)
