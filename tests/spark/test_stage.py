"""The stage: each part counts once, whatever was written twice; values arrive as they are."""

from __future__ import annotations

from typing import Any
from uuid import uuid4

import psycopg
import pytest
from support.servers import embedded_only

pytestmark = [pytest.mark.spark, embedded_only]
STAGE = ("phrasecount", "difference")
SCHEMA = "phrase string, docs bigint, total bigint"


@pytest.mark.parametrize("sink", ["jdbc", "copy"])
def test_attempts_at_a_part_count_once(spark: Any, dsn: str, conn: psycopg.Connection, sink: str) -> None:
    from pgcombine.spark.stage import write_stage
    from pgcombine.spark.target import Target

    rows = [(text, n, -n) for n, text in enumerate(['"', "a,b", "\\.", "", "é€😀", "line\nbreak"])] + [(None, 7, 7)]
    frame = spark.createDataFrame(rows, SCHEMA).repartition(3)
    load, other = uuid4(), uuid4()
    for name in (load, load, other):
        write_stage(frame, STAGE, Target.of(dsn), name, sink=sink)
    stored = conn.execute("select count(*), count(distinct load) from phrasecount.difference").fetchone()
    assert stored == (3 * len(rows), 2)
    once = conn.execute("select phrase, docs, total from phrasecount.difference_once where load = %s", (load,))
    assert sorted(once.fetchall(), key=str) == sorted(rows, key=str)


@pytest.mark.parametrize("sink", ["jdbc", "copy"])
def test_failed_part_is_one_clear_error(spark: Any, dsn: str, sink: str) -> None:
    from pgcombine.errors import PgCombineError
    from pgcombine.spark.errors import explained
    from pgcombine.spark.stage import write_stage
    from pgcombine.spark.target import Target

    frame = spark.range(10).selectExpr("cast(id as string) as phrase", "id as docs", "10 div (5 - id) as total")
    with pytest.raises(PgCombineError, match=r"^Spark failed: .*DIVIDE_BY_ZERO"), explained():
        write_stage(frame, STAGE, Target.of(dsn), uuid4(), sink=sink)


@pytest.mark.parametrize("sink", ["jdbc", "copy"])
def test_stage_that_refuses_rows_is_one_clear_error(spark: Any, dsn: str, sink: str) -> None:
    from pgcombine.errors import PgCombineError
    from pgcombine.spark.errors import explained
    from pgcombine.spark.stage import write_stage
    from pgcombine.spark.target import Target

    frame = spark.createDataFrame([("a", None, 1)], SCHEMA)
    with pytest.raises(PgCombineError, match='null value in column "docs"'), explained():
        write_stage(frame, STAGE, Target.of(dsn), uuid4(), sink=sink)


def test_password_is_in_no_plan(spark: Any, dsn: str) -> None:
    from pgcombine.spark.stage import write_stage
    from pgcombine.spark.target import Target

    target = Target.of(dsn)
    password = target.properties["password"]
    assert password not in repr(target)
    store = spark._jsparkSession.sharedState().statusStore()
    for sink in ("jdbc", "copy"):
        write_stage(spark.createDataFrame([("a", 1, 1)], SCHEMA), STAGE, target, uuid4(), sink=sink)
    plans = [store.executionsList().apply(i).physicalPlanDescription() for i in range(store.executionsList().size())]
    assert any("difference" in plan for plan in plans)
    assert not any(password in plan for plan in plans)
