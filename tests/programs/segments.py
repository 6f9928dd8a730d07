"""How many segments a bucket's log has, and of how many transaction ids each: what other choices would cost.

``python -m tests.programs.segments`` loads a queue, 20 updates a transaction, on an embedded server of its own, in
turn for each choice: first for 20 seconds with nothing else, then for 20 seconds while another session holds a
snapshot. It prints one JSON line a choice, with medians of three rounds: updates a second that were enqueued and
combined, the server's processor time in µs an update, and the size of the log at the end in MB. ``--choices``,
``--buckets``, ``--seconds`` and ``--rounds`` change that. A choice is SEGMENTS:BITS, with 2 ^ BITS ids a segment.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
from collections import defaultdict
from pathlib import Path

import psycopg

from pgcombine.bench import pgbench, scripts
from pgcombine.bench.processor import ServerTime
from pgcombine.bench.scratch import Scratch, throwaway_database
from pgcombine.bench.settings import Settings
from pgcombine.embedded import EmbeddedServer

UPDATES = 20  # a transaction
CHOICES = ["2:8", "2:10", "2:12", "2:14", "2:16", "4:12", "8:12", "4:10"]
SIZE = "select sum(pg_relation_size(relid)) from pg_partition_tree('pgcombine.bench_updates') where isleaf"


def measure(scratch: Scratch, settings: Settings, observer: psycopg.Connection) -> tuple[float, float, float]:
    """Updates a second, µs an update, MB."""
    before, began = scratch.one("select coalesce(sum(n), 0) from pgcombine.bench_values"), time.monotonic()
    with ServerTime(observer) as server:
        pgbench.finish(
            pgbench.start(
                scratch.dsn,
                scripts.ENQUEUE,
                clients=settings.clients,
                seconds=settings.seconds,
                variables={"k": UPDATES},
            )
        )
        scratch.wait_idle()
    seconds = time.monotonic() - began
    updates = scratch.one("select coalesce(sum(n), 0) from pgcombine.bench_values") - before
    return updates / seconds, 1e6 * server.seconds / updates, scratch.one(SIZE) / 1e6


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--choices", nargs="+", default=CHOICES)
    parser.add_argument("--buckets", type=int, default=4)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    settings = Settings(300_000, 1.2, 8, options.seconds, options.rounds, options.buckets, 0, 0)
    figures = defaultdict(list)
    with tempfile.TemporaryDirectory() as home:
        server = EmbeddedServer(Path(home))
        try:
            with throwaway_database(server.start()) as dsn:
                scratch = Scratch(dsn, settings)
                for _ in range(options.rounds):
                    for choice in options.choices:
                        segments, bits = choice.split(":")
                        scratch.connection.execute(
                            f"alter table pgcombine.queue alter segments set default {int(segments)},"
                            f" alter segment_bits set default {int(bits)}"
                        )
                        scratch.fresh()
                        with scratch.worker(), psycopg.connect(dsn, autocommit=True) as observer:
                            figures[choice, "alone"].append(measure(scratch, settings, observer))
                            with psycopg.connect(dsn) as holder:
                                holder.isolation_level = psycopg.IsolationLevel.REPEATABLE_READ
                                holder.execute("select count(*) from bench.zipf")
                                figures[choice, "held"].append(measure(scratch, settings, observer))
                scratch.connection.close()
        finally:
            server.stop()
    for choice in options.choices:
        line: dict[str, object] = {"choice": choice}
        for which in ("alone", "held"):
            rate, cost, size = (statistics.median(column) for column in zip(*figures[choice, which], strict=True))
            line |= {f"{which}_rate": round(rate), f"{which}_us": round(cost, 2), f"{which}_MB": round(size, 1)}
        print(json.dumps(line), flush=True)


if __name__ == "__main__":
    main()
