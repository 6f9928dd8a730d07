"""The writers that the figure "spark" compares: pgcombine's Spark sinks, and Spark's plain JDBC writer into the log.

The plain writer may write rows twice if a task fails.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from pgcombine.bench.scratch import QUEUE, UPDATES, Settings
from pgcombine.phrasecount.session import borrowed_session
from pgcombine.spark.errors import explained
from pgcombine.spark.jdbc import DEFAULTS
from pgcombine.spark.staged import write_jdbc
from pgcombine.spark.target import Target

PLAIN = "plain JDBC, tuned"
_PARTS = 4


@contextmanager
def writers(dsn: str, settings: Settings) -> Iterator[dict[str, Callable[[], object]]]:
    """Yield functions that write the same frame into the queue, by name. Each row of the frame adds 1."""
    target = Target.of(dsn)
    with borrowed_session("pgcombine bench") as spark, explained():
        rows = spark.range(settings.rows, numPartitions=_PARTS)
        frame = rows.selectExpr(f"concat('w', id % {settings.keys}) as word", "1L as n")
        properties = {**target.properties, **DEFAULTS}
        source = frame.write.format("pgcombine").options(queue=QUEUE, dsn=dsn).mode("append")
        yield {
            PLAIN: lambda: frame.write.mode("append").jdbc(target.url, UPDATES, properties=properties),
            "write_jdbc": lambda: write_jdbc(frame, QUEUE, dsn),
            "write_jdbc, preaggregate": lambda: write_jdbc(frame, QUEUE, dsn, preaggregate=True),
            'format("pgcombine")': lambda: source.option("preaggregate", "false").save(),
            'format("pgcombine"), preaggregate': lambda: source.option("preaggregate", "true").save(),
        }
