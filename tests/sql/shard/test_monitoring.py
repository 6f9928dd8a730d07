"""The status, the doctor, the page and the metrics show all shards of a front, even if a node is down."""

from __future__ import annotations

import json

import psycopg
import pytest
from support import run_cli
from support.fronts import connected
from support.queues import add
from support.scrape import scrape, value
from support.scrape import served as serving_metrics
from support.servers import with_contrib
from support.site import read, served

from pgcombine.doctor.examine import examine
from pgcombine.doctor.findings import Level, Limits

pytestmark = with_contrib

DOWN = 'database "nothing" does not exist'


@pytest.fixture
def half(front: psycopg.Connection) -> psycopg.Connection:
    """A front with pending updates. One of its two nodes is down."""
    add(front, {f"w{i}": 1 for i in range(40)})
    front.execute("alter server n0 options (set dbname 'nothing')")
    return front


def test_status_shows_the_shards(half: psycopg.Connection, dsn: str) -> None:
    shown = run_cli("status", "--dsn", dsn)
    assert shown.returncode == 0, shown.stderr
    assert DOWN in shown.stdout
    assert "no queues yet" not in shown.stdout
    fronts = json.loads(run_cli("status", "--json", "--dsn", dsn).stdout)["fronts"]
    assert [(shard["front"], shard["shard"], shard["node"]) for shard in fronts] == [
        *(("wc", 0, "n0"), ("wc", 2, "n0"), ("wc", 1, "n1"), ("wc", 3, "n1")),
    ]
    assert [shard["backlog"] is None for shard in fronts] == [True, True, False, False]


def test_dead_node_makes_status_with_max_lag_fail(half: psycopg.Connection, dsn: str) -> None:
    late = run_cli("status", "--max-lag", "100", "--dsn", dsn)
    assert late.returncode == 1
    assert 'node "n0" tells nothing of a shard of "wc"' in late.stderr


def test_late_shard_makes_status_fail(front: psycopg.Connection, dsn: str) -> None:
    assert run_cli("status", "--max-lag", "100", "--dsn", dsn).returncode == 0
    add(front, {f"w{i}": 1 for i in range(40)})
    late = run_cli("status", "--max-lag", "0.1", "--dsn", dsn)
    assert late.returncode == 1
    assert 'the lag of queue "wc, shard ' in late.stderr


def test_doctor_examines_the_shards(half: psycopg.Connection, dsn: str, nodes: list[str]) -> None:
    with connected(nodes[1]) as conn:
        conn.execute(
            "insert into pgcombine.failure (queue, bucket, attempts, sqlstate, error) "
            "values ('wc_03', 0, 3, '22012', 'division by zero')"
        )
    found = {one.subject: one for one in examine(dsn, limits=Limits(lag=-1)) if one.check == "fronts"}
    assert {subject: one.level for subject, one in found.items()} == {
        "wc shard 0": Level.error,
        "wc shard 1": Level.warning,
        "wc shard 2": Level.error,
        "wc shard 3": Level.warning,
    }
    assert DOWN in found["wc shard 0"].found
    assert "pending updates" in found["wc shard 1"].found
    assert "1 buckets fail" in found["wc shard 3"].found
    well = {one.level for one in examine(dsn) if one.check == "fronts" and one.subject == "wc shard 1"}
    assert well == {Level.ok}


def test_page_shows_the_shards(half: psycopg.Connection, dsn: str) -> None:
    with served(dsn) as client:
        text = read(client.get("/servers")).text
    assert "wc 0 n0 ✖ down" in text
    assert DOWN in text
    assert "wc 1 n1 ✓ up" in text


def test_metrics_have_the_shards(half: psycopg.Connection, dsn: str) -> None:
    with serving_metrics(dsn) as process:
        found = scrape(process)
    assert value(found, "queue_pending_updates", queue="wc_01") > 0
    assert value(found, "destination_up", kind="node", destination="n0") == 0
    assert value(found, "destination_up", kind="node", destination="n1") == 1
