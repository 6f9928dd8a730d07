"""Spark's own JDBC writer as a sink that counts once: it fills a stage, one transaction of the driver applies it.

A partition that is written twice (a task that failed after its commit, a speculative one) counts once, a job that
fails leaves nothing, and a run id that was applied isn't applied again. Faults are raised as :class:`PgCombineError`
with Spark's own error as the cause.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pgcombine.database import connect
from pgcombine.errors import ConfigError, translated
from pgcombine.spark.columns import check_frame, queue_columns
from pgcombine.spark.errors import explained
from pgcombine.spark.loads import NAME, Load, Outcome
from pgcombine.spark.target import Target, why_not_jdbc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

DEFAULTS = {
    "reWriteBatchedInserts": "true",  # batches become inserts of many rows
    "batchsize": "10000",
    "isolationLevel": "READ_COMMITTED",
    "stringtype": "unspecified",  # text goes to uuid, jsonb and other columns as it is
}
_OURS = {"dbtable", "query", "url", "driver", "user", "password", "truncate", "createtableoptions"}


def write_jdbc(
    df: DataFrame,
    queue: str,
    dsn: str,
    run_id: str | None = None,
    *,
    preaggregate: bool = False,
    **options: object,
) -> Outcome:
    """Enqueue the rows of ``df`` through Spark's JDBC writer, exactly once; returns when they are enqueued.

    ``run_id`` names what is written: a second call with it writes nothing (``Outcome.applied`` is false then). In
    ``foreachBatch`` it is the batch's own unless given. ``preaggregate`` enqueues one update a key. ``options`` are
    those of Spark's JDBC writer: ``batchsize`` (default 10,000), ``numPartitions`` (at most so many connections at
    once), ``queryTimeout`` and so on. Raises ConfigError if the server can't be reached by JDBC or an option can't be
    right, InvalidUpdate if the frame doesn't fit the queue, PgCombineError when Spark fails, LoadError when rows
    were lost (a crash of the server); nothing is enqueued then.
    """
    from pyspark.sql import functions as F

    settings = _settings(options)
    target = Target.of(dsn)
    if (missing := why_not_jdbc(df.sparkSession, target)) is not None:
        raise ConfigError(f'JDBC can\'t work: {missing}. Without JDBC: df.write.format("pgcombine")')
    assert target.url is not None
    identity = uuid4()
    load = Load(target.conninfo, queue, run_id or _batch(df, queue) or str(identity), load=identity)
    with closing(connect(target.conninfo, name=NAME)) as connection, translated(queue=queue):
        names = check_frame(queue_columns(connection, queue), df.schema, queue)
        if preaggregate:
            connection.execute("select pgcombine.refuse_fold(%s)", (queue,))
        table = load.begin(connection)
    if table is None:
        return load.end()  # what the earlier run did
    try:
        with load.held(), explained():
            columns = [F.col(f"`{name}`") for name in names]
            staged = df.select(*columns, F.spark_partition_id().alias("pgcombine_part"))
            staged.write.mode("append").options(**settings).jdbc(
                target.url, f'pgcombine."{table}"', properties=target.properties
            )
        return load.end(preaggregate=preaggregate)
    except BaseException:
        load.give_up()
        raise


def foreach_batch(queue: str, dsn: str, **options: Any) -> Callable[[DataFrame, int], None]:
    """For ``writeStream.foreachBatch``: writes each batch by :func:`write_jdbc`, exactly once by query and batch."""

    def write(df: DataFrame, batch: int) -> None:
        write_jdbc(df, queue, dsn, **options)

    return write


def _settings(options: Mapping[str, object]) -> dict[str, str]:
    given = {name: str(value).lower() if isinstance(value, bool) else str(value) for name, value in options.items()}
    lower = {name.lower(): value for name, value in given.items()}
    if lower.get("isolationlevel", "").upper() == "NONE":
        raise ConfigError(
            "isolationLevel=NONE would commit each batch of a partition on its own, and a repeated task would write "
            "it again: leave it out"
        )
    if wrong := sorted(name for name in given if name.lower() in _OURS):
        raise ConfigError(f"{', '.join(wrong)} can't be given to write_jdbc: they follow from the queue and the DSN")
    return {**{name: value for name, value in DEFAULTS.items() if name.lower() not in lower}, **given}


_seen: set[tuple[str, str, str]] = set()
_seen_lock = threading.Lock()


def _batch(df: DataFrame, queue: str) -> str | None:
    """The run id of the stream's batch that is under way, if the caller is in foreachBatch. ConfigError at the second
    write of a batch into the queue: it would be taken for a repetition of the first."""
    from pyspark.sql.utils import is_remote

    if is_remote():
        return None
    context = df.sparkSession.sparkContext
    query, batch = (context.getLocalProperty(name) for name in ("sql.streaming.queryId", "streaming.sql.batchId"))
    if query is None or batch is None:
        return None
    run_id = f"stream:{query}:{batch}"
    with _seen_lock:
        this = (str(context.getLocalProperty("spark.jobGroup.id")), run_id, queue)
        if this in _seen:
            raise ConfigError(
                f'this is the second write of batch {batch} into queue "{queue}": write one frame (unionByName), or '
                'give each write a run_id of its own, such as f"{name}:{batch_id}"'
            )
        _seen.add(this)
    return run_id
