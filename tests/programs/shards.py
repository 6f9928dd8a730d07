"""``python -m tests.programs.shards``: processor time for an update, on one server and through a front with nodes.

All servers run on this machine: the front's is PostgreSQL 15, since ``postgres_fdw`` comes with Debian's package, and
the nodes' are ``--version``. A client inserts updates of random keys, ``--rows`` of them by each statement. Then all
updates are combined. ``alone`` is the time of one server without a front, which gets the same statements and has as
many buckets as the front has shards. All times are in µs for an update. ``front`` is the time of the front's server,
``nodes`` that of all nodes together, and ``ratio`` is ``nodes`` divided by ``alone``. The program prints one JSON line
for each number of nodes.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from contextlib import ExitStack, closing
from pathlib import Path

import psycopg

sys.path.insert(0, str(Path(__file__).parents[1]))

from support.fronts import connected, make_front
from support.queues import make_queue, one

from pgcombine import drain, schema

from .peers import server
from .peers.processor import ServerTime

INSERT = "insert into pgcombine.wc_updates (word, n) values"
KEYS = [f"word{number}" for number in range(20_000)]


def measure(writer: psycopg.Connection, dsns: list[str], updates: int, rows: int) -> list[float]:
    """Insert and combine. Returns the µs for an update that each server of ``dsns`` spends."""
    insert = f"{INSERT} {', '.join(['(%s, %s)'] * rows)}".encode()
    queues = "select array_agg(queue) from pgcombine.queue"
    with ExitStack() as stack:
        connections = [stack.enter_context(closing(connected(dsn))) for dsn in dsns]
        times = [stack.enter_context(ServerTime(conn)) for conn in connections]
        chance = random.Random(7)
        for _ in range(updates // rows):
            writer.execute(insert, [value for word in chance.choices(KEYS, k=rows) for value in (word, 1)])
        for conn, dsn in zip(connections, dsns, strict=True):
            for queue in one(conn, queues) or []:
                drain(dsn, queue)
    assert one(writer, "select sum(n) from pgcombine.wc_current") >= updates
    return [1e6 * time.seconds / updates for time in times]


def alone(version: int, shards: int, updates: int, rows: int) -> float:
    with server.own(version) as dsn:
        schema.upgrade(dsn)
        with closing(connected(dsn)) as conn:
            make_queue(conn, buckets=shards, delete_when=None)
            measure(conn, [dsn], updates // 10, rows)  # fills caches
            (found,) = measure(conn, [dsn], updates, rows)
            return found


def spread(version: int, nodes: int, shards: int, updates: int, rows: int) -> list[float]:
    """Return the times of the front and of the nodes."""
    with ExitStack() as stack:
        dsns = [stack.enter_context(server.own(15 if number == 0 else version)) for number in range(nodes + 1)]
        for dsn in dsns:
            schema.upgrade(dsn)
        with closing(connected(dsns[0])) as front:
            make_front(front, dsns[1:], shards=shards, delete_when=None)
            measure(front, dsns, updates // 10, rows)
            return measure(front, dsns, updates, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--version", type=int, default=18, choices=server.VERSIONS, help="PostgreSQL of the nodes")
    parser.add_argument("--nodes", type=int, nargs="+", default=[1, 2, 4])
    parser.add_argument("--updates", type=int, default=500_000)
    parser.add_argument("--shards", type=int, default=16)
    parser.add_argument("--rows", type=int, default=1000, help="updates in a statement")
    options = parser.parse_args()
    single = alone(options.version, options.shards, options.updates, options.rows)
    for nodes in options.nodes:
        front, *others = spread(options.version, nodes, options.shards, options.updates, options.rows)
        figures = {"alone": single, "front": front, "nodes": sum(others), "ratio": sum(others) / single}
        print(json.dumps({"servers": nodes} | {name: round(time, 2) for name, time in figures.items()}), flush=True)


if __name__ == "__main__":
    main()
