"""What differs among versions and sessions of Spark.

PySpark 4.0 lacks the class for writing streams of Arrow batches, so the format refuses to write streams there.
"""

from __future__ import annotations

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psycopg
import pytest
from support.queues import one
from support.servers import embedded_only

from pgcombine.errors import PgCombineError
from pgcombine.spark.errors import explained

from .streams import Stream

WITHOUT_STREAMS = """
from pyspark.sql import datasource
vars(datasource).pop("DataSourceStreamArrowWriter", None)
from pgcombine.errors import ConfigError
from pgcombine.spark.options import Options
from pgcombine.spark.writer import BatchWriter, StreamWriter
try:
    StreamWriter(Options("wc", "host=nowhere"), None, False)
except ConfigError as error:
    print(error)
"""


def test_format_loads_without_classes_of_streams() -> None:
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", WITHOUT_STREAMS], capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    (line,) = done.stdout.splitlines()
    assert f"needs PySpark 4.1 or later, and this is {version('pyspark')}: " in line


@pytest.mark.wc
@pytest.mark.spark
@pytest.mark.pyspark("<4.1")
@embedded_only
def test_format_refuses_streams(spark: Any, dsn: str, conn: psycopg.Connection, tmp_path: Path) -> None:
    stream = Stream(spark, dsn, tmp_path, "copy")
    stream.add("a b")
    with pytest.raises(PgCombineError, match=r"4\.1.*4\.0"), explained():
        stream.run()
    assert one(conn, "select pgcombine.backlog('wc')") == 0


@pytest.mark.spark
def test_session_of_another_thread_stays_unchanged(spark: Any) -> None:
    """A thread without an active session uses the existing session, which stays usable afterwards."""
    from pyspark.sql import SparkSession

    from pgcombine.phrasecount.session import borrowed_session

    def work() -> int:
        spark._jvm.org.apache.spark.sql.classic.SparkSession.clearActiveSession()
        assert SparkSession.getActiveSession() is None
        with borrowed_session("tests") as borrowed:
            return int(borrowed.range(3).count())

    with ThreadPoolExecutor(1) as thread:
        assert thread.submit(work).result() == 3
    assert spark.range(4).count() == 4
