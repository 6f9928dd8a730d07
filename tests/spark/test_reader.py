"""Reading values into frames: types, columns and filters, with the format and with Spark's JDBC reader."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from support.queues import add, combine, combine_all, make_queue, one
from support.servers import embedded_only

from pgcombine.errors import PgCombineError, QueueError
from pgcombine.spark.errors import explained
from pgcombine.spark.options import Options
from pgcombine.spark.target import Target

pytestmark = [pytest.mark.spark, embedded_only]


def read(spark: Any, dsn: str, **options: str) -> Any:
    return spark.read.format("pgcombine").options(**{"queue": "wc", "dsn": dsn, **options}).load()


@pytest.mark.wc
def test_values_are_rows(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    words = {f"w{i}": i for i in range(1, 200)}
    combine(conn, words)
    add(conn, {"pending": 7})
    frame = read(spark, dsn)
    assert frame.schema.simpleString() == "struct<word:string,n:bigint>"
    assert frame.rdd.getNumPartitions() == 4
    assert dict(map(tuple, frame.collect())) == words


def test_written_values_of_all_types_are_read(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    make_queue(
        conn,
        key=["id uuid", "day date", "big numeric(20,3)"],
        value=[
            *("n int sum", "x double precision max", "yes boolean bool_or", "at timestamptz max"),
            *(
                "local timestamp max",
                "doc jsonb jsonb_merge",
                "raw bytea max",
                "tags text[] array_union",
                "any numeric sum",
            ),
        ],
        delete_when=None,
    )
    conn.execute(
        """
        insert into pgcombine.wc_updates
        values ('11111111-2222-3333-4444-555555555555', '2024-02-29', 12345.125, 7, 0.5, true,
            '2024-01-01 12:00+00', '2024-01-01 12:30', '{"a": [1]}', '\\x00ff', array['a', null], 1.5),
            ('11111111-2222-3333-4444-555555555555', '0001-01-01', 0, null, null, null, null, null, null, null,
             null, null)
        """
    )
    combine_all(conn)
    frame = read(spark, dsn)
    assert frame.schema.simpleString() == (
        "struct<id:string,day:date,big:decimal(20,3),n:int,x:double,yes:boolean,at:timestamp,local:timestamp_ntz,"
        "doc:string,raw:binary,tags:array<string>,any:decimal(38,18)>"
    )
    rows = {row.day: row for row in frame.selectExpr("*", "unix_seconds(at) as seconds").collect()}
    row = rows[date(2024, 2, 29)]
    assert tuple(row)[:6] == (
        "11111111-2222-3333-4444-555555555555",
        date(2024, 2, 29),
        Decimal("12345.125"),
        7,
        0.5,
        True,
    )
    assert row.seconds == datetime(2024, 1, 1, 12, tzinfo=UTC).timestamp()
    assert (row.local, row.doc, bytes(row.raw)) == (datetime(2024, 1, 1, 12, 30), '{"a": [1]}', b"\x00\xff")
    assert (row.tags, row["any"]) == (["a", None], Decimal("1.5"))
    assert tuple(rows[date(1, 1, 1)])[4:11] == (None,) * 7


def test_columns_and_conditions_are_pushed_down(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    make_queue(conn, key=["day date", "word text"], value=["n bigint sum", "most int max"], delete_when=None)
    conn.execute(
        "insert into pgcombine.wc_updates select date '2024-01-01' + i % 10, 'w' || i, i, i "
        "from generate_series(1, 100) i"
    )
    combine_all(conn)
    frame = read(spark, dsn, columns="word,n,day", where="n <= 90 or day is null")
    assert frame.columns == ["word", "n", "day"]
    assert frame.count() == 90
    # let Spark push filters down to the reader
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    found = frame.where("day >= date'2024-01-09' and word in ('w8', 'w9', 'w1') and n > 8").select("n").collect()
    assert [row.n for row in found] == [9]
    assert frame.where("day = date'2024-01-09'").count() == 9
    assert frame.where("word = 'w7' or n = 8").count() == 2
    both = frame.where("word = 'w7'").union(frame.where("word = 'w8'"))  # two frames from one: each keeps its filter
    assert sorted(row.n for row in both.select("n").collect()) == [7, 8]


@pytest.mark.wc
def test_given_schema_is_used(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    combine(conn, {"a": 1})
    reader = spark.read.format("pgcombine").options(queue="wc", dsn=dsn)
    assert [tuple(row) for row in reader.schema("n bigint").load().collect()] == [(1,)]


@pytest.mark.wc
def test_missing_queue_or_column_is_refused(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    assert read(spark, dsn).collect() == []
    for wrong in ({"columns": "none"}, {"queue": "none"}):
        with pytest.raises(PgCombineError, match='"none"'), explained():
            read(spark, dsn, **wrong).collect()


def reader_of(dsn: str, **options: str) -> Any:
    from pgcombine.spark.reader import ValuesReader, schema_of

    given = Options.of({"queue": "wc", "dsn": dsn, **options}, reading=True)
    return ValuesReader(given, schema_of(given))


def test_values_out_of_sparks_range_are_refused(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    make_queue(conn, value=["x numeric sum", "day date max", "at timestamptz max"], delete_when=None, buckets=1)
    conn.execute(
        "insert into pgcombine.wc_updates values ('w', 1.2345678901234567891, 'infinity', '0044-03-15 12:00Z BC')"
    )
    combine_all(conn)
    for column, given, kind in [
        ("x", "1.2345678901234567891", "decimal(38,18)"),
        ("day", "infinity", "date"),
        ("at", "0044-03-15 12:00:00+00 BC", "timestamp"),
    ]:
        reader = reader_of(dsn, columns=column)
        told = re.escape(f"holds {given} in column \"{column}\", which Spark's type {kind} can't hold")
        with pytest.raises(QueueError, match=told):
            list(reader.read(*reader.partitions()))
    reader = spark.read.format("pgcombine").options(queue="wc", dsn=dsn, where="word = 'w' -- the only one")
    rows = reader.schema("x string, day string, at string").load().collect()
    assert [tuple(row) for row in rows] == [("1.2345678901234567891", "infinity", "0044-03-15 12:00:00+00 BC")]


_WRONG = [
    *("nothing = 1", "n =", "n", "1 / (n - n) = 0", "n = 'x'", "nothing(n)", "max(n) > 1", "true) or (", "n = $1"),
    *("word like 1", "word::date is null", "word ~ '['", "true); select (true", "n in (select 1, 2)", "n = 1\n and"),
    *("n = (select 1 union select 2)", "word = 'a' collate none", "n = any ('{')", "n & 1.5 = 1", "nothing.word = ''"),
    *(
        "pg_read_file('none') is null",
        "set_config('none', '', false) is null",
        "exists (select from pgcombine.nothing)",
    ),
    *("'\\xff'::bytea = convert_to(word, 'none')", "repeat('x' || n, 2000000000) < word", "(n + 40000)::smallint > 0"),
]


@pytest.mark.wc(buckets=1)
def test_wrong_condition_is_named(dsn: str, conn: psycopg.Connection) -> None:
    combine(conn, {"a": 1})
    for where in _WRONG:
        reader = reader_of(dsn, where=where)
        (part,) = reader.partitions()
        with pytest.raises(PgCombineError, match=re.escape(" ".join(where.split()))):
            list(reader.read(part))


@pytest.mark.wc
@pytest.mark.jdbc
def test_jdbc_reader_reads_values(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    """Each predicate makes a task that reads one partition."""
    words = {f"w{i}": i for i in range(1, 100)}
    combine(conn, words)
    target = Target.of(dsn)
    predicates = [
        f"tableoid = to_regclass('{table}') and {condition}"
        for table, condition in conn.execute("select * from pgcombine_internal.values_tables('wc')").fetchall()
    ]
    frame = spark.read.jdbc(target.url, "pgcombine.wc_values", predicates=predicates, properties=target.properties)
    assert frame.rdd.getNumPartitions() == 4 == one(conn, "select buckets from pgcombine.queue")
    assert dict(map(tuple, frame.collect())) == words
    conn.execute("select pgcombine.rebucket('wc', 16)")
    with pytest.raises(PgCombineError), explained():
        frame.collect()


@pytest.mark.wc
def test_frame_fails_after_a_rebucket(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    """Also if the first partition was read from the old tables, if these were dropped, and if the number is as before.

    Spark repeats a task four times, so only one of these frames is read by Spark.
    """

    words = {f"w{i}": i for i in range(1, 1001)}
    combine(conn, words)
    frame = read(spark, dsn)
    assert dict(map(tuple, frame.collect())) == words
    for rebuckets in ((16, 4), (16,), (1,)):
        reader = reader_of(dsn)
        first, *others = reader.partitions()
        begun = reader.read(first)
        assert next(begun).num_rows > 0
        begun.close()
        for buckets in rebuckets:
            conn.execute("select pgcombine.rebucket('wc', %s)", (buckets,))
        for part in others:
            with pytest.raises(QueueError, match="with a new frame"):
                list(reader.read(part))
    with pytest.raises(QueueError, match="with a new frame"), explained():
        frame.collect()
    assert dict(map(tuple, read(spark, dsn).collect())) == words
