"""Streams count once by query and batch: killed after the commit and replayed, with other partitions, two at a time."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.queues import combine_all, make_queue, one, values
from support.servers import embedded_only

from pgcombine.errors import PgCombineError

pytestmark = [pytest.mark.spark, embedded_only]
SINKS = pytest.mark.parametrize("sink", ["jdbc", "copy"])


class Stream:
    """Words of text files, counted by a stream."""

    def __init__(self, spark: Any, dsn: str, directory: Path, sink: str) -> None:
        self.spark, self.dsn, self.sink = spark, dsn, sink
        self.files, self.checkpoint = directory / "files", directory / "checkpoint"
        self.files.mkdir(parents=True)
        self.number = 0

    def add(self, *lines: str) -> None:
        self.number += 1
        (self.files / f"{self.number}.txt").write_text("\n".join(lines) + "\n")

    def run(self, parts: int = 2, write: Callable[[Any, int], None] | None = None, **options: str) -> None:
        """Work off all files that are there."""
        from pgcombine.spark import foreach_batch

        lines = self.spark.readStream.text(str(self.files))
        words = lines.selectExpr("explode(split(value, ' ')) as word", "1L as n").repartition(parts)
        writer = words.writeStream.option("checkpointLocation", str(self.checkpoint)).trigger(availableNow=True)
        if self.sink == "jdbc":
            writer = writer.foreachBatch(write or foreach_batch("wc", self.dsn))
        else:
            writer = writer.format("pgcombine").options(queue="wc", dsn=self.dsn, **options)
        query = writer.start()
        try:
            query.awaitTermination()
        finally:
            query.stop()

    def forget_commit(self, batch: int) -> None:
        """As if the driver had been killed when the batch was applied and Spark hadn't noted it."""
        for file in (self.checkpoint / "commits").glob(f"*{batch}*"):
            file.unlink()


@SINKS
def test_batches_count_once(spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path, sink: str) -> None:
    make_queue(conn)
    stream = Stream(spark, dsn, tmp_path, sink)
    stream.add("a b a", "c")
    stream.run()
    stream.forget_commit(0)
    stream.run(parts=3)
    stream.add("a d")
    stream.run()
    stream.forget_commit(1)
    stream.run(parts=1)
    combine_all(conn)
    assert values(conn) == {"a": 3, "b": 1, "c": 1, "d": 1}
    runs = conn.execute("select batch, updates from pgcombine.spark_run order by batch").fetchall()
    assert runs == [(0, 4), (1, 2)]
    assert one(conn, "select count(*) from pgcombine.spark_load") == 0


@SINKS
def test_streams_into_one_queue_count_apart(
    spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path, sink: str
) -> None:
    make_queue(conn)
    for name in ("one", "two"):
        stream = Stream(spark, dsn, tmp_path / name, sink)
        stream.add("a b")
        stream.run()
    combine_all(conn)
    assert values(conn) == {"a": 2, "b": 2}
    # without its checkpoint it is another query
    shutil.rmtree(stream.checkpoint)
    stream.run()
    combine_all(conn)
    assert values(conn) == {"a": 3, "b": 3}


@SINKS
def test_batch_that_fails_is_replayed(
    spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path, sink: str
) -> None:
    make_queue(conn)
    conn.execute("alter table pgcombine.wc_updates add constraint refused check (word <> 'b')")
    stream = Stream(spark, dsn, tmp_path, sink)
    stream.add("a b", "c")
    with pytest.raises(Exception, match="refused"):
        stream.run()
    assert one(conn, "select pgcombine.backlog('wc')") == 0
    conn.execute("alter table pgcombine.wc_updates drop constraint refused")
    stream.run(parts=1)
    combine_all(conn)
    assert values(conn) == {"a": 1, "b": 1, "c": 1}


def test_second_write_of_a_batch_is_refused(spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path) -> None:
    from pgcombine.spark import write_jdbc

    make_queue(conn)

    def twice(df: Any, batch: int) -> None:
        write_jdbc(df, "wc", dsn)
        write_jdbc(df, "wc", dsn)

    stream = Stream(spark, dsn, tmp_path, "jdbc")
    stream.add("a b")
    with pytest.raises(Exception, match="second write of batch 0"):
        stream.run(write=twice)

    def named(df: Any, batch: int) -> None:
        for name in ("one", "two"):
            write_jdbc(df, "wc", dsn, run_id=f"{name}:{batch}")

    stream.run(write=named)
    combine_all(conn)
    assert values(conn) == {"a": 3, "b": 3}  # the first write had been applied, under the batch's own id


@pytest.mark.parametrize(
    ("options", "message"), [({"mode": "token"}, "isn't for streams"), ({"runId": "r"}, "isn't for streams")]
)
def test_options_that_are_not_for_streams(
    spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path, options: dict[str, str], message: str
) -> None:
    from pgcombine.spark.errors import explained

    make_queue(conn)
    stream = Stream(spark, dsn, tmp_path, "copy")
    stream.add("a b")
    with pytest.raises(PgCombineError, match=message), explained():
        stream.run(**options)


def test_initialize_loads_all_or_nothing(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    from pgcombine.spark import initialize

    make_queue(conn)
    frame = spark.range(1000, numPartitions=4).selectExpr("cast(id as string) word", "id as n")
    initialize(frame, "wc", dsn)
    assert values(conn) == {str(n): n for n in range(1, 1000)}  # where n = 0 there is no value
    assert one(conn, "select pgcombine.backlog('wc')") == 0
    with pytest.raises(PgCombineError, match="isn't empty"):
        initialize(frame, "wc", dsn)
    make_queue(conn, "other")
    with pytest.raises(PgCombineError, match=r"a row doesn't fit .*duplicate key"):
        initialize(frame.unionByName(frame), "other", dsn)
    assert values(conn, "other") == {}
