"""Both sinks write frames into a queue, refuse frames that don't fit, and count a run id once."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pyarrow as pa
import pytest
from support import eventually
from support.queues import combine_all, make_queue, one, values
from support.servers import embedded_only

from pgcombine.errors import (
    ConfigError,
    InvalidDefinitionError,
    InvalidUpdateError,
    PgCombineError,
    QueueNotFoundError,
)
from pgcombine.spark import staged, write_jdbc
from pgcombine.spark.errors import explained
from pgcombine.spark.options import Options

from .conftest import Write
from .frames import COPY_FIRST, SINKS

pytestmark = [pytest.mark.spark, embedded_only]
WORDS = [("a", 1), ("b", 2), ("a", 3), ('q"u,\\.\n', -4), ("", 5), ("é😀", 6)]
COUNTED = {"a": 4, "b": 2, 'q"u,\\.\n': -4, "": 5, "é😀": 6}


def frame(spark: Any, rows: Any = WORDS, schema: str = "word string, n bigint", parts: int = 3) -> Any:
    return spark.createDataFrame(rows, schema).repartition(parts)


def left(conn: psycopg.Connection) -> int:
    return one(
        conn,
        r"select (select count(*) from pg_class where relname ~ '^spark_stage_\d+$')"
        " + (select count(*) from pgcombine.spark_load)",
    )


@pytest.mark.wc
@SINKS
@pytest.mark.parametrize("preaggregate", [False, True])
def test_rows_become_updates(spark: Any, conn: psycopg.Connection, write: Write, sink: str, preaggregate: bool) -> None:
    write(sink, frame(spark), preaggregate=preaggregate)
    assert one(conn, "select pgcombine.backlog('wc')") == (5 if preaggregate else 6)
    combine_all(conn)
    assert values(conn) == COUNTED
    assert left(conn) == 0


@pytest.mark.wc
@COPY_FIRST
def test_run_id_counts_once(spark: Any, conn: psycopg.Connection, write: Write, sink: str) -> None:
    for parts, run in ((3, "r"), (2, "r"), (3, "s")):
        write(sink, frame(spark, parts=parts), run_id=run)
    combine_all(conn)
    assert values(conn) == {word: 2 * n for word, n in COUNTED.items()}


def overwrite(sink: str, df: Any, dsn: str, source: str = "2024-02-29") -> None:
    if sink == "jdbc":
        write_jdbc(df, "wc", dsn, source=source)
    else:
        df.write.format("pgcombine").options(queue="wc", dsn=dsn, source=source).mode("overwrite").save()


@pytest.mark.wc
@COPY_FIRST
def test_overwrite_replaces_what_the_source_wrote(
    spark: Any, conn: psycopg.Connection, dsn: str, write: Write, sink: str
) -> None:
    """A run with the same rows enqueues nothing, one with other rows the difference, and one with none all of it."""
    overwrite(sink, frame(spark), dsn)
    write(sink, frame(spark, [("b", 100)]))
    overwrite(sink, frame(spark, [("b", 1000)]), dsn, "2024-03-01")
    combine_all(conn)
    assert values(conn) == COUNTED | {"b": 1102}
    overwrite(sink, frame(spark, parts=2), dsn)
    assert one(conn, "select pgcombine.backlog('wc')") == 0
    overwrite(sink, frame(spark, [("a", 4), ("b", 3), ("c", 1)]), dsn)
    combine_all(conn)
    assert values(conn) == {"a": 4, "b": 1103, "c": 1}
    overwrite(sink, frame(spark, []), dsn)
    combine_all(conn)
    assert values(conn) == {"b": 1100}
    assert left(conn) == 0


@pytest.mark.wc
def test_default_mode_names_modes_that_work(spark: Any, conn: psycopg.Connection, dsn: str) -> None:
    """Spark refuses its default mode, and its hint names Append and Overwrite."""
    from pyspark.errors import AnalysisException

    writer = frame(spark).write.format("pgcombine").options(queue="wc", dsn=dsn)
    with pytest.raises(AnalysisException, match=r"(?i)append.*overwrite"):
        writer.save()
    with pytest.raises(ConfigError, match="source"), explained():
        writer.mode("overwrite").save()
    with pytest.raises(ConfigError, match="overwrite"), explained():
        writer.option("source", "s").mode("append").save()
    with pytest.raises(ConfigError, match="runId"), explained():
        writer.option("source", "s").option("runId", "r").mode("overwrite").save()
    writer = frame(spark).write.format("pgcombine").options(queue="wc", dsn=dsn, source="s")
    writer.mode("overwrite").save()
    combine_all(conn)
    assert values(conn) == COUNTED


def writer_of(dsn: str, **options: str) -> Any:
    from pyspark.sql.types import LongType, StringType, StructType

    from pgcombine.spark.writer import BatchWriter

    schema = StructType().add("word", StringType()).add("n", LongType())
    return BatchWriter(Options.of({"queue": "wc", "dsn": dsn, **options}, reading=False), schema, overwrite=False)


@pytest.mark.wc
def test_tasks_of_an_applied_run_read_their_rows(dsn: str, conn: psycopg.Connection) -> None:
    """Spark kills the Python process of a task that leaves rows, and a new process for each task is slow."""
    batches = [pa.record_batch({"word": ["a"], "n": [number]}) for number in range(3)]
    first = writer_of(dsn, runId="r")
    first.commit([first.write(iter(batches))])
    again = writer_of(dsn, runId="r")
    assert again.applied
    for known in (True, False):  # to the driver, or only to tasks
        left = iter(batches)
        if known:
            again.write(left)
        else:
            again.writing.write(again.load, left, join_only=False)
        assert list(left) == []
    assert one(conn, "select pgcombine.backlog('wc')") == 3


@pytest.mark.wc
@pytest.mark.jdbc
def test_jdbc_returns_its_result(spark: Any, conn: psycopg.Connection, dsn: str) -> None:
    assert write_jdbc(frame(spark), "wc", dsn, "r").updates == 6
    again = write_jdbc(frame(spark), "wc", dsn, "r")
    assert (again.updates, again.applied) == (6, False)


@pytest.mark.wc
@COPY_FIRST
def test_empty_frame_writes_nothing(spark: Any, conn: psycopg.Connection, write: Write, sink: str) -> None:
    write(sink, frame(spark, []), run_id="r")
    assert (one(conn, "select pgcombine.backlog('wc')"), left(conn)) == (0, 0)


@COPY_FIRST
def test_missing_value_takes_its_default(spark: Any, conn: psycopg.Connection, write: Write, sink: str) -> None:
    make_queue(conn, value=["n bigint count", "most int max"], delete_when=None)
    write(sink, frame(spark, [("a",), ("a",), ("b",)], "word string"))
    combine_all(conn)
    assert sorted(conn.execute("select * from pgcombine.wc_values").fetchall()) == [("a", 2, None), ("b", 1, None)]


@COPY_FIRST
def test_values_of_all_types_are_written(spark: Any, conn: psycopg.Connection, write: Write, sink: str) -> None:
    make_queue(
        conn,
        key=["id uuid", "day date", "big numeric(20,3)"],
        value=[
            *("n int sum", "x double precision max", "yes boolean bool_or", "at timestamptz max"),
            *("local timestamp max", "doc jsonb jsonb_merge", "raw bytea max", "tags text[] array_union"),
        ],
        delete_when=None,
    )
    row = (
        *("11111111-2222-3333-4444-555555555555", date(2024, 2, 29), Decimal("12345678901234567.125")),
        *(7, 0.1, True, datetime(2024, 1, 1, 12, tzinfo=UTC), datetime(2024, 1, 1, 12, 30)),
        *('{"a": [1]}', b"\x00\xff\\", ["a", 'b"\\,', "", None]),
    )
    schema = (
        "id string, day date, big decimal(20,3), n smallint, x double, yes boolean, at timestamp, local timestamp_ntz, "
        "doc string, raw binary, tags array<string>"
    )
    nothing = (row[0], date(1, 1, 1), *(Decimal(1), *[None] * 8))
    write(sink, frame(spark, [row, nothing], schema))
    combine_all(conn)
    stored = conn.execute("select * from pgcombine.wc_values order by big desc").fetchall()
    assert [*map(str, stored[0][:3])] == [*map(str, row[:3])]
    assert stored[0][3:8] == row[3:8]
    assert stored[0][8:10] == ({"a": [1]}, row[9])
    assert set(stored[0][10]) == set(row[10])
    assert stored[1][3:] == (None,) * 8


@pytest.mark.wc
@COPY_FIRST
def test_frame_that_does_not_fit_is_refused(spark: Any, conn: psycopg.Connection, write: Write, sink: str) -> None:
    for schema in (
        *("word string, n bigint, m int", "n bigint", "word string, n string", "word string, n double"),
        *("word bigint, n bigint", "word void, n bigint", "word string, n decimal(10,2)"),
    ):
        with pytest.raises(PgCombineError):
            write(sink, spark.createDataFrame([], schema))
    assert left(conn) == 0


def test_values_out_of_range_are_refused(spark: Any, conn: psycopg.Connection, dsn: str) -> None:
    """The errors name the value or the row. The writer of one task is called without Spark, which would repeat it."""
    make_queue(conn, value=["n int sum"])
    for word, n, told in (("a", 2**31, f'value "{2**31}"'), (None, 7, "{'word': None, 'n': 7}"), ("a" * 3000, 7, "")):
        writer = writer_of(dsn)
        with pytest.raises(InvalidUpdateError) as refused:
            writer.commit([writer.write(iter([pa.record_batch({"word": pa.array([word], pa.string()), "n": [n]})]))])
        assert told in str(refused.value)
        writer.abort([])
    assert (one(conn, "select pgcombine.backlog('wc')"), left(conn)) == (0, 0)


@pytest.mark.jdbc
def test_null_key_by_jdbc_is_named(spark: Any, conn: psycopg.Connection, write: Write) -> None:
    make_queue(conn, key=["a text", "b int"])
    rows = frame(spark, [("x", 1, 1), ("x", None, 1)], "a string, b int, n bigint")
    with pytest.raises(InvalidUpdateError):
        write("jdbc", rows)
    broken = spark.range(2).selectExpr("cast(unhex('ff') as string) as a", "1 as b", "1L as n")
    with pytest.raises(InvalidUpdateError):
        write("jdbc", broken)
    assert (one(conn, "select pgcombine.backlog('wc')"), left(conn)) == (0, 0)


@pytest.mark.slow
@pytest.mark.jdbc
def test_values_out_of_range_by_jdbc_are_named(spark: Any, conn: psycopg.Connection, write: Write) -> None:
    """Each frame has a value that the column refuses by another SQLSTATE."""
    conn.execute("create domain small as int check (value < 9)")
    wrong = {
        "n int": "3000000000L",
        "n smallint": "40000",
        "n numeric(3)": "1000",
        "n real": "1e39D",
        "n public.small": "9",
        "n uuid": "'x'",
        "n jsonb": "'{'",
        "n date": "date'-5000-01-01'",
        "n timestamptz": "timestamp'-5000-01-01 00:00:00'",
        "n text": "char(0)",
        "n varchar(3)": "'long'",
        "n text[]": "'{a'",
        "n date[]": "array(date'-5000-01-01')",
    }
    told = {}
    for number, (column, value) in enumerate(wrong.items()):
        queue = make_queue(conn, f"q{number}", value=[f"{column} last(at)", "at int max"], delete_when=None)
        try:
            write("jdbc", spark.sql(f"select 'a' as word, {value} as n, 1 as at"), queue=queue)
        except PgCombineError as error:
            told[column] = type(error), str(error)
        assert (one(conn, "select pgcombine.backlog(%s)", queue), left(conn)) == (0, 0)
    expected = dict.fromkeys(wrong, (InvalidUpdateError, "a row doesn't fit the queue: "))
    assert {column: (kind, message[:29]) for column, (kind, message) in told.items()} == expected, told


def test_raw_errors_have_no_traceback_of_python(spark: Any, conn: psycopg.Connection, dsn: str) -> None:
    """These are Spark's errors, not changed by ``explained``."""
    make_queue(conn, value=["n int sum"])
    for rows, queue, message in (
        (frame(spark), "wcs", 'QueueNotFoundError: there is no queue "wcs" (did you mean "wc"?)'),
        (spark.createDataFrame([], "word string, m int"), "wc", "InvalidUpdateError: the frame doesn't fit"),
        (frame(spark, [("a", 2**40)]), "wc", 'value "1099511627776" is out of range'),
    ):
        with pytest.raises(Exception, match=re.escape(message)) as raised:
            rows.write.format("pgcombine").options(queue=queue, dsn=dsn).mode("append").save()
        told = str(raised.value)
        assert "Traceback" not in told
        assert '  File "' not in told
        assert message in (told if "value" in message else told.splitlines()[0])


@pytest.mark.wc
@COPY_FIRST
def test_jobs_name_the_queue(spark: Any, conn: psycopg.Connection, dsn: str, sink: str) -> None:
    store = spark._jsparkSession.sharedState().statusStore()
    before = store.executionsList().size()
    with staged(frame(spark), "wc", dsn, "2024-02-29", sink=sink) as rows:
        rows.commit()
    told = {store.executionsList().apply(i).description() for i in range(before, store.executionsList().size())}
    assert told == {'pgcombine: queue "wc", run 2024-02-29'}
    assert spark.sparkContext.getLocalProperty("spark.job.description") is None


@pytest.mark.wc
@COPY_FIRST
def test_failed_job_leaves_nothing(spark: Any, conn: psycopg.Connection, write: Write, sink: str) -> None:
    broken = spark.range(100, numPartitions=4).selectExpr("cast(id as string) word", "100 div (77 - id) as n")
    with pytest.raises(PgCombineError, match="DIVIDE_BY_ZERO"):
        write(sink, broken, run_id="r")
    assert one(conn, "select pgcombine.backlog('wc')") == 0
    eventually(lambda: one(conn, "select loads from pgcombine_internal.clean_loads()") >= 0 and left(conn) == 0)
    write(sink, frame(spark), run_id="r")
    combine_all(conn)
    assert values(conn) == COUNTED


@pytest.mark.wc
def test_wrong_options_of_the_format_are_refused(spark: Any, conn: psycopg.Connection, write: Write) -> None:
    for options in (
        *({"mode": "token"}, {"mode": "fast"}, {"preaggregate": "perhaps"}, {"runId": ""}, {"dsn": ""}),
        *({"preagregate": "true"}, {"queue": "none"}, {"dsn": "postgresql://127.0.0.1:1/none"}),
    ):
        with pytest.raises(PgCombineError):
            write("copy", frame(spark), **options)


@pytest.mark.wc
@pytest.mark.jdbc
def test_wrong_options_of_jdbc_are_refused(spark: Any, conn: psycopg.Connection, dsn: str, write: Write) -> None:
    for level in ("NONE", "none"):
        with pytest.raises(ConfigError, match="isolationLevel=NONE"):
            write("jdbc", frame(spark), isolationLevel=level)
    wrong = {"preagregate": "preaggregate", "batchSise": "batchsize", "num_partition": "numPartitions"}
    for misspelt, meant in wrong.items():
        with pytest.raises(ConfigError, match=f'"{misspelt}".*"{meant}"'):
            write("jdbc", frame(spark), **{misspelt: 1})
    with pytest.raises(ConfigError, match="dbtable"):
        write("jdbc", frame(spark), dbtable="t")
    with pytest.raises(QueueNotFoundError):
        write("jdbc", frame(spark), queue="none")
    assert left(conn) == 0


@pytest.mark.wc
def test_overwrite_is_refused(spark: Any, conn: psycopg.Connection, dsn: str) -> None:
    writer = frame(spark).write.format("pgcombine").option("queue", "wc").option("dsn", dsn)
    with (
        pytest.raises(ConfigError, match='"wc"'),
        explained(),
    ):
        writer.mode("overwrite").save()
    assert left(conn) == 0


@COPY_FIRST
def test_a_source_on_values_that_cannot_be_taken_back_is_refused_before_any_task(
    spark: Any, conn: psycopg.Connection, dsn: str, sink: str
) -> None:
    make_queue(conn, value=["n bigint max"], delete_when=None)
    tasks = spark.range(1).selectExpr("'a' as word", "cast(raise_error('a task ran') as bigint) as n")
    with pytest.raises(InvalidDefinitionError, match='column "n" has the combiner max'), explained():
        overwrite(sink, tasks, dsn)
    assert left(conn) == 0


def test_missing_driver_is_reported(spark: Any, conn: psycopg.Connection, dsn: str, monkeypatch: Any) -> None:
    monkeypatch.setattr("pgcombine.spark.jdbc_driver.DRIVER_CLASS", "org.postgresql.None")
    make_queue(conn)
    with pytest.raises(ConfigError, match="PGCOMBINE_JDBC_JAR"):
        write_jdbc(frame(spark), "wc", dsn)


@COPY_FIRST
def test_password_appears_nowhere(spark: Any, conn: psycopg.Connection, dsn: str, write: Write, sink: str) -> None:
    from psycopg.conninfo import conninfo_to_dict

    make_queue(conn)
    password = str(conninfo_to_dict(dsn)["password"])
    store = spark._jsparkSession.sharedState().statusStore()
    before = store.executionsList().size()
    write(sink, frame(spark))
    if sink == "copy":
        read = spark.read.format("pgcombine").option("queue", "wc").option("dsn", dsn).load()
        read.collect()
        assert password not in read._jdf.queryExecution().toString()
    plans = [
        store.executionsList().apply(i).physicalPlanDescription() + store.executionsList().apply(i).details()
        for i in range(before, store.executionsList().size())
    ]
    assert plans
    assert not any(password in plan for plan in plans)
    with pytest.raises(PgCombineError) as error:
        write(sink, frame(spark, [("a" * 3000, 7)]))
    assert password not in str(error.value) + str(error.value.__cause__)
