"""``pgcombine worker --front`` combines on all nodes of a front."""

from __future__ import annotations

import signal

import psycopg
from support import eventually, run_cli, start_cli
from support.fronts import connected
from support.queues import add, one
from support.servers import with_contrib

pytestmark = with_contrib


def test_worker_combines_on_all_nodes(front: psycopg.Connection, dsn: str) -> None:
    add(front, {f"w{i}": 1 for i in range(40)})
    with start_cli("worker", "--front", "--dsn", dsn) as worker:
        eventually(lambda: one(front, "select count(*) from pgcombine.wc_values") == 40)
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0


def test_worker_goes_on_while_a_node_is_down(front: psycopg.Connection, dsn: str, nodes: list[str]) -> None:
    add(front, {f"w{i}": 1 for i in range(40)})
    front.execute("alter server n0 options (set port '1')")
    with connected(nodes[1]) as up, start_cli("worker", "--front", "--dsn", dsn) as worker:
        combined = "select exists (select from pgcombine.wc_01_values) and exists (select from pgcombine.wc_03_values)"
        eventually(lambda: one(up, combined))
        worker.send_signal(signal.SIGTERM)
        assert worker.wait(30) == 0


def test_worker_needs_a_front(dsn: str) -> None:
    refused = run_cli("worker", "--front", "--dsn", dsn)
    assert refused.returncode == 1
    assert "the database has no front" in refused.stderr
    assert run_cli("worker", "wc", "--front", "--dsn", dsn).returncode == 2
