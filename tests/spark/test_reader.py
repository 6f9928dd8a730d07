"""Reading values into frames: types, columns and filters, with the format and with Spark's JDBC reader."""

from __future__ import annotations

import re
from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any

import psycopg
import pytest
from support.queues import add, combine_all, make_queue, one
from support.servers import embedded_only

from pgcombine.errors import PgCombineError, QueueError

pytestmark = [pytest.mark.spark, embedded_only]


def read(spark: Any, dsn: str, **options: str) -> Any:
    return spark.read.format("pgcombine").options(**{"queue": "wc", "dsn": dsn, **options}).load()


def test_values_are_rows(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    make_queue(conn)
    words = {f"w{i}": i for i in range(1, 200)}
    add(conn, words)
    combine_all(conn)
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


def test_given_schema_is_used(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    make_queue(conn)
    add(conn, {"a": 1})
    combine_all(conn)
    reader = spark.read.format("pgcombine").options(queue="wc", dsn=dsn)
    assert [tuple(row) for row in reader.schema("n bigint").load().collect()] == [(1,)]


@pytest.mark.parametrize(
    ("options", "message"),
    [({"columns": "none"}, 'has no column "none"'), ({"queue": "none"}, 'there is no queue "none"')],
)
def test_missing_queue_or_column_is_refused(
    spark: Any, dsn: str, conn: psycopg.Connection, options: dict[str, str], message: str
) -> None:
    from pgcombine.spark.errors import explained

    make_queue(conn)
    with pytest.raises(PgCombineError, match=message), explained():
        read(spark, dsn, **options).collect()


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (
            "x",
            r'holds 1\.2345678901234567891 in column "x", which Spark\'s type decimal\(38,18\) can\'t hold: read',
        ),
        pytest.param(
            "day",
            "holds infinity in column \"day\", which Spark's type date can't hold: read",
            marks=pytest.mark.slow,
        ),
        pytest.param(
            "at",
            "holds 0044-03-15 12:00:00.00 BC in column \"at\", which Spark's type timestamp can't hold",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_values_out_of_sparks_range_are_refused(
    spark: Any, dsn: str, conn: psycopg.Connection, column: str, message: str
) -> None:
    from pgcombine.spark.errors import explained

    make_queue(conn, value=["x numeric sum", "day date max", "at timestamptz max"], delete_when=None)
    conn.execute(
        "insert into pgcombine.wc_updates values ('w', 1.2345678901234567891, 'infinity', '0044-03-15 12:00Z BC')"
    )
    combine_all(conn)
    with pytest.raises(QueueError, match=message), explained():
        read(spark, dsn, columns=column).collect()
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


def test_wrong_condition_is_named(dsn: str, conn: psycopg.Connection) -> None:
    from pgcombine.spark.options import Options
    from pgcombine.spark.reader import ValuesReader, schema_of

    make_queue(conn, buckets=1)
    add(conn, {"a": 1})
    combine_all(conn)
    for where in _WRONG:
        options = Options.of({"queue": "wc", "dsn": dsn, "where": where}, reading=True)
        reader = ValuesReader(options, schema_of(options))
        (part,) = reader.partitions()
        told = re.escape(f'; check the option "where" ({" ".join(where.split())})')
        with pytest.raises(PgCombineError, match=told):
            list(reader.read(part))


def test_empty_queue_gives_no_rows(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    make_queue(conn)
    assert read(spark, dsn).collect() == []


@pytest.mark.jdbc
def test_jdbc_reader_reads_values(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    """Each predicate makes a task that reads one partition."""
    from pgcombine.spark.errors import explained
    from pgcombine.spark.target import Target

    make_queue(conn)
    words = {f"w{i}": i for i in range(1, 100)}
    add(conn, words)
    combine_all(conn)
    target = Target.of(dsn)
    predicates = [
        f"tableoid = to_regclass('{table}') and {condition}"
        for table, condition in conn.execute("select * from pgcombine_internal.values_tables('wc')").fetchall()
    ]
    frame = spark.read.jdbc(target.url, "pgcombine.wc_values", predicates=predicates, properties=target.properties)
    assert frame.rdd.getNumPartitions() == 4 == one(conn, "select buckets from pgcombine.queue")
    assert dict(map(tuple, frame.collect())) == words
    conn.execute("select pgcombine.rebucket('wc', 16)")
    with pytest.raises(PgCombineError, match='values of queue "wc" were moved to other tables'), explained():
        frame.collect()


@pytest.mark.parametrize(
    ("rebuckets", "message"),
    [
        ((16,), "were moved to other tables after this read was planned .*with a new frame"),
        pytest.param((1,), "with a new frame", marks=pytest.mark.slow),  # the tables were replaced or dropped
        pytest.param((16, 4), "were moved", marks=pytest.mark.slow),
    ],
    ids=str,
)
def test_frame_fails_after_a_rebucket(
    spark: Any, dsn: str, conn: psycopg.Connection, rebuckets: tuple[int, ...], message: str
) -> None:
    from pgcombine.spark.errors import explained

    make_queue(conn)
    words = {f"w{i}": i for i in range(1, 1001)}
    add(conn, words)
    combine_all(conn)
    frame = read(spark, dsn)
    assert dict(map(tuple, frame.collect())) == words
    for buckets in rebuckets:
        conn.execute("select pgcombine.rebucket('wc', %s)", (buckets,))
    for _ in range(2):
        with pytest.raises(QueueError, match=message), explained():
            frame.collect()
    assert dict(map(tuple, read(spark, dsn).collect())) == words


def test_rebucket_between_two_partitions_fails_the_job(spark: Any, dsn: str, conn: psycopg.Connection) -> None:
    """The first partition is read from the old tables. The reads of the other partitions fail."""
    from pgcombine.spark.options import Options
    from pgcombine.spark.reader import ValuesReader, schema_of

    make_queue(conn)
    add(conn, {f"w{i}": i for i in range(1, 1001)})
    combine_all(conn)
    options = Options.of({"queue": "wc", "dsn": dsn}, reading=True)
    reader = ValuesReader(options, schema_of(options))
    first, *others = reader.partitions()
    begun = reader.read(first)
    assert next(begun).num_rows > 0
    begun.close()
    conn.execute("select pgcombine.rebucket('wc', 1)")
    for part in others:
        with pytest.raises(QueueError, match="with a new frame"):
            next(reader.read(part))
