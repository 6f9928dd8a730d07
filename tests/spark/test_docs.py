"""The Python code of ``pgcombine/docs/spark.md`` runs and has the effects that the page describes."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.needs import require
from support.queues import combine, combine_all, make_queue, one, values
from support.servers import embedded_only

from pgcombine import CombineQueue
from pgcombine.errors import ConfigError
from pgcombine.spark.errors import explained
from pgcombine.spark.jdbc_driver import find_driver

PAGE = Path(__file__).parents[2] / "pgcombine" / "docs" / "spark.md"
pytestmark = pytest.mark.spark


def sections() -> dict[str, list[str]]:
    """Return the Python fences of each section that has any, by its heading."""
    text = re.split(r"^## (.*)\n", PAGE.read_text(encoding="utf-8"), flags=re.MULTILINE)
    found = {
        heading: re.findall(r"^```python\n(.*?)^```$", body, re.MULTILINE | re.DOTALL)
        for heading, body in zip(text[1::2], text[2::2], strict=True)
    }
    return {heading: pieces for heading, pieces in found.items() if pieces}


Recipe = Callable[..., dict[str, Any]]


@pytest.fixture
def recipe(spark: Any, conn: psycopg.Connection, dsn: str) -> Recipe:
    """Returns a function that runs the fences of a section with given names.

    The function returns the names after the last fence, with their values.
    """

    def recipe(heading: str, **given: Any) -> dict[str, Any]:
        names = {"spark": spark, "dsn": dsn, "connection": conn, **given}
        for number, piece in enumerate(sections()[heading]):
            exec(compile(piece, f"{PAGE.name}: {heading}, {number}", "exec"), names)
        return names

    return recipe


def words(spark: Any, **counts: int) -> Any:
    return spark.createDataFrame([*counts.items()], "word string, n bigint")


def test_tests_run_every_section() -> None:
    assert sorted(sections()) == [
        "Aggregates of a stream",
        "By JDBC",
        "Changes as a stream",
        "Errors",
        "Replacing what a run wrote",
        "Streams",
        "The database",  # tested in test_environment, since the environment must be set before Spark starts
        "Updates together with statements of your own",
        "Upsert",
        "Values as a frame",
        "Writing frames",
    ]


@pytest.mark.wc
@pytest.mark.slow
@embedded_only
def test_section_frames_and_values_works(spark: Any, conn: psycopg.Connection, recipe: Recipe) -> None:
    make_queue(conn, "copy_of_wc")
    lines = spark.createDataFrame([("a b a",)], "value string")
    for _ in range(2):  # the write with a run id counts once
        recipe("Writing frames", lines=lines)
    combine_all(conn)
    assert values(conn) == {"a": 6, "b": 3}
    recipe("Values as a frame")
    assert values(conn, "copy_of_wc") == {"a": 6, "b": 3}


@pytest.mark.wc
@pytest.mark.slow
@embedded_only
def test_section_streams_works(spark: Any, conn: psycopg.Connection, recipe: Recipe, tmp_path: Path) -> None:
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "1").write_text("a\nb\na\n")
    stream = spark.readStream.text(str(tmp_path / "lines")).selectExpr("value as word", "1L as n")
    recipe("Streams", words=stream, checkpoint=str(tmp_path / "checkpoint"))
    combine_all(conn)
    assert values(conn) == {"a": 2, "b": 1}


@pytest.mark.wc
@pytest.mark.slow
@embedded_only
def test_section_changes_works(spark: Any, conn: psycopg.Connection, recipe: Recipe, tmp_path: Path) -> None:
    conn.execute("select pgcombine.create_feed('wc_feed', 'wc')")
    copy: dict[str, int] = {}
    for updates in ({"a": 1, "b": 2}, {"a": 2, "b": -2}):
        combine(conn, updates)
        recipe("Changes as a stream", copy=copy, checkpoint=str(tmp_path / "checkpoint"))
        assert {word: n for word, n in copy.items() if n is not None} == values(conn)


@embedded_only
def test_section_errors_works(spark: Any, recipe: Recipe, capsys: pytest.CaptureFixture[str]) -> None:
    recipe("Errors", words=words(spark, a=1))
    assert capsys.readouterr().out.startswith('there is no queue "nonsense"')


@embedded_only
def test_section_jdbc_works(spark: Any, conn: psycopg.Connection, recipe: Recipe, tmp_path: Path) -> None:
    require("PostgreSQL's JDBC driver", there=find_driver() is not None)
    make_queue(conn)
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "1").write_text("a\nb\na\n")
    stream = spark.readStream.text(str(tmp_path / "lines")).selectExpr("value as word", "1L as n").writeStream
    stream = stream.option("checkpointLocation", str(tmp_path / "checkpoint")).trigger(availableNow=True)
    recipe("By JDBC", words=words(spark, a=10), writer=stream)
    combine_all(conn)
    assert values(conn) == {"a": 12, "b": 1}


@pytest.mark.wc
@embedded_only
def test_section_own_statements_works(spark: Any, conn: psycopg.Connection, recipe: Recipe) -> None:
    conn.execute("create table progress as select null::text as day")
    for _ in range(2):
        recipe("Updates together with statements of your own", words=words(spark, a=1, b=2))
    combine_all(conn)
    assert (values(conn), one(conn, "select day from progress")) == ({"a": 1, "b": 2}, "2024-02-29")


@pytest.mark.slow
@embedded_only
def test_section_upsert_works(spark: Any, conn: psycopg.Connection, recipe: Recipe) -> None:
    def at(hour: int) -> datetime:
        return datetime(2024, 2, 29, hour, tzinfo=UTC)

    schema = "sku string, price long, deleted boolean, at timestamp"
    changes = [("a", 3, False, at(9)), ("a", 1, False, at(8)), ("b", 5, False, at(8)), ("b", None, True, at(9))]
    made = recipe("Upsert", changes=spark.createDataFrame(changes, schema))
    late = spark.createDataFrame([("b", 7, False, at(7)), ("a", 2, False, at(8))], schema)
    late.write.format("pgcombine").options(queue="product", dsn=made["dsn"]).mode("append").save()
    combine_all(conn, "product")
    assert [(row.sku, row.price, row.deleted, row["at"].timestamp()) for row in made["there"].collect()] == [
        ("a", 3, False, at(9).timestamp())
    ]


@pytest.mark.wc
@embedded_only
@pytest.mark.pyspark(">=4.1")
def test_section_replacing_works(spark: Any, conn: psycopg.Connection, recipe: Recipe, tmp_path: Path) -> None:
    """Each run has other rows of the days, and a stream whose checkpoint is lost."""
    (tmp_path / "lines").mkdir()
    (tmp_path / "lines" / "1").write_text("s\ns\n")
    stream = spark.readStream.text(str(tmp_path / "lines")).selectExpr("value as word", "1L as n").writeStream
    schema = "day string, word string, n bigint"
    for number, rows in enumerate(
        [
            [("2024-02-27", "a", 1), ("2024-02-28", "b", 2)],
            [("2024-02-28", "b", 7), ("2024-02-29", "a", 3), ("2024-02-29", "c", 1)],
        ]
    ):
        writer = stream.option("checkpointLocation", str(tmp_path / f"checkpoint {number}")).trigger(availableNow=True)
        recipe("Replacing what a run wrote", events=spark.createDataFrame(rows, schema), writer=writer)
        combine_all(conn)
        wanted: dict[str, int] = {"s": 2}
        for _, word, n in rows:
            wanted[word] = wanted.get(word, 0) + n
        assert values(conn) == wanted


@pytest.mark.slow
@embedded_only
def test_section_aggregates_of_a_stream_works(
    spark: Any, conn: psycopg.Connection, recipe: Recipe, tmp_path: Path
) -> None:
    (tmp_path / "lines").mkdir()
    stream = spark.readStream.text(str(tmp_path / "lines")).selectExpr("value as word")
    given = {"stream": stream, "checkpoint": str(tmp_path / "checkpoint"), "CombineQueue": CombineQueue}
    (tmp_path / "lines" / "1").write_text("a\nb\na\n")
    made = recipe("Aggregates of a stream", **given)
    (tmp_path / "lines" / "2").write_text("a\nc\n")
    made["writer"].foreachBatch(made["foreach_batch"]("so_far", made["dsn"])).start().awaitTermination()
    combine_all(conn, "so_far")
    assert values(conn, "so_far") == {"a": 3, "b": 1, "c": 1}
    # errors that the page describes for the format
    for mode, kind, message in [
        ("update", Exception, "pgcombine does not support Update mode"),
        ("complete", ConfigError, r"can't be overwritten as a whole: .*foreach_batch\(queue, dsn\)"),
    ]:
        sink = made["totals"].writeStream.outputMode(mode).option("checkpointLocation", str(tmp_path / mode))
        query = sink.format("pgcombine").options(queue="so_far", dsn=made["dsn"]).start()
        with pytest.raises(kind, match=message), explained():
            query.awaitTermination()
