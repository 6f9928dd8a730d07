"""Each batch of a stream counts once: after a kill or a repetition, with other partitions, beside another stream."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.queues import combine_all, make_queue, one, values
from support.servers import embedded_only

from pgcombine.errors import ConfigError, PgCombineError
from pgcombine.spark import foreach_batch, initialize, write_jdbc
from pgcombine.spark.errors import explained

from .frames import JDBC
from .streams import Stream

pytestmark = [pytest.mark.spark, embedded_only]
SINKS = pytest.mark.parametrize(
    "sink",
    [
        pytest.param(*JDBC.values, marks=[*JDBC.marks, pytest.mark.slow]),
        pytest.param("copy", marks=pytest.mark.pyspark(">=4.1")),
        pytest.param("each", marks=pytest.mark.slow),
    ],
)


@pytest.mark.wc
@SINKS
def test_batches_count_once(spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path, sink: str) -> None:
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
    runs = conn.execute("select batch, updates from pgcombine.token order by batch").fetchall()
    assert runs == [(0, 4), (1, 2)]
    assert one(conn, "select count(*) from pgcombine.spark_load") == 0


@pytest.mark.wc
@pytest.mark.slow
@SINKS
def test_streams_into_one_queue_count_apart(
    spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path, sink: str
) -> None:
    for name in ("one", "two"):
        stream = Stream(spark, dsn, tmp_path / name, sink)
        stream.add("a b")
        stream.run()
    combine_all(conn)
    assert values(conn) == {"a": 2, "b": 2}
    # without its checkpoint the stream is a new query
    shutil.rmtree(stream.checkpoint)
    stream.run()
    combine_all(conn)
    assert values(conn) == {"a": 3, "b": 3}


@pytest.mark.wc
@SINKS
def test_stream_with_a_source_is_refreshed_in_full(
    spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path, sink: str
) -> None:
    """The first batch of a new query replaces what the former query wrote. Later batches add, each one once."""
    stream = Stream(spark, dsn, tmp_path, sink, source="words")
    stream.add("a b a")
    stream.run()
    stream.add("a c")
    stream.run()
    stream.forget_commit(1)
    stream.run()
    combine_all(conn)
    assert values(conn) == {"a": 3, "b": 1, "c": 1}
    former = stream.checkpoint.rename(tmp_path / "former")
    (stream.files / "1.txt").write_text("a b\n")
    stream.run(parts=3)
    later, stream.checkpoint = stream.checkpoint, former
    stream.add("x")
    with pytest.raises(Exception, match="another query has replaced it"):  # the former query goes on
        stream.run()
    (stream.files / "3.txt").unlink()
    stream.checkpoint = later
    stream.forget_commit(0)
    stream.run(parts=1)
    stream.add("c")
    stream.run()
    combine_all(conn)
    assert values(conn) == {"a": 2, "b": 1, "c": 2}
    assert conn.execute("select * from pgcombine.verify_contributions('wc')").fetchall() == []
    shutil.rmtree(stream.checkpoint)
    stream.run(where="word = 'nothing'")
    combine_all(conn)
    assert values(conn) == {}


@pytest.mark.wc
@pytest.mark.pyspark(">=4.1")
def test_complete_totals_replace_those_of_the_batch_before(
    spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path
) -> None:
    stream = Stream(spark, dsn, tmp_path, "copy", source="words")
    for lines, wanted in ((["a b a"], {"a": 2, "b": 1}), (["a c"], {"a": 3, "b": 1, "c": 1})):
        stream.add(*lines)
        lines = spark.readStream.text(str(stream.files)).selectExpr("explode(split(value, ' ')) as word")
        totals = lines.groupBy("word").count().withColumnRenamed("count", "n")
        writer = totals.writeStream.outputMode("complete").option("checkpointLocation", str(stream.checkpoint))
        writer = writer.trigger(availableNow=True).format("pgcombine").options(queue="wc", dsn=dsn, source="words")
        writer.start().awaitTermination()
        combine_all(conn)
        assert values(conn) == wanted


@pytest.mark.wc
@SINKS
def test_failed_batch_is_replayed(spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path, sink: str) -> None:
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


@pytest.mark.wc
@pytest.mark.jdbc
def test_second_write_of_a_batch_is_refused(spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path) -> None:

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


@pytest.mark.wc
@pytest.mark.pyspark(">=4.1")
def test_run_id_of_a_stream_is_refused(spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path) -> None:
    stream = Stream(spark, dsn, tmp_path, "copy")
    stream.add("a b")
    with pytest.raises(PgCombineError), explained():
        stream.run(runId="r")


def test_run_id_of_all_batches_is_refused(dsn: str) -> None:
    with pytest.raises(ConfigError, match="a run_id can't be given to foreach_batch"):
        foreach_batch("wc", dsn, run_id="r")


@pytest.mark.wc
@pytest.mark.slow
def test_initialize_loads_all_or_nothing(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    frame = spark.range(1000, numPartitions=4).selectExpr("cast(id as string) word", "id as n")
    initialize(frame, "wc", dsn)
    assert values(conn) == {str(n): n for n in range(1, 1000)}  # a key with n = 0 has no value
    assert one(conn, "select pgcombine.backlog('wc')") == 0
    with pytest.raises(PgCombineError):
        initialize(frame, "wc", dsn)
    make_queue(conn, "other")
    with pytest.raises(PgCombineError, match="duplicate key"):
        initialize(frame.unionByName(frame), "other", dsn)
    assert values(conn, "other") == {}
