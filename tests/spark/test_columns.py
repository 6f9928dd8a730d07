"""Columns of frames: which values and names both sinks write unchanged, and which frames they refuse."""

from __future__ import annotations

from typing import Any

import psycopg
import pytest
from support.queues import combine_all, make_queue
from support.servers import embedded_only

from pgcombine.errors import ConfigError, InvalidUpdateError, PgCombineError

from .conftest import Write
from .frames import COPY_FIRST

pytestmark = [pytest.mark.spark, embedded_only]
REPLACED = "\N{REPLACEMENT CHARACTER}x"


@COPY_FIRST
def test_arrays_stay_equal(spark: Any, conn: psycopg.Connection, write: Write, sink: str) -> None:
    types = ("uuid", "bytea", "smallint", "date", "varchar", "numeric(5,2)")
    make_queue(conn, value=[f"c{n} {one}[] array_union" for n, one in enumerate(types)], delete_when=None)
    write(
        sink,
        spark.sql(
            r"""
            select 'w' as word, array('11111111-2222-3333-4444-555555555555', null) as c0,
                array(X'00ff', X'', null) as c1, array(1S, null) as c2, array(date'2024-03-10', null) as c3,
                array('\\', '"', 'NULL', '', null) as c4, array(1.50BD, null) as c5
            union all select 'none', null, null, null, null, null, null
            """
        ),
    )
    combine_all(conn)
    rows = conn.execute("select to_json(v) from pgcombine.wc_values v order by word").fetchall()
    assert rows[0][0] == {"word": "none", **{f"c{n}": None for n in range(6)}}
    assert rows[1][0] == {
        "word": "w",
        "c0": ["11111111-2222-3333-4444-555555555555", None],
        "c1": ["\\x", "\\x00ff", None],
        "c2": [1, None],
        "c3": ["2024-03-10", None],
        "c4": ["", '"', "NULL", "\\", None],
        "c5": [1.5, None],
    }


@COPY_FIRST
def test_odd_column_names_work(spark: Any, conn: psycopg.Connection, write: Write, sink: str) -> None:
    make_queue(
        conn, key=['"Word" text'], value=['"a`b" int sum', '"c.d" int sum', '"e ""%{f}" int sum'], delete_when=None
    )
    odd = spark.createDataFrame([("w", 1, 2, 3)], 'Word string, `a``b` int, `c.d` int, `e "%{f}` int')
    write(sink, odd, preaggregate=True)
    combine_all(conn)
    assert conn.execute("select * from pgcombine.wc_values").fetchall() == [("w", 1, 2, 3)]


@COPY_FIRST
def test_names_that_differ_by_case_are_distinguished(
    spark: Any, conn: psycopg.Connection, write: Write, sink: str
) -> None:
    make_queue(conn, value=["n bigint sum", '"N" bigint sum'], delete_when=None)
    one_of_them = spark.createDataFrame([("w", 7)], "word string, N bigint")
    if sink == "jdbc":
        with pytest.raises(ConfigError, match='"n", "N"'):
            write(sink, one_of_them)
        spark.conf.set("spark.sql.caseSensitive", "true")
    try:
        write(sink, one_of_them)
    finally:
        spark.conf.unset("spark.sql.caseSensitive")
    combine_all(conn)
    assert conn.execute('select n, "N" from pgcombine.wc_values').fetchall() == [(0, 7)]


@COPY_FIRST
def test_decimals_that_the_column_would_round_are_refused(
    spark: Any, conn: psycopg.Connection, write: Write, sink: str
) -> None:
    """The refused frame has no rows, only columns. The queue's types include a domain and an array."""
    conn.execute("create domain price as numeric(10,1); create domain net as price")
    columns = {
        "a": ("numeric(10,2)", "decimal(10,4)", 2),
        "b": ("money", "decimal(10,4)", 2),
        "c": ("public.net", "decimal(3,2)", 1),
        "d": ("numeric(6,-2)", "int", -2),
        "e": ("numeric(10,2)[]", "array<decimal(10,4)>", 2),
    }
    make_queue(
        conn,
        value=[f"{name} {kind} {'array_union' if '[' in kind else 'sum'}" for name, (kind, _, _) in columns.items()],
        delete_when=None,
    )
    schema = ", ".join(f"{name} {given}" for name, (_, given, _) in columns.items())
    with pytest.raises(InvalidUpdateError) as refused:
        write(sink, spark.createDataFrame([], f"word string, {schema}"))
    for name, (kind, given, digits) in columns.items():
        told = (
            f'"{name}" is {given}, and {kind} in the queue would round it to {digits} digits after the point: round or'
        )
        assert told in str(refused.value)
    write(
        sink, spark.sql("select 'w' as word, 1.23BD as a, cast(1.23 as decimal(10,2)) as b, 7 as c, array(1.5BD) as e")
    )
    combine_all(conn)
    row = conn.execute("select a::text, b::numeric::text, c::text, e::text from pgcombine.wc_values").fetchone()
    assert row == ("1.23", "1.23", "7.0", "{1.50}")


def test_floating_point_is_rounded_by_the_column(spark: Any, conn: psycopg.Connection, write: Write) -> None:
    """The type of a floating-point number doesn't tell how many digits it has, so the frame isn't refused."""
    make_queue(conn, value=["n numeric(10,2) sum"])
    write("copy", spark.createDataFrame([("w", 1.2345)], "word string, n double"))
    combine_all(conn)
    assert conn.execute("select n::text from pgcombine.wc_values").fetchall() == [("1.23",)]


@COPY_FIRST
def test_text_that_is_not_utf8_is_refused(spark: Any, conn: psycopg.Connection, write: Write, sink: str) -> None:
    """Otherwise JDBC would write another text, since Java replaces the invalid bytes by replacement characters."""
    make_queue(conn, value=["n bigint sum", "tags text[] array_union"], delete_when=None)
    array = "'w' as word, array('b', null, cast(unhex('61ff') as string)) as tags"
    for given in ("cast(unhex('61ff') as string) as word, 1L as n", array):
        with pytest.raises(PgCombineError, match="the bytes 61FF"):
            write(sink, spark.sql(f"select {given}"))
    assert conn.execute("select pgcombine.backlog('wc')").fetchone() == (0,)


@pytest.mark.wc
@pytest.mark.slow
@COPY_FIRST
def test_halves_of_a_character_are_replaced_by_spark(
    spark: Any, conn: psycopg.Connection, write: Write, sink: str
) -> None:
    """Spark replaces a lone surrogate when it reads a row from Python, so no sink sees the original text."""
    broken = spark.createDataFrame([("\ud800x", 1)], "word string, n bigint")
    assert broken.collect()[0].word == REPLACED
    write(sink, broken)
    combine_all(conn)
    assert conn.execute("select word from pgcombine.wc_values").fetchall() == [(REPLACED,)]
