"""A program takes its database from the environment, and its log holds no password."""

from __future__ import annotations

import subprocess
import sys

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict
from support.cli import environment
from support.queues import combine_all, make_queue, values
from support.servers import embedded_only

from .test_docs import sections

pytestmark = [pytest.mark.spark, embedded_only, pytest.mark.slow]

PROGRAM = """if True:
    import logging, sys
    from pgcombine.spark import initialize, session, staged

    logging.basicConfig(level=logging.INFO, format="%(name)s %(message)s")
    spark = session("tests", master="local[2]")
    frame = spark.createDataFrame([("a", 1), ("b", 2)], "word string, n bigint").repartition(2)
    for _ in range(2):
        frame.write.format("pgcombine").options(queue="wc", runId="by format").mode("append").save()
    for _ in range(2):
        with staged(frame, "wc", run_id="by hand") as rows:
            print("staged", rows.commit().applied)
    initialize(frame, "loaded")
    exec(sys.argv[1])
    read = spark.read.format("pgcombine").option("queue", "loaded").load()
    read.explain(True)
    print("read", sorted(map(tuple, read.collect())))
    print("early", spark.read.format("pgcombine").option("queue", "wc").load().collect())
    spark.stop()
"""


@pytest.mark.wc
@pytest.mark.timeout(600)
def test_program_uses_the_database_of_the_environment(conn: psycopg.Connection, dsn: str) -> None:
    make_queue(conn, "loaded")
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *sections()["The database"]],
        env=environment({"PGCOMBINE_DSN": dsn, "PGCOMBINE_SPARK_LOG": "INFO"}),
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    told = done.stdout.splitlines()
    assert [line for line in told if line.startswith("staged")] == ["staged True", "staged False"]
    assert "read [('a', 1), ('b', 2)]" in told
    assert "early []" in told
    pending = [line for line in done.stderr.splitlines() if "pending updates" in line]
    assert pending == [
        'pgcombine: queue "wc" has pending updates, which are not in this frame: a worker combines them, or '
        "pgcombine drain wc"
    ]
    combine_all(conn)
    assert values(conn) == {"a": 2, "b": 4, "fluo": 1, "spark": 2}  # each run counts once
    log = done.stderr.splitlines()
    skipped = [line for line in log if "was applied before" in line]
    assert skipped == ['pgcombine: run "by format" of queue "wc" was applied before: nothing is written']
    assert "pgcombine.spark load.skipped queue=wc run_id=by hand reason=applied_before" in log
    assert "SparkContext" in done.stderr  # the log also has Spark's messages
    assert str(conninfo_to_dict(dsn)["password"]) not in done.stdout + done.stderr
