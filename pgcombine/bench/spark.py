"""The cost of the sinks (pgcombine's writers for Spark), compared with Spark's plain JDBC writer into a queue's log.

Each sink, and the plain writer, writes the same frame into a new queue. Each row adds 1, so the sum of the updates must
be the number of rows. Another sum raises PgCombineError. The plain writer may write rows twice if a task fails.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any

from pgcombine.database.connect import Connection, connect
from pgcombine.errors import PgCombineError
from pgcombine.phrasecount.session import borrowed_session
from pgcombine.spark.errors import explained
from pgcombine.spark.jdbc import DEFAULTS
from pgcombine.spark.staged import write_jdbc
from pgcombine.spark.target import Target

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

QUEUE = "bench_spark"
BASELINE = "plain JDBC, tuned"


@dataclass
class Measured:
    """The rounds of a sink: seconds, and write-ahead log in bytes."""

    seconds: list[float] = field(default_factory=list)
    log: list[int] = field(default_factory=list)


def measure(dsn: str, *, rows: int = 1_000_000, keys: int = 100_000, rounds: int = 3, parts: int = 4) -> dict[str, Any]:
    """Return the settings, and under ``sinks`` the figures of each sink by name.

    The figures are medians of ``rounds`` rounds, after one that isn't counted. A ratio is the sink's speed divided by
    that of plain JDBC with tuned settings. ``dsn`` is a database with pgcombine's schema. For each write the function
    creates a queue in it, and drops the queue.
    """
    target = Target.of(dsn)
    with borrowed_session("pgcombine bench") as spark, closing(connect(dsn)) as connection, explained():
        frame = spark.range(rows, numPartitions=parts).selectExpr(f"concat('w', id % {keys}) as word", "1L as n")
        sinks = _sinks(frame, dsn, target)
        measured = {name: Measured() for name in sinks}
        for number in range(rounds + 1):
            for name, write in sinks.items():
                seconds, log = _one(connection, name, write, rows)
                if number:
                    measured[name].seconds.append(seconds)
                    measured[name].log.append(log)
    baseline = median(measured[BASELINE].seconds)
    return {
        "rows": rows,
        "keys": keys,
        "parts": parts,
        "rounds": rounds,
        "sinks": {
            name: {
                "seconds": median(one.seconds),
                "rows_per_second": rows / median(one.seconds),
                "ratio": baseline / median(one.seconds),
                "log_bytes_per_million": round(median(one.log) * 1_000_000 / rows),
            }
            for name, one in measured.items()
        },
    }


def _sinks(frame: DataFrame, dsn: str, target: Target) -> dict[str, Callable[[], object]]:
    def plain(**options: str) -> None:
        table = f"pgcombine.{QUEUE}_updates"
        frame.write.mode("append").options(**options).jdbc(target.url, table, properties=target.properties)

    def source(**options: str) -> None:
        frame.write.format("pgcombine").options(queue=QUEUE, dsn=dsn, **options).mode("append").save()

    return {
        "plain JDBC": plain,
        BASELINE: lambda: plain(**DEFAULTS),
        "write_jdbc": lambda: write_jdbc(frame, QUEUE, dsn),
        "write_jdbc, preaggregate": lambda: write_jdbc(frame, QUEUE, dsn, preaggregate=True),
        "pgcombine": source,
        "pgcombine, preaggregate": lambda: source(preaggregate="true"),
    }


def _one(connection: Connection, name: str, write: Callable[[], object], rows: int) -> tuple[float, int]:
    connection.execute(
        "select pgcombine.create_queue(%s, key => array['word text'], value => array['n bigint sum'])", (QUEUE,)
    )
    try:
        connection.execute("checkpoint")
        before = _value(connection, "select pg_current_wal_insert_lsn()::text")
        started = time.monotonic()
        write()
        seconds = time.monotonic() - started
        log = int(_value(connection, "select pg_wal_lsn_diff(pg_current_wal_insert_lsn(), %s::pg_lsn)", before))
        total = int(_value(connection, "select sum(n) from pgcombine.bench_spark_pending"))
        if total != rows:
            raise PgCombineError(f"{name} wrote {total} of {rows} rows", queue=QUEUE)
    finally:
        connection.execute("select pgcombine.drop_queue(%s, force => true)", (QUEUE,))
    return seconds, log


def _value(connection: Connection, statement: str, *parameters: object) -> Any:
    row = connection.execute(statement, parameters or None).fetchone()
    assert row is not None
    return row[0]
