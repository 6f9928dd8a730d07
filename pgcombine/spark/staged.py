"""Frames that are staged first. Their rows become updates later, in a separate transaction or in the caller's.

Spark writes the rows into a table, the stage, by its JDBC writer or by COPY. Then one transaction applies them. A
partition that is written twice (by a task that failed after its commit, or a speculative one) counts once. A run id
that was applied isn't applied again. An error of Spark is raised as :class:`PgCombineError`, with Spark's error as the
cause.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from pgcombine.database.connect import connect
from pgcombine.errors import ConfigError, translated
from pgcombine.queue import status
from pgcombine.spark.columns import check_frame
from pgcombine.spark.errors import explained
from pgcombine.spark.jdbc import fill, refuse_case, settings_of
from pgcombine.spark.jobs import described
from pgcombine.spark.loads import NAME, Load, Outcome
from pgcombine.spark.options import plain, refuse_source, truth
from pgcombine.spark.target import SINKS, Target, why_not_jdbc

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# This environment variable is set in the process in which Spark Connect's server runs the functions of foreachBatch.
_FOREACH_PROCESS = "SPARK_CONNECT_LOCAL_URL"


@dataclass(frozen=True)
class Staged:
    """Rows that wait in a stage until :meth:`apply` or :meth:`commit` moves them into the queue, as updates."""

    load: Load
    preaggregate: bool = False

    def apply(self, connection: Any) -> Outcome:
        """Enqueue the rows in the transaction of ``connection``. They commit or roll back with it.

        The connection is one that :class:`~pgcombine.CombineQueue` takes, to the database in which the rows are staged.
        Commit before the block of :func:`staged` ends. If the run was applied before, nothing is enqueued, and
        ``Outcome.applied`` is False. So if the answer to the commit is lost, repeat the block with the same run id.
        Raises LoadError if rows were lost or the load was given up, and InvalidUpdateError for rows that the queue
        refuses.
        """
        return self._told(self.load.apply(connection, preaggregate=self.preaggregate))

    def commit(self) -> Outcome:
        """Enqueue the rows in a separate transaction.

        If the server can't be reached, or the connection is lost, the method tries again for two minutes. Raises the
        errors of :meth:`apply`.
        """
        return self._told(self.load.end(preaggregate=self.preaggregate))

    def _told(self, outcome: Outcome) -> Outcome:
        if not outcome.applied:
            self.load.skipped()
        return outcome


@contextmanager
def staged(
    df: DataFrame,
    queue: str,
    dsn: str | None = None,
    run_id: str | None = None,
    *,
    sink: str = "copy",
    preaggregate: bool = False,
    initial: bool = False,
    source: str | None = None,
    **options: object,
) -> Iterator[Staged]:
    """Stage the rows of ``df``. In the block they can be enqueued, once, together with other statements::

        with staged(words, "wc", dsn, run_id="2024-02-29") as rows, connection.transaction():
            rows.apply(connection)
            connection.execute("update …")

    With ``initial`` the rows, one for each key, become the values of an empty queue instead, as
    :func:`~pgcombine.spark.initialize` says. With ``source`` they replace what this source contributes, as
    ``pgcombine.contribute`` says; in ``foreachBatch`` the query's first batch does, and later ones add. ``sink`` is
    ``copy`` for COPY by the tasks of ``format("pgcombine")``, or ``jdbc`` for Spark's JDBC writer. ``options`` are the
    options of the chosen sink. Rows that the block didn't enqueue are removed at its end. If the program dies, workers
    remove them about a day later. ``dsn``, ``run_id``, ``preaggregate`` and the errors are as for :func:`write_jdbc`,
    which calls ``commit()`` in the block.
    """
    if sink not in SINKS:
        raise ConfigError(f"there is no sink {sink!r}: give {' or '.join(SINKS)}")
    run_id, preaggregate, options = _sorted_out(run_id, preaggregate, options)
    if source is not None:
        refuse_source(source, run_id=run_id)
    settings = settings_of(options) if sink == "jdbc" else {name: str(value) for name, value in options.items()}
    target = Target.of(dsn)
    if sink == "jdbc" and (missing := why_not_jdbc(df.sparkSession, target)) is not None:
        raise ConfigError(f'JDBC can\'t work: {missing}. Without JDBC: df.write.format("pgcombine")')
    identity = uuid4()
    kind = "values" if initial else "stage"
    load = Load(target.conninfo, queue, run_id or _batch(df, queue) or str(identity), kind, identity, source)
    with closing(connect(target.conninfo, name=NAME)) as connection, translated(queue=queue):
        columns = status.columns(connection, queue)
        check_frame(columns, df.schema, queue)
        if sink == "jdbc":
            refuse_case(df.sparkSession, columns, queue)
        table = load.begin(connection)
    rows = Staged(load, preaggregate)
    if table is None:  # the run was applied before: there is nothing to write
        yield rows
        return
    try:
        with load.held(), explained(), described(df.sparkSession, queue, run_id):
            if sink == "jdbc":
                fill(df, columns, table, target, settings)
            else:
                _copy(df, load, settings)
        yield rows
    finally:
        load.give_up()  # a load that was applied is gone already


def write_jdbc(
    df: DataFrame,
    queue: str,
    dsn: str | None = None,
    run_id: str | None = None,
    *,
    preaggregate: bool = False,
    source: str | None = None,
    **options: object,
) -> Outcome:
    """Enqueue the rows of ``df`` through Spark's JDBC writer, in one transaction.

    ``dsn`` is the database; by default the environment names it (``PGCOMBINE_DSN``, else libpq's ``PG*`` variables).
    ``run_id`` names the run. If it was applied before, nothing is written: ``Outcome.applied`` is False, and the logger
    ``pgcombine.spark`` logs that. In ``foreachBatch`` the default run id is made of the ids of query and batch; over
    Spark Connect ``run_id`` is needed there. Elsewhere the default is a new run id. ``preaggregate`` enqueues one
    update for each key. ``source`` is as for :func:`staged`. ``options`` are those of Spark's JDBC writer:
    ``batchsize`` (default 10,000), ``numPartitions`` (the largest number of partitions that are written at once),
    ``queryTimeout`` and so on. The options ``runId`` and ``preaggregate`` of ``format("pgcombine")`` are accepted, too.

    Raises ConfigError if JDBC can't be used, an option is wrong, or a batch is written a second time with the default
    run id. Raises ConnectError if the server can't be reached, QueueNotFoundError if there is no such queue,
    InvalidUpdateError if the frame or a row doesn't fit the queue, PgCombineError if Spark fails, and LoadError if the
    load can't be completed, for example because a crash of the server lost staged rows.
    """
    with staged(
        df, queue, dsn, run_id, sink="jdbc", preaggregate=preaggregate, initial=False, source=source, **options
    ) as rows:
        return rows.commit()


def initialize(df: DataFrame, queue: str, dsn: str | None = None) -> None:
    """Load the rows of ``df``, one for each key, as the values of an empty queue. Observers don't see them as changes.

    ``dsn`` is the database; by default the environment names it (``PGCOMBINE_DSN``, else libpq's ``PG*`` variables).
    Tasks COPY in parallel into a table, the stage. One transaction moves the rows into the values. Rows that meet the
    queue's condition ``delete_when`` or ``expire_when`` are left out. Raises PgCombineError if the load fails, for
    example because the queue isn't empty or a key comes twice.
    """
    with staged(df, queue, dsn, initial=True) as rows:
        rows.commit()


def foreach_batch(
    queue: str, dsn: str | None = None, *, sink: str = "copy", **options: Any
) -> Callable[[DataFrame, int], None]:
    """Return a function for ``writeStream.foreachBatch`` that writes each batch exactly once.

    ``sink`` and ``options`` are as for :func:`staged`. A batch is identified by the query's id and the batch's id.
    Raises ConfigError for a ``run_id``: every batch would have it, and only the first one would be written. Over Spark
    Connect, the returned function raises ConfigError.
    """
    if any(plain(name) == "runid" for name in options):
        raise ConfigError("a run_id can't be given to foreach_batch: the ids of query and batch are used")

    def write(df: DataFrame, batch: int) -> None:
        with staged(df, queue, dsn, sink=sink, **options) as rows:
            rows.commit()

    return write


def _sorted_out(
    run_id: object, preaggregate: object, options: Mapping[str, object]
) -> tuple[str | None, bool, dict[str, object]]:
    """Return the run id, whether to pre-aggregate, and the remaining options, which are for the sink.

    Options of the format must not be passed to Spark's JDBC writer, which silently ignores unknown options. Raises
    ConfigError for an option that can't be used here.
    """
    left: dict[str, object] = {}
    for name, value in options.items():
        match plain(name):
            case "runid" if run_id is None:
                run_id = value
            case "preaggregate" if preaggregate is False:
                preaggregate = value
            case "runid" | "preaggregate" | "mode" | "queue" | "dsn" | "load" | "front":
                raise ConfigError(f"the option {name}={value!r} can't be given here: leave it out")
            case _:
                left[name] = value
    if run_id is not None and not str(run_id):
        raise ConfigError("run_id is empty: give a text that names the run, such as a date")
    return None if run_id is None else str(run_id), truth("preaggregate", preaggregate), left


def _copy(df: DataFrame, load: Load, settings: dict[str, str]) -> None:
    from pgcombine.spark.startup import register

    register(df.sparkSession)
    given = {"queue": load.queue, "dsn": load.conninfo, "runId": load.run_id, "load": str(load.load)}
    df.write.format("pgcombine").options(**{**settings, **given}).mode("append").save()


_seen: set[tuple[str, str, str]] = set()
_seen_lock = threading.Lock()


def _batch(df: DataFrame, queue: str) -> str | None:
    """Return the run id of the stream's current batch if the caller is in foreachBatch, else None.

    Raises ConfigError at the second write of a batch into the queue: it would have the run id of the first write, and
    would be skipped. Also raises ConfigError in foreachBatch over Spark Connect: there the query's id isn't known.
    """
    from pyspark.sql.utils import is_remote

    if is_remote():
        if _FOREACH_PROCESS in os.environ:
            raise ConfigError(
                "over Spark Connect the query's id isn't known in foreachBatch, and a replayed batch would count "
                'twice: use writeStream.format("pgcombine"), or give write_jdbc a run_id that no other batch has, such '
                'as f"{name}:{batch_id}"'
            )
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
                'give each write another run_id, such as f"{name}:{batch_id}"'
            )
        _seen.add(this)
    return run_id
